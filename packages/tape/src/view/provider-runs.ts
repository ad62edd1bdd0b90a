import type { Dialect } from './dialect.ts';
import { isClientCall } from './fit-call.ts';
import { isOwn } from './fit-part.ts';
import type { Rendered } from './render.ts';

interface Open {
  readonly message: number;
  readonly index: number;
}

/**
 * Finds the tools that the target itself ran, as far as they can go back to it: pairs each call with its result, message by message;
 * these are told apart by their number. A result may come
 * in a later message, when the provider paused or waited for a tool of ours, but not after the user has spoken; a call without its
 * result counts only where the provider has yet to go on.
 */
export class ProviderRunFinder {
  /** Calls and results that are complete, or that the provider has yet to go on with: indices of parts by message. */
  readonly paired: Map<number, Set<number>> = new Map();
  /** Messages that hold the result of a call of a message before, or stand between the two: known at the end. */
  readonly continuing: Set<number> = new Set();
  /** The ids of those calls. */
  readonly ids: Set<string> = new Set();
  readonly #dialect: Dialect;
  readonly #open = new Map<string, Open>();
  /** From the message of a call to where it goes on, by the first: never over a message of the user. */
  readonly #spans = new Map<number, number>();
  #last = -1;
  /** Whether the last message waits for a tool of ours. */
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
      if (!isOwn(part, author, this.#dialect)) continue;
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
