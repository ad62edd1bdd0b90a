import type { Draft, Seq } from '@tapedeck/tape';

/** Where drafts are on a tape, and where the next one will be. */
export interface Placing {
  /** By the keys of the drafts that it has. */
  readonly known: ReadonlyMap<string, Seq>;
  readonly next: Seq;
}

/** Gives each boundary the position of the first draft that it keeps in view. Pure. */
export function withKeptTails(
  drafts: readonly Draft[],
  keeps: ReadonlyMap<string, string>,
  { known, next }: Placing,
): readonly Draft[] {
  if (keeps.size === 0) return drafts;
  const places = new Map(known);
  let free = next;
  return drafts.map((draft) => {
    const { key = '' } = draft;
    if (!places.has(key)) {
      places.set(key, free);
      free += 1;
    }
    const ref = places.get(keeps.get(key) ?? '');
    return ref === undefined ? draft : { ...draft, ref };
  });
}
