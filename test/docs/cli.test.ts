import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { verbs } from '../../packages/cli/dist/verbs/index.js';
import { nameOf } from '../../packages/cli/dist/verbs/verb.js';
import { tapeHere } from '../support/cli.ts';
import { tempDir } from '../support/temp-dir.ts';
import { cliReference } from './cli-reference.ts';
import { contract, errorCodes, type JsonForm } from './json-contract.ts';
import { howToUpdate, page, root, updating } from './pages.ts';
import { tape } from './tape.ts';

test('the reference is what the verbs say of themselves', () => {
  const reference = cliReference();
  if (updating) writeFileSync(join(root, 'docs/cli.md'), reference);
  expect(page('docs/cli.md'), howToUpdate).toBe(reference);
});

test('the contract tells of every verb, and of no other', () => {
  expect(Object.keys(contract).sort()).toEqual(verbs.map(nameOf).sort());
});

test('the list of error codes has every code that the sources have', () => {
  const sources = globSync('packages/*/src/**/*.ts', { cwd: root, exclude: ['**/conformance/**'] })
    .map((file) => readFileSync(join(root, file), 'utf8'))
    .join('\n');
  const used = new Set(sources.match(/(?<=')(?:TAPE|GRAPH|SESSION|IMPORT|CLI)_[A-Z_]+(?=')/g));
  expect(Object.keys(errorCodes).sort()).toEqual([...used].sort());
});

const answers = JSON.stringify([
  { when: { session: 'asking' }, text: 'Seven.' },
  { when: { session: 'aside' }, text: 'Once more.' },
  { when: { text: 'Plan it' }, text: 'First the tests.' },
  { when: { text: 'Write the tests' }, text: 'Written.' },
  { when: { text: '<conversation>' }, text: '## Goal\nTo talk.' },
]);
const message = '{"role":"user","content":"hello","key":"k"}\n';

/** A run that ended with a call which somebody is to answer. */
const asking = [
  { role: 'user', content: 'How warm is it?' },
  {
    role: 'assistant',
    content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'measure', input: {} }],
  },
  {
    kind: 'event',
    name: 'run/waiting',
    payload: { run: 'r1', calls: [{ toolCallId: 'c1', toolName: 'measure', for: 'result' }] },
  },
]
  .map((line) => `${JSON.stringify(line)}\n`)
  .join('');

/** A session that is worth a summary. */
const talk = ['One', 'Two']
  .map(
    (text) =>
      `${JSON.stringify({ content: `${text}. ${'And so on. '.repeat(50)}` })}\n{"role":"assistant","content":"So."}\n`,
  )
  .join('');

