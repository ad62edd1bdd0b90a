import { existsSync, writeFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import { anchor, assistant, note, user } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { type CliResult, json, jsonError } from '../support/cli.ts';
import { tempDir } from '../support/temp-dir.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

/** A home with `release`, its child `release-notes` and its grandchild `proofs`. */
function family(): TempHome {
  const home = tempHome();
  home.session('release', user('Plan'), assistant('Planned'), anchor('ready'), user('Go'));
  using store = home.open();
  store.lineage.fork('release', { name: 'release-notes' });
  store.lineage.fork('release-notes', { name: 'proofs' });
  store.sessions.update('proofs', { alias: { name: 'galley', reason: 'test' } });
  return home;
}

const shown = async (home: TempHome, place: string): Promise<unknown> => {
  const { session, seq } = json(await home.here(['show', place, '--json']));
  return seq === undefined ? session : `${session}@${seq}`;
};

test.each([
  ['proofs', 'proofs'],
  ['pro', 'proofs'],
  ['gal', 'proofs'],
  ['galley', 'proofs'],
  ['release', 'release'],
  ['release-', 'release-notes'],
  ['proofs^', 'release-notes'],
  ['proofs^^', 'release'],
  ['pro^^', 'release'],
  ['release@-1', 'release@4'],
  ['proofs^^@ready', 'release@4'],
  ['pro^^@2', 'release@2'],
  ['release@{now}', 'release@5'],
  ['release@-0', 'release@5'],
])('%s refers to %s', async (place, expected) => {
  using home = family();
  expect(await shown(home, place)).toBe(expected);
});

test('the beginning of an id refers to its session, in either case, wherever a session is taken', async () => {
  using home = family();
  const { id } = json<{ id: string }>(await home.here(['show', 'proofs', '--json']));
  const shortest = distinct(home, id);
  for (const ref of [id, id.slice(0, 25), shortest]) {
    expect(await shown(home, ref)).toBe('proofs');
    expect(await shown(home, ref.toLowerCase())).toBe('proofs');
    expect(await shown(home, `${ref.toLowerCase()}^`)).toBe('release-notes');
    expect(await shown(home, `${ref.toLowerCase()}@2`)).toBe('proofs@2');
  }
  const ref = shortest.toLowerCase();
  for (const args of [
    ['log', ref],
    ['graph', ref],
    ['children', ref],
    ['lineage', ref],
    ['usage', ref],
    ['anchor', ref, 'here'],
  ])
    expect(await home.here(args)).toMatchObject({ code: 0, stderr: expect.not.stringContaining('Error') });
  const appended = await home.here(['append', ref, '--json'], { stdin: '{"content":"x"}' });
  expect(json(appended).session).toBe('proofs');
  // The id of the child can begin in the same way.
  expect(json(await home.here(['fork', ref, '--json'])).parent).toBe('proofs');
});

/** The shortest beginning of an id that no other session of a home has. */
function distinct(home: TempHome, id: string): string {
  using store = home.open();
  const others = store.sessions.list({ all: true }).map((info) => info.id);
  const isShared = (length: number) =>
    others.some((other) => other !== id && other.startsWith(id.slice(0, length)));
  return id.slice(0, [...id].findIndex((_, i) => !isShared(i + 1)) + 1);
}

test('a beginning of several ids lists them with their names, at most eight, and creates nothing', async () => {
  using home = family();
  for (let i = 1; i <= 8; i += 1) home.session(`step-${i}`);
  const { id } = json<{ id: string }>(await home.here(['show', 'release', '--json']));
  const ref = id.slice(0, 6).toLowerCase();
  const before = home.contents();
  const error = await refused(home, ['log', ref]);
  expect(error).toMatchObject({
    code: 'CLI_USAGE',
    message: expect.stringMatching(
      /^cannot tell which session '\w{6}' is: (?:[0-9A-Z]{7,26} \([\w-]+\), ){8}and more$/,
    ),
    hint: 'write more of it',
    data: { candidates: expect.arrayContaining(['release', 'release-notes', 'proofs']) },
  });
  for (const [, begun = '', name] of error.message.matchAll(/(\w+) \(([\w-]+)\)/g))
    expect(await shown(home, begun)).toBe(name);
  for (const verb of [['append'], ['rewind'], ['run'], ['send']])
    expect((await refused(home, [...verb, ref, ...(verb[0] === 'send' ? ['x'] : [])])).code).toMatch(
      /CLI_USAGE|SESSION_NO_MODEL/,
    );
  expect(home.contents()).toEqual(before);
});

test('a name wins over the beginning of another, and over a point', async () => {
  using home = family();
  home.session('rel', user('Hello'));
  home.session('rel@ready', user('Hello'));
  expect(await shown(home, 'rel')).toBe('rel');
  expect(await shown(home, 'rel@ready')).toBe('rel@ready');
});

test('the name of a deleted session is not the beginning of another', async () => {
  using home = family();
  expect((await home.here(['delete', 'release'])).code).toBe(0);
  const before = home.contents();
  for (const args of [
    ['delete', 'release'],
    ['log', 'release@2'],
    ['undo', 'release'],
  ])
    expect([args, await refused(home, args)]).toMatchObject([
      args,
      { data: { deleted: expect.any(String) } },
    ]);
  expect(home.contents()).toEqual(before);
  expect(await shown(home, 'release-')).toBe('release-notes');
  expect(await shown(home, 'rele')).toBe('release-notes');
});

const refused = async (home: TempHome, args: readonly string[]) =>
  jsonError(await home.here([...args, '--json']));

test('an ambiguous beginning lists the candidates, and changes nothing', async () => {
  using home = family();
  const before = home.contents();
  expect(await refused(home, ['rewind', 'rele@2'])).toMatchObject({
    code: 'CLI_USAGE',
    message: expect.stringContaining("which session 'rele' is: "),
    data: { candidates: expect.arrayContaining(['release', 'release-notes']) },
  });
  expect(home.contents()).toEqual(before);
});

test('an error for a position says what the session has', async () => {
  using home = family();
  expect(await refused(home, ['show', 'release@99'])).toMatchObject({
    message: 'cannot find release@99: it has 1 to 5',
  });
  for (const back of ['-9', '-5', `-${'9'.repeat(22)}`])
    expect(await refused(home, ['show', `release@${back}`])).toMatchObject({
      code: 'TAPE_NO_SEQ',
      message: `cannot find release@${back}: it has 1 to 5`,
    });
  const far = `release@${'9'.repeat(22)}`;
  for (const verb of ['show', 'log', 'branch'])
    expect(await refused(home, [verb, far])).toMatchObject({
      code: 'TAPE_NO_SEQ',
      message: `cannot find ${far}: it has 1 to 5`,
    });
});

test.each([
  ['2026-02-30', false],
  ['2026-02-29', false],
  ['2026-11-31T10:00+02:00', false],
  ['2026-13-01', false],
  ['2024-02-29', true],
  ['2024-02-29T10:00:00.5-05:00', true],
])('a day that its month does not have is no time, wherever one is read: %s', async (day, isTime) => {
  using home = family();
  for (const args of [
    ['sessions', '--since', day],
    ['log', 'release', '--since', day],
    ['import', '--dry-run', '--since', day],
  ])
    expect((await home.here(args, { env: { HOME: home.path, PATH: '' } })).code === 0).toBe(isTime);
  expect((await home.here(['show', `release@{${day}}`])).stderr.includes('it is no time')).toBe(!isTime);
});

test('the parent of a root, an unknown time and a time before the session are errors', async () => {
  using home = family();
  expect((await refused(home, ['log', 'release^'])).message).toBe(
    "cannot find the parent of 'release': it has none",
  );
  expect((await refused(home, ['show', 'release@{soon}'])).message).toBe(
    'cannot read @{soon}: it is no time',
  );
  expect((await refused(home, ['show', 'release@{1 week ago}'])).code).toBe('CLI_NOT_FOUND');
});

test('a time refers to the last entry by then', async () => {
  using home = tempHome();
  {
    using store = home.open();
    const { id } = store.imports.stage('old');
    const at = (minute: number) => ({ source: 'import', timestamp: `2026-03-01T10:0${minute}:00Z` });
    store.imports.append(
      id,
      [0, 1, 2, 3].flatMap((minute) => [user(`at ${minute}`, at(minute)), note('x/untimed', {})]),
    );
    store.imports.publish([id]);
  }
  expect(await shown(home, 'old@{2026-03-01T10:02}')).toBe('old@6');
  expect(await shown(home, 'old@{2026-03-01T10:01:59}')).toBe('old@4');
});

test('months and years are those of the calendar: of a month that lacks the day, its last one', async () => {
  using home = family();
  const now = () => Date.parse('2024-02-29T12:00:00Z');
  for (const [time, by] of [
    ['2 years ago', '2022-02-28T12:00:00.000Z'],
    ['4y', '2020-02-29T12:00:00.000Z'],
    ['3 months ago', '2023-11-29T12:00:00.000Z'],
    ['14 mo', '2022-12-29T12:00:00.000Z'],
  ] as const)
    expect(jsonError(await home.here(['show', `release@{${time}}`, '--json'], { now })).message).toBe(
      `cannot find an entry of 'release' from before ${by}: all are later`,
    );
  expect((await refused(home, ['show', 'release@{999999999 years}'])).message).toContain('it is no time');
});

/** Command lines of one user, who has a directory for the state of programs. */
function asUser(home: TempHome): { tape(...args: string[]): Promise<CliResult>; [Symbol.dispose](): void } {
  const state = tempDir();
  return {
    tape: async (...args) =>
      await home.here(args, { env: { XDG_STATE_HOME: state.path }, stdin: '{"role":"user","content":"x"}' }),
    [Symbol.dispose]: () => state[Symbol.dispose](),
  };
}

test('@{-1} is the session that the user named last in this home, @{-2} the one before', async () => {
  using home = family();
  using other = family();
  using user = asUser(home);
  await user.tape('log', 'release');
  await user.tape('show', 'pro');
  await user.tape('status', 'proofs');
  expect(json(await user.tape('show', '@{-2}', '--json')).session).toBe('release');
  expect(json(await user.tape('show', '@{-2}', '--json')).session).toBe('proofs');
  expect(json(await user.tape('append', '@{-1}', '--json'))).toMatchObject({ session: 'proofs' });
  expect((await other.here(['show', '@{-1}', '--json'])).code).toBe(3);
  expect(jsonError(await user.tape('show', '@{-7}', '--json')).message).toContain(
    'you have named fewer sessions',
  );
});

describe('log ends at a point', () => {
  const seqs = async (home: TempHome, ...args: readonly string[]) => {
    const { stdout, stderr, code } = await home.here(['log', ...args, '--quiet']);
    expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
    return stdout.trim().split('\n').map(Number);
  };

  test('of a position, an anchor, a time, and of a session that is referred to', async () => {
    using home = family();
    expect(await seqs(home, 'release@3')).toEqual([1, 2, 3]);
    expect(await seqs(home, 'release@3')).toEqual(await seqs(home, 'release', '--until', '@3'));
    expect(await seqs(home, 'release@ready')).toEqual([1, 2, 3, 4]);
    expect(await seqs(home, 'release@-3')).toEqual([1, 2]);
    expect(await seqs(home, 'release@{now}')).toEqual([1, 2, 3, 4, 5]);
    expect(await seqs(home, 'release-notes^@2')).toEqual([1, 2]);
    using user = asUser(home);
    await user.tape('show', 'release');
    expect((await user.tape('log', '@{-1}@2', '--quiet')).stdout).toBe('1\n2\n');
    expect(await seqs(home, 'release@ready', '--since', '@2', '-n', '1')).toEqual([4]);
    expect((await home.here(['log', 'release@3'])).stdout).not.toContain('Go');
    expect((await home.here(['log', 'release@3', '--stat', '--quiet'])).stdout).toBe('3\n');
  });

  test('which must exist, and is the only end', async () => {
    using home = family();
    expect((await home.here(['log', 'release@redy', '--json'])).code).toBe(3);
    expect((await home.here(['log', 'release@99', '--json'])).code).toBe(3);
    for (const more of [['--until', '@2'], ['--to', '2'], ['--follow'], ['--graph']])
      expect(await home.here(['log', 'release@3', ...more])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(
          `cannot use ${more[0]} with the point of 'release@3': it ends the selection`,
        ),
      });
  });
});

