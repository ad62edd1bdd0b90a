import { createHash } from 'node:crypto';
import type { SessionHead } from '../bundle/part.ts';
import type { There } from './choose.ts';

/** What one side says of a session to the other: a head, without what only its own home needs. */
export type ToldHead = Pick<SessionHead, 'id' | 'head' | 'hash' | 'events'>;

/** The number of digests that two sides compare before they name sessions. */
export const bucketCount = 256;

/** The bucket of a session: ids that are near in time are in different ones. */
function bucketOf(id: string): number {
  return createHash('sha256').update(id).digest()[0] ?? 0;
}

/** A digest of each bucket: what two sides have alike there, they have alike as a whole. */
export function digestsOf(heads: readonly ToldHead[]): readonly string[] {
  const buckets = Map.groupBy(heads, ({ id }) => bucketOf(id));
  return Array.from({ length: bucketCount }, (_, bucket) => {
    const lines = (buckets.get(bucket) ?? []).map(({ id, head, hash, events }) =>
      JSON.stringify([id, head, hash, events]),
    );
    const sum = createHash('sha256').update(lines.sort().join('\n'));
    return sum.digest('hex').slice(0, 16);
  });
}

/** The buckets whose digests differ. */
export function differing(a: readonly string[], b: readonly string[]): readonly number[] {
  return Array.from({ length: bucketCount }, (_, bucket) => bucket).filter(
    (bucket) => a[bucket] !== b[bucket],
  );
}

/** The sessions in some buckets. */
export function headsIn<T extends { readonly id: string }>(
  heads: readonly T[],
  buckets: readonly number[],
): readonly T[] {
  const wanted = new Set(buckets);
  return heads.filter(({ id }) => wanted.has(bucketOf(id)));
}

/**
 * What the other side has: what it said of the buckets that differ, and of the others what is here.
 * @param common heads of this side that the other one has, where it has more
 */
export function thereOf(
  own: readonly SessionHead[],
  {
    differ,
    theirs,
    common,
  }: {
    readonly differ: readonly number[];
    readonly theirs: readonly ToldHead[];
    readonly common: readonly SessionHead[];
  },
): There {
  const isDiffering = new Set(differ);
  const alike = own.filter(({ id }) => !isDiffering.has(bucketOf(id)));
  const points = Map.groupBy([...alike, ...theirs, ...common], ({ id }) => id);
  const events = new Set([...alike, ...theirs].flatMap((one) => one.events));
  return { points: (id) => points.get(id) ?? [], knows: (event) => events.has(event) };
}
