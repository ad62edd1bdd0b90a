import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { contract, errorCodes, type Form, jsonSchema } from '@tapedeck/cli/contract';
import { allVerbs, nameOf } from '@tapedeck/cli/internal';
import { openTapeStore, processOwner } from '@tapedeck/tape';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { tapeHere } from '../support/cli.ts';
import { checkContract } from '../support/contract.ts';
import { sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';
import { cliReference } from './cli-reference.ts';
import { howToUpdate, page, root, tableAfter, updating } from './pages.ts';
import { tape } from './tape.ts';

const verbs = await allVerbs();

/** What it generates runs a few times: to optimize that, or to put shapes into each other, would take longer. */
const ajv = new Ajv2020({ code: { optimize: false }, inlineRefs: false });

test('the reference prints what each verb declares', () => {
  const reference = cliReference();
  if (updating) writeFileSync(join(root, 'docs/cli.md'), reference);
  expect(page('docs/cli.md'), howToUpdate).toBe(reference);
});

test('the table lists every verb, in the order of the help', () => {
  const named = tableAfter(page('docs/cli.md'), 'Verbs').map(
    ([command = '']) => /^\[tape (\w+)/.exec(command)?.[1],
  );
  expect(named).toEqual(verbs.map(nameOf));
});

test('the contract covers every verb, and no other', () => {
  expect(Object.keys(contract).sort()).toEqual(verbs.map(nameOf).sort());
});

test('the list of error codes contains every code in the sources', () => {
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
  { when: { text: 'Talk to me' }, text: 'Gladly.' },
  { when: { text: 'Talk to me' }, text: 'Again.' },
  { when: { text: 'Write the tests' }, text: 'Written.' },
  { when: { text: '<conversation>' }, text: '## Goal\nTo talk.' },
]);
const message = '{"role":"user","content":"hello","key":"k"}\n';

/** A run that ended with a call pending an answer. */
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

/** Holds the lease of a session until the block ends, as another process would. */
function hold(home: string, session: string): Disposable {
  const store = openTapeStore(join(home, 'tape.db'));
  const lease = store.leases.acquire(session, processOwner('holder'));
  return {
    [Symbol.dispose]: () => {
      store.inbox.drain(lease);
      store.leases.release(lease);
      store.close();
    },
  };
}

/** Commands that print every JSON form, in an order in which each finds what it needs. */
const commands: readonly (readonly [verb: string, form: number, argv: readonly string[], input?: string])[] =
  [
    ['init', 0, ['init']],
    ['new', 0, ['new', 'main', '--title', 'Release']],
    ['import', 1, ['import', join(root, 'packages/cli/demo/transcript.jsonl'), '--as', 'old']],
    ['append', 0, ['append', 'main'], message],
    ['append', 1, ['append', 'main', '--each'], '{"content":"again"}\n'],
    ['anchor', 0, ['anchor', 'main', 'task-start', '--state', '{"goal":"release"}']],
    ['run', 0, ['run', 'main', 'Plan it.', '--model', 'script:answers.json']],
    ['run', 1, ['run', 'main', '--attach']],
    ['run', 2, ['run', 'main', '--attach', '--jsonl']],
    ['run', 3, ['run', 'main', '--jsonl', '--model', 'script:answers.json']],
    ['chat', 0, ['chat', 'main', '--model', 'script:answers.json'], 'Talk to me.\n'],
    ['chat', 1, ['chat', 'main', '--model', 'script:answers.json', '--jsonl'], 'Talk to me.\n'],
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
    ['delegate', 1, ['delegate', 'main', '--task', 'Write the tests.', '--again', '--dry-run']],
    [
      'delegate',
      2,
      [
        'delegate',
        'main',
        '--since',
        'task-start',
        '--task',
        'Write the tests.',
        '--jsonl',
        '--model',
        'script:answers.json',
      ],
    ],
    ['fork', 0, ['fork', 'main@4', '--since', 'task-start', '--as', 'fix', '--task', 'Fix it.']],
    ['fork', 1, ['fork', 'main@4', '--key', 'k', '--dry-run']],
    ['branch', 0, ['branch', 'main@4', '--last', '2', '--as', 'tail']],
    ['branch', 0, ['branch', 'main@4', '--as', 'aside', '--ephemeral', '--metadata', '{"topic":"release"}']],
    ['diff', 0, ['diff', 'fix', 'main']],
    ['diff', 1, ['diff', 'main', 'old', '--stat']],
    ['rewind', 0, ['rewind', 'aside@3']],
    ['undo', 0, ['undo', 'aside']],
    ['rewind', 1, ['rewind', 'aside@3', '--mode', 'resend', '--model', 'script:answers.json']],
    ['logs', 0, ['logs', 'main', '--tree']],
    ['logs', 1, ['logs', 'main', '--verbose', '--jsonl']],
    ['logs', 2, ['logs', 'main', '--tree', '-o', 'logs']],
    ['logs', 3, ['logs', 'main', '--verbose', '--jsonl', '-o', 'logs']],
    ['trace', 0, ['trace', 'main@head']],
    ['blame', 0, ['blame', 'main']],
    ['blame', 1, ['blame', 'main', '--jsonl']],
    ['merge', 1, ['merge', 'fix', '--check']],
    ['merge', 2, ['merge', 'fix', '--result', 'Fixed.', '--dry-run']],
    ['merge', 0, ['merge', 'fix', '--result', 'Fixed.']],
    ['fork', 0, ['fork', 'main', '--as', 'unwanted']],
    ['discard', 1, ['discard', 'unwanted', '--dry-run']],
    ['discard', 0, ['discard', 'unwanted', '--reason', 'not needed']],
    ['append', 0, ['append', 'talk'], talk],
    ['compact', 0, ['compact', 'talk', '--model', 'script:answers.json']],
    ['compact', 0, ['compact', 'talk', '--prune']],
    ['handoff', 0, ['handoff', 'main', 'done', '--summary', 'All is done.']],
    ['overview', 0, ['overview']],
    ['sessions', 0, ['sessions']],
    ['sessions', 1, ['sessions', '--jsonl']],
    ['children', 0, ['children', 'main']],
    ['children', 1, ['children', 'main', '--jsonl']],
    ['log', 0, ['log', 'main']],
    ['log', 1, ['log', 'main', '--jsonl']],
    ['log', 2, ['log', 'main', '--stat']],
    [
      'append',
      0,
      ['append', 'fix'],
      '{"kind":"x-derived","payload":{"of":"a","from":"b","why":"compaction"}}',
    ],
    ['log', 3, ['log', '--derived']],
    ['log', 4, ['log', 'fix', '--derived', '--jsonl']],
    ['show', 0, ['show', 'main@task-start']],
    ['show', 1, ['show', 'old@6', '--output', '--bytes', '0..15']],
    ['show', 2, ['show', 'aside']],
    ['view', 0, ['view', 'main', '--explain']],
    ['view', 1, ['view', 'main', '--instructions']],
    ['view', 2, ['view', 'main', '--jsonl']],
    ['search', 0, ['search', 'first the tests']],
    ['search', 1, ['search', 'fix it', '--session', 'fix', '--jsonl']],
    ['lineage', 0, ['lineage', 'main']],
    ['graph', 0, ['graph']],
    ['graph', 1, ['graph', '--jsonl']],
    ['permissions', 0, ['permissions', 'main']],
    ['permissions', 1, ['permissions', 'main', 'measure', '{}', '--config', 'measure.mjs']],
    ['usage', 0, ['usage', 'aside', '--tree']],
    ['usage', 1, ['usage']],
    ['usage', 2, ['usage', '--jsonl']],
    ['attest', 1, ['attest']],
    ['attest', 0, ['attest', '-o', 'heads.txt']],
    ['verify', 0, ['verify']],
    ['audit', 0, ['audit']],
    ['recover', 0, ['recover', 'main']],
    ['doctor', 0, ['doctor', '--fix']],
    ['redact', 1, ['redact', 'main@4', '--reason', 'a test', '--dry-run']],
    ['redact', 0, ['redact', 'main@4', '--reason', 'a test']],
    ['redact', 3, ['redact', 'main', '2', '3', '--reason', 'a test', '--dry-run']],
    ['redact', 2, ['redact', 'main', '2', '3', '--reason', 'a test']],
    ['alias', 0, ['alias', 'fix', 'repair']],
    ['unalias', 0, ['unalias', 'repair']],
    ['resolve', 0, ['resolve', 'dm:sms:1']],
    ['resolve', 0, ['resolve', 'dm:mom', '--dry-run']],
    ['identity', 2, ['identity', 'link', 'dm:mom', 'dm:sms:1', 'dm:mail:1']],
    ['identity', 0, ['identity']],
    ['identity', 1, ['identity', '--jsonl']],
    ['identity', 2, ['identity', 'unlink', 'dm:mom']],
    ['link', 0, ['link', 'fix', '--root']],
    ['rename', 0, ['rename', 'fix', 'mend']],
    ['archive', 0, ['archive', 'fix']],
    ['delete', 0, ['delete', 'fix']],
    ['undo', 1, ['undo', '@{-1}']],
    ['purge', 1, ['purge', 'fix', '--dry-run']],
    ['purge', 0, ['purge', 'fix']],
    ['export', 0, ['export', 'main', '-o', 'main.tape']],
    ['export', 1, ['export', 'main', '--format', 'markdown', '-o', 'main.md']],
    ['import', 0, ['import', 'main.tape']],
    ['import', 2, ['import', 'main.tape', 'main.tape']],
    ['import', 3, ['import', 'main.tape', 'main.tape', '--jsonl']],
    ['import', 6, ['import', 'seen', '--dry-run']],
    ['import', 7, ['import', 'seen', '--dry-run', '--jsonl']],
    ['import', 4, ['import', 'seen']],
    ['import', 5, ['import', 'seen', '--jsonl']],
    ['import', 8, ['import', '--forget', 'seen/t.jsonl', '--dry-run']],
    ['import', 9, ['import', '--install']],
    ['copy', 0, ['copy', '.tape', 'other-home']],
    ['remote', 2, ['remote', 'add', 'origin', 'packs']],
    ['remote', 0, ['remote']],
    ['remote', 1, ['remote', '--jsonl']],
    ['push', 0, ['push']],
    ['pull', 0, ['pull']],
    ['clone', 0, ['clone', 'packs', 'cloned']],
    ['backup', 0, ['backup', 'copy.db']],
    ['check', 0, ['check', '--against', 'heads.txt']],
    ['restore', 0, ['restore', 'copy.db', 'restored']],
    ['trust', 0, ['trust', 'project']],
    ['trust', 0, ['trust', 'elsewhere', '--revoke']],
    ['trust', 1, ['trust']],
    ['trust', 2, ['trust', '--jsonl']],
    ['trust', 3, ['trust', '.tape']],
    ['append', 2, ['append', 'old', '--wait', '0'], '{"content":"later"}\n'],
    ['append', 0, ['append', 'waiting'], asking],
    ['approve', 1, ['approve', 'waiting', 'c1', '--output', '7']],
    ['config', 3, ['config', 'set', 'limits.max_steps', '20']],
    ['config', 0, ['config']],
    ['config', 1, ['config', 'list', '--all', '--jsonl']],
    ['config', 2, ['config', 'get', 'limits.max_steps']],
    ['config', 4, ['config', 'unset', 'limits.max_steps']],
    ['config', 3, ['config', 'set', 'max_tool_iterations', '20']],
    ['status', 2, ['status', '--settings']],
    ['status', 3, ['status', '--settings', '--jsonl']],
    ['config', 4, ['config', 'unset', 'max_tool_iterations']],
    ['mcp', 0, ['mcp', '--install', 'cursor']],
    ['ui', 0, ['ui']],
    ['completion', 0, ['completion', 'bash']],
    ['completion', 1, ['completion', 'fish', '--install']],
    ['schema', 0, ['schema', 'log']],
    ['raw', 0, ['raw', 'checkpoint']],
  ];

/** The documents that a verb printed, or the objects on its lines. */
function printed(stdout: string, { prints }: Form): unknown[] {
  if (prints === 'document') return [JSON.parse(stdout)];
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** The forms that report an item left in an inbox: exit 6. */
const leftInInbox: ReadonlySet<string> = new Set(['append 2', 'approve 1']);

/** The forms that need workers of a home on a server: cli.worker prints them. */
const ofWorkers: ReadonlySet<string> = new Set(['delegate 3', 'worker 0', 'worker 1', 'worker 2']);

/** The other forms of all verbs, as `VERB NUMBER`. */
const allForms = Object.entries(contract)
  .flatMap(([verb, { json }]) => json.map((_, form) => `${verb} ${form}`))
  .filter((form) => !ofWorkers.has(form));

describe('with --json', () => {
  test('every form of every verb prints what its schema and the printed JSON Schema declare', async () => {
    using dir = tempDir();
    writeFileSync(dir.file('answers.json'), answers);
    writeFileSync(
      dir.file('measure.mjs'),
      `const ok = { version: 1, vendor: 'test', validate: (value) => ({ value }), jsonSchema: { input: () => ({ type: 'object' }) } };\nexport default { tools: { measure: { inputSchema: { '~standard': ok } } } };\n`,
    );
    mkdirSync(dir.file('seen'));
    copyFileSync(join(root, 'packages/cli/demo/transcript.jsonl'), dir.file('seen/t.jsonl'));
    mkdirSync(dir.file('project'));
    writeFileSync(dir.file('project/tape.config.mts'), 'export default {};');
    const here = { cwd: dir.path, env: { HOME: dir.path } };
    const schemas = await tapeHere(['schema'], here);
    ajv.addSchema(JSON.parse(schemas.stdout), 'tape');
    const seen = new Set<string>();
    for (const [i, [verb, number, argv, input]] of commands.entries()) {
      const form = contract[verb]?.json[number];
      if (form === undefined) throw new Error(`no form ${number} of ${verb}`);
      const asked = argv.map((word) => word.replace(/^script:/, `script:${dir.path}/`));
      const isLeft = leftInInbox.has(`${verb} ${number}`);
      using _held = argv.includes('--wait') ? hold(dir.file('.tape'), 'old') : undefined;
      const { code, stdout, stderr } = await tapeHere(
        argv.includes('--jsonl') ? asked : [...asked, '--json'],
        { ...here, ...(input !== undefined && { stdin: input }) },
      );
      const wanted = isLeft ? 6 : 0;
      expect({ argv, code, stderr: code === wanted ? '' : stderr }).toEqual({
        argv,
        code: wanted,
        stderr: '',
      });
      const values = printed(stdout, form);
      expect(values.flat().length, argv.join(' ')).toBeGreaterThan(0);
      for (const value of values) form.schema.parse(value);
      // On a push some: to compile all takes two seconds.
      if (sized(i % 4 === 0, true, true)) {
        const part = (contract[verb]?.json.length ?? 0) > 1 ? `/anyOf/${number}` : '';
        const validate = ajv.getSchema(`tape#/properties/${verb}${part}`);
        for (const value of values)
          expect({ argv, valid: validate?.(value), why: validate?.errors }).toEqual({
            argv,
            valid: true,
            why: null,
          });
      }
      seen.add(`${verb} ${number}`);
    }
    expect(allForms.filter((form) => !seen.has(form))).toEqual([]);
  }, 300_000);

  test('the schema of a verb allows what that verb prints, and nothing else', async () => {
    using dir = tempDir();
    const { stdout } = tape(dir.path, ['schema', 'new']);
    const validate = ajv.compile(JSON.parse(stdout));
    const made = JSON.parse(tape(dir.path, ['new', 'main', '--json']).stdout);
    expect(validate(made)).toBe(true);
    expect(validate({ ...made, more: 1 })).toBe(false);
    expect(validate({ ...made, head: '1' })).toBe(false);
    const { created: _, ...less } = made;
    expect(validate(less)).toBe(false);
  });

  test('every verb has a schema; an unknown verb is refused with the nearest name', () => {
    using dir = tempDir();
    const { status, stdout, stderr } = tape(dir.path, ['schema', 'lgo', '--json']);
    expect({ status, stdout, error: JSON.parse(stderr).error }).toEqual({
      status: 3,
      stdout: '',
      error: {
        code: 'CLI_NOT_FOUND',
        message: "cannot print the schema of 'lgo': no such verb",
        hint: "did you mean 'log' or 'logs'? All verbs: tape --help",
        data: { verb: 'lgo', near: ['log', 'logs'] },
      },
    });
    const all = jsonSchema();
    expect(Object.keys(all.properties ?? {}).sort()).toEqual(verbs.map(nameOf).sort());
    for (const [i, verb] of verbs.map(nameOf).entries()) {
      const of = jsonSchema(verb);
      // On a push some: to compile all takes a second.
      if (sized(i % 6 === 0, true, true)) ajv.compile(of);
      // A shape that zod generates has no name in the contract.
      expect(Object.keys(of.$defs ?? {}).filter((name) => !/^[A-Z]/.test(name))).toEqual([]);
    }
    expect(existsSync(dir.file('.tape'))).toBe(false);
  });

  test('the check reports a field that the contract lacks, and a field that is missing', () => {
    const check = (json: object) => () =>
      checkContract(['init', '--json'], { stdout: `${JSON.stringify(json)}\n`, stderr: '', code: 0 });
    expect(check({ home: '/tapes', created: true })).not.toThrow();
    expect(check({ home: '/tapes', created: true, more: 1 })).toThrow('Unrecognized key: "more"');
    expect(check({ home: '/tapes' })).toThrow('created');
    const failed = { stdout: '', stderr: '{"error":{"code":"TAPE_ODD","message":"","data":{}}}\n', code: 1 };
    expect(() => checkContract(['init', '--json'], failed)).toThrow('error.code');
  });

  test('an error is one line of JSON on stderr, and stdout is empty', () => {
    using dir = tempDir();
    tape(dir.path, ['new', 'main']);
    const { status, stdout, stderr } = tape(dir.path, ['log', 'mian', '--json']);
    expect({ status, stdout }).toEqual({ status: 3, stdout: '' });
    expect(page('docs/cli.md')).toContain(stderr.trimEnd());
  });
});
