import { mkdirSync, readFileSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tempHome } from '../support/temp-home.ts';

const now = Date.parse('2026-06-30T12:00:00Z');
const day = 86_400_000;

/** A user whose transcripts changed so many days ago last, by the names of their sessions. */
function userWith(ages: Readonly<Record<string, number>>, settings?: string) {
  const dir = tempDir();
  const home = tempHome();
  home.session('main');
  const file = (session: string) => dir.file(`.claude/projects/p/${session}.jsonl`);
  const write = (session: string, age: number, turns = 1) => {
    const lines = Array.from({ length: turns }, (_, i) => {
      const [uuid, parentUuid] = [`${session}-${i}`, i === 0 ? null : `${session}-${i - 1}`];
      const record = {
        type: 'user',
        uuid,
        parentUuid,
        sessionId: session,
        cwd: '/secret',
        isSidechain: false,
      };
      return `${JSON.stringify({ ...record, message: { role: 'user', content: 'Hello' } })}\n`;
    });
    mkdirSync(dirname(file(session)), { recursive: true });
    writeFileSync(file(session), lines.join(''));
    utimesSync(file(session), (now - age * day) / 1000, (now - age * day) / 1000);
  };
  for (const [session, age] of Object.entries(ages)) write(session, age);
  if (settings !== undefined) writeFileSync(dir.file('.claude/settings.json'), settings);
  const here = async (...args: string[]) =>
    await home.here(args, { env: { HOME: dir.path }, now: () => now });
  const check = async () => json(await here('check', '--json')).imports as Readonly<Record<string, unknown>>;
  return {
    ...{ dir, file, write, here, check },
    text: async () => (await here('check')).stdout.split('\n').slice(6, -1).join('\n'),
    expiring: async () =>
      ((await check()).expiring as { file: string }[]).map((one) => /([^/]*)\.jsonl$/.exec(one.file)?.[1]),
    [Symbol.dispose]: () => {
      home[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
}

test('a home without tapes warns of transcripts that are about to be deleted, too', async () => {
  using user = userWith({ old: 26, older: 27, new: 1 });
  const [named, none] = [['check', '--home', user.dir.file('none')], user.dir.file('none')];
  expect((await user.here(...named)).stderr).toContain('there is no such directory');
  mkdirSync(none);
  const { code, stdout, stderr } = await user.here(...named);
  expect([code, stdout]).toEqual([3, '']);
  expect(stderr).toContain(
    'Hint: their tool deletes 2 of 3 transcripts from 2026-07-03 on: keep them with: tape import',
  );
  expect(jsonError(await user.here(...named, '--json')).data).toMatchObject({
    ...{ empty: true, transcripts: 3, expiring: 2, deleted_from: '2026-07-03T12:00:00.000Z' },
  });
  user.write('old', 1);
  user.write('older', 1);
  expect((await user.here(...named)).stderr).toContain('keep those of another agent with: tape import');
});

test('it says when the last import was, and nothing where there is nothing to import', async () => {
  using none = userWith({});
  expect(await none.text()).toBe('');
  expect(await none.check()).toBeUndefined();
  using user = userWith({ a: 1, b: 2 });
  expect(await user.text()).toBe('imports: none yet, of 2 transcripts (next: tape import)');
  await user.here('import');
  expect(await user.text()).toBe('imports: last one now');
  expect(await user.check()).toEqual({
    ...{ last: '2026-06-30T12:00:00.000Z', transcripts: 2, expiring: [] },
    retention: [{ tool: 'claude-code', days: 30 }],
  });
  expect(json(await user.here('check', 'main', '--json')).imports).toBeUndefined();
});

test('it warns a week ahead of what Claude Code is about to delete and no tape has: new, or grown since', async () => {
  using user = userWith({ young: 22, old: 24, gone: 40 });
  expect(await user.text()).toBe(
    `imports: none yet, of 3 transcripts\n  expiring: 2 transcripts, ${2 * 148} B, not on a tape as they are now: ` +
      `Claude Code keeps them for 30 days, and deletes ${user.file('gone')} when Claude Code starts (next: tape import)`,
  );
  expect((await user.here('check')).code).toBe(0);
  await user.here('import');
  expect(await user.expiring()).toEqual([]);
  user.write('old', 25, 2);
  expect(await user.expiring()).toEqual(['old']);
  expect(await user.text()).toContain(`deletes ${user.file('old')} from 2026-07-05 on`);
  await user.here('import');
  expect(await user.expiring()).toEqual([]);
  // Only touched, or moved: a tape has what is there.
  user.write('old', 26, 2);
  renameSync(user.file('gone'), user.file('moved'));
  expect(await user.expiring()).toEqual([]);
  const text = readFileSync(user.file('old'), 'utf8');
  writeFileSync(user.file('old'), text.replace('Hello', 'Other'));
  utimesSync(user.file('old'), (now - 26 * day) / 1000, (now - 26 * day) / 1000);
  expect(await user.expiring()).toEqual(['old']);
  await user.here('import');
  user.write('young', 28, 2);
  await user.here('import', '--forget', user.file('young'));
  expect(await user.expiring()).toEqual([]);
  user.write('other', 28);
  await user.here('config', 'set', 'import.exclude', '["/secret/"]');
  expect(await user.expiring()).toEqual([]);
});

test.each([
  ['{}', 30, ['old', 'gone'], undefined],
  ['{"cleanupPeriodDays": 365}', 365, [], undefined],
  ['{"cleanupPeriodDays": 4}', 4, ['old', 'gone', 'young'], undefined],
  ['\u{feff}{"cleanupPeriodDays": 6}', 6, ['old', 'gone'], undefined],
  ['{"cleanupPeriodDays": 0}', 0, ['old', 'gone', 'young'], /is 0/],
  ['{"cleanupPeriodDays": "90"}', 30, ['old', 'gone'], /no number of days/],
  ['{"cleanupPeriodDays": -1}', 30, ['old', 'gone'], /no number of days/],
  ['{"cleanupPeriodDays": 2.5}', 30, ['old', 'gone'], /no number of days/],
  ['{"cleanupPeriodDays": 90', 30, ['old', 'gone'], /the settings cannot be read, in /],
])('how long it is kept is in the settings, else 30 days: %s', async (settings, days, expiring, fault) => {
  using user = userWith({ young: 2, gone: 40, old: 41 }, settings);
  expect(await user.check()).toMatchObject({ retention: [{ tool: 'claude-code', days }] });
  expect(await user.expiring()).toEqual(expiring);
  if (fault !== undefined) expect(await user.text()).toMatch(fault);
});

test('a project in which Claude Code deletes transcripts earlier counts once a session of it is known', async () => {
  using user = userWith({ young: 4, other: 1 });
  const project = user.dir.file('work');
  mkdirSync(`${project}/.claude`, { recursive: true });
  writeFileSync(`${project}/.claude/settings.json`, '{"cleanupPeriodDays": 5}');
  const record = {
    type: 'user',
    uuid: 'p',
    sessionId: 'p',
    cwd: project,
    message: { role: 'user', content: 'Hi' },
  };
  writeFileSync(user.file('p'), `${JSON.stringify(record)}\n`);
  expect(await user.check()).toMatchObject({ retention: [{ days: 30 }] });
  await user.here('import', user.file('p'));
  expect(await user.check()).toMatchObject({ retention: [{ days: 5, started_in: project }] });
  expect(await user.expiring()).toEqual(['young']);
  expect(await user.text()).toContain(
    `keeps them for 5 days where it is started in ${project}, and deletes `,
  );
});

test('a name that would steer the terminal is printed as an escape', async () => {
  using user = userWith({ 'a\u{1b}]0;x\u{7}': 40 });
  expect(await user.text()).toContain('a\\u{1b}]0;x\\u{7}.jsonl');
});
