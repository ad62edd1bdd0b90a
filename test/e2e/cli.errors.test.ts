import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { anchor, processOwner, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { jsonError } from '../support/cli.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const transcript = fileURLToPath(new URL('../../packages/cli/demo/transcript.jsonl', import.meta.url));

/** Sessions `main`, with an anchor `plan`, and `kid`, its child. */
function withMain(): TempHome {
  const home = tempHome();
  home.session('main', user('Hi'), anchor('plan'));
  using store = home.open();
  store.lineage.fork('main', { name: 'kid' });
  return home;
}

interface Refusal {
  readonly args: readonly string[];
  readonly stdin?: string;
  readonly exit: number;
  readonly code: string;
  /** A part of the message. */
  readonly says?: string;
  readonly hint?: string;
}

const seen = new Set<string>();

/**
 * A command is refused so, for programs and for people, and writes nothing. The first refusal of each code comes from
 * a process of its own; the others from the same code in this one, which is quicker.
 */
async function refuses(home: TempHome, { args, stdin = '', exit, code, says, hint }: Refusal): Promise<void> {
  const before = home.contents();
  const here = (words: readonly string[]) => home.here(words, { stdin });
  const first = !seen.has(code);
  seen.add(code);
  const human = await here(args);
  const program = await (first ? home.tape([...args, '--json'], { stdin }) : here([...args, '--json']));
  const what = `tape ${args.join(' ')}`;
  expect(human, what).toMatchObject({ stdout: '', code: exit });
  expect(human.stderr, what).toMatch(/^Error: [^\0]+?\n(?:Hint: .+\n)?$/);
  expect(program.code, what).toBe(exit);
  const error = jsonError(program);
  expect(error.code, what).toBe(code);
  expect(Object.keys(error).sort()).toEqual(
    error.hint === undefined ? ['code', 'data', 'message'] : ['code', 'data', 'hint', 'message'],
  );
  expect(human.stderr).toContain(error.message.split('\n')[0]);
  if (says !== undefined) expect(error.message, what).toContain(says);
  if (hint !== undefined) expect(error.hint, what).toContain(hint);
  expect(home.contents(), what).toEqual(before);
}

test('an unknown session exits with 3, and names the nearest session', async () => {
  using home = withMain();
  const model = ['--model', 'script:/dev/null'];
  writeFileSync(home.file('answers.json'), '[]');
  for (const args of [
    ['log', 'mian'],
    ['show', 'mian'],
    ['show', 'mian@2'],
    ['view', 'mian'],
    ['children', 'mian'],
    ['verify', 'mian'],
    ['anchor', 'mian', 'x'],
    ['handoff', 'mian', 'x'],
    ['fork', 'mian'],
    ['merge', 'mian'],
    ['discard', 'mian'],
    ['audit', 'mian'],
    ['trace', 'mian@2'],
    ['delegate', 'mian', '--task', 'x', ...model],
  ])
    await refuses(home, {
      args,
      exit: 3,
      code: 'TAPE_NO_SESSION',
      says: "'mian'",
      hint: "did you mean 'main'?",
    });
  await refuses(home, { args: ['lineage', 'mian'], exit: 3, code: 'GRAPH_NO_SESSION', hint: "'main'" });
  await refuses(home, {
    args: ['run', 'mian', '--model', `script:${home.file('answers.json')}`],
    exit: 3,
    code: 'TAPE_NO_SESSION',
  });
  await refuses(home, { args: ['log', 'zzzzzz'], exit: 3, code: 'TAPE_NO_SESSION', hint: 'tape sessions' });
});

test('an unknown anchor or position exits with 3', async () => {
  using home = withMain();
  const script = ['--task', 'x', '--model', `script:${home.file('answers.json')}`];
  writeFileSync(home.file('answers.json'), '[]');
  for (const args of [
    ['show', 'main@plam'],
    ['log', 'main', '--since', 'plam'],
    ['view', 'main@plam'],
    ['view', 'main', '--policy', 'from-anchor:plam'],
    ['fork', 'main@plam'],
    ['fork', 'main', '--since', 'plam'],
    ['fork', 'main', '--from', 'plam'],
    ['delegate', 'main', '--since', 'plam', ...script],
  ])
    await refuses(home, {
      args,
      exit: 3,
      code: 'TAPE_NO_ANCHOR',
      says: "'plam'",
      hint: "did you mean 'plan'?",
    });
  for (const args of [
    ['show', 'main@99'],
    ['fork', 'main@99'],
    ['fork', 'main', '--since', '@99'],
    ['view', 'main@0'],
  ])
    await refuses(home, { args, exit: 3, code: 'TAPE_NO_SEQ' });
});

test('an invalid name exits with 2, and is not rewritten', async () => {
  using home = withMain();
  const long = (length: number) => 'n'.repeat(length);
  const names = [
    '../x',
    'a/b',
    'a..b',
    'a::b',
    '',
    ' ',
    'a b',
    '.hidden',
    'x.',
    'a\tb',
    'ünï',
    '\u202emain',
    long(181),
    long(201),
  ];
  for (const name of names)
    await refuses(home, { args: ['new', name], exit: 2, code: 'TAPE_BAD_NAME', says: 'as a session name' });
  const line = '{"content":"x"}\n';
  await refuses(home, { args: ['append', '../x'], stdin: line, exit: 2, code: 'TAPE_BAD_NAME' });
  await refuses(home, { args: ['fork', 'main', '--as', '../x'], exit: 2, code: 'TAPE_BAD_NAME' });
  await refuses(home, { args: ['fork', 'main', '--as', long(181)], exit: 2, code: 'TAPE_BAD_NAME' });
  await refuses(home, { args: ['import', transcript, '--as', '../x'], exit: 2, code: 'CLI_USAGE' });
  await refuses(home, { args: ['import', transcript, '--as', long(201)], exit: 2, code: 'CLI_USAGE' });
  for (const name of ['../x', '12', 'head', 'merge/x', 'session/start', 'intention', '', long(201)])
    await refuses(home, { args: ['anchor', 'main', name], exit: 2, code: 'TAPE_BAD_NAME' });
});

test('a text that cannot be a name can be an id', async () => {
  using home = withMain();
  const refused = await home.here(['fork', 'main', '--as', 'feature/login']);
  expect(refused.stderr).toContain('Hint: make a session for this text with: tape new --id feature/login\n');
  expect(await home.here(['new', '--id', 'feature/login', '--quiet'])).toMatchObject({
    code: 0,
    stdout: 'feature%2Flogin\n',
  });
  // An anchor has no id.
  expect((await home.here(['anchor', 'main', 'a b'])).stderr).not.toContain('Hint');
});

test('a missing file or directory is named as it was typed, without the words of the system call', async () => {
  using home = withMain();
  const picture = home.file('none/x.svg');
  const graph = await home.here(['graph', '-o', picture]);
  expect(graph).toMatchObject({
    code: 1,
    stderr: `Error: cannot write the picture '${picture}': no such file or directory\n`,
  });
  const heads = home.file('none/heads.txt');
  expect((await home.here(['attest', '-o', heads])).stderr).toBe(
    `Error: cannot write '${heads}': no such file or directory\n`,
  );
  const copy = home.file('none/tape.db');
  expect((await home.here(['backup', copy])).stderr).toBe(
    `Error: cannot open '${copy}': there is no directory '${home.file('none')}'\n`,
  );
  const text = `@${home.file('none.md')}`;
  expect((await home.here(['run', 'main', text, '--model', 'script:none'])).stderr).toContain(
    `Error: cannot read '${text.slice(1)}': no such file or directory\nHint: `,
  );
});

test('a slip in an option before the verb, or a word in the place of an option, is answered with what is meant', async () => {
  using home = withMain();
  const usage = async (...args: readonly string[]) => {
    const { code, stderr } = await home.here(args);
    expect(code).toBe(2);
    return stderr.split('\n')[0];
  };
  const slip = 'Error: cannot use --verison: no such option; did you mean --version?';
  expect(await usage('--verison')).toBe(slip);
  expect(await usage('--verison', 'log')).toBe(slip);
  expect(await usage('--verison', 'log', 'main')).toBe(slip);
  for (const words of [['-x'], ['-0x'], ['-x', 'log'], ['-xq', 'log', 'main']])
    expect(await usage(...words)).toBe('Error: cannot use -x: no such option');
  expect(await usage('-')).toBe('Error: cannot run tape: a verb is missing');
  expect(await home.here(['-0', 'sessions', '--quiet'])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('main\0'),
  });
  expect(await usage('--quiet')).toBe('Error: cannot run tape: a verb is missing');
  const task = "Error: --task is missing; did you mean --task 'fast two'?";
  expect(await usage('delegate', 'main', 'fast two')).toBe(task);
  expect(await usage('delegate', '--concurrency', '2', 'main', '--again', 'fast two')).toBe(task);
  expect(await usage('delegate', 'main', '--', '-x')).toBe(
    'Error: --task is missing; did you mean --task TEXT?',
  );
  expect(await usage('delegate', 'main')).toBe('Error: --task is missing');
  expect(await usage('hlep')).toBe("Error: cannot run 'hlep': no such verb; did you mean help?");
  expect((await home.here(['help', 'nope'])).stderr).toMatch(
    /^Error: cannot show the help of 'nope': no such verb or topic\nHint: all verbs: tape --help; topics: .*models/,
  );
});

