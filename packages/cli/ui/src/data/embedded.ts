import type {
  Findings,
  LineageRow,
  PageData,
  SessionInfo,
  SessionRow,
  SessionsQuery,
  Timeline,
  TimelineItem,
} from '../../../src/page/data.ts';
import type { Embedded, EmbeddedTape } from '../../../src/page/embedded.ts';
import type { Route } from '../route.ts';
import type { Asks } from './asks.ts';
import { closeRows } from './close-rows.ts';
import { NotAnswered } from './not-answered.ts';

/** The most items that an answer has, and the most findings. */
const pageMax = 200;
const findingsMax = 500;

/** The data of an exported file, which answers as a server does. */
export function embeddedData(file: Embedded): Asks {
  return {
    has: (route) => hasIn(file, route),
    home: async () => file.home,
    sessions: async (query) => paged(sessionsFor(file.sessions, query), query),
    lineage: async ({ session = '', closed = [], ...query }) => ({
      ...paged(closeRows(session === '' ? file.lineage : familyOf(file.lineage, session), closed), query),
      command:
        session === '' ? (file.graph[''] ?? '') : own(file.graph, session, `the lineage of '${session}'`),
    }),
    session: async ({ session }) => ({
      ...tapeNamed(file, session).info,
      anchors: landmarksOf(file, session),
    }),
    timeline: async (query) => timelineOf(file, query),
    timelineNow: (query) => timelineOf(file, query),
    seen: async ({ session, seq }) =>
      own(file.seen, placeIn(file, session, seq), `what the model saw for ${session}@${seq}`),
    parting: async ({ a, b }) => there(partingOf(file, a, b), `where ${a} and ${b} part`),
    trace: async ({ session, seq }) =>
      own(file.trace, placeIn(file, session, seq), `the trace of ${session}@${seq}`),
    usage: async ({ session = '', tree = false }) =>
      own(file.usage, session, `the usage of '${session}'`)[tree ? 'tree' : 'alone'],
    findings: async ({ session }) => findingsOf(file, session),
  };
}

function hasIn(file: Embedded, route: Route): boolean {
  switch (route.page) {
    case 'seen':
    case 'trace':
      return Object.hasOwn(file[route.page], placeIn(file, route.session, route.seq));
    case 'diff':
      return partingOf(file, route.a, route.b) !== undefined;
    case 'usage':
      return Object.hasOwn(file.usage, route.session ?? '');
    default:
      return true;
  }
}

/** A part of a timeline. */
function timelineOf(
  file: Embedded,
  { session, from, to, hidden = false }: Parameters<PageData['timeline']>[0],
): Timeline {
  const { floor, head } = tapeNamed(file, session).info;
  const first = Math.max(from, floor + 1);
  const last = Math.min(to, head, first + pageMax - 1);
  const items = itemsOf(file, session, first, last);
  // What stands for hidden items is there in their place.
  const shown = items.filter(({ hides, hiddenBy }) =>
    hidden ? hides === undefined : hiddenBy === undefined,
  );
  return { items: shown, from: first, to: last, floor, head };
}

function tapeNamed({ tapes }: Embedded, session: string): EmbeddedTape {
  return own(tapes, session, `the session '${session}'`);
}

function there<T>(value: T | undefined, what: string): T {
  if (value !== undefined) return value;
  throw new NotAnswered({ code: 'NOT_IN_FILE', message: `This file does not contain ${what}` });
}

/** What a record has of a name, which may be one that all objects have something of. */
function own<T>(record: Readonly<Record<string, T>>, key: string, what: string): T {
  return there(Object.hasOwn(record, key) ? record[key] : undefined, what);
}

