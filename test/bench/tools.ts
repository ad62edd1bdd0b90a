import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { builtins } from '@tapedeck/runtime';
import { gather } from './measure.ts';
import { seeded } from './random.ts';
import { grouped } from './table.ts';
import { type Bench, compared, type Row } from './topic.ts';

const runFile = promisify(execFile);

/** What is looked for, as the tool takes it and as git does. */
interface Search {
  readonly what: string;
  readonly input: object;
  readonly args: readonly string[];
  /** Whether there is anything to find. */
  readonly isThere: boolean;
}

const searches: readonly Search[] = [
  { what: 'a rare word', input: { pattern: 'needleOf' }, args: ['-F', 'needleOf'], isThere: true },
  {
    what: 'a rare word, capitals and small letters alike',
    input: { pattern: 'NEEDLEoF', ignore_case: true },
    args: ['-F', '-i', 'NEEDLEoF'],
    isThere: true,
  },
  {
    what: 'a regular expression',
    input: { pattern: 'needle[A-Z][a-z]+\\([0-9]+\\)', regex: true },
    args: ['-E', 'needle[A-Z][a-z]+\\([0-9]+\\)'],
    isThere: true,
  },
  { what: 'what is not there', input: { pattern: 'haystackOf' }, args: ['-F', 'haystackOf'], isThere: false },
];

/** `search_files` over a repository, against `git grep`, which reads the files of its index with several threads. */
export async function tools(bench: Bench): Promise<Row[]> {
  const files = bench.size(20_000, 200);
  const directory = join(bench.dir, 'repository');
  bench.say(`writing ${grouped(files)} files`);
  makeRepository(directory, files);
  const { search_files: tool } = builtins({ only: ['search_files'] });
  const rows: Row[] = [];
  for (const { what, input, args, isThere } of searches) {
    const ours = async () =>
      String(await tool?.execute?.(input, { toolCallId: 'c', messages: [], context: { directory } }));
    const git = async () =>
      // It exits with 1 where it finds nothing.
      await runFile('git', ['grep', '-n', ...args], { cwd: directory }).then(
        ({ stdout }) => stdout,
        ({ code, stdout }) => {
          if (code !== 1) throw new Error(`git grep exited with ${code}`);
          return stdout as string;
        },
      );
    assertSame(await ours(), await git(), isThere);
    const taken = await gather(
      { ours: async () => await timed(ours), git: async () => await timed(git) },
      bench.size(7, 2),
    );
    rows.push(
      compared(taken.ours, taken.git, {
        work: `search_files in ${grouped(files)} files for ${what}`,
        against: 'git grep in the same repository',
        unit: 'ms',
      }),
    );
  }
  return rows;
}

/** Both have found the same lines, or both none. */
function assertSame(ours: string, git: string, isThere: boolean): void {
  const lines = (text: string) => text.split('\n').filter((line) => line !== '' && !line.startsWith('['));
  const found = lines(ours).map((line) => line.replace(/^([^:]*:\d+:) /, '$1'));
  const expected = lines(git);
  if (isThere !== expected.length > 0) throw new Error(`git grep found ${expected.length} lines`);
  if (found.sort().join('\n') !== expected.sort().join('\n'))
    throw new Error(`search_files found ${found.length} lines, and git grep ${expected.length}`);
}

const words =
  'const return await import export function class readonly string number value entry session store tape fork merge head'.split(
    ' ',
  );

/** Sources of some 3 KB each in folders of a hundred; one in 400 has a line with what is looked for. */
function makeRepository(directory: string, files: number): void {
  const random = seeded(7);
  const word = () => words[Math.floor(random() * words.length)];
  const line = () => `  ${Array.from({ length: 8 }, word).join(' ')};`;
  for (let i = 0; i < files; i += 1) {
    const folder = join(directory, `src/part-${Math.floor(i / 100)}`);
    if (i % 100 === 0) mkdirSync(folder, { recursive: true });
    const lines = Array.from({ length: 20 + Math.floor(random() * 80) }, line);
    if (i % 400 === 0) lines.splice(10, 0, `  needleOf(${i});`);
    writeFileSync(join(folder, `file-${i}.ts`), `${lines.join('\n')}\n`);
  }
  writeFileSync(join(directory, '.gitignore'), 'node_modules/\n*.log\n');
  const git = (...args: string[]) => execFileSync('git', args, { cwd: directory, stdio: 'ignore' });
  git('init', '--quiet');
  git('add', '--all');
}

/** Microseconds. */
async function timed(act: () => Promise<unknown>): Promise<number> {
  const before = performance.now();
  await act();
  return (performance.now() - before) * 1000;
}
