import type { Db } from '../db/db.ts';
import { type Call, callOf, countedOf } from '../entry/call.ts';
import type { Seq } from '../entry/entry.ts';
import { parsed } from '../entry/parsed.ts';
import { totalOf, type Usage } from '../entry/usage.ts';
import type { Ref } from './tape.ts';
import { childrenInTree } from './tree.ts';

/** The model calls of one model that the own entries of a session record. */
export interface ModelCalls {
  /** The session's ULID. */
  readonly id: string;
  /** Absent for calls that do not record their model. */
  readonly model?: string;
  /** Number of calls whose usage is recorded. */
  readonly steps: number;
  readonly usage: Usage;
  /** The sum of the recorded costs, in the unit of their writers; absent if none is recorded. */
  readonly cost?: number;
  /** Position and tokens of the last message that such a call wrote. */
  readonly last?: { readonly seq: Seq; readonly tokens: number };
}

/** Selects the sessions whose calls are added up. */
export interface CallsQuery {
  /** Without a session: all of the realm, but for unfinished imports. */
  readonly session?: Ref;
  /** Include the sessions below it in the tree. */
  readonly tree?: boolean;
}

/** A row of `usage`: the calls of one model on one tape, in the order in which they were added. */
export interface CallsRow {
  /** Empty for calls that do not record their model. */
  readonly model: string;
  readonly first_seq: Seq;
  readonly steps: number;
  readonly input: number;
  readonly output: number;
  readonly reasoning: number;
  readonly cache_read: number;
  readonly cache_write: number;
  readonly cost: number | null;
  readonly last_seq: Seq | null;
  readonly last_tokens: number | null;
}

/** Adds a call at a position to the row of its model. Pure. */
export function addCall(row: CallsRow | undefined, seq: Seq, call: Call): CallsRow {
  const { model = '', cost, isMessage } = call;
  const { steps, usage } = countedOf(call);
  const { input = 0, output = 0, reasoning = 0, cache_read = 0, cache_write = 0 } = row ?? {};
  const before = row?.cost ?? null;
  return {
    model,
    first_seq: row?.first_seq ?? seq,
    steps: (row?.steps ?? 0) + steps,
    input: input + usage.input,
    output: output + usage.output,
    reasoning: reasoning + usage.reasoning,
    cache_read: cache_read + usage.cacheRead,
    cache_write: cache_write + usage.cacheWrite,
    cost: cost === undefined ? before : (before ?? 0) + cost,
    last_seq: isMessage ? seq : (row?.last_seq ?? null),
    last_tokens: isMessage ? totalOf(call.usage) : (row?.last_tokens ?? null),
  };
}

/** The columns of a row of `usage`, but for its tape. */
export const callsColumns =
  'model, first_seq, steps, input, output, reasoning, cache_read, cache_write, cost, last_seq, last_tokens';

/** What a new row of a model puts in the place of the old one. */
const replaced = callsColumns
  .split(', ')
  .filter((column) => column !== 'model')
  .map((column) => `${column} = excluded.${column}`)
  .join(', ');

/** Returns the stored row of a model on a tape. */
export function callsRow(db: Db, tapeId: number, model: string): CallsRow | undefined {
  return db.get<CallsRow>(`SELECT ${callsColumns} FROM usage WHERE tape_id = @tapeId AND model = @model`, {
    tapeId,
    model,
  });
}

/** Writes the rows of models on a tape, in the caller's transaction. */
export function saveCalls(db: Db, tapeId: number, rows: Iterable<CallsRow>): void {
  for (const row of rows)
    db.run(
      `INSERT INTO usage (tape_id, ${callsColumns})
         VALUES (@tapeId, @model, @first_seq, @steps, @input, @output, @reasoning, @cache_read, @cache_write, @cost,
           @last_seq, @last_tokens)
         ON CONFLICT (tape_id, model) DO UPDATE SET ${replaced}`,
      { tapeId, ...row },
    );
}

/** The columns of an entry that say which call it records. */
export interface StoredCall {
  readonly seq: Seq;
  readonly kind: string;
  readonly payload: string | null;
  readonly meta: string | null;
}

/** Returns the call that a stored message or compaction records. */
export function storedCall({ kind, payload, meta }: Omit<StoredCall, 'seq'>): Call | undefined {
  if (meta?.includes('"usage"') !== true) return undefined;
  // What the store writes begins with the role: the text need not be parsed.
  const isAnswer = payload?.startsWith('{"role":"assistant",') === true;
  return callOf({ kind, payload: isAnswer ? { role: 'assistant' } : parsed(payload), meta: parsed(meta) });
}

/**
 * Takes the call of an entry off the row of its model, in the caller's transaction, after the entry was erased. Reads
 * entries only when it was the first or the last of its model.
 */
