import type { JsonObject } from '@tapedeck/tape';
import { text } from '../../plan/text.ts';

/**
 * Reads when a program that takes its prompts from a queue left a session by a `/clear`. What it takes otherwise becomes records of
 * the session; behind a `/clear` come its sums alone (`cost-state`), and all else in the file of the next session, but for what
 * begins to wait meanwhile. Of what waited, the queue has the text where it was one, and nothing where it was a list of blocks.
 */
export class LeaveReading {
  /** Of what waits whether it may be a command, as far as that is known. */
  #waiting: boolean[] = [];
  /** When the record before took something that may be a command. */
  #taken: string | undefined;
  readonly times: string[] = [];

  add(value: JsonObject): void {
    if (value.type === 'queue-operation' && value.operation === 'enqueue') {
      this.#waiting.push((text(value.content) ?? '/').startsWith('/'));
      return;
    }
    const taken = this.#taken;
    this.#taken = undefined;
    if (value.type === 'cost-state' && taken !== undefined) this.times.push(taken);
    if (value.type !== 'queue-operation') return;
    if (value.operation !== 'dequeue') this.#waiting = [];
    else if (this.#waiting.shift() ?? true) this.#taken = text(value.timestamp);
  }
}
