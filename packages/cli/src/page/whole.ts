import type { SqliteTapeStore } from '@tapedeck/tape';
import { isoTime } from '@tapedeck/tape/internal';
import type { OnProgress, SessionRange } from '@tapedeck/tape/store';
import { aboutOf } from '../session/listing.ts';
import { type Stated, stated } from '../session/stated.ts';
import { type Clean, cleanReads } from './clean-reads.ts';
import type { LineageMerge, LineageRow, SessionInfo, SessionRow, TimelineItem, TraceRow } from './data.ts';
import type { EmbeddedTape } from './embedded.ts';
import { findings } from './findings.ts';
import { assertFits } from './fits.ts';
import { parting } from './parting.ts';
import { readable } from './readable.ts';
import { type Scope, type Scoped, scopeOf } from './scope.ts';
import { seen } from './seen.ts';
import { sessionInfo } from './session.ts';
import { sessionRow } from './session-row.ts';
import { lineOf, needShown, type PageSource, refOf } from './source.ts';
import { flat } from './texts.ts';
import { gapsOf, timeline } from './timeline.ts';
import { traceOfMerges } from './trace.ts';
import { treeRows } from './tree-rows.ts';
import { usage } from './usage.ts';

/** What an exported file has. */
export interface Whole {
  readonly session: string;
  readonly scope: Scope;
  /** Replaces the secrets in a value. */
  readonly clean: Clean;
  /** Hears how many of the entries are written. */
  readonly onProgress?: OnProgress;
}

/** What was written. */
export interface WholeWritten {
  readonly sessions: number;
  readonly items: number;
  /** How many entries had a secret that was replaced. */
  readonly redacted: number;
}

/** Answers of which a file has what the model saw, the newest ones; traces; pairs of sessions; and sessions with their usage. */
const seenMax = 2_000;
const tracesMax = 2_000;
const partingsMax = 200;
/** Entries that are read to compare pairs, beside as many as the file has. */
const comparedMax = 50_000;
const usagesMax = 300;
/** Entries of a view that is made again to compare it: of each answer another one. */
const remadeMax = 200;
const aboutMax = 200;

/**
 * Writes the data of an exported file (`Embedded`), in pieces: what the page would be answered about some sessions, of these
 * alone, and without secrets.
 */