export function removeCall(db: Db, tapeId: number, seq: Seq, call: Call): void {
  const { model = '', cost = 0 } = call;
  const { steps, usage } = countedOf(call);
  const row = callsRow(db, tapeId, model);
  if (row === undefined) return;
  const first = row.first_seq === seq ? firstCall(db, tapeId, { model, after: seq }) : row.first_seq;
  // Not where one is left whose tokens were counted before, as of an answer that an import has written again.
  if (first === 0) {
    db.run('DELETE FROM usage WHERE tape_id = @tapeId AND model = @model', { tapeId, model });
    return;
  }
  const left = (row.cost ?? 0) - cost;
  const last = row.last_seq === seq ? lastMessage(db, tapeId, { model, before: seq }) : undefined;
  const next: CallsRow = {
    ...row,
    first_seq: first,
    steps: row.steps - steps,
    input: row.input - usage.input,
    output: row.output - usage.output,
    reasoning: row.reasoning - usage.reasoning,
    cache_read: row.cache_read - usage.cacheRead,
    cache_write: row.cache_write - usage.cacheWrite,
    // What rounding leaves is no cost.
    cost: Math.abs(left) <= 1e-9 * Math.abs(cost) ? null : left,
    ...(row.last_seq === seq && { last_seq: last?.seq ?? null, last_tokens: last?.tokens ?? null }),
  };
  saveCalls(db, tapeId, [next]);
}

const recorded = `SELECT seq, kind, payload, meta FROM entry WHERE tape_id = @tapeId AND instr(meta, '"usage"') > 0`;

/** Position of the first call of a model after a position; 0 without one. */
function firstCall(db: Db, tapeId: number, { model, after }: { model: string; after: Seq }): Seq {
  for (let from = after; ; ) {
    const row = db.get<StoredCall>(
      `${recorded} AND kind IN ('message', 'compaction') AND seq > @from ORDER BY seq LIMIT 1`,
      { tapeId, from },
    );
    if (row === undefined) return 0;
    if (isOf(storedCall(row), model)) return row.seq;
    from = row.seq;
  }
}

/** The last call of a model that wrote a message before a position. */
function lastMessage(
  db: Db,
  tapeId: number,
  { model, before }: { model: string; before: Seq },
): ModelCalls['last'] {
  for (let to = before; ; ) {
    const row = db.get<StoredCall>(
      `${recorded} AND kind = 'message' AND seq < @to ORDER BY seq DESC LIMIT 1`,
      {
        tapeId,
        to,
      },
    );
    if (row === undefined) return undefined;
    const call = storedCall(row);
    if (call !== undefined && isOf(call, model)) return { seq: row.seq, tokens: totalOf(call.usage) };
    to = row.seq;
  }
}

function isOf(call: Call | undefined, model: string): boolean {
  return call !== undefined && (call.model ?? '') === model;
}

const belowToo = `WITH RECURSIVE tree (id) AS (
    SELECT id FROM tape WHERE ulid = @session
    UNION SELECT c.id FROM tree JOIN tape c ON c.id IN (${childrenInTree('tree.id')})
  ) SELECT id FROM tree`;

/** The sums of the calls of all sessions of a realm. */
export type TotalCalls = Pick<ModelCalls, 'steps' | 'usage' | 'cost'>;

/** Adds up the calls of all sessions of a realm from the stored sums. */
export function totalCalls(db: Db, realm: string): TotalCalls {
  const row = db.get<
    Pick<CallsRow, 'steps' | 'input' | 'output' | 'reasoning' | 'cache_read' | 'cache_write' | 'cost'>
  >(
    `SELECT ${summed.map((column) => `coalesce(sum(${column}), 0) AS ${column}`).join(', ')}, sum(cost) AS cost
       FROM usage u JOIN tape t ON t.id = u.tape_id WHERE t.realm = @realm AND t.lifecycle NOT IN ('staging', 'purged')`,
    { realm },
  );
  const {
    steps = 0,
    input = 0,
    output = 0,
    reasoning = 0,
    cache_read = 0,
    cache_write = 0,
    cost = null,
  } = row ?? {};
  return {
    steps,
    usage: { input, output, reasoning, cacheRead: cache_read, cacheWrite: cache_write },
    ...(cost !== null && { cost }),
  };
}

const summed = ['steps', 'input', 'output', 'reasoning', 'cache_read', 'cache_write'];

/** Lists the calls of sessions (`session` is a ULID), by session in order of creation, and by model in the order of first use. */
export function listCalls(db: Db, realm: string, { session, tree }: CallsQuery): ModelCalls[] {
  const which =
    session === undefined
      ? `t.realm = @realm AND t.lifecycle <> 'staging'`
      : tree === true
        ? `t.id IN (${belowToo})`
        : 't.ulid = @session';
  return db
    .all<CallsRow & { readonly id: string }>(
      `SELECT t.ulid AS id, ${callsColumns} FROM tape t JOIN usage u ON u.tape_id = t.id WHERE ${which}
         ORDER BY t.id, first_seq, model`,
      session === undefined ? { realm } : { session },
    )
    .map(
      ({
        id,
        model,
        steps,
        input,
        output,
        reasoning,
        cache_read,
        cache_write,
        cost,
        last_seq,
        last_tokens,
      }) => ({
        id,
        ...(model !== '' && { model }),
        steps,
        usage: { input, output, reasoning, cacheRead: cache_read, cacheWrite: cache_write },
        ...(cost !== null && { cost }),
        ...(last_seq !== null && { last: { seq: last_seq, tokens: last_tokens ?? 0 } }),
      }),
    );
}
