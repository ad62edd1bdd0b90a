import {
  assistantText,
  isObject,
  type Json,
  type JsonObject,
  type SessionInfo,
  select,
  type TapeStore,
} from '@tapedeck/tape';

/** What a child has to show, as its tape tells it. */
export interface Told {
  /** Its explicit result, else the last text of its model, else why it ended. */
  readonly text: string;
  /** Its explicit result, if it gave one. */
  readonly value?: Json;
}

/** Reads what a child came to off its own entries: results are never taken from whoever ran it. */
export async function toldBy(store: TapeStore, info: SessionInfo): Promise<Told> {
  const all = await Array.fromAsync(store.read(info.id, { own: true }));
  const own = select(all, 'full').entries;
  const result = own.findLast(({ kind }) => kind === 'result');
  if (result !== undefined) {
    const { payload } = result;
    const value = isObject(payload) && 'value' in payload ? (payload.value ?? null) : payload;
    return { text: typeof value === 'string' ? value : JSON.stringify(value), value };
  }
  const said = own.findLast(({ kind, payload }) => kind === 'message' && assistantText(payload) !== '');
  const end = own.findLast(({ name }) => name === 'run/error' || name === 'run/halted');
  const why = end !== undefined && isObject(end.payload) ? end.payload.message : undefined;
  const texts = [
    ...(said === undefined ? [] : [assistantText(said.payload)]),
    ...(typeof why === 'string' && (end?.seq ?? 0) > (said?.seq ?? 0) ? [why] : []),
  ];
  return { text: texts.join('\n\n') };
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
