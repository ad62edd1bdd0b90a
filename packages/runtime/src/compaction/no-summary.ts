/** The session in which a summary was written, as the compaction entry cites it. */
export interface SummarizerRef {
  readonly session: string;
  /** ULID of the session. */
  readonly id: string;
  /** Hash of its last entry. */
  readonly head: string;
}

/** Facts about a failed summary. */
interface NoSummaryFacts {
  readonly tooLarge?: boolean;
  readonly response?: string | undefined;
  readonly summarizer?: SummarizerRef | undefined;
  readonly retryAt?: string | undefined;
  readonly cause?: unknown;
}

/** No summary could be made. `tooLarge`: the transcript does not fit, so a retry cannot succeed. */
export class NoSummary extends Error {
  readonly tooLarge: boolean;
  /** The id of the last response, if any. */
  readonly response: string | undefined;
  /** The session of the summarizer, if a model was called. */
  readonly summarizer: SummarizerRef | undefined;
  /** When the provider takes calls again, if it said so: ISO 8601. */
  readonly retryAt: string | undefined;

  constructor(message: string, facts: NoSummaryFacts = {}) {
    const { tooLarge = false, response, summarizer, retryAt, cause } = facts;
    super(message, cause === undefined ? undefined : { cause });
    this.tooLarge = tooLarge;
    this.response = response;
    this.summarizer = summarizer;
    this.retryAt = retryAt;
  }

  /** A copy with added facts. */
  with(facts: NoSummaryFacts): NoSummary {
    const { tooLarge, retryAt, cause } = this;
    return new NoSummary(this.message, { tooLarge, retryAt, cause, ...facts });
  }
}
