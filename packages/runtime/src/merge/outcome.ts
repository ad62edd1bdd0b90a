import type { Json, JsonObject, SessionInfo, TapeStore } from '@tapedeck/tape';

/** The result of a child: its text, and its structured result if it gave one. */
export async function resultOf(
  store: TapeStore,
  { id }: Pick<SessionInfo, 'id'>,
): Promise<{ readonly text: string; readonly output?: Json }> {
  const { text, value } = await store.lineage.collect(id);
  return { text, ...(value !== undefined && typeof value !== 'string' && { output: value }) };
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