describe('log shows a range', () => {
  const seqs = async (home: TempHome, ...args: readonly string[]) => {
    const { stdout, stderr, code } = await home.here(['log', ...args, '--quiet']);
    expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
    return stdout.trim().split('\n').map(Number);
  };

  test.each([
    ['release@2..4', [2, 3, 4]],
    ['release@2..@4', [2, 3, 4]],
    ['release@ready..head', [4, 5]],
    ['release@-3..-1', [2, 3, 4]],
    ['release@4..', [4, 5]],
    ['release@..2', [1, 2]],
    ['release@3..3', [3]],
    ['rel.v2@2..{now}', [2]],
    ['release-notes^@3..4', [3, 4]],
  ])('%s', async (place, expected) => {
    using home = family();
    home.session('rel.v2', user('Hello'));
    expect(await seqs(home, place)).toEqual(expected);
  });

  test('with ends that exist and are in order, and that no option names again', async () => {
    using home = family();
    expect((await refused(home, ['log', 'release@4..2'])).message).toBe(
      "cannot read 'release@4..2': the range begins at 4, and ends before it, at 2",
    );
    expect((await refused(home, ['log', 'release@2..99'])).message).toBe(
      'cannot find release@99: it has 1 to 5',
    );
    expect((await refused(home, ['log', 'release@redy..5'])).code).toBe('TAPE_NO_ANCHOR');
    for (const more of ['--from', '--to', '--since', '--until'])
      expect((await refused(home, ['log', 'release@2..4', more, '2'])).code).toBe('CLI_USAGE');
    expect(await refused(home, ['show', 'release@2..4'])).toMatchObject({
      code: 'TAPE_NO_ANCHOR',
      hint: 'a range of entries is one for log: tape log release@2..4',
    });
  });
});

