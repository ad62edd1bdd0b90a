import type { JsonObject } from '@tapedeck/tape';
import type { Visit } from '../../plan/plan.ts';
import { text } from '../../plan/text.ts';
import { wordsOf } from './blocks.ts';

/**
 * Reads what the beginning of a file says of the run that wrote it. A record names in `session_id` the session with which its run
 * began, and keeps that when it is copied: the generation between the two wrote nothing else of the source. But so does what a
 * run writes in other sessions, behind a `/clear`, a `/resume` or a `/branch`. So it counts where a file begins with it, up to
 * what the run of the session itself wrote. What a run wrote behind that, or behind what `/branch` copied, was a visit.
 */
export class RunReading {
  #other: string | undefined;
  #isAnswered = false;
  #isOwn = false;
  #isCleared = false;
  #clearedAt: string | undefined;
  #hasCopied = false;
  readonly #visits = new Map<string, string>();
  /** All sessions but its own with which runs began. */
  readonly #others = new Set<string>();

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

  /** The runs that visited the session, in the order in which they first did. */
  get visits(): readonly Visit[] {
    return [...this.#visits].map(([session, at]) => ({ session, at }));
  }

  /** The sessions that records name with which runs began, but for the one of the file. */
  get others(): readonly string[] {
    return [...this.#others];
  }

  add(value: JsonObject): void {
    const [run, session] = [text(value.session_id), text(value.sessionId)];
    this.#hasCopied ||= value.forkedFrom !== undefined;
    this.#isOwn ||= run !== undefined && run === session;
    if (run !== undefined && run !== session) this.#takeOther(run, value);
    if (this.#isAnswered) return;
    if (!this.#isCleared && value.type === 'user' && isClear(value)) {
      this.#isCleared = true;
      this.#clearedAt = text(value.timestamp);
    }
    this.#isAnswered = value.type === 'assistant';
  }

  #takeOther(run: string, value: JsonObject): void {
    this.#others.add(run);
    const begins = !this.#isOwn && (this.#other !== undefined || !this.#isAnswered);
    // What begins behind a `/clear` was begun by the first run that it names.
    const isLater = begins && this.#isCleared && this.#other !== undefined && run !== this.#other;
    if (begins && !isLater) this.#other = run;
    const at = text(value.timestamp);
    const requested = text(value.requestSessionId) ?? value.sessionId;
    const isCopied = value.forkedFrom !== undefined || requested !== value.sessionId;
    const isVisit = !isCopied && (!begins || isLater || this.#hasCopied);
    if (isVisit && at !== undefined && !this.#visits.has(run)) this.#visits.set(run, at);
  }
}

function isClear(value: JsonObject): boolean {
  return value.planContent !== undefined || /^<command-name>\/clear</.test(wordsOf(value));
}
