import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BuiltinName, builtins, type DeckConfig, recorded, recordedTools } from '@tapedeck/runtime';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import { isObject } from '@tapedeck/tape/internal';
import { generateText, isStepCount, type ToolSet } from 'ai';
import { afterAll, expect, test } from 'vitest';
import { scriptedDeck } from '../support/scripted.ts';
import { atFullSize } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';

const dir = tempDir();
afterAll(() => dir[Symbol.dispose]());
let places = 0;

type Call = readonly [name: BuiltinName, input: object];

const ofCalls = (calls: readonly Call[]): ScriptAnswer[] => [
  ...calls.map(([name, input]) => ({ toolCalls: [{ name, input }] })),
  { text: 'Done.' },
];

/** A deck in a new directory. */
async function desk(answers: readonly ScriptAnswer[], config: DeckConfig = { tools: builtins() }) {
  places += 1;
  const cwd = join(realpathSync(dir.path), `${places}`, 'work');
  mkdirSync(cwd, { recursive: true });
  const home = await scriptedDeck(answers, { cwd, limits: { maxSteps: 50 }, ...config });
  const outputs = (session = 'main') =>
    [...home.store.entries.read(session, { kind: 'tool-result', own: true })].map(({ payload }) =>
      isObject(payload) && isObject(payload.output)
        ? (payload.output.reason ?? payload.output.value)
        : payload,
    );
  return { ...home, cwd, main: await home.deck.session('main'), outputs };
}

test('built-in tools keep to the workspace and run no command, where there are no rules', async () => {
  await using home = await desk(
    ofCalls([
      ['write_file', { path: 'a.txt', text: 'mine' }],
      ['read_file', { path: 'a.txt' }],
      ['read_file', { path: '/etc/hostname' }],
      ['write_file', { path: '../b.txt', text: '' }],
      ['run_command', { command: ['true'] }],
      ['list_directory', {}],
    ]),
  );
  const { cwd, main, outputs } = home;
  expect((await main.run('Go.')).finish).toBe('stop');
  expect(outputs()).toEqual([
    'Created a.txt (4 bytes)',
    'mine',
    expect.stringContaining('deny read(**)'),
    expect.stringContaining('deny write(**)'),
    expect.stringContaining('deny exec(*)'),
    'a.txt (4 bytes)',
  ]);
  expect(readFileSync(join(cwd, 'a.txt'), 'utf8')).toBe('mine');
});

test.each<[string, DeckConfig]>([
  ['of the deck', { tools: builtins(), permissions: 'yolo' }],
  ['of its home', { tools: builtins(), projectPermissions: 'yolo' }],
  ['of the tools', { tools: builtins({ rules: 'yolo' }) }],
  ['of the deck, with named tools', { builtinTools: ['run_command'], permissions: ['allow exec(echo *)'] }],
])('other rules take their place: %s', async (_, config) => {
  await using home = await desk(ofCalls([['run_command', { command: 'echo hi' }]]), config);
  await home.main.run('Go.');
  expect(home.outputs()).toEqual([{ ended: 'exit', exit_code: 0, output: 'hi\n' }]);
});

test('a run can have tools of its own, with their rules', async () => {
  await using home = await desk(ofCalls([['write_file', { path: '../a', text: '' }]]), {});
  await home.main.run('Go.', { tools: builtins() });
  expect(home.outputs()).toEqual([expect.stringContaining('deny write(**)')]);
});

test('a name that no built-in tool has is refused', async () => {
  await expect(desk([], { builtinTools: ['rm_file' as BuiltinName] })).rejects.toMatchObject({
    code: 'SESSION_BAD_CONFIG',
    data: { field: 'builtinTools.0' },
  });
});

test.runIf(atFullSize)('a session goes on after files and commands that cannot be', async () => {
  await using home = await desk(
    ofCalls([
      ['read_file', { path: 'pipe' }],
      ['read_file', { path: 'binary' }],
      ['read_file', { path: 'none' }],
      ['search_files', { pattern: '(', regex: true }],
      ['edit_file', { path: 'text', old_text: 'a', new_text: 'b' }],
      ['run_command', { command: ['no-such-program'] }],
      ['run_command', { command: 'yes', timeout_ms: 1_000 }],
      ['read_file', { path: 'text' }],
    ]),
    { tools: builtins({ outputBytes: 400 }), permissions: 'yolo' },
  );
  const { cwd, main, outputs } = home;
  execFileSync('mkfifo', [join(cwd, 'pipe')]);
  writeFileSync(join(cwd, 'binary'), Buffer.from([0]));
  writeFileSync(join(cwd, 'text'), 'aa');
  expect(await main.run('Go.')).toMatchObject({ finish: 'stop', text: 'Done.' });
  expect(outputs()).toEqual([
    expect.stringMatching(/TOOL_NOT_A_FILE\)$/),
    expect.stringMatching(/TOOL_BINARY_FILE\)$/),
    expect.stringMatching(/TOOL_NO_FILE\)$/),
    expect.stringMatching(/TOOL_BAD_PATTERN\)$/),
    expect.stringMatching(/2 times .*TOOL_TEXT_NOT_UNIQUE\)$/),
    expect.stringMatching(/TOOL_CANNOT_START\)$/),
    expect.objectContaining({
      ended: 'timeout',
      output: expect.stringMatching(/^(?:y\n)+\n?\[cut: \d+ of \d+ bytes/),
    }),
    'aa',
  ]);
});

