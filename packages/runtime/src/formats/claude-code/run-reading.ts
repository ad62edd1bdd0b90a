import type { JsonObject } from '@tapedeck/tape';
import { text } from '../../plan/text.ts';
import { wordsOf } from './blocks.ts';

/**
 * Reads what the beginning of a file says of the run that wrote it. A record names in `session_id` the session with which its run
 * began, and keeps that when it is copied: the generation between the two wrote nothing else of the source. But so does what a
 * run writes in other sessions, behind a `/clear`, a `/resume` or a `/branch`. So it counts where a file begins with it, up to
 * what the run of the session itself wrote.
 */
export class RunReading {
  #other: string | undefined;
  #isAnswered = false;
  #isOwn = false;
  #isCleared = false;
  #clearedAt: string | undefined;

  get other(): string | undefined {
    return this.#other;
  }

  get isCleared(): boolean {
    return this.#isCleared;
  }

  /** When the `/clear` was done with which it begins. */
  get clearedAt(): string | undefined {
    return this.#clearedAt;
  }

  /** Whether it has come as far as to an answer: before that, nothing says whether it begins behind a `/clear`. */
  get isAnswered(): boolean {
    return this.#isAnswered;
  }

  add(value: JsonObject): void {
    const [run, session] = [text(value.session_id), text(value.sessionId)];
    this.#isOwn ||= run !== undefined && run === session;
    if (run !== undefined && !this.#isOwn && (this.#other !== undefined || !this.#isAnswered))
      this.#other = run;
    if (this.#isAnswered) return;
    if (!this.#isCleared && value.type === 'user' && isClear(value)) {
      this.#isCleared = true;
      this.#clearedAt = text(value.timestamp);
    }
    this.#isAnswered = value.type === 'assistant';
  }
}

function isClear(value: JsonObject): boolean {
  return value.planContent !== undefined || /^<command-name>\/clear</.test(wordsOf(value));
}
