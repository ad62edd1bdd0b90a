import { chmodSync, existsSync, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Finding, isHomeFile } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { NotFoundError } from '../errors/kinds.ts';
import { exit } from '../exit.ts';
import type { Home } from '../home.ts';
import { type Found, verifyGraph, verifyTapes } from '../session/problems.ts';
import { defineVerb, type Verb } from './verb.ts';

export const doctor: Verb = defineVerb({
  command: 'doctor',
  group: 'Trust',
  summary: 'Check a tape home, and repair what can be rebuilt',
  detail:
    'Checks everything that verify checks, the database file, leases of dead processes, items left in inboxes, and files that ' +
    'other users can read. --fix rebuilds projections and never changes an entry; it renames a graph file that differs from the ' +
    'database, and writes a new one.',
  examples: [
    ['tape doctor', 'Check, and change nothing'],
    ['tape doctor --fix', 'Repair what can be rebuilt'],
  ],
  options: (y) => y.option('fix', { type: 'boolean', describe: 'Repair what can be rebuilt' }),
  run: async ({ fix }, context) => {
    const { home, answer } = context;
    if (!existsSync(home.db))
      throw new NotFoundError(`cannot check '${home.dir}': it has no tapes yet`, { home: home.dir });
    const before = await look(context);
    const fixed = fix === true ? await mend(context, before) : [];
    const { problems, left, files, sessions, entries } = fixed.length === 0 ? before : await look(context);
    const ok = problems.length === 0;
    const findings = [...left, ...files.map(({ path: _, ...finding }) => finding)];
    const lines = [
      ...fixed.map((text) => `fixed: ${text}`),
      ...problems.map((p) => `${p.code}: ${p.message}`),
      ...findings.map((f) => `${f.code}: ${f.message}`),
    ];
    await answer({
      json: { ok, sessions, entries, problems, findings, fixed },
      quiet: ok ? 'ok' : 'damaged',
      human: [
        ...lines,
        `${ok ? 'ok' : problems.length === 1 ? '1 problem' : `${problems.length} problems`}: ${sessions} sessions, ${entries} entries`,
      ].join('\n'),
    });
    return ok ? exit.done : exit.damaged;
  },
});

interface Looked {
  readonly problems: readonly Found[];
  /** Leftovers in the store, and problems with the files beside it. */
  readonly left: readonly Finding[];
  readonly files: readonly FileFinding[];
  readonly sessions: number;
  readonly entries: number;
}

interface FileFinding {
  readonly code: 'open-to-others' | 'unknown-file' | 'graph-behind';
  readonly session: null;
  readonly path: string;
  readonly message: string;
  readonly fixable: boolean;
}

async function look({ home, reading }: Context): Promise<Looked> {
  return await reading(async (store) => {
    const graph = await verifyGraph(store, home);
    const newest = store.lineageHash()?.g ?? 0;
    const behind: FileFinding[] =
      graph.g < newest
        ? [
            {
              code: 'graph-behind',
              session: null,
              path: home.graph,
              message: `session_graph.jsonl ends at line ${graph.g} of ${newest}: the next command that writes adds the rest`,
              fixable: true,
            },
          ]
        : [];
    return {
      problems: [...store.verifyDatabase(), ...verifyTapes(store, undefined), ...graph.problems],
      left: [...store.examine()],
      files: [...behind, ...examineFiles(home)],
      ...store.count(),
    };
  });
}

/** The directories of a home. */
const directories: readonly string[] = ['run', 'worktrees'];

/** The files in a directory of a home; none when the directory does not exist. */
function namesIn(home: Home, dir: string): string[] {
  const path = join(home.dir, dir);
  if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return [];
  return readdirSync(path).map((name) => `${dir}/${name}`);
}

function* examineFiles(home: Home): Generator<FileFinding> {
  for (const name of ['.', ...readdirSync(home.dir), ...directories.flatMap((dir) => namesIn(home, dir))]) {
    const path = join(home.dir, name);
    const stat = lstatSync(path, { throwIfNoEntry: false });
    // Processes rewrite the list of active runs all the time: a draft may be gone by now.
    if (stat === undefined) continue;
    const isStray =
      !isHomeFile(name) || stat.isSymbolicLink() || (directories.includes(name) && !stat.isDirectory());
    if (name !== '.' && isStray)
      yield {
        code: 'unknown-file',
        session: null,
        path,
        message: `'${path}' is not a file of a tape home`,
        fixable: false,
      };
    else if ((stat.mode & 0o077) !== 0)
      yield {
        code: 'open-to-others',
        session: null,
        path,
        message: `others can read '${path}'`,
        fixable: true,
      };
  }
}

/**
 * Repairs, and returns what it repaired. A graph file that differs is evidence: it is renamed, not
 * overwritten.
 */
async function mend({ home, writing }: Context, { problems, left, files }: Looked): Promise<string[]> {
  const fixed: string[] = [];
  if (problems.some(({ code }) => code.startsWith('graph-'))) {
    const { openJournal } = await import('@tapedeck/graph/journal');
    const aside = openJournal(home.graph).setAside();
    fixed.push(`renamed the graph file to '${aside}' and wrote a new one from the database`);
  }
  for (const { code, path, message } of files) {
    if (code === 'open-to-others' && existsSync(path))
      chmodSync(path, lstatSync(path).isDirectory() ? 0o700 : 0o600);
    if (code !== 'unknown-file') fixed.push(message);
  }
  // Opening the store for writing brings the graph file up to date.
  await writing(async (store) => {
    for (const problem of [...store.verifyDatabase(), ...store.verify()])
      if (store.mend(problem)) fixed.push(problem.message);
    for (const finding of left) {
      store.mend(finding);
      if (finding.fixable) fixed.push(finding.message);
    }
  });
  return fixed;
}
