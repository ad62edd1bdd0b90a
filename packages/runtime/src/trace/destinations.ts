import type { Seq } from '@tapedeck/tape';
import type { Walk } from './walk.ts';

/** A merge that delivered an entry to another session. */
export interface TraceDestination {
  readonly session: string;
  /** Position of the merge's mark. Its message follows it, except for a discard. */
  readonly seq: Seq;
  readonly state: 'merged' | 'discarded';
  readonly range: readonly [Seq, Seq];
  readonly hiddenBy?: Seq;
  readonly again?: true;
  /** The merges that delivered this one further. */
  readonly into: readonly TraceDestination[];
}

/** The merges that cover a position of a session's own tape, and the merges that cover those. */
export async function destinationsOf(
  walk: Walk,
  owner: string,
  seq: Seq,
): Promise<readonly TraceDestination[]> {
  const { store, seen } = walk;
  const destinations: TraceDestination[] = [];
  for await (const line of store.lineage.read({ session: owner, types: ['merge', 'discard'] })) {
    const { type, range, into, seq: at } = line;
    if (!Array.isArray(range) || range[0] > seq || range[1] < seq) continue;
    const target = into === undefined ? undefined : await store.sessions.find(into);
    if (target === undefined || at === undefined) continue;
    const [shown] = await store.views.ranges(target.id, { from: at });
    const key = `${target.id}@${at}`;
    const again = seen.has(key);
    seen.add(key);
    destinations.push({
      session: target.session,
      seq: at,
      state: type === 'merge' ? 'merged' : 'discarded',
      range: [range[0], range[1]],
      ...(shown?.hiddenBy !== undefined && { hiddenBy: shown.hiddenBy }),
      ...(again && { again }),
      into: again ? [] : await destinationsOf(walk, target.id, at),
    });
  }
  return destinations;
}