/** What was found of all sessions, or of one: its own, and what it inherits. */
function findingsOf(file: Embedded, session: string | undefined): Findings {
  const all = file.findings;
  if (session === undefined) return { ...all, findings: all.findings.slice(0, findingsMax) };
  const ends = new Map<string, number>();
  let last = Number.POSITIVE_INFINITY;
  for (let tape = tapeIn(file, session); tape !== undefined; tape = originOf(file, tape.info)) {
    ends.set(tape.info.session, last);
    last = Math.min(last, tape.info.base);
  }
  const found = all.findings.filter(({ session: of = '', seq }) => {
    // What has no position is about the session itself.
    return of === session || (seq !== undefined && seq <= (ends.get(of) ?? 0));
  });
  return { ...all, findings: found.slice(0, findingsMax), total: found.length };
}

function paged<T>(rows: readonly T[], { offset = 0 }: { readonly offset?: number }) {
  const end = offset + pageMax;
  return { rows: rows.slice(offset, end), total: rows.length, ...(end < rows.length && { next: end }) };
}

/** The sessions that a query names, in its order. */
function sessionsFor(
  rows: readonly SessionRow[],
  { find = '', kind, state, sort = 'last', tree = false, all = false }: SessionsQuery,
): readonly SessionRow[] {
  const text = find.toLowerCase();
  const isWanted = (row: SessionRow) =>
    (all || row.state !== 'archived') &&
    (text === '' || `${nameOf(row)} ${row.about}`.toLowerCase().includes(text)) &&
    (kind === undefined || row.kind === kind) &&
    (state === undefined || isInState(row, state));
  if (tree) return inTrees(rows, isWanted);
  const flat = rows.filter(isWanted).map((row) => ({ ...row, depth: 0 }));
  if (sort === 'name') return flat.sort((a, b) => nameOf(a).localeCompare(nameOf(b)));
  if (sort === 'messages' || sort === 'tokens') return flat.sort((a, b) => b[sort] - a[sort]);
  if (sort === 'created') return flat.sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
  return flat;
}

/** What a reader knows a session by. */
function nameOf({ session, name = session }: SessionRow): string {
  return name;
}

function isInState({ state, tone }: SessionRow, wanted: NonNullable<SessionsQuery['state']>): boolean {
  if (wanted === 'open') return tone === 'open' || state === 'interrupted';
  return wanted === 'merged' ? state.startsWith('merged') : tone === 'bad';
}

/** The sessions that are wanted, each below its nearest ancestor that is. */
function inTrees(rows: readonly SessionRow[], isWanted: (row: SessionRow) => boolean): readonly SessionRow[] {
  const names = new Set(rows.map(({ session }) => session));
  const isRoot = ({ parent }: SessionRow) => parent === undefined || !names.has(parent);
  const below = Map.groupBy(
    rows.filter((row) => !isRoot(row)),
    ({ parent }) => parent,
  );
  const found: SessionRow[] = [];
  const waiting = rows
    .filter(isRoot)
    .map((row) => ({ ...row, depth: 0 }))
    .reverse();
  for (let row = waiting.pop(); row !== undefined; row = waiting.pop()) {
    const isShown = isWanted(row);
    if (isShown) found.push(row);
    const depth = isShown ? row.depth + 1 : row.depth;
    waiting.push(...(below.get(row.session) ?? []).map((child) => ({ ...child, depth })).reverse());
  }
  return found;
}

/** The rows of the tree that has a session. */
function familyOf(rows: readonly LineageRow[], session: string): readonly LineageRow[] {
  const at = rows.findIndex((row) => row.session === session);
  if (at < 0) return [];
  const first = rows.findLastIndex(({ depth }, i) => i <= at && depth === 0);
  const next = rows.findIndex(({ depth }, i) => i > first && depth === 0);
  return rows.slice(first, next < 0 ? undefined : next);
}

/** The items of a session in a range: its own, and those of the sessions that it inherits from, as it shows them. */
function itemsOf(file: Embedded, session: string, from: number, to: number): readonly TimelineItem[] {
  const { items, gaps, hidden, info } = tapeNamed(file, session);
  const found = new Map<string, TimelineItem>();
  const add = (item: TimelineItem) => {
    if (isBetween(item, from, to)) found.set(placeOf(item), item);
  };
  [...items, ...gaps].forEach(add);
  let last = info.base;
  for (
    let tape = originOf(file, info);
    tape !== undefined && last >= from;
    tape = originOf(file, tape.info)
  ) {
    for (const item of [...tape.items, ...tape.gaps])
      if (item.seq <= last && isInherited(item, hidden)) add(asInherited(item, hidden));
    last = Math.min(last, tape.info.base);
  }
  return [...found.values()].sort((a, b) => a.seq - b.seq || Number(isForks(a)) - Number(isForks(b)));
}

