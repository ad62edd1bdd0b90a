import type { HomeStore } from '@tapedeck/tape';
import { isoTime } from '@tapedeck/tape/internal';
import type { OnProgress, SessionRange } from '@tapedeck/tape/store';
import { aboutOf } from '../session/listing.ts';
import { type Stated, stated } from '../session/stated.ts';
import { type Clean, cleanReads } from './clean-reads.ts';
import { damagedReads } from './damaged-reads.ts';
import type { LineageMerge, LineageRow, SessionInfo, SessionRow, TimelineItem, TraceRow } from './data.ts';
import type { EmbeddedTape } from './embedded.ts';
import { type CheckOf, findingsWithin } from './findings-within.ts';
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
  readonly check: CheckOf;
  /** Replaces the secrets in a value. */
  readonly clean: Clean;
  /** Hears how many of the entries are written. */
  readonly onProgress?: OnProgress;
}

/** The last positions that the file has of its sessions, by their names. */
type Ends = ReadonlyMap<string, number>;

/** What was written. */
export interface WholeWritten {
  readonly sessions: number;
  readonly items: number;
  /** How many entries had a secret that was replaced. */
  readonly redacted: number;
}

/**
 * Answers of which a file has what the model saw, the newest ones; traces of merges, and of what merged sessions say; pairs of
 * sessions; and sessions with their usage.
 */
const seenMax = 2_000;
const tracesMax = 2_000;
const deliveredMax = 2_000;
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
  given: PageSource,
  { session: ref, scope, check, clean, onProgress }: Whole,
): AsyncGenerator<string, WholeWritten> {
  const source = { ...given, store: damagedReads(given.store) };
  const { store } = source;
  const info = needShown(store, ref);
  const within = scopeOf(store, info, scope);
  const reads = cleanReads(store, clean);
  const cleaned = { ...source, store: reads.store };
  const names = new Map(Array.from(within, ([id, one]) => [id, refOf(store, one.info)]));
  const named = new Set(names.values());
  const ends: Ends = new Map(Array.from(within, ([id, { info, to }]) => [names.get(id) ?? info.session, to]));
  const unnamed = withoutSecretNames(names, clean);
  const json = (value: unknown) => readable(JSON.stringify(clean(unnamed(value))));
  const key = (text: string) => readable(JSON.stringify(unnamed(text)));
  const nameOf = (id: string) => names.get(id) ?? id;

  const total = sumOf(within);
  assertFits(nameOf(info.id), total);
  const states = await statesIn(reads.store, within);
  const rows = new Map(
    states.map((one) => [one.info.id, rowOf(reads.store, one, { within, nameOf, clean })]),
  );
  const drawn = (await treeRows(reads.store, within)).map((row) => rowWithin(row, rows, ends));
  yield `{"sessions":${json([...rows.values()])},"lineage":${json(drawn)},"tapes":{`;
  let [items, done, delivered] = [0, 0, 0];
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
    const known = partOf({ ...(await sessionInfo(cleaned, state, { own })), about }, one, ends);
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
        await follow(cleaned, traces, { session: name, seq: item.seq, ends });
      if (known.merged !== undefined && isSaid(item) && delivered < deliveredMax) {
        delivered += 1;
        await follow(cleaned, traces, { session: name, seq: item.seq, ends });
      }
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
  for (const { a, b, isBrief } of pairsIn(within).slice(0, partingsMax)) {
    if (compared > total + comparedMax) break;
    const one = await parting(cleaned, { a: nameOf(a), b: nameOf(b) });
    const { answers: _, ...brief } = one;
    compared += one.a.entries + one.b.entries;
    yield `${comma}${json(isBrief ? brief : one)}`;
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
    [...named, ''].map((name) => [name, lineOf(source, 'graph', [name || nameOf(info.id)])]),
  );
  const found = await findingsWithin(source, { info, scope, within, check });
  yield `},"graph":${json(graph)},"findings":${json(found)}`;
  const redacted = reads.redacted();
  const home = {
    ...{ title: nameOf(info.id), version: source.version, isLive: false, sessions: within.size, at: '' },
    exported: { at: isoTime(source.now()), redacted },
  };
  yield `,"home":${json(home)}}`;
  return { sessions: within.size, items, redacted };
}

/**
 * Names sessions whose name has a secret by their ULIDs, wherever a value has such a name: keys and addresses lead to them all
 * the same, and no two have one name.
 */