test.each([
  ['usage'],
  ['children'],
  ['status'],
  ['wait'],
  ['archive'],
  ['anchor', 'name'],
  ['compact'],
  ['abort'],
  ['merge'],
  ['verify'],
  ['run'],
])('%s says that it takes no point', async (verb, ...more) => {
  using home = family();
  const line = [verb, 'release@ready', ...more];
  writeFileSync(home.file('answers.json'), '[]');
  const model = verb === 'run' ? ['--model', `script:${home.file('answers.json')}`] : [];
  const { code, stderr } = await home.here([...line, ...model]);
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr:
      "Error: cannot use 'release@ready': it is an entry of 'release', and this verb takes a session\n" +
      'Hint: leave out the point: release; or go on from there with: tape fork release@ready\n',
  });
});

test('verbs that create sessions take no beginning for a name', async () => {
  using home = family();
  using user = asUser(home);
  expect((await user.tape('append', 'rele', '--json')).code).toBe(3);
  expect(json(await user.tape('append', 'rele', '--new', '--json')).session).toBe('rele');
  expect(json(await user.tape('append', 'proofs^', '--json')).session).toBe('release-notes');
  expect((await user.tape('append', '@{-9}')).code).toBe(3);
});

test('a user without a place for state has no recent sessions, and no error', async () => {
  using home = family();
  using dir = tempDir();
  const HOME = dir.file('missing');
  const { code, stderr } = await home.here(['log', 'release'], { env: { HOME } });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(existsSync(HOME)).toBe(false);
});