test('unalias of what is no alias says which aliases there are', async () => {
  using home = withMain();
  expect(await home.here(['unalias', 'main'])).toMatchObject({
    code: 4,
    stderr:
      "Error: cannot take the alias 'main' from 'main': it is not one of its aliases\nHint: aliases of main: none\n",
  });
  await home.here(['alias', 'main', 'release']);
  expect((await home.here(['unalias', 'main'])).stderr).toContain('Hint: aliases of main: release\n');
  // The beginning of a name means the session, and is no alias either.
  expect(await home.here(['unalias', 'mai'])).toMatchObject({ code: 4 });
});

test('the commands of a hint name the home that the command line named', async () => {
  using home = withMain();
  const { stderr } = await home.here(['log', 'nothing', '--home', home.path]);
  expect(stderr).toContain(`Hint: list sessions with: tape sessions --home ${home.path}\n`);
  const json = await home.here(['log', 'nothing', `--home=${home.path}`, '--json']);
  expect(JSON.parse(json.stderr).error.hint).toBe(`list sessions with: tape sessions --home ${home.path}`);
  expect((await home.here(['log', 'nothing'])).stderr).toContain('with: tape sessions\n');
  expect((await home.here(['log', '--home', home.path])).stderr).toContain('Hint: see: tape log --help\n');
});