function withoutSecretNames(names: ReadonlyMap<string, string>, clean: Clean): <T>(value: T) => T {
  const secret = Array.from(names, ([id, name]) => ({ id, name, text: JSON.stringify(name).slice(1, -1) }))
    .filter(({ name }) => clean(name) !== name)
    // A name can begin with another one.
    .sort((a, b) => b.text.length - a.text.length);
  if (secret.length === 0) return (value) => value;
  return <T>(value: T) =>
    JSON.parse(secret.reduce((json, { id, text }) => json.replaceAll(text, id), JSON.stringify(value))) as T;
}

function isSaid({ kind }: TimelineItem): boolean {
  return kind === 'message' || kind === 'result';
}

/**
 * The pairs of sessions that a file compares, by their ULIDs: each with the one that it was forked from, and about as many of
 * those that were forked from the same one. These come without the comparison of their answers, which would repeat the texts.
 */
function pairsIn(
  within: ReadonlyMap<string, Scoped>,
): readonly { readonly a: string; readonly b: string; readonly isBrief: boolean }[] {
  const children = [...within.values()]
    .map(({ info }) => info)
    .filter(({ parentId = '' }) => within.has(parentId));
  const siblings: { readonly a: string; readonly b: string; readonly isBrief: boolean }[] = [];
  for (const family of Map.groupBy(children, ({ parentId }) => parentId).values())
    for (const [i, b] of family.entries())
      for (const a of family.slice(0, i)) {
        if (siblings.length > within.size) break;
        siblings.push({ a: a.id, b: b.id, isBrief: true });
      }
  return [...children.map(({ id, parentId = '' }) => ({ a: parentId, b: id, isBrief: false })), ...siblings];
}

/** How many entries some sessions have. */
function sumOf(within: ReadonlyMap<string, Scoped>): number {
  return [...within.values()].reduce((sum, { from, to }) => sum + Math.max(0, to - from + 1), 0);
}

/** The sessions with their states, the one with the newest message first. */
async function statesIn(store: HomeStore, within: ReadonlyMap<string, Scoped>): Promise<readonly Stated[]> {
  return await stated(store, [...store.readSessions({ ids: [...within.keys()], all: true, counts: true })]);
}

/** The row of a session in the list. */
function rowOf(
  store: HomeStore,
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

/** A row of the lineage as far as the file has what it leads to, with what the list says of the session: that has no secret. */
function rowWithin(row: LineageRow, rows: ReadonlyMap<string, SessionRow>, ends: Ends): LineageRow {
  const { about, shape, merges } = row;
  return {
    ...row,
    ...(about !== undefined && { about: rows.get(row.id ?? '')?.about ?? '' }),
    ...(shape === 'session' &&
      merges !== undefined && { merges: merges.filter((one) => isMergeIn(one, ends)) }),
  };
}

/** A session as far as the file has it. */
function partOf(info: SessionInfo, { to }: Scoped, ends: Ends): SessionInfo {
  const { merged, origin, parent, ...rest } = info;
  return {
    ...rest,
    head: to,
    ...(parent !== undefined && ends.has(parent) && { parent }),
    ...(origin !== undefined && ends.has(origin) && { origin }),
    ...(merged !== undefined && isMergeIn(merged, ends) && { merged }),
    waiting: info.waiting.filter(({ session, seq }) => seq <= (ends.get(session) ?? 0)),
    anchors: info.anchors.filter(({ seq }) => seq <= to),
  };
}

function isMergeIn({ child, into, seq }: LineageMerge, ends: Ends): boolean {
  return ends.has(child) && seq <= (ends.get(into) ?? 0);
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
function hiddenIn(store: HomeStore, { info: { id, base }, to }: Scoped): EmbeddedTape['hidden'] {
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

/** Traces an entry, and what a merge delivered, as far as the file has it. What was said where it is has no trace. */
async function follow(
  source: PageSource,
  traces: Map<string, readonly TraceRow[]>,
  { session: name, seq, ends }: { readonly session: string; readonly seq: number; readonly ends: Ends },
): Promise<void> {
  const known = async (at: { readonly session: string; readonly seq: number }) => {
    const rows = await traceOfMerges(source, at);
    return rows.map((row): TraceRow => {
      if (row.session !== undefined && (row.seq ?? 0) <= (ends.get(row.session) ?? -1)) return row;
      const { session: _of, seq: _seq, range: _range, ...unlinked } = row;
      return unlinked;
    });
  };
  if (traces.has(`${name}@${seq}`)) return;
  const rows = await known({ session: name, seq });
  if (rows.length === 1) return;
  traces.set(`${name}@${seq}`, rows);
  for (const { direction, session: of, seq: at } of rows) {
    if (direction !== 'from' || of === undefined || at === undefined || traces.has(`${of}@${at}`)) continue;
    traces.set(`${of}@${at}`, await known({ session: of, seq: at }));
  }
}