test.each([24, 40, 60])(
  'names that a listing of %i columns has cut each name one session of it',
  async (columns) => {
    using home = tempHome();
    home.session('main');
    const names = ['965d6c46', '773e6c46', '773ef036', '123d6c46'].map(
      (end) => `check-the-tests-of-it-${end}`,
    );
    {
      using store = home.open();
      for (const name of [...names, 'check-46']) store.lineage.fork('main', { name });
    }
    for (const listing of [['sessions'], ['children', 'main']]) {
      const { stdout } = await home.here(listing, { isTerminal: true, columns });
      const shown = [...stripVTControlCharacters(stdout).matchAll(/check-\S*/g)].map(([name]) => name);
      const found = shown.map((name) => {
        const [start = '', end = ''] = name.split('…');
        return [...names, 'check-46'].filter((one) =>
          name.includes('…') ? one.startsWith(start) && one.endsWith(end) : one === name,
        );
      });
      expect(found.map((all) => all.length)).toEqual([1, 1, 1, 1, 1]);
      expect(new Set(found.flat()).size).toBe(5);
    }
  },
);

test('what a table leaves of a cut name can be typed: no other session or alias begins with it', async () => {
  using home = tempHome();
  home.session('release', user('Go'));
  {
    using store = home.open();
    for (const name of ['check-the-changelog-of-2-4-0-773ef036', 'check-the-tests-of-the-release-965d6c46'])
      store.lineage.fork('release', { name });
    // Not in the tables of the children, and no name of a session.
    store.sessions.update('release', { alias: { name: 'check-the-tests-again', reason: 'asked' } });
  }
  const lines = ['sessions', 'sessions --tree', 'children release', 'usage', 'usage --tree', 'overview'];
  for (const line of lines)
    for (const columns of [60, 80]) {
      const { stdout } = await home.here(line.split(' '), { isTerminal: true, columns });
      const names = [...stripVTControlCharacters(stdout).matchAll(/check-[^\s…]*/g)].map(([name]) => name);
      expect(names.length, line).toBeGreaterThanOrEqual(2);
      for (const name of names) expect((await home.here(['show', name, '--quiet'])).code, name).toBe(0);
    }
});

test('a name that a table has cut is found as it is shown', async () => {
  using home = tempHome();
  home.session('main');
  {
    using store = home.open();
    for (const name of ['check-the-tests-of-the-release-965d6c46', 'check-the-tests-of-the-release-773ef036'])
      store.lineage.fork('main', { name });
  }
  const { stdout } = await home.here(['sessions'], { isTerminal: true, columns: 40 });
  const shown = [...stripVTControlCharacters(stdout).matchAll(/check-\S*…\S*/g)].map(([name]) => name);
  expect(shown).toHaveLength(2);
  for (const name of shown) expect((await home.here(['show', name, '--quiet'])).code).toBe(0);
  const one = await home.here(['show', 'check...ef036', '--json']);
  expect(json(one)).toMatchObject({ session: 'check-the-tests-of-the-release-773ef036' });
  expect((await refused(home, ['show', 'check-…'])).message).toContain(
    "cannot tell which session 'check-…' is",
  );
  expect((await refused(home, ['show', 'check-…x'])).code).toBe('TAPE_NO_SESSION');
});
