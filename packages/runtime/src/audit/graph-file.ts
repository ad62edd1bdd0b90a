import { encodeLine, type LineageLine, type TapeStore } from '@tapedeck/tape';
import type { AuditFinding } from './finding.ts';

/**
 * The lines that the graph file has and the database does not, and the other way round, as far as the file goes: what it
 * lacks at its end is written by the next act. With `within`, those about these sessions (ULIDs).
 * @throws GRAPH_UNREADABLE
 */
export async function* examineGraphFile(
  store: TapeStore,
  path: string,
  within: ReadonlySet<string> | undefined,
): AsyncGenerator<AuditFinding> {
  const { parseRecord, readLines } = await import('@tapedeck/graph');
  const recorded = new Recorded(store);
  /** Lines of the database that the file has not shown yet, though it is past them. */
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
      yield finding(record, `line ${line.number} of the graph file, ${told(record)}, is not in the database`);
  }
  for (const line of passed.values())
    if (within === undefined || within.has(line.session))
      yield finding(line, `line ${line.g} of the lineage, ${told(line)}, is not in the graph file`);
}

/** A line that is not the next: it stands where another belongs, or was written while the lines were read. */
async function lineOf(store: TapeStore, g: number): Promise<LineageLine | undefined> {
  for await (const line of store.lineage({ from: g })) return line.g === g ? line : undefined;
  return undefined;
}

/** The lines of the database, one after the other. */
class Recorded {
  readonly #lines: AsyncIterator<LineageLine>;
  #ahead: LineageLine | undefined;

  constructor(store: TapeStore) {
    this.#lines = (async function* () {
      yield* store.lineage();
    })();
  }

  /** The lines before a number that were not taken yet: they are now. */
  async *before(g: number): AsyncGenerator<LineageLine> {
    for (let line = await this.#peek(); line !== undefined && line.g < g; line = await this.#peek()) {
      this.#ahead = undefined;
      yield line;
    }
  }

  /** The line of a number, if it is the next. */
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
    remedy: { act: 'rebuild' },
  };
}

function told({ type, session_id }: LineageLine): string {
  return `'${type}' of '${session_id}'`;
}
