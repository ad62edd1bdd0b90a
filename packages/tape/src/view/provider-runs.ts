import type { Dialect } from './dialect.ts';
import { isClientCall } from './fit-call.ts';
import { isOwn } from './fit-part.ts';
import type { Rendered } from './render.ts';

interface Open {
  readonly message: number;
  readonly index: number;
}

/**
 * Pairs the calls that the target itself executed with their results, as far as they can return to it.
 * Messages are identified by number. A result may be in a later message, when the provider paused or waited
 * for a client-side tool, but not after a user message. A call without a result counts only where the
 * provider is still to resume it.
 */
export class ProviderRunFinder {
  /** Indexes of parts by message number: complete pairs, and calls that the provider is still to resume. */
  readonly paired: Map<number, Set<number>> = new Map();
  /** Messages that continue a call of an earlier message, or lie between the two. Complete after `end`. */
  readonly continuing: Set<number> = new Set();
  /** The ids of the paired calls. */
  readonly ids: Set<string> = new Set();
  readonly #dialect: Dialect;
  readonly #open = new Map<string, Open>();
  /** From the message of a call to the last message that continues it; never across a user message. */
  readonly #spans = new Map<number, number>();
  #last = -1;
  /** Whether the last message waits for a client-side tool. */
  #asksTool = false;

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  take({ message, provider: author }: Rendered & { type: 'message' }, number: number): void {
    if (this.#dialect.chat) return;
    this.#last = number;
    if (message.role === 'user') {
      this.#open.clear();
      return;
    }
    this.#asksTool = message.content.some(isClientCall);
    for (const [index, part] of message.content.entries()) {
      const id = String(part.toolCallId);
      if (!isOwn(part, author, this.#dialect) || !this.#dialect.returns(part)) continue;
      if (
        part.type === 'tool-call' &&
        part.providerExecuted === true &&
        !this.ids.has(id) &&
        !this.#open.has(id)
      )
        this.#open.set(id, { message: number, index });
      const call = part.type === 'tool-result' ? this.#open.get(id) : undefined;
      if (call === undefined) continue;
      this.#open.delete(id);
      this.#keep(id, call);
      this.#pair(number, index);
    }
  }

  end(): void {
    if (this.#dialect.pauses)
      for (const [id, call] of this.#open)
        if (call.message === this.#last || this.#asksTool) this.#keep(id, call);
    let to = -1;
    for (let number = 0; number <= this.#last; number += 1) {
      if (number <= to) this.continuing.add(number);
      to = Math.max(to, this.#spans.get(number) ?? -1);
    }
  }

  #keep(id: string, { message, index }: Open): void {
    this.ids.add(id);
    this.#pair(message, index);
    this.#spans.set(message, this.#last);
  }

  #pair(message: number, index: number): void {
    this.paired.set(message, (this.paired.get(message) ?? new Set()).add(index));
  }
}