export async function* wholeJson(
  source: PageSource,
  { session: ref, scope, clean, onProgress }: Whole,
): AsyncGenerator<string, WholeWritten> {
  const { store } = source;
  const info = needShown(store, ref);
  const within = scopeOf(store, info, scope);
  const reads = cleanReads(store, clean);
  const cleaned = { ...source, store: reads.store };
  const names = new Map(Array.from(within, ([id, one]) => [id, refOf(store, one.info)]));
  const named = new Set(names.values());
  const json = (value: unknown) => readable(JSON.stringify(clean(value)));
  const key = (text: string) => readable(JSON.stringify(text));
  const nameOf = (id: string) => names.get(id) ?? id;

  const total = sumOf(within);
  assertFits(nameOf(info.id), total);
  const states = await statesIn(reads.store, within);
  const rows = new Map(
    states.map((one) => [one.info.id, rowOf(reads.store, one, { within, nameOf, clean })]),
  );
  const drawn = (await treeRows(reads.store, within)).map((row) => aboutIn(row, rows));
  yield `{"sessions":${json([...rows.values()])},"lineage":${json(drawn)},"tapes":{`;
  let [items, done] = [0, 0];
  const answers: { readonly session: string; readonly seq: number }[] = [];
  const traces = new Map<string, readonly TraceRow[]>();
  let separator = '';
  const stateOf = new Map(states.map((one) => [one.info.id, one]));
  for (const one of within.values()) {
    const state = stateOf.get(one.info.id);
    if (state === undefined) continue;
    const name = nameOf(one.info.id);
    // What it inherits is at the session from which it does, unless that is not in the file.
    const own = one.from > one.info.base;
    const about = rows.get(one.info.id)?.about ?? '';
    const known = partOf({ ...(await sessionInfo(cleaned, state, { own })), about }, one, named);
    const head = { info: known, hidden: hiddenIn(store, one), gaps: inheritedGaps(cleaned, one, within) };
    yield `${separator}${key(name)}:${json(head).slice(0, -1)},"items":[`;
    separator = ',';
    let between = '';
    for await (const item of itemsIn(cleaned, one)) {
      onProgress?.({ done: done + item.seq - one.from, total });
      const shown = itemWithin(item, named);
      if (shown === undefined) continue;
      if (item.seen === true) answers.push({ session: name, seq: item.seq });
      if (answers.length > 2 * seenMax) answers.splice(0, seenMax);
      if (item.kind === 'merge' && traces.size < tracesMax)
        await follow(cleaned, traces, { session: name, seq: item.seq, named });
      items += 1;
      yield `${between}${json(shown)}`;
      between = ',';
    }
    done += one.to - one.from + 1;
    yield ']}';
  }
  yield '},"seen":{';
  let comma = '';
  for (const at of answers.slice(-seenMax)) {
    yield `${comma}${key(`${at.session}@${at.seq}`)}:${json(seen(source, at, remadeMax))}`;
    comma = ',';
  }
  yield `},"trace":${json(Object.fromEntries(traces))},"partings":[`;
  comma = '';
  let compared = 0;
  for (const { info: child } of [...within.values()]
    .filter(({ info: of }) => within.has(of.parentId ?? ''))
    .slice(0, partingsMax)) {
    if (compared > total + comparedMax) break;
    const one = await parting(cleaned, { a: nameOf(child.parentId ?? ''), b: nameOf(child.id) });
    compared += one.a.entries + one.b.entries;
    yield `${comma}${json(one)}`;
    comma = ',';
  }
  yield '],"usage":{';
  const isTree = scope === 'tree';
  const all = await usage(source, { session: info.id, tree: isTree });
  yield `"":${json({ alone: all, tree: all })}`;
  for (const { info: of } of [...within.values()].slice(0, usagesMax)) {
    const alone = await usage(source, { session: of.id });
    // What is below an ancestor is not all in the file.
    const isWhole = isTree && of.createdAt >= info.createdAt;
    const tree = isWhole ? await usage(source, { session: of.id, tree: true }) : alone;
    yield `,${key(nameOf(of.id))}:${json({ alone, tree })}`;
  }
  const graph = Object.fromEntries(
    [...named, ''].map((name) => [name, lineOf(source, 'graph', name || nameOf(info.id))]),
  );
  const found = await findings(source, { session: info.id });
  // What is found of the home itself is of no use elsewhere, and says where it is.
  const placed = found.findings.filter(({ place }) => place !== undefined && isIn(place, named));
  yield `},"graph":${json(graph)},"findings":${json({ ...found, findings: placed, total: placed.length })}`;
  const redacted = reads.redacted();
  const home = {
    ...{ title: nameOf(info.id), version: source.version, isLive: false, sessions: within.size, at: '' },
    exported: { at: isoTime(source.now()), redacted },
  };
  yield `,"home":${json(home)}}`;
  return { sessions: within.size, items, redacted };
}

/** How many entries some sessions have. */
function sumOf(within: ReadonlyMap<string, Scoped>): number {
  return [...within.values()].reduce((sum, { from, to }) => sum + Math.max(0, to - from + 1), 0);
}

/** The sessions with their states, the one with the newest message first. */
async function statesIn(
  store: SqliteTapeStore,
  within: ReadonlyMap<string, Scoped>,
): Promise<readonly Stated[]> {
  return await stated(store, [...store.readSessions({ ids: [...within.keys()], all: true, counts: true })]);
}

/** The row of a session in the list. */
function rowOf(
  store: SqliteTapeStore,
  one: Stated,
  {
    within,
    nameOf,
    clean,
  }: {
    readonly within: ReadonlyMap<string, Scoped>;
    readonly nameOf: (id: string) => string;
    readonly clean: Clean;
  },
): SessionRow {
  const { id, head } = one.info;
  // A title is no entry.
  const about = flat(clean(aboutOf(store, one.info)), aboutMax);
  return { ...sessionRow(one), session: nameOf(id), about, head: within.get(id)?.to ?? head };
}

/** A row of the lineage with what the list says of the session: that has no secret. */
function aboutIn(row: LineageRow, rows: ReadonlyMap<string, SessionRow>): LineageRow {
  return row.about === undefined ? row : { ...row, about: rows.get(row.id ?? '')?.about ?? '' };
}

/** A session as far as the file has it. */
function partOf(info: SessionInfo, { to }: Scoped, named: ReadonlySet<string>): SessionInfo {
  const { merged, origin, ...rest } = info;
  return {
    ...rest,
    head: to,
    ...(origin !== undefined && named.has(origin) && { origin }),
    ...(merged !== undefined && isMergeIn(merged, named) && { merged }),
    waiting: info.waiting.filter((call) => named.has(call.session)),
    anchors: info.anchors.filter(({ seq }) => seq <= to),
  };
}

