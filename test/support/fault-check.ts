import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { checkJournal, readLines } from '@tapedeck/graph';
import { openTapeStore, type SqliteTapeStore } from '@tapedeck/tape';
import { type FaultPlace, openFaultStore, type Workload } from './fault-acts.ts';
import { facts, rawDb } from './raw-db.ts';

/** The effect of each act of a workload on a home, and the state after all of them. */
export interface Expected {
  readonly effects: ReadonlyMap<string, readonly string[]>;
  readonly all: readonly string[];
  /** The rows of a home of an older schema, which a copy beside it must keep. */
  readonly older?: string;
}

/** The report of a worker on an act. */
export interface Said {
  readonly act: string;
  readonly graphLagging?: boolean;
  readonly logEmptied?: boolean;
  readonly error?: { readonly name: string; readonly code?: unknown; readonly message: string };
}

/** Does a workload without faults on a home that was prepared for it, and notes what each act adds. */
export async function expectedOf(workload: Workload, place: FaultPlace): Promise<Expected> {
  const effects = new Map<string, readonly string[]>();
  const older = workload.older !== undefined ? rowsOf(place.db) : undefined;
  // Facts that can be read only after an opening count as done by the opening.
  let before = existsSync(place.db) && older === undefined ? stateAt(place) : [];
  const note = (act: string) => {
    const after = stateAt(place);
    effects.set(act, without(after, before));
    before = after;
  };
  using store = openFaultStore(place);
  note('open');
  for (const { name, does } of workload.acts) {
    await does(store, place);
    note(name);
  }
  return { effects, all: before, ...(older !== undefined && { older }) };
}

/**
 * What is wrong with a home that a worker left, as the next process finds it: acknowledged acts that are
 * missing, acts that are there in part, damage, a graph file that is not the lineage. Then every act is repeated,
 * and must be there once. With `undone`, a refused act must not be there at first: its outcome was known.
 */
export async function faultsAfter(
  workload: Workload,
  place: FaultPlace,
  { expected, said, undone }: { expected: Expected; said: readonly Said[]; undone: boolean },
): Promise<string[]> {
  const late = [...linesMissing(place, { expected, said }), ...textsLeft(workload, place, said)];
  using store = openFaultStore(place);
  const found = [...late, ...damage(store, place)];
  const there = stateOf(store, place);
  for (const [act, effect] of expected.effects) {
    const acknowledged = said.some((fact) => fact.act === act && fact.error === undefined);
    const refused = said.some((fact) => fact.act === act && fact.error !== undefined);
    for (const [piece, lines] of Map.groupBy(effect, workload.pieceOf ?? (() => act))) {
      const missing = without(lines, there);
      if (acknowledged && missing.length > 0)
        found.push(`acknowledged ${piece} is not there: ${missing.join(' | ')}`);
      else if (missing.length > 0 && missing.length < lines.length)
        found.push(`half of ${piece} is there, but not: ${missing.join(' | ')}`);
      // Opening does several things; one of them may be done before another is refused.
      else if (undone && refused && act !== 'open' && lines.length > 0 && missing.length === 0)
        found.push(`${piece} was refused, and is there`);
    }
  }
  if (expected.older !== undefined) found.push(...olderFaults(place, expected.older));
  if (existsSync(place.copy)) found.push(...copyFaults(place));
  else if (said.some(({ act, error }) => act === 'copy' && error === undefined))
    found.push('the acknowledged copy is not there');
  for (const { does } of workload.acts) await does(store, place);
  const after = stateOf(store, place);
  const [lost, extra] = [without(expected.all, after), without(after, expected.all)];
  if (lost.length > 0) found.push(`asked for again, still not there: ${lost.join(' | ')}`);
  if (extra.length > 0) found.push(`there twice, or from nowhere: ${extra.join(' | ')}`);
  found.push(...damage(store, place));
  return found;
}

/** Forks and merges that were acknowledged, without saying that the graph file lags, and whose line is not in it. */
function linesMissing(
  { graph }: FaultPlace,
  { expected, said }: { expected: Expected; said: readonly Said[] },
): string[] {
  const records = (existsSync(graph) ? readFileSync(graph, 'utf8') : '')
    .split('\n')
    .filter((line) => line !== '' && !isFragment(line));
  const lines = factsOf(records);
  return said
    .filter(({ act, error, graphLagging }) => act !== 'open' && error === undefined && graphLagging === false)
    .flatMap(({ act }) => expected.effects.get(act) ?? [])
    .filter((fact) => /^line (?:fork|merge) /.test(fact) && !lines.includes(fact))
    .map((fact) => `acknowledged as written, and not in the graph file: ${fact}`);
}

