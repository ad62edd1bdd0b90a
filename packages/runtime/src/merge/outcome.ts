import type { Json, JsonObject, SessionInfo, TapeStore } from '@tapedeck/tape';

/** What a child came to: its text, and its result in a form if it gave one. */
export async function resultOf(
  store: TapeStore,
  { id }: Pick<SessionInfo, 'id'>,
): Promise<{ readonly text: string; readonly output?: Json }> {
  const { text, value } = await store.collect(id);
  return { text, ...(value !== undefined && typeof value !== 'string' && { output: value }) };
}

/** What the call of a delegation answers of each child, in the order of the tasks. */
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

/** How much of a child's text its parent's model is given, in characters (`limits.mergeChars` of merges). */
const textMax = 16_000;

function cut(text: string, session: string): string {
  if (text.length <= textMax) return text;
  return `${text.slice(0, textMax).toWellFormed()}\n[${text.length - textMax} more characters on the tape of ${session}]`;
}
