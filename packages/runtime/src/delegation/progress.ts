import type { ChildProgress, SessionEvent } from '../stream/events.ts';
import { ProgressMeter } from '../stream/progress-meter.ts';
import type { DelegateOptions } from './options.ts';
import type { ChildOutcome } from './outcome.ts';

/** What a delegation shows of its children to those who watch the parent, as its option `childEvents` says. */
export class DelegationProgress {
  readonly #options: Pick<DelegateOptions<unknown>, 'childEvents' | 'by'>;
  readonly #send: (event: SessionEvent) => void;
  readonly #meters = new Map<string, ProgressMeter>();

  constructor(
    options: Pick<DelegateOptions<unknown>, 'childEvents' | 'by'>,
    send: (event: SessionEvent) => void,
  ) {
    this.#options = options;
    this.#send = send;
  }

  /** A child was forked, or found by its key. */
  begin(session: string, task: string): void {
    const { childEvents, by } = this.#options;
    if (childEvents === 'none' || this.#meters.has(session)) return;
    const child = { session, task, ...(by !== undefined && { toolCallId: by.toolCallId }) };
    const begun: ChildProgress = { ...child, state: 'started', steps: 0, tokens: 0 };
    const send = (progress: ChildProgress) => this.#send({ type: 'child-progress', ...progress });
    this.#meters.set(session, new ProgressMeter(begun, send));
  }

  /** Takes an event of a child. */
  take(session: string, event: SessionEvent): void {
    this.#meters.get(session)?.take(event);
    if (this.#options.childEvents === 'all') this.#send({ type: 'child-event', session, event });
  }

  /** A child has ended, or waits for an answer: its tape has what runs before this one have done. */
  settle(session: string, progress: ChildProgress, error: string | undefined): void {
    this.#meters.get(session)?.settle(progress, error);
  }

  /** A child has ended. */
  end(
    session: string,
    { status, text, error }: Pick<ChildOutcome, 'status' | 'text'> & { error: string | undefined },
  ): void {
    this.#meters.get(session)?.end(status, text, error);
  }
}
