import { writeFileSync } from 'node:fs';
import { similarSessions } from '@tapedeck/cli/internal';
import { user } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const line = '{"content":"Hello."}\n';

/** A home with these sessions, and a model. */
function withSessions(...names: string[]): TempHome {
  const home = tempHome();
  for (const name of names) home.session(name, user('Hi'));
  writeFileSync(home.file('answers.json'), '[{"text":"Hm."},{"text":"Hm."}]');
  return home;
}

/** The command lines of the verbs that create the session `name`. */
function creating(home: TempHome, name: string): readonly (readonly string[])[] {
  const model = ['--model', `script:${home.file('answers.json')}`];
  return [
    ['run', name, 'Hi', ...model],
    ['send', name, 'Hi', ...model],
    ['append', name],
    ['append', name, '--each'],
  ];
}

const slips = [
  ['mian', 'main'],
  ['man-pgae', 'man-page'],
  ['maim', 'main'],
  ['mainn', 'main'],
  ['releas', 'release'],
  ['fix-relaese', 'fix-release'],
  ['dm:mothr', 'dm:mother'],
  ['man', 'main'],
  ['min', 'main'],
  ['mains', 'main'],
  ['docs', 'doc'],
];

test.each(slips)('a script that names %s, where %s exists, is refused', async (name, existing) => {
  using home = withSessions(existing);
  const before = home.contents();
  for (const args of creating(home, name)) {
    const result = await home.here([...args, '--json'], { stdin: line });
    expect(result.code).toBe(3);
    expect(jsonError(result)).toEqual({
      code: 'TAPE_NO_SESSION',
      message: `cannot find session '${name}': it does not exist, and '${existing}' does`,
      hint: `use '${existing}'; or create ${name} with: --new`,
      data: { session: name, near: [existing], creates: true },
    });
  }
  expect(home.contents()).toEqual(before);
});

test.each([
  ['dac3', 'dac34307-159f-4c1f-9b7e-0242ac120002'],
  ['dac34307', 'dac34307-159f-4c1f-9b7e-0242ac120002'],
  ['rel', 'release'],
  ['release', 'release-notes'],
  ['fix-1', 'fix-1-again'],
])(
  'a script that names %s, the beginning of %s alone, is refused, and --new creates it',
  async (name, existing) => {
    using home = withSessions(existing, 'other');
    const before = home.contents();
    const lines = [...creating(home, name), ['chat', name, '--model', `script:${home.file('answers.json')}`]];
    for (const args of lines) {
      const result = await home.here([...args, '--json'], { stdin: line });
      expect(result.code).toBe(3);
      expect(jsonError(result)).toMatchObject({
        code: 'TAPE_NO_SESSION',
        hint: `use '${existing}'; or create ${name} with: --new`,
      });
    }
    expect(home.contents()).toEqual(before);
    expect((await home.here([...(lines[0] ?? []), '--new'])).stderr).toContain(`Created session ${name}\n`);
    expect((await home.here(lines[0] ?? [])).code).toBe(0);
  },
);

test('a beginning of several names is refused with the shortest of them, at most three', async () => {
  using home = withSessions('main', 'main-check', 'maize', 'mailbox', 'maid');
  const before = home.contents();
  for (const args of creating(home, 'mai')) {
    const result = await home.here([...args, '--json'], { stdin: line });
    expect(jsonError(result)).toMatchObject({
      code: 'TAPE_NO_SESSION',
      message: "cannot find session 'mai': it does not exist, and 'maid' and 'mailbox' and 'main' do",
    });
  }
  expect(home.contents()).toEqual(before);
  expect(jsonError(await home.here(['append', 'main-', '--json'], { stdin: line })).data).toMatchObject({
    near: ['main-check'],
  });
});

test('a beginning of an archived session, or of a count, is a name of its own', async () => {
  using home = withSessions('step-10', 'main', 'agent-1', 'agent-2');
  await home.here(['archive', 'main']);
  const [, send] = creating(home, 'agent');
  expect(await home.here(send ?? [])).toMatchObject({ code: 0 });
  for (const name of ['step-1', 'mai', 'agent-3'])
    expect((await home.here(['append', name], { stdin: line })).stderr).toBe(`Created session ${name}\n`);
});

test('a beginning of an alias is one of its session', async () => {
  using home = withSessions('01-main');
  await home.here(['alias', '01-main', 'docs']);
  expect(jsonError(await home.here(['append', 'do', '--json'], { stdin: line })).data).toMatchObject({
    near: ['01-main'],
  });
});

test('an entry of a session is no name for a new one', async () => {
  using home = withSessions('main', 'joe@example.com');
  const before = home.contents();
  for (const args of [
    ...creating(home, 'main@2'),
    ...creating(home, 'main@head'),
    ...creating(home, 'main@-1'),
  ]) {
    const result = await home.here([...args, '--json'], { stdin: line });
    expect(result.code).toBe(2);
    expect(jsonError(result)).toMatchObject({
      message: `cannot use '${args[1]}': it is an entry of 'main', and this verb takes a session`,
      hint: `leave out the point: main; or go on from there with: tape fork ${args[1]}`,
    });
  }
  expect(home.contents()).toEqual(before);
  expect((await home.here(['append', 'main@example.com'], { stdin: line })).code).toBe(0);
});

