import { type Draft, type JsonObject, toolResult } from '@tapedeck/tape';
import { interrupted, type Output } from './outputs.ts';

/** A call of a message, and the key of its message. */
export interface KeyedCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly key: string;
}

/** The drafts of a file whose messages and results are in order: each call gets a result before the next message. */
export class Dialogue {
  readonly drafts: Draft[] = [];
  /** Calls without a result, so far. */
  repaired = 0;
  readonly #open = new Map<string, KeyedCall>();

  /** Adds a message or a boundary, after the results that the calls before it lack. */
  say(draft: Draft, calls: readonly KeyedCall[] = []): void {
    this.end();
    this.drafts.push(draft);
    for (const call of calls) this.#open.set(call.toolCallId, call);
  }

  /** Adds the result of an open call; false for that of another. */
  answer(
    id: string,
    output: Output,
    { key, meta }: { readonly key: string; readonly meta: JsonObject },
  ): boolean {
    const call = this.#open.get(id);
    if (call === undefined) return false;
    this.drafts.push({ ...toolResult(call, output, meta), key });
    return this.#open.delete(id);
  }

  /** Answers the calls that have no result. */
  end(): void {
    for (const call of this.#open.values()) {
      const meta = { source: 'import', repaired: true };
      this.drafts.push({ ...toolResult(call, interrupted, meta), key: `${call.key}:interrupted` });
    }
    this.repaired += this.#open.size;
    this.#open.clear();
  }
}
