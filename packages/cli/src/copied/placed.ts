import type { Draft, Seq } from '@tapedeck/tape';
import type { Planned } from './log.ts';

/** The entries of a batch, as they are appended after a position. */
export interface Placed {
  readonly drafts: readonly Draft[];
  /** Whether some refer to positions: then nothing may come between. */
  readonly refers: boolean;
}

/**
 * Places the entries of a batch after a position.
 * @param key of the batch, as `entries.append` takes it
 * @param known the position of an entry that has a key: a repeat adds nothing, and what refers to it refers there
 */
export function placed(
  planned: readonly Planned[],
  {
    head,
    key,
    known,
  }: { readonly head: Seq; readonly key: string; readonly known?: ReadonlyMap<string, Seq> },
): Placed {
  let [next, refers] = [head, false];
  const seqs: Seq[] = [];
  const at = (entry: number) => {
    refers = true;
    return entry < 0 ? (seqs[0] ?? head + 1) - 1 : (seqs[entry] ?? head);
  };
  const drafts = planned.map((one, i) => {
    const own = one(() => 0).key ?? (i === 0 ? key : `${key}#${i + 1}`);
    const before = known?.get(own);
    if (before === undefined) next += 1;
    seqs.push(before ?? next);
    return one(at);
  });
  return { drafts, refers };
}
