import type { Draft } from '@tapedeck/tape';

/** Makes drafts whose content is not in memory: the same ones each time. */
export type MakeDrafts = () => readonly Draft[];

/**
 * A draft whose content is made when a caller takes it. What a plan is compared by, its kind, key, mark and name, is there. Give
 * `wholeDraft` of it to what copies its fields.
 */
export class LaterDraft implements Draft {
  readonly kind: Draft['kind'];
  readonly key: string | undefined;
  declare readonly mark?: NonNullable<Draft['mark']>;
  declare readonly name?: string;
  /** About how many bytes its content has. */
  readonly bytes: number;
  readonly #make: MakeDrafts;
  readonly #i: number;
  readonly #change: Change | undefined;

  constructor({ kind, key, mark, name }: Draft, { make, i, bytes, change }: LaterContent) {
    this.kind = kind;
    this.key = key;
    if (mark !== undefined) this.mark = mark;
    if (name !== undefined) this.name = name;
    this.bytes = bytes;
    this.#make = make;
    this.#i = i;
    this.#change = change;
  }

  get payload(): unknown {
    return this.whole().payload;
  }

  get meta(): Draft['meta'] {
    return this.whole().meta;
  }

  whole(): Draft {
    const draft = madeBy(this.#make, this.#change)[this.#i];
    if (draft === undefined) throw new TypeError('a draft is made as it was before');
    return draft;
  }

  /** The same draft, changed by one more function. */
  changed(change: Change): LaterDraft {
    const [make, i, bytes, earlier] = [this.#make, this.#i, this.bytes, this.#change];
    if (earlier === undefined) return new LaterDraft(this, { make, i, bytes, change });
    return new LaterDraft(this, { make: () => [change(this.whole())], i: 0, bytes });
  }
}

type Change = (draft: Draft) => Draft;

interface LaterContent {
  readonly make: MakeDrafts;
  /** The place of the draft among those that are made with it. */
  readonly i: number;
  readonly bytes: number;
  /** What becomes of the draft once it is made. A list of drafts has one function for all: no closure for each. */
  readonly change?: Change;
}

/** What was made last, since callers take the fields of a draft, and the drafts of a message, one after another. */
let last: Made | undefined;

interface Made {
  readonly make: MakeDrafts;
  readonly change: Change | undefined;
  readonly drafts: readonly Draft[];
}

function madeBy(make: MakeDrafts, change: Change | undefined): readonly Draft[] {
  if (last?.make === make && last.change === change) return last.drafts;
  // What was made before goes first: both need not be in memory.
  last = undefined;
  const drafts = change === undefined ? make() : make().map(change);
  last = { make, change, drafts };
  return drafts;
}

/** A draft with its content. */
export function wholeDraft(draft: Draft): Draft {
  return draft instanceof LaterDraft ? draft.whole() : draft;
}

/** A draft as a function changes it, when a caller takes its content, if that is not there yet. */
export function changedLater(draft: Draft, change: Change): Draft {
  return draft instanceof LaterDraft ? draft.changed(change) : change(draft);
}
