import type { Draft } from '@tapedeck/tape';

/** What a plan is compared by, of a draft that can be made. */
export interface DraftOutline extends Pick<Draft, 'kind' | 'key' | 'mark' | 'name'> {
  make(): Draft;
}

/** The outline of a draft that is there. */
export function outlineOf(draft: Draft): DraftOutline {
  const { kind, key, mark, name } = draft;
  return {
    kind,
    ...(key !== undefined && { key }),
    ...(mark !== undefined && { mark }),
    ...(name !== undefined && { name }),
    make: () => draft,
  };
}

/**
 * What outlines the drafts of some steps of a source. All drafts of a conversation share a few of these: a large source has
 * hundreds of thousands of drafts, and no closure for each.
 */
export class DraftMaker<Step = unknown> {
  readonly outline: (step: Step) => readonly DraftOutline[];
  /** What becomes of each draft once it is made. */
  change: Change | undefined;

  /** @param outline outlines the same drafts each time */
  constructor(outline: (step: Step) => readonly DraftOutline[]) {
    this.outline = outline;
  }
}

type Change = (draft: Draft) => Draft;

/**
 * A draft whose content is made when a caller takes it. What a plan is compared by, its kind, key, mark and name, is there. Give
 * `wholeDraft` of it to what copies its fields.
 */
export class LaterDraft<Step = unknown> implements Draft {
  readonly kind: Draft['kind'];
  declare readonly mark?: NonNullable<Draft['mark']>;
  declare readonly name?: string;
  /** About how many bytes its content has. */
  readonly bytes: number;
  readonly #maker: DraftMaker<Step>;
  readonly #step: Step;
  readonly #i: number;
  readonly #key: string | Keyed | undefined;
  #digest: string | undefined;
  /** The change of the draft of which that is the digest. */
  #digested: Change | undefined;

  constructor(
    { kind, key, mark, name }: Omit<DraftOutline, 'make'>,
    { maker, step, i, bytes, keyed }: LaterContent<Step>,
  ) {
    this.kind = kind;
    if (mark !== undefined) this.mark = mark;
    if (name !== undefined) this.name = name;
    this.bytes = bytes;
    this.#maker = maker;
    this.#step = step;
    this.#i = i;
    this.#key = keyed?.key === key ? keyed : key;
  }

  get key(): string | undefined {
    return typeof this.#key === 'object' ? this.#key.key : this.#key;
  }

  get payload(): unknown {
    return this.whole().payload;
  }

  get meta(): Draft['meta'] {
    return this.whole().meta;
  }

  whole(): Draft {
    return madeBy(this.#maker, this.#step, this.#i);
  }

  /** What a function makes of the draft, always the same one. It stays in memory: the content is made once for it. */
  digest(of: (whole: Draft) => string | undefined): string | undefined {
    const { change } = this.#maker;
    if (this.#digest === undefined || this.#digested !== change)
      [this.#digest, this.#digested] = [of(this.whole()), change];
    return this.#digest;
  }

  /** Changes the draft, and all that have the same maker, whenever it is made. */
  change(change: Change): void {
    this.#maker.change = change;
  }
}

/** What has a key that it makes of what it has. */
interface Keyed {
  readonly key: string;
}

interface LaterContent<Step> {
  readonly maker: DraftMaker<Step>;
  readonly step: Step;
  /** The place of the draft among those that are made of the step. */
  readonly i: number;
  readonly bytes: number;
  /** What may have the same key. */
  readonly keyed?: Keyed | undefined;
}

/** What was made last, since callers take the fields of a draft one after another. */
let last: Made | undefined;

interface Made {
  readonly maker: unknown;
  readonly change: Change | undefined;
  readonly step: unknown;
  readonly i: number;
  readonly draft: Draft;
}

function madeBy<Step>(maker: DraftMaker<Step>, step: Step, i: number): Draft {
  const { change } = maker;
  if (last?.maker === maker && last.step === step && last.i === i && last.change === change)
    return last.draft;
  // What was made before goes first: both need not be in memory.
  last = undefined;
  const made = maker.outline(step)[i]?.make();
  if (made === undefined) throw new TypeError('a draft is made as it was before');
  const draft = change === undefined ? made : change(made);
  last = { maker, change, step, i, draft };
  return draft;
}

/** A draft with its content. */
export function wholeDraft(draft: Draft): Draft {
  return draft instanceof LaterDraft ? draft.whole() : draft;
}

/**
 * A draft as a function changes it: when a caller takes its content, if that is not there yet. Such a draft changes itself,
 * for each conversation is written once, and both would be in memory.
 */
export function changedLater(draft: Draft, change: Change): Draft {
  if (!(draft instanceof LaterDraft)) return change(draft);
  draft.change(change);
  return draft;
}
