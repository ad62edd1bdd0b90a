import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { json } from '../support/cli.ts';
import { project } from '../support/project.ts';
import { gitIn, skipsGit } from '../support/repository.ts';

const parts = ['sum', 'product'] as const;
const wrong = { sum: 'a - b', product: 'a / b' };
const right = { sum: 'a + b', product: 'a * b' };

const code = (name: string, body: string) => `export const ${name} = (a, b) => ${body};\n`;

const testOf = (name: string, result: number) =>
  [
    "import assert from 'node:assert/strict';",
    "import { test } from 'node:test';",
    `import { ${name} } from '../src/${name}.mjs';`,
    `test('${name}', () => assert.equal(${name}(3, 4), ${result}));`,
    '',
  ].join('\n');

const call = (name: string, input: object, more: object = {}) => ({
  ...more,
  toolCalls: [{ name, input }],
});

/** What the model of one part does: it reads, edits, and runs the test of the part. */
const fixing = (name: (typeof parts)[number]) => {
  const when = { text: `Fix ${name}` };
  return [
    call('read_file', { path: `src/${name}.mjs` }, { when }),
    call('edit_file', { path: `src/${name}.mjs`, old_text: wrong[name], new_text: right[name] }, { when }),
    call('run_command', { command: ['node', '--test', `test/${name}.test.mjs`] }, { when }),
    { when, text: `${name} is fixed.` },
  ];
};

const answers = [
  ...parts.flatMap((name) => fixing(name)),
  ...[
    call('run_command', { command: ['node', '--test'] }),
    call('search_files', { pattern: '=>', files: 'src/**' }),
    call('delegate', { tasks: parts.map((name) => ({ task: `Fix ${name}` })), inherit: 'nothing' }),
    { text: 'Both parts are fixed.' },
  ].map((answer) => ({ ...answer, when: { session: 'main' } })),
];

const config = `
import { builtins, defineDeck, delegationTools } from '@tapedeck/runtime';

export default defineDeck({
  model: 'script:answers.json',
  permissions: ['sandboxed', 'allow exec(node --test *)'],
  tools: { ...builtins(), ...delegationTools({ workspace: 'worktree' }) },
});
`;

test.skipIf(skipsGit('a working agent'))(
  'an agent fixes a repository whose test fails, with two children in worktrees, whose work is merged and applied',
  async () => {
    using p = project();
    for (const dir of ['src', 'test']) mkdirSync(p.file(dir));
    p.write('.gitignore', '.tape\nnode_modules\n');
    p.write('answers.json', answers);
    p.write('tape.config.mts', config);
    for (const name of parts) {
      p.write(`src/${name}.mjs`, code(name, wrong[name]));
      p.write(`test/${name}.test.mjs`, testOf(name, name === 'sum' ? 7 : 12));
    }
    gitIn(p.path, 'init', '--quiet', '--initial-branch=main');
    gitIn(p.path, 'add', '--all');
    gitIn(p.path, 'commit', '--quiet', '-m', 'first');
    const ownTests = () => spawnSync(process.execPath, ['--test'], { cwd: p.path, env: ownEnv() }).status;
    expect(ownTests()).toBe(1);

    await p.inNode(['trust', '.']);
    const done = await p.inNode(['run', 'main', 'Fix the test.']);
    expect(done.stderr).not.toContain('failed');
    expect(done).toMatchObject({ code: 0, stdout: 'Both parts are fixed.\n' });

    // What the agent saw: its test fails, and those of the children pass.
    const log = async (name: string) =>
      (await p.here(['log', name, '--own', '--jsonl'])).stdout
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as { kind: string; payload: { output: { value: unknown } } })
        .filter(({ kind }) => kind === 'tool-result')
        .map(({ payload }) => payload.output.value);
    expect((await log('main')).slice(0, 2)).toEqual([
      expect.objectContaining({ ended: 'exit', exit_code: 1 }),
      'src/product.mjs:1: export const product = (a, b) => a / b;\nsrc/sum.mjs:1: export const sum = (a, b) => a - b;',
    ]);
    const children = json<readonly { session: string; task: string }[]>(
      await p.here(['children', 'main', '--json']),
    );
    expect(children.map(({ task }) => task)).toEqual(['completed', 'completed']);
    for (const { session } of children)
      expect((await log(session)).at(-1)).toMatchObject({ ended: 'exit', exit_code: 0 });

    // Their work is in their worktrees until it is applied.
    expect(readFileSync(p.file('src/sum.mjs'), 'utf8')).toBe(code('sum', wrong.sum));
    for (const { session } of children) {
      const merged = await p.here(['merge', session, '--apply', '--json']);
      expect(merged.code).toBe(0);
      expect(json(merged)).toMatchObject({ complete: true, conflicts: [], applied: { state: 'applied' } });
    }
    expect(gitIn(p.path, 'status', '--porcelain')).toBe(' M src/product.mjs\n M src/sum.mjs\n');
    expect(ownTests()).toBe(0);
    expect((await p.here(['check'])).code).toBe(0);
  },
  240_000,
);

/** Node.js runs no tests below its own test runner, which it knows by a variable. */
function ownEnv(): NodeJS.ProcessEnv {
  const { NODE_TEST_CONTEXT: _, NODE_OPTIONS: __, ...env } = process.env;
  return env;
}
