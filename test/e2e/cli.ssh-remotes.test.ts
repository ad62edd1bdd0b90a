import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { type SqliteTapeStore, user } from '@tapedeck/tape';
import { remoteUrl } from '@tapedeck/tape/remotes';
import { describe, expect, test, vi } from 'vitest';
import { startProcess } from '../support/process.ts';
import { sized } from '../support/size.ts';
import {
  damageIn,
  descendantsOf,
  headsOf,
  noSsh,
  peerAt,
  scriptIn,
  sshEnv,
  storeIn,
  tapeThere,
} from '../support/ssh-homes.ts';
import { skipsSshd, startSshd } from '../support/sshd.ts';
import { type TempDir, tempDir } from '../support/temp-dir.ts';

/** A home with these sessions, each with a message. */
function homeIn(dir: TempDir, name: string, sessions: readonly string[] = []): string {
  mkdirSync(dir.file(name), { mode: 0o700 });
  using store = storeIn(dir.file(name));
  for (const session of sessions) {
    store.sessions.open(session);
    store.entries.append(session, [user(`Hello ${session}`)]);
  }
  return dir.file(name);
}

const say = (store: SqliteTapeStore, session: string, text: string) =>
  store.entries.append(session, [user(text)]);

describe.skipIf(skipsSshd('homes on other machines'))('a home that ssh reaches', () => {
  test('gets what it lacks by a push, and gives it by a pull', async () => {
    using dir = tempDir();
    await using sshd = await startSshd(dir);
    const there = homeIn(dir, "it's there");
    using here = storeIn(homeIn(dir, 'here', ['main', 'other']));
    here.lineage.fork('main', { name: 'child' });
    using third = storeIn(homeIn(dir, 'third'));
    const peer = peerAt(sshd.url(encodeURI(there)), sshEnv(sshd.ssh));
    expect(await peer.push(here, { dryRun: true })).toMatchObject({ entries: 5, bytes: expect.any(Number) });
    expect((await peer.pull(third, { dryRun: true })).sessions).toEqual([]);
    expect(await peer.push(here, { sessions: ['child'] })).toMatchObject({
      sessions: [{ session: 'main' }, { session: 'child' }],
    });
    expect(await peer.push(here)).toMatchObject({ sessions: [{ session: 'other', entries: 2 }] });
    expect(await peer.push(here)).toMatchObject({ sessions: [], entries: 0, bytes: 0 });
    expect(await peer.pull(third)).toMatchObject({ entries: 5, refused: [] });
    expect(await peer.pull(third)).toMatchObject({ entries: 0, bytes: 0 });
    say(third, 'child', 'More');
    third.lineage.merge('child');
    expect(await peer.push(third)).toMatchObject({ refused: [] });
    expect(await peer.pull(here)).toMatchObject({ refused: [] });
    using served = storeIn(there);
    for (const store of [here, third, served]) {
      expect(headsOf(store)).toEqual(headsOf(here));
      expect(damageIn(store)).toEqual([]);
    }
  });

  test('lets in whom its ssh server lets in, and asks nothing', async () => {
    using dir = tempDir();
    await using sshd = await startSshd(dir);
    const url = sshd.url(homeIn(dir, 'there'));
    using here = storeIn(homeIn(dir, 'here', ['main']));
    for (const [ssh, why] of [
      [sshd.strange.key, /Permission denied/],
      [sshd.strange.host, /Host key verification failed/],
    ] as const)
      await expect(peerAt(url, sshEnv(ssh)).push(here)).rejects.toMatchObject({
        code: 'TAPE_REMOTE_FAILED',
        message: expect.stringMatching(why),
        data: { url },
      });
    for (const [path, tape, why] of [
      ['nowhere', tapeThere, /there is no such directory/],
      ['there', 'no-such-tape', /there is no tape \(.*no-such-tape/],
      ['there', 'sh -c "exit 2" ', /may be older/],
    ] as const) {
      const peer = peerAt(sshd.url(dir.file(path)), sshEnv(sshd.ssh, tape));
      await expect(peer.pull(here)).rejects.toMatchObject({ message: expect.stringMatching(why) });
    }
    expect(existsSync(dir.file('nowhere'))).toBe(false);
  });

  test('takes one of two pushes at once that contradict each other', async () => {
    using dir = tempDir();
    await using sshd = await startSshd(dir);
    const there = homeIn(dir, 'there');
    const peer = peerAt(sshd.url(there), sshEnv(sshd.ssh));
    using first = storeIn(homeIn(dir, 'first', ['main', 'free']));
    await peer.push(first);
    using second = storeIn(homeIn(dir, 'second'));
    await peer.pull(second);
    say(first, 'main', 'First');
    say(second, 'main', 'Second');
    say(second, 'free', 'Not in doubt');
    const both = await Promise.all([first, second].map((store) => peer.push(store)));
    const refused = both.flatMap((one) => one.refused);
    expect(refused).toMatchObject([
      { session: 'main', error: { code: 'TAPE_DIVERGED', data: { session: 'main', remote: true } } },
    ]);
    using served = storeIn(there);
    const won = both[0]?.refused.length === 0 ? first : second;
    expect(served.sessions.find('main')?.headHash).toBe(won.sessions.find('main')?.headHash);
    expect(served.sessions.find('free')?.headHash).toBe(second.sessions.find('free')?.headHash);
    const lost = won === first ? second : first;
    expect((await peer.pull(lost)).refused).toMatchObject([
      { session: 'main', error: { code: 'TAPE_DIVERGED' } },
    ]);
  });

  test('refuses a session that it is writing, and takes the others', async () => {
    using dir = tempDir();
    await using sshd = await startSshd(dir);
    const there = homeIn(dir, 'there');
    const peer = peerAt(sshd.url(there), sshEnv(sshd.ssh));
    using here = storeIn(homeIn(dir, 'here', ['main', 'free']));
    await peer.push(here);
    say(here, 'main', 'More');
    say(here, 'free', 'More');
    using served = storeIn(there);
    served.leases.acquire('main', { id: 'another' });
    expect(await peer.push(here)).toMatchObject({
      sessions: [{ session: 'free' }],
      refused: [{ session: 'main', error: { code: 'TAPE_BUSY' } }],
    });
  });

  const large = sized(6, 6, 40);

  /** Each process is killed once, in one direction or the other; in a soak in both. */
  const once = [
    ['push', 'there'],
    ['push', 'here'],
    ['pull', 'ssh'],
    ['pull', 'sshd'],
  ] as const;
  const both = [...once, ['push', 'ssh'], ['push', 'sshd'], ['pull', 'there'], ['pull', 'here']] as const;

  test.each(sized<readonly (typeof both)[number][]>(once, once, both))(
    'has nothing, or all, of a %s during which the one of %s is killed',
    async (act, victim) => {
      using dir = tempDir();
      await using sshd = await startSshd(dir);
      const [there, here] = [homeIn(dir, 'there'), homeIn(dir, 'here')];
      const [from, to] = act === 'push' ? [here, there] : [there, here];
      {
        using store = storeIn(from);
        store.sessions.open('main');
        for (let i = 0; i < large; i += 1) say(store, 'main', randomBytes(750_000).toString('base64'));
      }
      const tape = scriptIn(dir, 'tape', `echo $$ > ${dir.file('pid-there')}; exec ${tapeThere} "$@"`);
      // Pauses in the midst of what goes to the home that lacks it.
      const pause = `{ dd bs=65536 count=40 2>/dev/null; touch ${dir.file('midst')}; sleep 1; cat; }`;
      const own = `sh -c 'echo $$ > ${dir.file('pid-ssh')}; exec ${sshd.ssh} "$@"' ssh "$@"`;
      const ssh = scriptIn(dir, 'slow', act === 'push' ? `${pause} | ${own}` : `${own} | ${pause}`);
      const url = sshd.url(there);
      await using process = startProcess(
        `import { openTapeStore } from '@tapedeck/tape';
         import { openRemote, pull, push } from '@tapedeck/tape/remotes';
         const [act, home, url] = globalThis.process.argv.slice(1);
         using store = openTapeStore(home + '/tape.db', { secrets: [] });
         try {
           const env = { ...globalThis.process.env, TAPE_SSH_COMMAND: '${ssh}', TAPE_REMOTE_TAPE: '${tape}' };
           await { push, pull }[act](store, await openRemote(url, { state: '-', env }), { state: '-', secrets: [] });
           console.log('done');
         } catch (error) {
           console.log(error.code, error.message);
         }`,
        ...[act, here, url],
      );
      await vi.waitUntil(() => existsSync(dir.file('midst')) || process.printed() !== '', {
        timeout: 30_000,
      });
      expect(process.printed()).toBe('');
      const idIn = (name: string) => Number(readFileSync(dir.file(`pid-${name}`), 'utf8'));
      const served = idIn('there');
      const victims =
        victim === 'here'
          ? [process.child.pid ?? 0]
          : victim === 'sshd'
            ? descendantsOf(sshd.pid).filter((pid) => pid !== served && !descendantsOf(served).includes(pid))
            : [idIn(victim)];
      expect(victims.length).toBeGreaterThan(0);
      for (const pid of victims) globalThis.process.kill(pid, 'SIGKILL');
      if (victim === 'here') await process.kill();
      else {
        await process.done();
        expect(process.printed()).toContain('TAPE_REMOTE_FAILED cannot');
      }
      // The other side ends, too.
      await vi.waitUntil(() => !existsSync(`/proc/${served}`), { timeout: 20_000 });
      {
        using store = storeIn(to);
        expect(store.sessions.list()).toEqual([]);
        expect(damageIn(store)).toEqual([]);
      }
      const peer = peerAt(url, sshEnv(sshd.ssh));
      using store = storeIn(here);
      expect(await peer[act](store)).toMatchObject({ entries: large + 1 });
      using other = storeIn(there);
      expect(headsOf(other)).toEqual(headsOf(store));
      for (const one of [store, other]) expect(damageIn(one)).toEqual([]);
    },
    120_000,
  );
});

describe('a program in the place of ssh', () => {
  test('takes its words, and moves little where little is new', async () => {
    using dir = tempDir();
    const there = homeIn(dir, 'there');
    using here = storeIn(homeIn(dir, 'here'));
    for (let i = 0; i < sized(50, 400, 1_000); i += 1) here.sessions.open(`s${i}`);
    const plain = sshEnv(noSsh);
    await peerAt(`ssh://me@host:2222${there}`, plain).push(here);
    for (let i = 0; i < 10; i += 1) say(here, `s${i}`, `News ${i}`);
    await peerAt(`ssh://host${there}`, plain).push(here);
    using third = storeIn(homeIn(dir, 'third'));
    await peerAt(`ssh://host${there}`, plain).pull(third);
    say(here, 's3', 'Ten');
    for (let i = 0; i < 9; i += 1) say(here, 's3', `More ${i}`);
    await peerAt(`ssh://host${there}`, plain).push(here);
    const counted = scriptIn(
      dir,
      'counted',
      `echo "$@" > ${dir.file('words')}; for command; do :; done
       tee ${dir.file('in')} | sh -c "$command" | tee ${dir.file('out')}`,
    );
    const begun = performance.now();
    expect(await peerAt(`ssh://me@host:2222${there}`, sshEnv(counted)).pull(third)).toMatchObject({
      entries: 10,
    });
    expect(performance.now() - begun).toBeLessThan(10_000);
    const moved = ['in', 'out'].reduce((sum, name) => sum + readFileSync(dir.file(name)).length, 0);
    expect(moved).toBeLessThan(20_000);
    expect(readFileSync(dir.file('words'), 'utf8')).toMatch(
      /^-T -oBatchMode=yes -oClearAllForwardings=yes -p 2222 -- me@host env .* raw serve --home '.*there'\n$/,
    );
  });

  const hello = '{"tape":"remote","v":1,"version":"0.1.0"}';

  test.each([
    ['says nothing', 'sleep 100', /no answer for 1 seconds/],
    ['ends at once', 'exit 1', /it ended without a word/],
    [
      'greets people',
      'echo Welcome to this host; cat',
      /something else than tape does: 'Welcome to this host'/,
    ],
    ['never ends a line', 'cat /dev/zero', /a line of it has over 1048576 bytes/],
    ['never ends', 'yes "{}"', /it does not begin as tape does/],
    [
      'is newer',
      `echo '{"tape":"remote","v":2,"version":"9.0.0"}'`,
      /its tape \(9.0.0\) speaks version 2.*update the older one/,
    ],
    ['is lost after its first line', `echo '${hello}'`, /the connection was lost/],
    ['only says that it works', `echo '${hello}'; yes '{"alive":true}'`, /nothing but that it works/],
    ['compares nothing', `echo '${hello}'; echo '{"differ":[-1]}'; cat`, /does not say what differs/],
    [
      'reports an error',
      `echo '${hello}'; echo '{"error":{"message":"\\u001b[31mno"}}'; cat`,
      /it says '.\[31mno'/,
    ],
    [
      'sends what is no bundle',
      `echo '${hello}'; echo '{"differ":[]}'; echo '{"list":[],"end":true}'; echo '{"sent":[{"session":"a","id":"b","entries":1,"lines":0}],"refused":[]}'; echo '{"b":"Z2FyYmFnZQ=="}'; echo '{"bytes":7}'; cat`,
      /the file was cut off/,
    ],
    [
      'sends less than it says',
      `echo '${hello}'; echo '{"differ":[]}'; echo '{"list":[],"end":true}'; echo '{"sent":[{"session":"a","id":"b","entries":1,"lines":0}],"refused":[]}'; echo '{"b":"Z2FyYmFnZQ=="}'; echo '{"bytes":70}'; cat`,
      /another number of bytes/,
    ],
    [
      'sends pieces without bytes',
      `echo '${hello}'; echo '{"differ":[]}'; echo '{"list":[],"end":true}'; echo '{"sent":[{"session":"a","id":"b","entries":1,"lines":0}],"refused":[]}'; yes '{"b":""}'`,
      /a piece without bytes/,
    ],
    [
      'does not say what it sends',
      `echo '${hello}'; echo '{"differ":[]}'; echo '{"list":[],"end":true}'; echo '{"sent":[{"session":{"__proto__":1},"id":"b"}],"refused":[]}'; cat`,
      /does not name a session/,
    ],
    ['is deep', `echo '${hello}'; printf '[%.0s' $(seq 200000); echo; cat`, /something else than tape does/],
  ])('that %s changes nothing, and is reported in time', async (_, ssh, why) => {
    using dir = tempDir();
    using here = storeIn(homeIn(dir, 'here', ['main']));
    const before = headsOf(here);
    const peer = peerAt('ssh://host/home', sshEnv(scriptIn(dir, 'ssh', ssh)), 1_000);
    const begun = performance.now();
    const error = await peer.pull(here).catch((cause) => cause);
    expect(error.message).toMatch(why);
    expect(['TAPE_REMOTE_FAILED', 'TAPE_BAD_BUNDLE']).toContain(error.code);
    expect(performance.now() - begun).toBeLessThan(10_000);
    expect(headsOf(here)).toEqual(before);
  });
});

test.each([
  ['ssh://-oProxyCommand=touch%20x/home', 'its host is no name of one'],
  ['ssh://-oProxyCommand=x/home', 'its host is no name of one'],
  ['ssh://%2doProxyCommand=x@host/home', 'its user is no name of one'],
  ['ssh://ho$(touch)st/home', 'its host'],
  ['ssh://host/a\nb', 'line end'],
  ['ssh://host/a%0ab', 'control character'],
  ['ssh://host/%', 'a % that begins no character'],
  ['ssh://me:s3cret@host/home', 'takes no password'],
  ['ssh://host', 'no path'],
  ['ssh://host/', 'no path'],
  ['ssh://host:99999/home', 'no valid URL'],
  ['ssh:///home', 'its host'],
  ['ssh://host/home?x=1', "'?' or '#'"],
])('a URL %j is refused before anything runs', (url, why) => {
  const read = () => remoteUrl(url, '/');
  expect(read).toThrowError(expect.objectContaining({ code: 'TAPE_BAD_OPTION' }));
  expect(read).toThrowError(why);
  expect(read).not.toThrowError(/s3cret/);
});
