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
  readonly cause?: unknown;
}

/** No summary could be made. `tooLarge`: the transcript does not fit, so a retry cannot succeed. */
export class NoSummary extends Error {
  readonly tooLarge: boolean;
  /** The id of the last response, if any. */
  readonly response: string | undefined;
  /** The session of the summarizer, if a model was called. */
  readonly summarizer: SummarizerRef | undefined;

  constructor(message: string, { tooLarge = false, response, summarizer, cause }: NoSummaryFacts = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.tooLarge = tooLarge;
    this.response = response;
    this.summarizer = summarizer;
  }

  /** A copy with added facts. */
  with(facts: NoSummaryFacts): NoSummary {
    const { tooLarge, cause } = this;
    return new NoSummary(this.message, { tooLarge, cause, ...facts });
  }
}