test('with --new the session is created, and an id is exact', async () => {
  using home = withSessions('main');
  for (const [i, args] of creating(home, 'maim').entries()) {
    const named = args.map((word) => (word === 'maim' ? `mai${'abcd'[i]}` : word));
    expect((await home.here([...named, '--new'], { stdin: line })).stderr).toContain(
      `Created session mai${'abcd'[i]}`,
    );
  }
  expect(json(await home.here(['append', '--id', 'mian', '--json'], { stdin: line })).session).toBe('mian');
  expect((await home.here(['new', 'mains'])).code).toBe(0);
});

test.each([
  ['main2', 'main'],
  ['main-2', 'main-1'],
  ['step-1', 'step-2'],
  ['b', 'a'],
  ['run-a', 'run-b'],
  ['fox', 'fix'],
  ['v12-main', 'v21-main'],
  ['docs', 'main'],
  ['main-docs', 'main'],
])('%s is no slip of %s', async (name, existing) => {
  using home = withSessions(existing);
  for (const args of creating(home, name)) expect((await home.here(args, { stdin: line })).code).toBe(0);
});

test('an archived session is no reason to ask', async () => {
  using home = withSessions('main');
  await home.here(['archive', 'main']);
  expect((await home.here(['append', 'mian'], { stdin: line })).code).toBe(0);
});

test('without a model, --new creates nothing', async () => {
  using home = withSessions('main');
  const before = home.contents();
  const { code, stderr } = await home.here(['run', 'mian', 'Hi', '--new']);
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('no model was given') });
  expect(home.contents()).toEqual(before);
});

describe('on a terminal', () => {
  const question = 'Session mian does not exist. Use main [y], create mian [c], or stop [Enter]? ';

  /** The sessions and their heads after a command that asks, and what it has printed on stderr. */
  async function answered(typed: string, ...more: string[]) {
    using home = withSessions('main');
    const args = ['run', 'mian', 'Hi', '--model', `script:${home.file('answers.json')}`, ...more];
    const { code, stderr } = await home.here(args, { stdin: typed, isTerminal: true, stdinIsTerminal: true });
    using store = home.open();
    return {
      code,
      stderr,
      heads: store.sessions
        .list()
        .map(({ session, head }) => `${session}@${head}`)
        .sort(),
    };
  }

  test('yes means the session that exists, and create makes one', async () => {
    for (const typed of ['y\n', 'Yes\n', 'maybe\n1\n', 'what\nnew\ny\n']) {
      const { code, stderr, heads } = await answered(typed);
      expect({ code, heads }).toEqual({ code: 0, heads: ['main@4'] });
      expect(stderr.split(question).length - 1).toBe(typed.trim().split('\n').length);
    }
    const created = await answered('c\n');
    expect(created.heads).toEqual(['main@2', 'mian@3']);
    expect(created.stderr).toContain('Created session mian');
  });

  test('one of several is used by its number, and yes means none', async () => {
    using home = withSessions('main', 'maize');
    const args = ['run', 'mai', 'Hi', '--model', `script:${home.file('answers.json')}`];
    const { code, stderr } = await home.here(args, {
      stdin: 'y\n3\n2\n',
      isTerminal: true,
      stdinIsTerminal: true,
    });
    const asked = 'Session mai does not exist. Use main [1], maize [2], create mai [c], or stop [Enter]? ';
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining(asked.repeat(3)) });
    expect((await home.here(['log', 'maize'])).stdout).toContain('Hm.');
  });

  test('no, Enter and the end of the input change nothing', async () => {
    for (const typed of ['n\n', 'No\n', 'q\n', '\n', '', 'y'])
      expect(await answered(typed)).toMatchObject({
        code: 3,
        heads: ['main@2'],
        stderr: expect.stringMatching(/^Session mian does not exist\./),
      });
  });

  test('no question is asked of a program, or of a pipe', async () => {
    for (const option of ['--json', '--quiet'])
      expect((await answered('y\n', option)).stderr).not.toContain('Use main');
    using home = withSessions('main');
    for (const args of creating(home, 'mian'))
      expect(await home.here(args, { stdin: line, isTerminal: true })).toMatchObject({
        code: 3,
        stdout: '',
        stderr: expect.not.stringContaining('Use main'),
      });
  });

  test('the model of the session that is meant is known, without --model', async () => {
    using home = withSessions();
    await home.here(['new', 'main', '--model', `script:${home.file('answers.json')}`]);
    const { code } = await home.here(['run', 'mian', 'Hi'], {
      stdin: 'y\n',
      isTerminal: true,
      stdinIsTerminal: true,
    });
    expect(code).toBe(0);
  });
});

test('no more names are looked up where many have names of the same length', () => {
  const lookups = (sessions: number): number => {
    using home = tempHome();
    using store = home.open();
    for (let i = 0; i < sessions; i += 1) store.sessions.open(`agent-${i}-of-the-fleet`);
    let times = 0;
    const { find, list } = store.sessions;
    const sessionsOf: typeof store.sessions = {
      ...store.sessions,
      find(...args) {
        times += 1;
        return find(...args);
      },
      list(...args) {
        times += 1;
        return list(...args);
      },
    };
    similarSessions(Object.create(store, { sessions: { value: sessionsOf } }), 'agents-x-of-the-float');
    return times;
  };
  const few = lookups(1);
  expect(few).toBeGreaterThan(100);
  expect(lookups(300)).toBe(few);
});
