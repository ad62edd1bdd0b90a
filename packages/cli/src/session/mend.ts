import { chmodSync, existsSync, lstatSync } from 'node:fs';
import { examineFiles, verifyGraph, verifyTapes } from '@tapedeck/runtime/internal';
import { type HomeStore, TapeError } from '@tapedeck/tape';
import { assertWritable, type Finding } from '@tapedeck/tape/internal';
import type { ProgressOptions } from '@tapedeck/tape/store';
import type { Context } from '../context.ts';
import type { Home } from '../home.ts';
import { assertOwn } from '../origin.ts';
import { counted } from '../output/counted.ts';
import { withProgress } from '../output/progress.ts';

/** One problem, as `--json` prints it. */
export interface Found {
  readonly code: string;
  readonly session: string | null;
  readonly seq: number | null;
  readonly message: string;
}

/** The state of a home: what is damaged, and what can be repaired or removed. */
export interface Looked {
  readonly problems: readonly Found[];
  /** Leftovers in the store, and problems with the files beside it. */
  readonly left: readonly Finding[];
  readonly files: readonly FileFinding[];
  readonly sessions: number;
  readonly entries: number;
}

interface FileFinding {
  readonly code: 'open-to-others' | 'unknown-file' | 'odd-place' | 'graph-behind';
  readonly session: null;
  readonly path: string;
  readonly message: string;
  readonly fixable: boolean;
}

/** Examines a home, and changes nothing. */
export async function lookAt(context: Context): Promise<Looked> {
  const { home, reading } = context;
  return await reading(async (store) => {
    const problems = [...store.verifyDatabase()].map(problemJson);
    // What a bundle did not bring is no damage, and nothing here can bring it.
    const found = await tapeProblems(store, undefined, context);
    problems.push(...found.filter(({ code }) => code !== 'not-here'));
    const graph = await withProgress(context, (progress) =>
      unlessDamaged(problems, { g: 0, problems: [] }, () =>
        graphProblems(store, home, { onProgress: progress('Comparing lines of the graph file') }),
      ),
    );
    const behind: readonly FileFinding[] =
      graph.behind === undefined || home.graph === undefined
        ? []
        : [
            {
              ...{ code: 'graph-behind', session: null, path: home.graph },
              ...{ message: graph.behind.message, fixable: true },
            },
          ];
    problems.push(...graph.problems.map(problemJson));
    const left = await unlessDamaged(problems, [], () => [...store.examine()]);
    const counts = await countOf(store, problems);
    return {
      problems,
      left,
      files: [...behind, ...(home.server === undefined ? examineFiles(home.dir) : [])],
      ...counts,
    };
  });
}

/** Compares the graph file of a home, if it has one, with its lineage. */
export async function graphProblems(
  store: HomeStore,
  { graph }: Home,
  o: ProgressOptions,
): ReturnType<typeof verifyGraph> {
  return graph === undefined ? { g: 0, problems: [] } : await verifyGraph(store, graph, o);
}

/**
 * Reads a part of a home. Damage of the file that prevents it is one of the problems, and the other parts are read.
 */
export async function unlessDamaged<T>(
  problems: Found[],
  otherwise: T,
  read: () => T | Promise<T>,
): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof TapeError) || error.code !== 'TAPE_CORRUPT') throw error;
    const { message } = error;
    if (!problems.some(({ code, session }) => code === 'database-damaged' && session === null))
      problems.push({ code: 'database-damaged', session: null, seq: null, message });
    return otherwise;
  }
}

/** Counts sessions and entries; none of what cannot be read. */
export async function countOf(
  store: HomeStore,
  problems: Found[],
  ref?: string,
): Promise<{ readonly sessions: number; readonly entries: number }> {
  return await unlessDamaged(problems, { sessions: 0, entries: 0 }, () => store.count(ref));
}

/** The problems of all tapes, or of one session and its inherited entries. */
export async function tapeProblems(
  store: HomeStore,
  ref: string | undefined,
  context: Context,
): Promise<readonly Found[]> {
  const found = await withProgress(context, (progress) =>
    Array.fromAsync(verifyTapes(store, ref, { onProgress: progress('Verifying entries') })),
  );
  return found.map(problemJson);
}

/** A problem as `--json` prints it. */
export function problemJson({ code, session, seq, message }: Found): Found {
  return { code, session, seq, message };
}

/** Renames the graph file; undefined when it cannot be renamed, like a link, which stays where it is. */
async function setAside({ graph }: Home): Promise<string | undefined> {
  if (graph === undefined) return undefined;
  const { openJournal } = await import('@tapedeck/graph/journal');
  try {
    return openJournal(graph).setAside();
  } catch (error) {
    if ((error as { code?: unknown }).code === 'GRAPH_IO') return undefined;
    throw error;
  }
}

/** Completes the search index, if a search has begun it; returns how many entries it indexed. */
async function continueIndex(store: HomeStore, context: Context): Promise<number> {
  const { indexed, unindexed } = store.searchIndex();
  if (indexed === 0 || unindexed === 0) return 0;
  return await withProgress(context, (progress) =>
    store.fillSearchIndex({ onProgress: progress('Indexing entries') }),
  );
}

/**
 * Repairs what can be rebuilt. A graph file that differs is evidence: it is renamed, not overwritten. Returns what
 * was repaired.
 */
export async function mend(context: Context, { problems, left, files }: Looked): Promise<readonly string[]> {
  const { io, home, writing } = context;
  assertOwn(home, io);
  // The records of the graph file are then all that is left: nothing may replace them.
  if (problems.some(({ code }) => code === 'database-missing')) return [];
  if (home.server === undefined) assertWritable(home.db);
  const fixed: string[] = [];
  let aside: string | undefined;
  if (problems.some(({ code }) => code.startsWith('graph-'))) {
    aside = await setAside(home);
  }
  if (aside !== undefined)
    fixed.push(`renamed the graph file to '${aside}' and wrote a new one from the database`);
  for (const { code, path, message } of files) {
    if (code === 'open-to-others' && existsSync(path))
      chmodSync(path, lstatSync(path).isDirectory() ? 0o700 : 0o600);
    if (code === 'open-to-others') fixed.push(message);
  }
  // Opening the store for writing brings the graph file up to date.
  await writing(async (store) => {
    for (const problem of [...store.verifyDatabase(), ...store.verify()])
      if (store.mend(problem)) fixed.push(problem.message);
    for (const finding of left) {
      store.mend(finding);
      if (finding.fixable) fixed.push(finding.message);
    }
    const indexed = await continueIndex(store, context);
    if (indexed > 0) fixed.push(`indexed ${counted(indexed, 'entry', 'entries')} for search`);
    if (!store.graphFile.lagging)
      fixed.push(...files.flatMap(({ code, message }) => (code === 'graph-behind' ? [message] : [])));
  });
  return fixed;
}