/** Commands that print every JSON form, in an order in which each finds what it needs. */
const commands: readonly (readonly [verb: string, form: number, argv: readonly string[], input?: string])[] =
  [
    ['init', 0, ['init']],
    ['new', 0, ['new', 'main', '--title', 'Release']],
    ['import', 0, ['import', join(root, 'packages/cli/demo/transcript.jsonl'), '--as', 'old']],
    ['append', 0, ['append', 'main'], message],
    ['append', 1, ['append', 'main', '--each'], '{"content":"again"}\n'],
    ['anchor', 0, ['anchor', 'main', 'task-start', '--state', '{"goal":"release"}']],
    ['run', 0, ['run', 'main', 'Plan it.', '--model', 'script:answers.json']],
    ['send', 0, ['send', 'main', 'Write the tests?', '--key', 'k1', '--model', 'script:answers.json']],
    ['send', 1, ['send', 'main', 'Write the tests?', '--key', 'k1']],
    ['status', 0, ['status', 'main']],
    ['status', 1, ['status', '--all', '--jsonl']],
    ['abort', 0, ['abort', 'main']],
    ['wait', 0, ['wait', 'main']],
    ['wait', 1, ['wait', 'main', '--jsonl']],
    ['append', 0, ['append', 'asking'], asking],
    ['approve', 0, ['approve', 'asking', 'c1', '--output', '7', '--model', 'script:answers.json']],
    [
      'delegate',
      0,
      [
        'delegate',
        'main',
        '--since',
        'task-start',
        '--task',
        'Write the tests.',
        '--model',
        'script:answers.json',
      ],
    ],
    ['fork', 0, ['fork', 'main@4', '--since', 'task-start', '--as', 'fix', '--next-steps', 'Fix it.']],
    ['fork', 1, ['fork', 'main@4', '--key', 'k', '--dry-run']],
    ['branch', 0, ['branch', 'main@4', '--as', 'aside', '--ephemeral', '--metadata', '{"topic":"release"}']],
    ['diff', 0, ['diff', 'fix', 'main']],
    ['diff', 1, ['diff', 'main', 'old', '--stat']],
    ['rewind', 0, ['rewind', 'aside@3']],
    ['unrewind', 0, ['unrewind', 'aside']],
    ['rewind', 1, ['rewind', 'aside@3', '--mode', 'resend', '--model', 'script:answers.json']],
    ['trace', 0, ['trace', 'main@head']],
    ['merge', 1, ['merge', 'fix', '--check']],
    ['merge', 2, ['merge', 'fix', '--result', 'Fixed.', '--dry-run']],
    ['merge', 0, ['merge', 'fix', '--result', 'Fixed.']],
    ['fork', 0, ['fork', 'main', '--as', 'unwanted']],
    ['discard', 1, ['discard', 'unwanted', '--dry-run']],
    ['discard', 0, ['discard', 'unwanted', '--reason', 'not needed']],
    ['append', 0, ['append', 'talk'], talk],
    ['compact', 0, ['compact', 'talk', '--model', 'script:answers.json']],
    ['compact', 1, ['compact', 'talk', '--undo']],
    ['compact', 0, ['compact', 'talk', '--prune']],
    ['handoff', 0, ['handoff', 'main', 'done', '--summary', 'All is done.']],
    ['sessions', 0, ['sessions']],
    ['sessions', 1, ['sessions', '--jsonl']],
    ['children', 0, ['children', 'main']],
    ['children', 1, ['children', 'main', '--jsonl']],
    ['log', 0, ['log', 'main']],
    ['log', 1, ['log', 'main', '--jsonl']],
    ['show', 0, ['show', 'main@task-start']],
    ['show', 1, ['show', 'old@6', '--output', '--bytes', '0..15']],
    ['show', 2, ['show', 'aside']],
    ['view', 0, ['view', 'main', '--explain']],
    ['view', 1, ['view', 'main', '--instructions']],
    ['search', 0, ['search', 'first the tests']],
    ['search', 1, ['search', 'fix it', '--session', 'fix', '--jsonl']],
    ['lineage', 0, ['lineage', 'main']],
    ['graph', 0, ['graph']],
    ['graph', 1, ['graph', '--jsonl']],
    ['usage', 0, ['usage', 'aside', '--tree']],
    ['usage', 1, ['usage']],
    ['usage', 2, ['usage', '--jsonl']],
    ['verify', 0, ['verify']],
    ['audit', 0, ['audit']],
    ['recover', 0, ['recover', 'main']],
    ['doctor', 0, ['doctor', '--fix']],
    ['redact', 0, ['redact', 'main@4', '--reason', 'a test']],
    ['archive', 0, ['archive', 'fix']],
    ['backup', 0, ['backup', 'copy.db']],
    ['trust', 0, ['trust', 'project']],
    ['trust', 0, ['trust', 'elsewhere', '--revoke']],
    ['trust', 1, ['trust']],
    ['trust', 2, ['trust', '--jsonl']],
    ['raw', 0, ['raw', 'checkpoint']],
  ];

/** The objects that a verb printed, in the form that the contract has for it. */
function objectsOf(stdout: string, { form }: JsonForm): Record<string, unknown>[] {
  if (form === 'one object a line')
    return stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const document = JSON.parse(stdout) as Record<string, unknown> | Record<string, unknown>[];
  expect(Array.isArray(document)).toBe(form === 'one array of objects');
  return Array.isArray(document) ? document : [document];
}

/** The fields that an object lacks, and those that the contract does not tell of. */
function differences(object: Readonly<Record<string, unknown>>, { fields }: JsonForm): string[] {
  const told = new Set(fields.map(({ name }) => name));
  return [
    ...fields
      .filter(({ name, optional }) => optional !== true && !(name in object))
      .map(({ name }) => `no ${name}`),
    ...Object.keys(object)
      .filter((name) => !told.has(name))
      .map((name) => `untold ${name}`),
  ];
}

describe('with --json', () => {
  test('every verb prints the fields of its contract, and no others', async () => {
    using dir = tempDir();
    writeFileSync(dir.file('answers.json'), answers);
    mkdirSync(dir.file('project'));
    writeFileSync(dir.file('project/tape.config.mts'), 'export default {};');
    for (const [verb, form, argv, input] of commands) {
      const told = contract[verb]?.json[form];
      if (told === undefined) throw new Error(`no form ${form} of ${verb}`);
      const asked = argv.map((word) => word.replace(/^script:/, `script:${dir.path}/`));
      const { code, stdout, stderr } = await tapeHere(
        argv.includes('--jsonl') ? asked : [...asked, '--json'],
        { cwd: dir.path, env: { HOME: dir.path }, ...(input !== undefined && { stdin: input }) },
      );
      expect({ argv, code, stderr: code === 0 ? '' : stderr }).toEqual({ argv, code: 0, stderr: '' });
      const objects = objectsOf(stdout, told);
      expect(objects.length, argv.join(' ')).toBeGreaterThan(0);
      for (const object of objects)
        expect({ argv, wrong: differences(object, told) }).toEqual({ argv, wrong: [] });
    }
  });

  test('an error is one line of JSON on stderr, and stdout is empty', () => {
    using dir = tempDir();
    tape(dir.path, ['new', 'main']);
    const { status, stdout, stderr } = tape(dir.path, ['log', 'mian', '--json']);
    expect({ status, stdout }).toEqual({ status: 3, stdout: '' });
    expect(page('docs/cli.md')).toContain(stderr.trimEnd());
  });
});