/** Texts that an acknowledged act has erased, with their files: the database, its log and what is beside them. */
function textsLeft({ acts }: Workload, { dir }: FaultPlace, said: readonly Said[]): string[] {
  return acts
    .filter(({ name }) =>
      said.some(({ act, error, logEmptied }) => act === name && error === undefined && logEmptied),
    )
    .flatMap(({ erases }) => erases ?? [])
    .flatMap((text) =>
      readdirSync(dir)
        .filter((name) => readFileSync(join(dir, name)).includes(text))
        .map((name) => `erased, and still in ${name}: ${text}`),
    );
}

/** Damage of the store, and a graph file that is not the lineage, fragments that were sealed apart. */
export function* damage(store: SqliteTapeStore, place: FaultPlace): Generator<string> {
  for (const { message } of [...store.verifyDatabase(), ...store.verify()]) yield `damaged: ${message}`;
  const recorded = lineage(place);
  if (recorded.length === 0) return;
  if (!existsSync(place.graph)) {
    yield 'there is no graph file';
    return;
  }
  for (const { message } of checkJournal(readLines(place.graph)).problems) yield `graph file: ${message}`;
  const text = readFileSync(place.graph, 'utf8');
  if (!text.endsWith('\n')) yield 'the graph file ends within a line';
  const records = text.split('\n').filter((line) => line !== '' && !isFragment(line));
  if (JSON.stringify(records) !== JSON.stringify(recorded))
    yield `the graph file has ${records.length} records that are not the ${recorded.length} of the database`;
}

function isFragment(line: string): boolean {
  try {
    JSON.parse(line);
    return false;
  } catch {
    return true;
  }
}

function lineage(place: Pick<FaultPlace, 'db'>): string[] {
  using db = rawDb(place.db);
  return db.all<{ line: string }>('SELECT line FROM lineage ORDER BY g').map(({ line }) => line);
}

function copyFaults({ copy }: FaultPlace): string[] {
  using store = openTapeStore(copy, { readonly: true });
  return [...store.verifyDatabase(), ...store.verify()].map(({ message }) => `copy: ${message}`);
}

/** A home that was changed has beside it what it was: at least one copy, and each of them whole. */
export function olderFaults({ dir }: Pick<FaultPlace, 'dir'>, older: string): string[] {
  const copies = readdirSync(dir).filter((name) => /\.schema-[01](?:\.\d+)?$/.test(name));
  if (copies.length === 0) return ['there is no copy of what the home was'];
  return copies
    .filter((name) => rowsOf(join(dir, name)) !== older)
    .map((name) => `${name} is not what it was`);
}

/** The rows that hold facts, with the version of the schema, and what SQLite finds wrong with the file. */
export function rowsOf(path: string): string {
  using db = rawDb(path);
  return JSON.stringify([db.all('PRAGMA user_version'), db.all('PRAGMA integrity_check'), facts(db)]);
}

/** Drafts of copies that were left behind. */
export function draftsLeft({ copy, dir }: FaultPlace): string[] {
  return [dirname(copy), dir]
    .filter((at) => existsSync(at))
    .flatMap((at) => readdirSync(at).filter((name) => name.includes('.part')));
}

function stateAt(place: FaultPlace): string[] {
  using store = openTapeStore(place.db, { readonly: true });
  return stateOf(store, place);
}

/** All that was said and done, one fact a line, without what differs from run to run: ids, hashes, times, positions. */
export function stateOf(store: SqliteTapeStore, place: Pick<FaultPlace, 'db'>): string[] {
  const facts: string[] = [];
  for (const { session: name, parent, lifecycle, delivery } of store.sessions.list()) {
    facts.push(`session ${name} of ${parent} ${lifecycle} ${delivery ?? ''}`);
    for (const { kind, mark, name: title, payload } of store.entries.read(name, { own: true }))
      facts.push(plain(`${name}: ${kind} ${mark ?? ''} ${title ?? ''} ${JSON.stringify(payload)}`));
    for (const { key } of store.inbox.list(name)) facts.push(`waiting for ${name}: ${key}`);
  }
  return [...facts, ...factsOf(lineage(place))].sort();
}

/** The facts of lines of the lineage. */
function factsOf(lines: readonly string[]): string[] {
  return lines.map((line) => {
    const { type, session_id } = JSON.parse(line) as { type: string; session_id: string };
    return `line ${type} ${session_id}`;
  });
}

function plain(text: string): string {
  return text.replace(/[0-9A-HJKMNP-TV-Z]{26}|[0-9a-f]{64}|\d+/g, '#').replace(/(\w)\1{20,}/g, '$1…');
}

/** The rest of a list after each of some others is removed once. */
function without(list: readonly string[], others: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const other of others) counts.set(other, (counts.get(other) ?? 0) + 1);
  return list.filter((line) => {
    const count = counts.get(line) ?? 0;
    counts.set(line, count - 1);
    return count <= 0;
  });
}
