import type { Trace, TraceDestination, TraceSource } from '@tapedeck/runtime';
import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { destinationLine, sourceLine, walk } from '../output/trace.ts';
import type { PageData, TraceRow } from './data.ts';
import { lineOf, needShown, type PageSource, placesOf, refOf, shownAs } from './source.ts';

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
    ...rowsOf(source, info, found),
    ...found.inheritedBy.flatMap((name): readonly TraceRow[] => {
      const fork = shownAs(store, name);
      if (fork === undefined) return [];
      return [{ depth: 1, direction: 'inherited', text: name, session: refOf(store, fork), seq }];
    }),
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
  return rowsOf(source, info, await traceMerges(store, info.id, seq));
}

type Merges = Omit<Trace, 'inheritedBy' | 'inheritedCount'>;

function rowsOf(source: PageSource, info: SessionInfo, found: Merges): readonly TraceRow[] {
  const { store } = source;
  const { seq } = found;
  return [
    {
      ...{ depth: 0, direction: 'here', text: labelOf(found), session: refOf(store, info), seq },
      command: lineOf(source, 'trace', [placesOf(store, info)(seq)]),
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

function sourceRow(store: HomeStore, source: TraceSource, depth: number): TraceRow {
  const { range, text } = source;
  const child = shownAs(store, source.session);
  if (child === undefined && source.missing !== true)
    return { depth, direction: 'from', text: `from ${deleted}` };
  return {
    depth,
    direction: 'from',
    text: sourceLine(source),
    ...(child !== undefined && {
      session: refOf(store, child),
      ...(text !== null && { seq: text.seq }),
      ...(range !== null && { range: [range[0], range[1]] as const }),
    }),
  };
}

function destinationRow(store: HomeStore, one: TraceDestination, depth: number): TraceRow {
  const { seq } = one;
  const into = shownAs(store, one.session);
  if (into === undefined) return { depth, direction: 'into', text: `merged into ${deleted}` };
  return { depth, direction: 'into', text: destinationLine(one), session: refOf(store, into), seq };
}
