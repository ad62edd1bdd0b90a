import { resolve } from 'node:path';
import { type FileJournal, openJournal } from '@tapedeck/graph/journal';
import { type HomeStore, TapeError } from '@tapedeck/tape';
import { encodeLine } from '@tapedeck/tape/store';
import type { Context } from '../context.ts';
import { exit } from '../exit.ts';
import { counted } from '../output/counted.ts';
import { onChanges } from './changes.ts';

/** How many lines are written at once. */
const linesMax = 500;

/**
 * Writes the lineage to a graph file: the lines that it lacks, so that an interrupted export goes on. With `follow`, also
 * those that any process adds, until Ctrl-C.
 * @throws TAPE_EXISTS when the file has other lines
 */
export async function exportGraph(
  given: string,
  { follow }: { readonly follow: boolean },
  { io, reading, status }: Context,
): Promise<number> {
  const file = resolve(io.cwd, given);
  const journal = openJournal(file);
  return await reading(async (store) => {
    assertBegins(store, journal, file);
    const added = addLines(store, journal);
    const { g } = journal.tail();
    status(`Wrote ${counted(added, 'line')} to ${file}, which has ${g}`);
    if (!follow) return exit.done;
    await onChanges(store, io.signal, () => addLines(store, journal));
    return exit.interrupted;
  });
}

/** Adds the lines that a file lacks. */
function addLines(store: HomeStore, journal: FileJournal): number {
  let { g } = journal.tail();
  const from = g;
  let lines: string[] = [];
  const write = () => {
    journal.append(lines);
    lines = [];
  };
  for (const line of store.lineage.read({ from: g + 1 })) {
    lines.push(encodeLine(line));
    g = line.g;
    if (lines.length === linesMax) write();
  }
  write();
  return g - from;
}

/** A file that has anything else is not continued: it would be the graph file of no home. */
function assertBegins(store: HomeStore, journal: FileJournal, file: string): void {
  const { g } = journal.tail();
  if (g <= (store.lineageHash()?.g ?? 0) && journal.holds(encoded(store, g))) return;
  throw new TapeError(
    'TAPE_EXISTS',
    `cannot write the graph to '${file}': it has other lines than the home`,
    {
      data: { file, graph: true },
    },
  );
}

function* encoded(store: HomeStore, to: number): Generator<string> {
  for (const line of store.lineage.read()) {
    if (line.g > to) return;
    yield encodeLine(line);
  }
}