test('a search shows nothing of files that the rules deny, or ask about', async () => {
  const calls = ofCalls([
    ['search_files', { pattern: 'x' }],
    ['search_files', {}],
  ]);
  await using home = await desk(calls, {
    tools: builtins(),
    permissions: ['sandboxed', 'deny read(secret/**)', 'ask read(**/.env)'],
  });
  const { cwd, main, outputs } = home;
  mkdirSync(join(cwd, 'secret'));
  for (const name of ['a', 'secret/a', '.env']) writeFileSync(join(cwd, name), 'x');
  await main.run('Go.');
  expect(outputs()).toEqual(['a:1: x', 'a']);
});

test('what a person has approved is reached, and no more', async () => {
  const approved: string[] = [];
  await using home = await desk(
    ofCalls([
      ['search_files', { pattern: 'x', path: 'asked' }],
      ['read_file', { path: 'asked/a' }],
    ]),
    {
      tools: builtins(),
      permissions: ['sandboxed', 'ask read(asked/**)', 'deny read(asked/never)'],
      onApproval: ({ claims }) => {
        approved.push(...claims);
        return { approved: true };
      },
    },
  );
  const { cwd, main, outputs } = home;
  mkdirSync(join(cwd, 'asked'));
  for (const name of ['a', 'never']) writeFileSync(join(cwd, 'asked', name), 'x');
  await main.run('Go.');
  expect(outputs()).toEqual(['asked/a:1: x', 'x']);
  expect(approved).toContain(`read(${cwd}/asked)`);
});

test('a link is followed within the workspace, and not out of it', async () => {
  await using home = await desk(
    ofCalls([
      ['read_file', { path: 'in' }],
      ['write_file', { path: 'in', text: 'new' }],
      ['read_file', { path: 'out' }],
      ['write_file', { path: 'new-out', text: '' }],
    ]),
  );
  const { cwd, main, outputs } = home;
  writeFileSync(join(cwd, 'file'), 'old');
  symlinkSync('file', join(cwd, 'in'));
  symlinkSync('/etc/hostname', join(cwd, 'out'));
  symlinkSync('../nothing', join(cwd, 'new-out'));
  await main.run('Go.');
  expect(outputs()).toEqual([
    'old',
    'Replaced in (3 bytes)',
    expect.stringContaining('deny read(**)'),
    expect.stringContaining('deny write(**)'),
  ]);
  expect(readFileSync(join(cwd, 'file'), 'utf8')).toBe('new');
});

test('a merge finds the file that both sides wrote, however they spelled it', async () => {
  await using home = await desk([
    {
      when: { session: 'main' },
      toolCalls: [{ name: 'write_file', input: { path: 'sub/../a.txt', text: 'p' } }],
    },
    { when: { session: 'main' }, text: 'Done.' },
    { toolCalls: [{ name: 'write_file', input: { path: './a.txt', text: 'c' } }] },
    { toolCalls: [{ name: 'write_file', input: { path: 'own.txt', text: 'c' } }] },
    { text: 'Done.' },
  ]);
  const { cwd, main } = home;
  mkdirSync(join(cwd, 'sub'));
  const child = await main.fork({ name: 'child' });
  await main.run('Write.');
  await child.run('Write.');
  const { complete, conflicts } = await main.checkMerge('child');
  expect({ complete, what: conflicts.map(({ what }) => what) }).toEqual({
    complete: true,
    what: ['file:a.txt'],
  });
});

test('a child that ran a command may have written anything', async () => {
  await using home = await desk(ofCalls([['run_command', { command: ['true'] }]]), {
    tools: builtins({ rules: 'yolo' }),
  });
  const child = await home.main.fork({ name: 'child' });
  await child.run('Go.');
  expect((await home.main.checkMerge('child')).complete).toBe(false);
});

test('an application with a loop of its own has them with their rules', async () => {
  await using home = await desk(
    ofCalls([
      ['write_file', { path: 'a.txt', text: 'x' }],
      ['read_file', { path: '/etc/hostname' }],
    ]),
    {},
  );
  const { main, spec, outputs } = home;
  const { text } = await generateText({
    model: await recorded(main, spec),
    tools: recordedTools(main, builtins() as ToolSet),
    stopWhen: isStepCount(5),
    prompt: 'Go.',
  });
  expect(text).toBe('Done.');
  expect(outputs()).toEqual(['Created a.txt (1 bytes)', expect.stringContaining('deny read(**)')]);
});