/** What stands for hidden items is also where the range begins among these. */
function isBetween({ seq, hides }: TimelineItem, from: number, to: number): boolean {
  return (seq >= from && seq <= to) || (hides !== undefined && hides.from <= from && from <= hides.to);
}

/** What tells two items at a position apart. */
function placeOf({ seq, kind, hides }: TimelineItem): string {
  return `${seq} ${kind === 'forks'} ${hides?.from}`;
}

function isForks({ kind }: TimelineItem): boolean {
  return kind === 'forks';
}

function originOf(file: Embedded, { origin }: SessionInfo): EmbeddedTape | undefined {
  return origin === undefined ? undefined : tapeIn(file, origin);
}

/** The landmarks of a session, oldest first: its own, and those that it inherits. */
function landmarksOf(file: Embedded, session: string): SessionInfo['anchors'] {
  let found: SessionInfo['anchors'] = [];
  let tape = tapeIn(file, session);
  const floor = tape?.info.floor ?? 0;
  for (let last = Number.POSITIVE_INFINITY; tape !== undefined && last > floor; ) {
    const until = last;
    found = [...tape.info.anchors.filter(({ seq }) => seq > floor && seq <= until), ...found];
    last = Math.min(last, tape.info.base);
    tape = originOf(file, tape.info);
  }
  return found.slice(-pageMax);
}

/** Where the file has what it says of a position: at the session on whose own tape that is. */
function placeIn(file: Embedded, session: string, seq: number): string {
  let at = session;
  for (let tape = tapeIn(file, at); tape !== undefined && seq <= tape.info.base; tape = tapeIn(file, at)) {
    if (tape.info.origin === undefined) break;
    at = tape.info.origin;
  }
  return `${at}@${seq}`;
}

function tapeIn({ tapes }: Embedded, session: string): EmbeddedTape | undefined {
  return Object.hasOwn(tapes, session) ? tapes[session] : undefined;
}

/**
 * Whether an item of an ancestor is one of a session: not what left the ancestor there, and of what stands for hidden items what
 * hides the same of the session.
 */
function isInherited({ kind, hides }: TimelineItem, hidden: EmbeddedTape['hidden']): boolean {
  if (hides === undefined) return kind !== 'forks';
  return hidden.some(([from, to]) => from === hides.from && to === hides.to);
}

/** An item of an ancestor, as a session shows it that hides some of what it inherits. */
function asInherited({ hiddenBy: _, ...item }: TimelineItem, hidden: EmbeddedTape['hidden']): TimelineItem {
  const by =
    item.hides === undefined
      ? hidden.find(([from, to]) => item.seq >= from && item.seq <= to)?.[2]
      : undefined;
  return { ...item, inherited: true, ...(by !== undefined && { hiddenBy: by }) };
}

/** Where two sessions part, also as it was asked the other way round. */
function partingOf({ partings }: Embedded, a: string, b: string) {
  const found = partings.find((one) => one.a.session === a && one.b.session === b);
  if (found !== undefined) return found;
  const other = partings.find((one) => one.a.session === b && one.b.session === a);
  if (other === undefined) return undefined;
  const turned = { a: 'b', b: 'a', both: 'both' } as const;
  return {
    ...other,
    a: other.b,
    b: other.a,
    files: other.files.map((file) => ({ ...file, in: turned[file.in] })),
    states: other.states.map(({ key, a: inA, b: inB }) => ({
      key,
      ...(inB !== undefined && { a: inB }),
      ...(inA !== undefined && { b: inA }),
    })),
  };
}
