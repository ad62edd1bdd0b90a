import type { Draft } from '@tapedeck/tape';
import { clientCalls, isObject, noResult } from '@tapedeck/tape/internal';

interface Call {
  readonly toolCallId: string;
  readonly toolName: string;
}

/** The calls of a log that wait for their results. Whose an erased result is is known when no other call is open. */
export class CopiedCalls {
  #open: Call[] = [];
  /** Number of erased results. */
  #lost = 0;

  /** Forgets all, as a rewind closes the calls before it. */
  clear(): void {
    [this.#open, this.#lost] = [[], 0];
  }

  /** Takes the calls of a message. */
  call(payload: unknown): void {
    const open = clientCalls(payload);
    if (open.length === 0 || !isObject(payload) || !Array.isArray(payload.content)) return;
    const parts = payload.content.filter(isObject);
    for (const toolCallId of open) {
      const { toolName } = parts.find((part) => part.toolCallId === toolCallId) ?? {};
      this.#open.push({ toolCallId, toolName: String(toolName) });
    }
  }

  /** Takes a result. */
  answer(payload: unknown): void {
    const id = isObject(payload) ? payload.toolCallId : undefined;
    const at = this.#open.findIndex(({ toolCallId }) => toolCallId === id);
    if (at !== -1) this.#open.splice(at, 1);
  }

  /** Takes a result that was erased. */
  lose(): void {
    this.#lost += 1;
  }

  /** Whether all open calls are those of erased results. */
  get areLost(): boolean {
    return this.#lost >= this.#open.length;
  }

  /** Closes the calls of erased results, as a view answers a call that has none. */
  *close(): Generator<Draft> {
    const output = { type: 'error-text', value: noResult };
    for (const call of this.#open.splice(0, this.#lost))
      yield { kind: 'tool-result', payload: { type: 'tool-result', ...call, output } };
    this.#lost = 0;
  }
}
