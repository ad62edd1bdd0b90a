import { openTapeStore, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json } from '../support/cli.ts';
import { tempHome } from '../support/temp-home.ts';

test('copy brings all realms of a home to a new one, keeps its base, and refuses what diverged', async () => {
  using here = tempHome();
  using away = tempHome();
  const there = away.file('archive');
  here.session('main', user('Plan the release.'));
  {
    using store = openTapeStore(here.db, { base: 'work' });
    store.keepBase('work');
    store.sessions.open('main');
    store.inbox.post('main', { body: { type: 'input', drafts: [user('Later')] } });
  }
  const copy = async (...more: readonly string[]) => await away.tape(['copy', here.path, there, ...more]);
  const first = await copy('--json');
  expect(json(first)).toMatchObject({
    ...{ home: there, sessions: 2, changed: 2, entries: 3, refused: [], behind: [] },
    waiting: [{ session: 'main', items: 1 }],
  });
  expect(first).toMatchObject({ code: 0, stderr: 'main has 1 message in its inbox, which stay there\n' });
  expect((await copy('--quiet')).stdout).toBe(`${there}\n`);
  for (const base of ['work', 'tape']) {
    const heads = [here.path, there].map(async (home) => {
      const { stdout } = await away.tape(['sessions', '--home', home, '--base', base, '--json']);
      return (JSON.parse(stdout) as readonly { head_hash: string }[]).map(({ head_hash }) => head_hash);
    });
    expect(await heads[1]).toEqual(await heads[0]);
  }
  expect((await away.tape(['sessions', '--home', there])).stderr).toContain("base 'tape'");
  expect(await away.tape(['verify', '--home', there])).toMatchObject({ code: 0 });

  const append = async (home: string, content: string) =>
    await away.tape(['append', 'main', '--home', home], { stdin: JSON.stringify({ role: 'user', content }) });
  await append(here.path, 'Here');
  await append(there, 'There');
  const refused = await copy();
  expect(refused).toMatchObject({
    code: 4,
    stderr: expect.stringMatching(/main was left out: .*@2 is another/),
  });
  expect(refused.stderr).toContain(`Hint: take one in beside it with: tape export NAME --home ${here.path}`);
});

test('copy refuses one home, a home that is not there, and --home, and writes nothing', async () => {
  using home = tempHome();
  home.session('main');
  const before = home.contents();
  const none = home.file('none');
  for (const [args, code, why] of [
    [[home.path, `${home.path}/.`], 2, 'to itself'],
    [[none, home.path], 3, 'there is no such directory'],
    [[home.path, none, '--home', none], 2, 'cannot copy with --home'],
  ] as const)
    expect(await home.tape(['copy', ...args])).toMatchObject({ code, stderr: expect.stringContaining(why) });
  expect(home.contents()).toEqual(before);
});