function isMergeIn({ child, into }: LineageMerge, named: ReadonlySet<string>): boolean {
  return named.has(child) && named.has(into);
}

/** An item without what leads to sessions that are not in the file; undefined where nothing is left. */
function itemWithin(item: TimelineItem, named: ReadonlySet<string>): TimelineItem | undefined {
  if (item.forks !== undefined) {
    const forks = item.forks.filter((fork) => named.has(fork.session));
    return forks.length === 0 ? undefined : { ...item, forks };
  }
  if (item.child === undefined) return item;
  return { ...item, child: { ...item.child, there: named.has(item.child.session) } };
}

/** The items of a session, and those that stand for what a rewind hides, in order: as they are where the file ends. */
async function* itemsIn(source: PageSource, { info, from, to }: Scoped): AsyncGenerator<TimelineItem> {
  const { id } = info;
  const ranges = source.store.views.ranges(id, { at: to });
  const gaps = [
    ...gapsOf(
      source,
      info,
      ranges.filter((range) => range.to >= from),
    ),
  ];
  let next = gaps.shift();
  for (let at = from; at <= to; ) {
    const part = await timeline(source, { session: id, from: at, to, hidden: true });
    for (const { hiddenBy: _, ...item } of part.items) {
      if (item.seq < at || item.seq > to) continue;
      for (; next !== undefined && next.seq < item.seq; next = gaps.shift()) yield next;
      // What left in a hidden branch is there all the same.
      const by = item.kind === 'forks' ? undefined : ranges.find((range) => item.seq <= range.to)?.hiddenBy;
      yield { ...item, ...(by !== undefined && { hiddenBy: by }) };
    }
    at = part.to + 1;
  }
  for (; next !== undefined; next = gaps.shift()) yield next;
}

/** What is hidden of what a session inherits, as it shows that: what came behind the fork hides nothing of it. */
function hiddenIn(store: SqliteTapeStore, { info: { id, base }, to }: Scoped): EmbeddedTape['hidden'] {
  return store.views
    .ranges(id, { at: to })
    .flatMap(({ from, to: last, hiddenBy }) =>
      hiddenBy === undefined || from > base ? [] : [[from, Math.min(last, base), hiddenBy] as const],
    );
}

/** What stands for those of them that the file has not at the origin: rewinds inside of others there are no longer shown. */
function inheritedGaps(
  source: PageSource,
  { info, to }: Scoped,
  within: ReadonlyMap<string, Scoped>,
): readonly TimelineItem[] {
  const { views } = source.store;
  const origin = within.get(info.parentId ?? '');
  if (origin === undefined) return [];
  const textOf = (range: SessionRange) => `${range.from} ${range.to} ${range.hiddenBy}`;
  const there = new Set(views.ranges(origin.info.id, { at: origin.to }).map(textOf));
  const own = views.ranges(info.id, { at: to });
  return gapsOf(
    source,
    info,
    own.filter((range) => range.to <= info.base && !there.has(textOf(range))),
  );
}

/** Traces a merge, and what it delivered, as far as the file has it. */
async function follow(
  source: PageSource,
  traces: Map<string, readonly TraceRow[]>,
  {
    session: name,
    seq,
    named,
  }: { readonly session: string; readonly seq: number; readonly named: ReadonlySet<string> },
): Promise<void> {
  const known = async (at: { readonly session: string; readonly seq: number }) => {
    const rows = await traceOfMerges(source, at);
    return rows.map(({ place, session: of, range, ...row }): TraceRow => {
      if (place !== undefined && !isIn(place, named)) return row;
      return {
        ...row,
        ...(place !== undefined && { place }),
        ...(of !== undefined && { session: of }),
        ...(range !== undefined && { range }),
      };
    });
  };
  const rows = await known({ session: name, seq });
  traces.set(`${name}@${seq}`, rows);
  for (const { direction, place, session: of } of rows) {
    const at = Number(place?.slice((of?.length ?? 0) + 1));
    if (direction !== 'from' || place === undefined || of === undefined || !(at > 0) || traces.has(place))
      continue;
    traces.set(place, await known({ session: of, seq: at }));
  }
}

/** Whether a place is in the file: `SESSION` or `SESSION@SEQ`. */
function isIn(place: string, named: ReadonlySet<string>): boolean {
  return named.has(place) || named.has(place.slice(0, Math.max(0, place.lastIndexOf('@'))));
}