test('a name with NUL, which no shell can pass on, is refused too', async () => {
  using home = withMain();
  const before = home.contents();
  const refused = { code: 2, stdout: '', stderr: expect.stringContaining('\\u{0}') };
  expect(await home.here(['new', 'a\0b'])).toMatchObject(refused);
  expect(await home.here(['anchor', 'main', 'a\0b'])).toMatchObject(refused);
  expect(home.contents()).toEqual(before);
});

test('a session name of 180 characters and an anchor name of 200 are accepted', async () => {
  using home = withMain();
  const longest = 'n'.repeat(180);
  expect(await home.tape(['new', longest])).toMatchObject({ code: 0 });
  expect(await home.tape(['anchor', longest, 'a'.repeat(200)])).toMatchObject({ code: 0 });
  expect(await home.tape(['fork', longest, '--json'])).toMatchObject({ code: 0 });
});

test('a name that is taken, or has another meaning, exits with 4', async () => {
  using home = withMain();
  await refuses(home, { args: ['fork', 'main', '--as', 'kid'], exit: 4, code: 'TAPE_EXISTS' });
  await refuses(home, { args: ['fork', 'main', '--as', 'main'], exit: 4, code: 'TAPE_EXISTS' });
  for (const name of ['main@2', 'main@plan', 'main@head']) {
    await refuses(home, { args: ['new', name], exit: 4, code: 'TAPE_EXISTS', says: 'reads as' });
    // What would create a session takes a point for a slip.
    await refuses(home, { args: ['append', name], stdin: '{"content":"x"}', exit: 2, code: 'CLI_USAGE' });
    await refuses(home, { args: ['fork', 'main', '--as', name], exit: 4, code: 'TAPE_EXISTS' });
  }
  await refuses(home, { args: ['import', transcript, '--as', 'kid'], exit: 4, code: 'TAPE_EXISTS' });
  await refuses(home, { args: ['merge', 'main'], exit: 4, code: 'TAPE_CONFLICT' });
});

