import type { RunSpec } from '@tapedeck/runtime';
import type { TapeStore } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { jsonText } from '../escape.ts';

/** For how many milliseconds the same trouble is not said again, and how many are remembered. */
const [sameTroubleMs, troublesMax] = [60_000, 100];

/** What a worker says of the children that it runs: lines of status, lines of JSON, or a document at its end. */
export class Report {
  readonly #store: TapeStore;
  readonly #context: Context;
  readonly #onUnread: () => void;
  #ended = 0;
  #gaveBack = 0;
  readonly #troubles = new Map<string, number>();

  /** @param onUnread called when no one reads the lines of JSON any more */
  constructor(store: TapeStore, context: Context, onUnread: () => void) {
    this.#store = store;
    this.#context = context;
    this.#onUnread = onUnread;
  }

  async started({ id, parent = '', depth }: RunSpec): Promise<void> {
    this.#context.status(`Started ${id}, child of ${parent}`);
    await this.#line({ type: 'child-started', session: id, parent, depth });
  }

  async ended({ id, order }: RunSpec): Promise<void> {
    this.#ended += 1;
    const task = await this.#taskOf(order?.session ?? id);
    this.#context.status(
      task === 'running' ? `${id} waits for an answer` : `Ended ${id}${task === null ? '' : `: ${task}`}`,
    );
    await this.#line({ type: 'child-ended', session: id, status: task });
  }

  /** The state of the task of a child. A connection that was lost does not make the child run again. */
  async #taskOf(id: string): Promise<string | null> {
    try {
      return (await this.#store.sessions.find(id))?.task ?? 'running';
    } catch {
      return null;
    }
  }

  /** A child that this worker leaves to another one. */
  async gaveBack({ id }: RunSpec, error: unknown): Promise<void> {
    this.#gaveBack += 1;
    const why = (error as Error).message;
    this.#context.status(`Gave back ${id}: ${why}`);
    await this.#line({ type: 'child-given-back', session: id, error: why });
  }

  /** What the queue fails with. It goes on by itself. */
  trouble(error: Error): void {
    const message = troubleOf(error);
    const now = this.#context.io.now();
    const before = this.#troubles.get(message);
    if (before !== undefined && now - before < sameTroubleMs) return;
    if (this.#troubles.size >= troublesMax) this.#troubles.clear();
    this.#troubles.set(message, now);
    this.#context.status(`The queue cannot be used now, and is asked again: ${message}`);
  }

  async end(): Promise<void> {
    const { options, print } = this.#context;
    if (options.json !== true && options.jsonl !== true) return;
    await print({ ended: this.#ended, gave_back: this.#gaveBack });
  }

  async #line(event: object): Promise<void> {
    const { io, options } = this.#context;
    if (options.jsonl !== true) return;
    try {
      await io.out(`${jsonText(event)}\n`);
    } catch {
      // The child runs all the same.
      this.#onUnread();
    }
  }
}

/** What an error says, without the place of the worker that met it: all places meet the same. */
function troubleOf({ message, name, code = name }: Error & { readonly code?: string }): string {
  return message.replace(/ \(Queue: [^()]*\)$/, '') || code;
}
