import type { TapeStore } from '@tapedeck/tape';
import { encodeLine, type LineageLine } from '@tapedeck/tape/store';
import type { AuditFinding } from './finding.ts';

/**
 * The lines that only the graph file has, or only the database, up to the end of the file: the next write
 * appends the lines that are missing there. `within`: only lines about these sessions (ULIDs).
 * @throws GRAPH_UNREADABLE
 */
export async function* examineGraphFile(
  store: TapeStore,
  path: string,
  within: ReadonlySet<string> | undefined,
): AsyncGenerator<AuditFinding> {
  if (within === undefined ? await hasAllLines(store, path) : await hasLinesOf(store, path, within)) return;
  const { parseRecord, readLines } = await import('@tapedeck/graph');
  const recorded = new Recorded(store);
  /** Lines of the database that the file has skipped so far. */
  const passed = new Map<number, LineageLine>();
  for (const line of readLines(path)) {
    const parsed = line.kind === 'line' ? parseRecord(line.text) : undefined;
    if (line.kind !== 'line' || parsed?.kind !== 'record') continue;
    const { record } = parsed;
    for await (const before of recorded.before(record.g)) passed.set(before.g, before);
    const same = (await recorded.take(record.g)) ?? (await lineOf(store, record.g));
    passed.delete(record.g);
    if (same !== undefined && encodeLine(same) === line.text) continue;
    if (
      within === undefined ||
      within.has(record.session) ||
      (same !== undefined && within.has(same.session))
    )
      yield finding(
        record,
        `line ${line.number} of the graph file, ${describe(record)}, is not in the database`,
      );
  }
  for (const line of passed.values())
    if (within === undefined || within.has(line.session))
      yield finding(line, `line ${line.g} of the lineage, ${describe(line)}, is not in the graph file`);
}

/** Whether the file has the lines of the database and no other, as texts. It may lack the last ones. */
async function hasAllLines(store: TapeStore, path: string): Promise<boolean> {
  const { FileComparison } = await import('@tapedeck/graph');
  using comparison = new FileComparison(path);
  for await (const line of store.lineage.read()) {
    comparison.expect(encodeLine(line));
    if (comparison.line !== undefined) return false;
  }
  return comparison.standing === 'same' || comparison.standing === 'behind';
}

/** How many lines are looked up, at most, before reading the whole file takes less. */
const lookupsMax = 2_000;

/**
 * Whether the file has the lines about some sessions as the database has them. Looks up these lines alone: lines of
 * the file that no database has are found by an audit of all sessions.
 */
async function hasLinesOf(store: TapeStore, path: string, within: ReadonlySet<string>): Promise<boolean> {
  const lines = new Map<number, string>();
  for (const session of within)
    for await (const line of store.lineage.read({ session })) {
      lines.set(line.g, encodeLine(line));
      if (lines.size > lookupsMax) return false;
    }
  const [{ findRecords }, { tailOf }] = await Promise.all([
    import('@tapedeck/graph'),
    import('@tapedeck/graph/journal'),
  ]);
  const found = findRecords(path, lines.keys());
  const { g: last } = tailOf(path);
  // The next write appends the lines after the end of the file.
  return [...lines].every(([g, text]) => g > last || found.get(g) === text);
}

/** A line that is not the next one: it is out of order in the file, or was written during the audit. */
async function lineOf(store: TapeStore, g: number): Promise<LineageLine | undefined> {
  for await (const line of store.lineage.read({ from: g })) return line.g === g ? line : undefined;
  return undefined;
}

/** The lines of the database, in order. */
class Recorded {
  readonly #lines: AsyncIterator<LineageLine>;
  #ahead: LineageLine | undefined;

  constructor(store: TapeStore) {
    this.#lines = (async function* () {
      yield* store.lineage.read();
    })();
  }

  /** Takes the remaining lines before a number. */
  async *before(g: number): AsyncGenerator<LineageLine> {
    for (let line = await this.#peek(); line !== undefined && line.g < g; line = await this.#peek()) {
      this.#ahead = undefined;
      yield line;
    }
  }

  /** Takes the line of a number, if it is the next one. */
  async take(g: number): Promise<LineageLine | undefined> {
    const line = await this.#peek();
    if (line?.g !== g) return undefined;
    this.#ahead = undefined;
    return line;
  }

  async #peek(): Promise<LineageLine | undefined> {
    if (this.#ahead === undefined) {
      const { value, done } = await this.#lines.next();
      if (done !== true) this.#ahead = value;
    }
    return this.#ahead;
  }
}

function finding({ session_id, seq }: LineageLine, message: string): AuditFinding {
  return {
    code: 'edge-on-one-side',
    session: session_id,
    seq: seq ?? null,
    message,
    next: { act: 'rebuild' },
  };
}

function describe({ type, session_id }: LineageLine): string {
  return `'${type}' of '${session_id}'`;
}
