import type { Trace, TraceDestination, TraceSource } from '@tapedeck/runtime';

import { safe } from '../escape.ts';
import { hangingLines } from '../terminal/wrap.ts';

type Json = Readonly<Record<string, unknown>>;

/** A trace as `--json` prints it; part of the documented contract. */
export function traceJson({ from, into, inheritedBy, inheritedCount, ...entry }: Trace): Json {
  return {
    ...entry,
    from: from.map(sourceJson),
    into: into.map(destinationJson),
    inherited_by: inheritedBy,
    inherited_count: inheritedCount,
  };
}

/** A source of an entry as `--json` prints it. */
export function sourceJson({ mark, from, ...source }: TraceSource): Json {
  const below: Json[] = [];
  // A loop, not `map`: deep merges would exceed the call stack with two calls per level.
  for (const each of from) below.push(sourceJson(each));
  return {
    ...source,
    mark: mark === null ? null : markJson(mark),
    from: below,
  };
}

function markJson({ session, seq, received, hiddenBy }: NonNullable<TraceSource['mark']>): Json {
  return { session, seq, ...(received !== undefined && { received }), ...hiddenJson({ hiddenBy }) };
}

function destinationJson({ hiddenBy, into, ...destination }: TraceDestination): Json {
  const above: Json[] = [];
  for (const each of into) above.push(destinationJson(each));
  return { ...destination, ...hiddenJson({ hiddenBy }), into: above };
}

function hiddenJson({ hiddenBy }: { readonly hiddenBy?: number | undefined }): Json {
  return hiddenBy === undefined ? {} : { hidden_by: hiddenBy };
}

/** The places that a trace leads to: source entries, then anchors of merges. */
export function tracePlaces({ from, into }: Trace): string[] {
  const places: string[] = [];
  for (const { at } of walk(from, (source) => source.from))
    if (at.text !== null) places.push(`${at.session}@${at.text.seq}`);
  for (const { at } of walk(into, (one) => one.into)) places.push(`${at.session}@${at.seq}`);
  return places;
}

/** The nodes of a tree in preorder, with their depth. */
export function* walk<T>(
  roots: readonly T[],
  below: (at: T) => readonly T[],
): Generator<{ at: T; depth: number }> {
  const left = roots.map((at) => ({ at, depth: 1 })).reverse();
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    yield next;
    for (const at of below(next.at).toReversed()) left.push({ at, depth: next.depth + 1 });
  }
}

/** A trace as an indented tree. */
export function traceText(trace: Trace, columns: number = Number.POSITIVE_INFINITY): string {
  const { session, owner, seq, kind, name, from, into, inheritedBy, inheritedCount } = trace;
  const label = `${session}@${seq} ${kind}${name === undefined ? '' : ` ${name}`}`;
  const more = inheritedCount - inheritedBy.length;
  const lines: string[] = [];
  const add = (depth: number, line: string) =>
    lines.push(...hangingLines(safe(`${'  '.repeat(depth)}${line}`), columns, 2 * depth + 2));
  add(0, session === owner ? label : `${label}, of ${owner}`);
  for (const { at, depth } of walk(from, (source) => source.from)) add(depth, sourceLine(at));
  for (const { at, depth } of walk(into, (one) => one.into)) add(depth, destinationLine(at));
  if (into.length === 0) add(1, 'not merged into any session');
  if (inheritedCount > 0)
    add(1, `inherited by ${inheritedBy.join(', ')}${more > 0 ? ` and ${more} more` : ''}`);
  return lines.join('\n');
}

/** A source in words. */
export function sourceLine({
  session,
  range,
  mark,
  state,
  status,
  text,
  quoted,
  missing,
  again,
}: TraceSource): string {
  const where = [
    mark === null ? state : `${state} at ${mark.session}@${mark.seq}`,
    ...(mark?.received === undefined ? [] : [`received @${mark.received}`]),
    ...(mark?.hiddenBy === undefined ? [] : [`hidden by the rewind @${mark.hiddenBy}`]),
    ...(status === undefined ? [] : [status]),
    ...(quoted === true ? ['quoted'] : []),
    ...(missing === true ? ['no such session'] : []),
    ...(again === true ? ['see above'] : []),
  ];
  const places = range === null ? session : `${session} ${range[0]}-${range[1]}`;
  const says = text === null ? '' : `: the text of ${session}@${text.seq}`;
  return `from ${places}, ${where.join(', ')}${says}`;
}

/** A destination in words. */
export function destinationLine({ session, seq, state, range, hiddenBy, again }: TraceDestination): string {
  const what = state === 'merged' ? 'merged into' : 'discarded at';
  const more = [
    ...(hiddenBy === undefined ? [] : [`hidden by the rewind @${hiddenBy}`]),
    ...(again === true ? ['see above'] : []),
  ];
  return [`${what} ${session}@${seq} (${range[0]}-${range[1]})`, ...more].join(', ');
}
