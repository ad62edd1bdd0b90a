import type { Entry, Part } from '@tapedeck/tape';
import { isClientCall, isObject } from '@tapedeck/tape/internal';

/** A client-side call, and the message that makes it. */
interface ClientCall {
  readonly message: Entry;
  readonly part: Part;
}

/** The client-side calls of entries: each result with its call, and the calls without a result. */
export interface ClientCalls {
  /** The call of each result that has one in these entries, by the entry of the result. */
  readonly answered: ReadonlyMap<Entry, ClientCall>;
  readonly open: readonly ClientCall[];
}

/**
 * Pairs client-side calls with their results, as a view does: a result belongs to the newest open call of its
 * id, or to the first of these in one message. Servers can repeat an id in a later answer, within one answer,
 * and in a call that the provider executes: no result entry belongs to that one. Pure.
 */
export function pairClientCalls(entries: readonly Entry[]): ClientCalls {
  const open = new Map<string, ClientCall[]>();
  const answered = new Map<Entry, ClientCall>();
  for (const entry of entries) {
    if (entry.kind === 'tool-result' && isObject(entry.payload)) {
      const call = open.get(String(entry.payload.toolCallId))?.pop();
      if (call !== undefined) answered.set(entry, call);
    }
    if (!isAnswer(entry)) continue;
    for (const part of partsOf(entry).toReversed()) {
      if (!isClientCall(part)) continue;
      const id = String(part.toolCallId);
      const calls = open.get(id) ?? [];
      calls.push({ message: entry, part });
      open.set(id, calls);
    }
  }
  return { answered, open: [...open.values()].flat() };
}

/** Returns whether an entry is a message of the assistant. */
export function isAnswer({ kind, payload }: Entry): boolean {
  return kind === 'message' && isObject(payload) && payload.role === 'assistant';
}

/** Returns the parts of a message. */
export function partsOf({ payload }: Entry): readonly Part[] {
  return isObject(payload) && Array.isArray(payload.content) ? (payload.content as unknown as Part[]) : [];
}
