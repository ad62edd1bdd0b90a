/** The session in which a summary was written, as what came of it cites it. */
export interface SummarizerRef {
  readonly session: string;
  /** Its ULID. */
  readonly id: string;
  /** Hash of its last entry. */
  readonly head: string;
}

/** What is known of a summary that could not be had. */
interface NoSummaryFacts {
  readonly tooLarge?: boolean;
  readonly response?: string | undefined;
  readonly summarizer?: SummarizerRef | undefined;
  readonly cause?: unknown;
}

/** No summary could be had. `tooLarge`: because of what it was to be made of, so that asking again is of no use. */
export class NoSummary extends Error {
  readonly tooLarge: boolean;
  /** The id of the last response, if there was one. */
  readonly response: string | undefined;
  /** The session in which it was asked for, if a model was asked. */
  readonly summarizer: SummarizerRef | undefined;

  constructor(message: string, { tooLarge = false, response, summarizer, cause }: NoSummaryFacts = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.tooLarge = tooLarge;
    this.response = response;
    this.summarizer = summarizer;
  }

  /** The same, with what is known by now. */
  with(facts: NoSummaryFacts): NoSummary {
    const { tooLarge, cause } = this;
    return new NoSummary(this.message, { tooLarge, cause, ...facts });
  }
}
