import type { Draft } from '@tapedeck/tape';

/** Makes drafts whose content is not in memory: the same ones each time. */
export type MakeDrafts = () => readonly Draft[];

/**
 * A draft whose content is made when it is asked for. What a plan is compared by, its kind, key, mark and name, is there. Give
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

  constructor({ kind, key, mark, name }: Draft, { make, i, bytes }: LaterContent) {
    this.kind = kind;
    this.key = key;
    if (mark !== undefined) this.mark = mark;
    if (name !== undefined) this.name = name;
    this.bytes = bytes;
    this.#make = make;
    this.#i = i;
  }

  get payload(): unknown {
    return this.whole().payload;
  }

  get meta(): Draft['meta'] {
    return this.whole().meta;
  }

  whole(): Draft {
    const draft = madeBy(this.#make)[this.#i];
    if (draft === undefined) throw new TypeError('a draft is made as it was before');
    return draft;
  }
}

interface LaterContent {
  readonly make: MakeDrafts;
  /** The place of the draft among those that are made with it. */
  readonly i: number;
  readonly bytes: number;
}

/** What was made last, since the fields of a draft, and the drafts of a message, are asked for one after another. */
let last: { readonly make: MakeDrafts; readonly drafts: readonly Draft[] } | undefined;

function madeBy(make: MakeDrafts): readonly Draft[] {
  if (last?.make !== make) last = { make, drafts: make() };
  return last.drafts;
}

/** A draft with its content. */
export function wholeDraft(draft: Draft): Draft {
  return draft instanceof LaterDraft ? draft.whole() : draft;
}

/** A draft as a function changes it, which is done when its content is asked for, if that is not there yet. */
export function changedLater(draft: Draft, change: (draft: Draft) => Draft): Draft {
  if (!(draft instanceof LaterDraft)) return change(draft);
  return new LaterDraft(draft, { make: () => [change(draft.whole())], i: 0, bytes: draft.bytes });
}