test('a refused merge or discard exits with 3 or 4, and writes nothing', async () => {
  using home = withMain();
  home.session('other');
  using store = home.open();
  for (const name of ['left', 'busy']) store.lineage.fork('main', { name });
  store.lineage.merge('left', { strategy: 'discard' });
  const lease = store.leases.acquire('busy', processOwner('other-owner'));
  for (const verb of ['merge', 'discard']) {
    await refuses(home, { args: [verb, 'missing'], exit: 3, code: 'TAPE_NO_SESSION' });
    await refuses(home, { args: [verb, 'kid', '--into', 'missing'], exit: 3, code: 'TAPE_NO_SESSION' });
    await refuses(home, {
      args: [verb, 'kid', '--into', 'other'],
      exit: 4,
      code: 'TAPE_CONFLICT',
      says: 'it is not a descendant of',
    });
    await refuses(home, { args: [verb, 'busy'], exit: 4, code: 'TAPE_BUSY', hint: 'tape wait busy' });
  }
  store.leases.release(lease);
  await refuses(home, { args: ['merge', 'left'], exit: 4, code: 'TAPE_CONFLICT', says: 'already discarded' });
  store.sessions.update('main', { lifecycle: 'archived' });
  for (const verb of ['merge', 'discard'])
    await refuses(home, {
      args: [verb, 'kid'],
      exit: 4,
      code: 'TAPE_ARCHIVED',
      says: "'main' is archived",
      hint: 'tape archive main --undo',
    });
});

test('run of an archived session exits with 4, and writes nothing', async () => {
  using home = withMain();
  writeFileSync(home.file('answers.json'), '[{"text":"Hm."}]');
  using store = home.open();
  for (const name of ['main', 'kid']) store.sessions.update(name, { lifecycle: 'archived' });
  const model = ['--model', `script:${home.file('answers.json')}`];
  const acts: readonly (readonly [says: string, args: readonly string[]])[] = [
    ['run', ['run', 'main', 'Hi', ...model]],
    ['run', ['run', 'main', ...model]],
    ['send to', ['send', 'main', 'Hi', ...model]],
    ['anchor', ['anchor', 'main', 'here']],
    ['hand off', ['handoff', 'main', 'here']],
    ['compact', ['compact', 'main', ...model]],
    ['delegate from', ['delegate', 'main', '--task', 'Look', ...model]],
    ['delegate from', ['delegate', 'main', '--task', 'Look', '--dry-run']],
  ];
  for (const [says, args] of acts)
    await refuses(home, {
      args,
      exit: 4,
      code: 'TAPE_ARCHIVED',
      says: `cannot ${says} 'main': it is archived`,
      hint: 'tape archive main --undo',
    });
  store.sessions.update('main', { lifecycle: 'active' });
  await refuses(home, {
    args: ['delegate', 'main', '--resume', 'kid', '--task', 'Go on', ...model],
    exit: 4,
    code: 'TAPE_ARCHIVED',
    says: "cannot resume 'kid': it is archived",
    hint: 'tape archive kid --undo',
  });
});

test('an ambiguous position after --from exits with 2, and names both readings', async () => {
  using home = withMain();
  for (const at of ['@2', '2']) {
    await refuses(home, {
      args: ['fork', 'main', '--from', at],
      exit: 2,
      code: 'CLI_USAGE',
      hint: `tape fork main --since ${at}, tape fork main@2`,
    });
    writeFileSync(home.file('answers.json'), '[]');
    await refuses(home, {
      args: [
        'delegate',
        'main',
        '--from',
        at,
        '--task',
        'x',
        '--model',
        `script:${home.file('answers.json')}`,
      ],
      exit: 2,
      code: 'CLI_USAGE',
      hint: `--since ${at}`,
    });
  }
});

