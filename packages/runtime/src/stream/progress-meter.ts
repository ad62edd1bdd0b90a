import type { Task } from '@tapedeck/tape';
import { totalOf } from '@tapedeck/tape/internal';
import { type ChildProgress, progressText, type SessionEvent, progressTextMax as textMax } from './events.ts';

/** How often the progress of a child is sent, in milliseconds. */
const everyMs = 500;

/** Sends the progress of one child from this one on: at once when its state changes, else at most twice a second. */
export class ProgressMeter {
  #progress: ChildProgress;
  readonly #send: (progress: ChildProgress) => void;
  #sentAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(progress: ChildProgress, send: (progress: ChildProgress) => void) {
    this.#progress = progress;
    this.#send = send;
    this.#flush();
  }

  /** Takes an event of the child. */
  take(event: SessionEvent): void {
    const next = after(this.#progress, event);
    if (next === this.#progress) return;
    const isNews = next.state !== this.#progress.state;
    this.#progress = next;
    const left = this.#sentAt + everyMs - performance.now();
    if (isNews || left <= 0) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), left).unref();
  }

  /** Sends what the tape of the child says. */
  settle({ status, ...rest }: ChildProgress, error?: string): void {
    const { task, toolCallId } = this.#progress;
    this.#progress = {
      ...rest,
      ...(task !== undefined && { task }),
      ...(toolCallId !== undefined && { toolCallId }),
      ...(status !== undefined && { status }),
      ...(error !== undefined && status !== undefined && { error }),
    };
    this.#flush();
  }

  /** Sends the end of the child. */
  end(status: Task, result: string, error?: string): void {
    const { session, task, toolCallId, steps, tokens } = this.#progress;
    this.#progress = {
      session,
      ...(task !== undefined && { task }),
      ...(toolCallId !== undefined && { toolCallId }),
      state: status === 'running' ? 'waiting' : 'ended',
      steps,
      tokens,
      status,
      ...(result !== '' && { text: progressText(result) }),
      ...(error !== undefined && status !== 'running' && { error }),
    };
    this.#flush();
  }

  /** Sends nothing any more. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #flush(): void {
    this.close();
    this.#sentAt = performance.now();
    this.#send(this.#progress);
  }
}

/** The progress of a child after an event; the same object when nothing of it has changed. Pure. */
function after(progress: ChildProgress, event: SessionEvent): ChildProgress {
  const { tool, phase, ...rest } = progress;
  switch (event.type) {
    case 'run-started':
      return { ...rest, state: 'running' };
    case 'content-chunk':
      return { ...rest, state: 'running', phase: 'answering', text: tailOf((rest.text ?? '') + event.text) };
    case 'reasoning-started':
      return { ...rest, state: 'running', phase: 'reasoning' };
    case 'tool-started':
      return {
        ...rest,
        state: 'running',
        phase: 'tool',
        tool: event.display === undefined ? event.name : `${event.name} ${event.display}`,
      };
    case 'tool-completed':
      return { ...rest, state: 'running' };
    case 'retrying':
      return { ...rest, state: 'running', phase: 'retrying' };
    case 'iteration-completed':
      return { ...progress, steps: rest.steps + 1, tokens: rest.tokens + totalOf(event.usage) };
    case 'tool-detected':
      // The text before a call is over.
      return progress.text === undefined ? progress : { ...progress, text: tailOf(`${progress.text}\n`) };
    default:
      return progress;
  }
}

/** The last line that a text has. */
function tailOf(text: string): string {
  const line = text.slice(text.trimEnd().lastIndexOf('\n') + 1);
  return line.length <= textMax ? line : line.slice(-textMax).toWellFormed();
}
