import type { Seq } from '@tapedeck/tape';
import type { Walk } from './walk.ts';

/** A merge that delivered an entry to another session. */
export interface Landing {
  readonly session: string;
  /** Position of the merge's mark. Its message follows it, except for a discard. */
  readonly seq: Seq;
  readonly state: 'merged' | 'discarded';
  readonly range: readonly [Seq, Seq];
  readonly hiddenBy?: Seq;
  readonly again?: true;
  /** The merges that delivered this one further. */
  readonly into: readonly Landing[];
}

/** The merges that cover a position of a session's own tape, and the merges that cover those. */
export async function landingsOf(walk: Walk, owner: string, seq: Seq): Promise<readonly Landing[]> {
  const { store, seen } = walk;
  const landings: Landing[] = [];
  for await (const line of store.lineage.read({ session: owner, types: ['merge', 'discard'] })) {
    const { type, range, into, seq: at } = line;
    if (!Array.isArray(range) || range[0] > seq || range[1] < seq) continue;
    const target = into === undefined ? undefined : await store.sessions.find(into);
    if (target === undefined || at === undefined) continue;
    const hiddenBy = await store.hiddenBy(target.id, at);
    const key = `${target.id}@${at}`;
    const again = seen.has(key);
    seen.add(key);
    landings.push({
      session: target.name,
      seq: at,
      state: type === 'merge' ? 'merged' : 'discarded',
      range: [range[0], range[1]],
      ...(hiddenBy !== undefined && { hiddenBy }),
      ...(again && { again }),
      into: again ? [] : await landingsOf(walk, target.id, at),
    });
  }
  return landings;
}
