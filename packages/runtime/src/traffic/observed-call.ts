/** Something that happened at a time, in milliseconds since the epoch. */
interface At {
  readonly at: number;
}

/** A part of the stream of a model. `raw`: a piece of the answer as the provider sent it. */
export interface Part {
  readonly type: string;
  readonly rawValue?: unknown;
}

/** What is known of a call before it is made. */
export interface CallHead {
  readonly id: string;
  readonly session: { readonly name: string; readonly id: string };
  readonly provider: string | undefined;
  readonly model: string;
  /** What the package of the provider was given. */
  readonly options: object;
}

/** How a call ended. `cut`: its reader left the rest of its answer. */
type End = At & ({ readonly type: 'end' | 'cut' } | { readonly type: 'error'; readonly error: unknown });

/** What a call of a model sends and receives, while it is under way. */
export class ObservedCall {
  readonly head: CallHead;
  readonly at: number;
  /** The body of its request, where the package of the provider says what it sent. */
  body: unknown;
  response: (At & { readonly headers?: unknown; readonly body?: unknown }) | undefined;
  /** The pieces of its answer: those of the provider, where its package gives them, else its own. */
  parts: (At & { readonly part: Part })[] = [];
  end: End | undefined;
  #isRaw = false;
  readonly #now: () => number;

  constructor(head: CallHead, now: () => number) {
    this.head = head;
    this.#now = now;
    this.at = now();
  }

  /** The provider has begun to answer, or without a stream has answered. */
  answered({
    request,
    response,
  }: {
    readonly request?: { readonly body?: unknown } | undefined;
    readonly response?: { readonly headers?: unknown; readonly body?: unknown } | undefined;
  }): void {
    this.body = request?.body;
    if (response !== undefined) this.response = { at: this.#now(), ...response };
  }

  add(part: Part): void {
    const isRaw = part.type === 'raw';
    if (isRaw && !this.#isRaw) this.parts = [];
    this.#isRaw ||= isRaw;
    if (isRaw || !this.#isRaw || part.type === 'error') this.parts.push({ at: this.#now(), part });
  }

  /** Ends it, unless it has ended. */
  over(type: 'end' | 'cut'): void {
    this.end ??= { at: this.#now(), type };
  }

  fail(error: unknown): void {
    this.end ??= { at: this.#now(), type: 'error', error };
  }
}