test('wrong arguments exit with 2', async () => {
  using home = withMain();
  const cases: readonly string[][] = [
    ['nosuchverb'],
    ['log'],
    ['log', 'main', '--nosuch'],
    ['log', 'main', 'extra'],
    ['log', 'main', '-n', 'abc'],
    ['log', 'main', '-n', '-3'],
    ['log', 'main', '-n', '1.5'],
    ['log', 'main', '--from', 'x'],
    ['sessions', '-n', 'x'],
    ['merge', 'kid', '--wait', 'soon'],
    ['merge', 'kid', '--strategy', 'guess'],
    ['merge', 'kid', '--check', '--dry-run'],
    ['discard', 'kid', '--wait', 'soon'],
    ['trace'],
    ['trace', 'main'],
    ['graph', '--format', 'svg'],
    ['view', 'main', '--policy', 'guess'],
    ['fork', 'main', '--since', 'plan', '--fresh'],
    ['fork', 'main', '--since', 'plan', '--last', '2'],
    ['fork', 'main', '--inherit', 'all', '--last', '2'],
    ['fork', 'main', '--task', 'x', '--next-steps', 'y'],
    ['fork', 'main', '--window', '2'],
    ['fork', 'main', '--since', 'plan', '--from', 'plan'],
    ['anchor', 'main', 'x', '--state', '{'],
    ['anchor', 'main', 'x', '--state', '[1]'],
    ['anchor', 'main', 'x', '--state', '@/no/such/file'],
    ['run', 'main', ''],
    ['run', 'main', 'hi', '--model', 'script:x', '--max-steps', '0'],
    ['delegate', 'main'],
    ['delegate', 'main', '--task', '', '--model', 'script:x'],
    ['delegate', 'main', '--task', 'x', '--model', 'script:x', '--concurrency', '0'],
    ['delegate', 'main', '--task', 'x', 'y', '--model', 'script:x'],
    ['append', 'main', '--wait', 'soon'],
    ['log', 'main', '--home', ''],
  ];
  for (const args of cases) {
    const before = home.contents();
    const stdin = '{"content":"x"}\n';
    const result = await home.here([...args, '--json'], { stdin, env: { TAPE_MODEL: 'script:x' } });
    expect([result.code, jsonError(result).code], args.join(' ')).toEqual([2, 'CLI_USAGE']);
    expect(home.contents()).toEqual(before);
  }
  for (const [args, hint] of [
    [['log', 'main', '--nosuch'], 'tape log --help'],
    [['nosuchverb'], 'tape --help'],
  ] as const)
    await refuses(home, { args, exit: 2, code: 'CLI_USAGE', hint });
});

test('an unusable model exits with 2 before anything is written', async () => {
  using home = withMain();
  const bad = [
    { model: undefined, code: 'CLI_USAGE', says: 'no model was given' },
    { model: 'openai-compatible/x', code: 'SESSION_NO_KEY', says: 'OPENAI_BASE_URL is not set' },
    { model: 'acme/x', code: 'SESSION_NO_KEY', says: 'AI_GATEWAY_API_KEY is not set' },
    { model: 'gpt', code: 'SESSION_NO_MODEL', says: 'PROVIDER/MODEL' },
    { model: 'script:/no/such/file', code: 'SESSION_NO_FILE', says: '/no/such/file' },
    { model: `script:${home.file('bad.json')}`, code: 'SESSION_BAD_SCRIPT', says: 'bad.json' },
  ];
  writeFileSync(home.file('bad.json'), '[{"txt":1}]');
  for (const { model, code, says } of bad) {
    const given = model === undefined ? [] : ['--model', model];
    // A delegation can run on the model that the parent carries, so only the session knows that there is none.
    const known = model === undefined ? 'SESSION_NO_MODEL' : code;
    const delegate = ['delegate', 'main', '--task', 'x', ...given];
    await refuses(home, { args: delegate, exit: 2, code: known, says });
    await refuses(home, { args: ['run', 'new-one', 'Hi', ...given], exit: 2, code, says });
  }
});

test('a file that is no transcript exits with 1, and names the place', async () => {
  using home = withMain();
  const file = (name: string, text: string) => {
    writeFileSync(home.file(name), text);
    return home.file(name);
  };
  const good = '{"type":"user","uuid":"a","message":{"role":"user","content":"hé"}}\n';
  await refuses(home, {
    args: ['import', file('prose.jsonl', 'Dear diary,\n')],
    exit: 1,
    code: 'IMPORT_BAD_JSON',
    says: 'line 1, byte 0',
  });
  await refuses(home, {
    args: ['import', file('torn.jsonl', `${good}{"a":tru}\n{"a":\n{"b"}\n`)],
    exit: 1,
    code: 'IMPORT_BAD_JSON',
    says: `line 2, byte ${Buffer.byteLength(good)}`,
  });
  await refuses(home, { args: ['import', file('empty.jsonl', '')], exit: 1, code: 'IMPORT_EMPTY' });
  await refuses(home, {
    args: ['import', file('other.jsonl', '{"a":1}\n')],
    exit: 1,
    code: 'IMPORT_UNKNOWN_FORMAT',
  });
  mkdirSync(home.file('folder'));
  await refuses(home, { args: ['import', home.file('folder'), '--as', 'x'], exit: 2, code: 'CLI_USAGE' });
  await refuses(home, { args: ['import', home.file('nothing')], exit: 3, code: 'CLI_NOT_FOUND' });
});

