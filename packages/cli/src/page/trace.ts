import type { Trace, TraceDestination, TraceSource } from '@tapedeck/runtime';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { destinationLine, sourceLine, walk } from '../output/trace.ts';
import type { PageData, TraceRow } from './data.ts';
import { lineOf, needShown, type PageSource, refOf, shownAs } from './source.ts';

/** Rows of each direction. */
const rowsMax = 200;

/** Follows an entry back to what it was made of, and on to where it was merged, as `tape trace` does. */
export async function trace(
  source: PageSource,
  { session, seq }: Parameters<PageData['trace']>[0],
): Promise<readonly TraceRow[]> {
  const { store } = source;
  const info = needShown(store, session);
  const { trace: traceEntry } = await import('@tapedeck/runtime');
  const found = await traceEntry(store, info.id, seq);
  return [
    ...rowsOf(source, refOf(store, info), found),
    ...found.inheritedBy.flatMap((name): readonly TraceRow[] =>
      shownAs(store, name) === undefined
        ? []
        : [{ depth: 1, direction: 'inherited', place: `${name}@${seq}`, text: `inherited by ${name}` }],
    ),
  ];
}

/** The same without the forks that inherit the entry. */
export async function traceOfMerges(
  source: PageSource,
  { session, seq }: Parameters<PageData['trace']>[0],
): Promise<readonly TraceRow[]> {
  const { store } = source;
  const info = needShown(store, session);
  const { traceMerges } = await import('@tapedeck/runtime/internal');
  return rowsOf(source, refOf(store, info), await traceMerges(store, info.id, seq));
}

type Merges = Omit<Trace, 'inheritedBy' | 'inheritedCount'>;

function rowsOf(source: PageSource, ref: string, found: Merges): readonly TraceRow[] {
  const { store } = source;
  const place = `${ref}@${found.seq}`;
  return [
    {
      ...{ depth: 0, direction: 'here', place, text: labelOf(found) },
      command: lineOf(source, 'trace', place),
    },
    ...walk(found.from, (source) => source.from)
      .take(rowsMax)
      .map(({ at, depth }) => sourceRow(store, at, depth)),
    ...walk(found.into, (one) => one.into)
      .take(rowsMax)
      .map(({ at, depth }) => destinationRow(store, at, depth)),
  ];
}

function labelOf({ session, owner, seq, kind, name }: Merges): string {
  const label = `${session}@${seq} ${kind}${name === undefined ? '' : ` ${name}`}`;
  return session === owner ? label : `${label}, of ${owner}`;
}

/** A deleted session has no name: what was merged of it says so. */
const deleted = 'a deleted session';

function sourceRow(store: SqliteTapeStore, source: TraceSource, depth: number): TraceRow {
  const { session, range, text } = source;
  const isThere = shownAs(store, session) !== undefined;
  if (!isThere && source.missing !== true) return { depth, direction: 'from', text: `from ${deleted}` };
  return {
    depth,
    direction: 'from',
    text: sourceLine(source),
    ...(isThere && { place: text === null ? session : `${session}@${text.seq}`, session }),
    ...(isThere && range !== null && { range: [range[0], range[1]] as const }),
  };
}

function destinationRow(store: SqliteTapeStore, one: TraceDestination, depth: number): TraceRow {
  const { session, seq } = one;
  if (shownAs(store, session) === undefined)
    return { depth, direction: 'into', text: `merged into ${deleted}` };
  return { depth, direction: 'into', text: destinationLine(one), place: `${session}@${seq}`, session };
}
