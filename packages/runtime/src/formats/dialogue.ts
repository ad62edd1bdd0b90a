import { type Draft, type JsonObject, toolResult } from '@tapedeck/tape';
import { interrupted, type Output } from '../plan/output.ts';

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
  /** In the order of the message, which can have an id twice. */
  #open: readonly KeyedCall[] = [];

  /** Adds a message or a boundary, after the results that the calls before it lack. */
  say(draft: Draft, calls: readonly KeyedCall[] = []): void {
    this.end();
    this.drafts.push(draft);
    this.#open = calls;
  }

  /** Adds the result of an open call; false for that of another. */
  answer(
    id: string,
    output: Output,
    { key, meta }: { readonly key: string; readonly meta: JsonObject },
  ): boolean {
    const call = this.#open.find(({ toolCallId }) => toolCallId === id);
    if (call === undefined) return false;
    this.drafts.push({ ...toolResult(call, output, meta), key });
    this.#open = this.#open.filter((one) => one !== call);
    return true;
  }

  /** Answers the calls that have no result. */
  end(): void {
    for (const call of this.#open) {
      const meta = { source: 'import', repaired: true };
      this.drafts.push({ ...toolResult(call, interrupted, meta), key: `${call.key}:interrupted` });
    }
    this.repaired += this.#open.length;
    this.#open = [];
  }
}