test('a key that was used for other content exits with 4', async () => {
  using home = withMain();
  expect(await home.tape(['fork', 'main', '--key', 'k'])).toMatchObject({ code: 0 });
  await refuses(home, {
    args: ['fork', 'main', '--key', 'k', '--inherit', 'nothing'],
    exit: 4,
    code: 'TAPE_KEY_CONFLICT',
  });
  expect(await home.tape(['anchor', 'main', 'a', '--key', 'k'])).toMatchObject({ code: 0 });
  await refuses(home, { args: ['anchor', 'main', 'b', '--key', 'k'], exit: 4, code: 'TAPE_KEY_CONFLICT' });
  await refuses(home, {
    args: ['append', 'main', '--key', 'k'],
    stdin: '{"content":"x"}',
    exit: 4,
    code: 'TAPE_KEY_CONFLICT',
  });
});

test('a repeated key with the same content adds nothing', async () => {
  using home = withMain();
  const twice = [
    { args: ['fork', 'main', '--key', 'k', '--since', 'plan'], stdin: '' },
    { args: ['anchor', 'main', 'a', '--key', 'k1'], stdin: '' },
    { args: ['handoff', 'main', 'b', '--key', 'k2', '--summary', 's'], stdin: '' },
    { args: ['append', 'main', '--key', 'k3'], stdin: '{"content":"x"}\n{"content":"y"}\n' },
    { args: ['append', 'main'], stdin: '{"content":"x","key":"k4"}\n' },
  ];
  for (const { args, stdin } of twice) {
    const first = await home.tape([...args, '--quiet'], { stdin });
    const after = home.contents();
    const again = await home.tape([...args, '--quiet'], { stdin });
    expect(again).toEqual({ ...first, code: 0 });
    expect(home.contents()).toEqual(after);
  }
});

test('a missing home contains no session, and reading does not create it', async () => {
  using home = tempHome();
  const nowhere = home.file('nowhere');
  for (const args of [
    ['log', 'x'],
    ['show', 'x'],
    ['view', 'x'],
    ['verify'],
    ['children', 'x'],
    ['lineage', 'x'],
    ['fork', 'x'],
    ['merge', 'x'],
    ['discard', 'x'],
    ['audit'],
    ['trace', 'x@1'],
    ['anchor', 'x', 'y'],
    ['handoff', 'x', 'y'],
  ])
    expect(await home.tape([...args, '--home', nowhere]), args.join(' ')).toMatchObject({
      code: 3,
      stdout: '',
    });
  for (const verb of ['sessions', 'graph'])
    expect(await home.tape([verb, '--home', nowhere])).toMatchObject({
      code: 3,
      stdout: '',
      stderr: expect.stringContaining('there is no such directory\nHint: create it with: tape init --home'),
    });
  expect(existsSync(nowhere)).toBe(false);
  mkdirSync(nowhere);
  expect(await home.tape(['sessions', '--json', '--home', nowhere])).toMatchObject({
    code: 0,
    stdout: '[]\n',
  });
  expect(await home.tape(['graph', '--home', nowhere])).toMatchObject({ code: 0, stdout: '' });
});

test('a database of another program, or no database, exits with 5, unchanged', async () => {
  using home = tempHome();
  writeFileSync(home.db, 'not a database, but a text that is long enough to be read as a header'.repeat(20));
  const before = readFileSync(home.db);
  for (const args of [['sessions'], ['new', 'x'], ['verify']]) {
    const result = await home.tape([...args, '--json']);
    expect(result.code).toBe(5);
    expect(jsonError(result).code).toMatch(/^TAPE_(?:CORRUPT|NOT_A_TAPE)$/);
  }
  expect(readFileSync(home.db)).toEqual(before);
});
