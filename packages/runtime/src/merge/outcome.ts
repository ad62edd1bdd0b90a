import type { Json, JsonObject, SessionInfo, TapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/** The result of a child. */
export interface ChildResult {
  readonly text: string;
  /** Its structured result, if it gave one. */
  readonly output?: Json;
  /** Why it was aborted, of an aborted child. */
  readonly error?: string;
}

/** Reads the result of a child. */
export async function resultOf(
  store: TapeStore,
  { id, task }: Pick<SessionInfo, 'id' | 'task'>,
): Promise<ChildResult> {
  const { text, value } = await store.lineage.collect(id);
  const why = task === 'aborted' ? await abortReason(store, id) : undefined;
  return {
    text,
    ...(value !== undefined && typeof value !== 'string' && { output: value }),
    ...(why !== undefined && { error: why }),
  };
}

/** The reason of the last abort that a session's own tape records. */
async function abortReason(store: TapeStore, id: string): Promise<string | undefined> {
  const notes = store.entries.read(id, { own: true, kind: 'event', name: 'run/aborted', last: 1 });
  for await (const { payload } of notes)
    if (isObject(payload) && typeof payload.reason === 'string') return payload.reason;
  return undefined;
}

/** The outcome of one child in the result of a delegating call. */
export function outcomeJson({
  session,
  status,
  text,
  output,
  error,
}: {
  readonly session: string;
  readonly status: string;
  readonly text: string;
  readonly output?: Json;
  readonly error?: string;
}): JsonObject {
  return {
    session,
    status,
    ...(output === undefined ? { text: cut(text, session) } : { output }),
    ...(error !== undefined && { error }),
  };
}

/**
 * The longest text of a child that a call's result holds, in characters; the same limit as that of merges.
 */
const textMax = 16_000;

function cut(text: string, session: string): string {
  if (text.length <= textMax) return text;
  return `${text.slice(0, textMax).toWellFormed()}\n[${text.length - textMax} more characters on the tape of ${session}]`;
}
