import { lstatSync } from 'node:fs';
import { type HomeStore, TapeError } from '@tapedeck/tape';
import { encodeLine, firstLinePrev, type OnProgress, type ProgressOptions } from '@tapedeck/tape/store';
import type { CheckCode, Found } from './finding.ts';

/** What a check of a graph file found. `g`: number of its last record. */
export interface GraphFileReport {
  readonly problems: readonly Found[];
  readonly g: number;
  /** The file lacks the last lines, or all; undefined when it does not. */
  readonly behind?: Found;
}

/** What a check of a graph file asks a store. */
type Lineage = Pick<HomeStore, 'lineage' | 'lineageHash'>;

/** Checks a graph file by itself, and every line of it against the database. A file that lags is no problem. */
export async function verifyGraph(
  store: Lineage,
  path: string,
  { onProgress }: ProgressOptions = {},
): Promise<GraphFileReport> {
  const { checkJournal, GraphError, readLines } = await import('@tapedeck/graph');
  const { tailOf } = await import('@tapedeck/graph/journal');
  try {
    const last = await lastOfSame(store, path, onProgress);
    if (last !== undefined) return { problems: severalNames(path), g: last, ...lagging(store, last) };
    const report = checkJournal(readLines(path));
    if (report.records > 0 && store.lineageHash() === undefined)
      return { problems: [databaseMissing(report.records)], g: report.g };
    if (report.records === 0 && tailOf(path).hash !== firstLinePrev)
      return { problems: [found('graph-foreign', 'session_graph.jsonl: has text, and no record')], g: 0 };
    const problems = report.problems.map(({ code, line, message }) =>
      found(`graph-${code}`, `session_graph.jsonl line ${line}: ${message}`, String(line)),
    );
    if (problems.length === 0) problems.push(...(await compared(store, path)));
    problems.push(...severalNames(path));
    return { problems, g: report.g, ...lagging(store, report.g) };
  } catch (error) {
    if (!(error instanceof GraphError)) throw error;
    return { problems: [unusable(error.message)], g: 0 };
  }
}

/**
 * The number of the last line, when a graph file has the lines of its database and nothing else, each with the hash of
 * the one before it: the checks of the file and of its lines, which read both again, have nothing to find then.
 */
async function lastOfSame(
  store: Lineage,
  path: string,
  onProgress: OnProgress | undefined,
): Promise<number | undefined> {
  const { GraphError, lineHash, readLines } = await import('@tapedeck/graph');
  const lines = readLines(path);
  try {
    let last = { g: 0, hash: firstLinePrev };
    const total = store.lineageHash()?.g ?? 0;
    for (const line of store.lineage.read()) {
      if (line.g % 100 === 0) onProgress?.({ done: line.g, total });
      const { value } = lines.next();
      const text = encodeLine(line);
      if (value?.kind !== 'line' || value.text !== text) return undefined;
      if (line.g !== last.g + 1 || line.prev !== last.hash) return undefined;
      last = { g: line.g, hash: lineHash(text) };
    }
    return last.g > 0 && lines.next().done === true ? last.g : undefined;
  } catch (error) {
    // What cannot be read is reported by the checks.
    if (error instanceof GraphError || (error instanceof TapeError && error.code === 'TAPE_CORRUPT'))
      return undefined;
    throw error;
  } finally {
    lines.return();
  }
}

/** A file with more than one name, which no command writes. */
function severalNames(path: string): Found[] {
  const names = lstatSync(path, { throwIfNoEntry: false })?.nlink ?? 1;
  return names > 1 ? [unusable(`cannot write graph '${path}': it has ${names} names`)] : [];
}

/** A file that is no file of the home's own, which no command writes. */
function unusable(why: string): Found {
  const message = `${why}; move it away, and the next command that writes makes a new one`;
  return { code: 'graph-unreadable', session: null, seq: null, message };
}

/**
 * What a home has lost that has a graph file with records, and no database; undefined when the file has none. A file
 * that cannot be read says nothing.
 */
export async function findLost(path: string): Promise<Found | undefined> {
  const { checkJournal, GraphError, readLines } = await import('@tapedeck/graph');
  try {
    const { records } = checkJournal(readLines(path));
    return records > 0 ? databaseMissing(records) : undefined;
  } catch (error) {
    if (error instanceof GraphError) return undefined;
    throw error;
  }
}

function databaseMissing(records: number): Found {
  const message = `session_graph.jsonl has ${records} ${records === 1 ? 'record' : 'records'}, and the database has none: it was lost`;
  return { ...found('database-missing', message), next: { act: 'restore' } };
}

/** The difference of a file that is whole by itself. It differs at a line that the database cannot read itself. */
async function compared(store: Lineage, path: string): Promise<readonly Found[]> {
  const { comparing, FileComparison } = await import('@tapedeck/graph');
  using comparison = new FileComparison(path);
  const read = (from: number) => store.lineage.read({ from });
  try {
    for (const _ of comparing(comparison, { read, encode: encodeLine }));
  } catch (error) {
    if (!(error instanceof TapeError) || error.code !== 'TAPE_CORRUPT') throw error;
    return [differs(comparison.line ?? Number(error.data.g))];
  }
  return comparison.standing === 'differs' ? [differs(comparison.line)] : [];
}

function differs(line: number | undefined): Found {
  return found('graph-differs', `session_graph.jsonl: line ${line} differs from the database`);
}

function lagging(store: Lineage, g: number): { readonly behind?: Found } {
  const newest = store.lineageHash()?.g ?? 0;
  if (g >= newest) return {};
  const message = `session_graph.jsonl ends at line ${g} of ${newest}: the next command that writes adds the rest`;
  return { behind: found('graph-behind', message) };
}

function found(code: CheckCode, message: string, of?: string): Found {
  return { code, session: null, seq: null, message, next: { act: 'fix' }, ...(of !== undefined && { of }) };
}
