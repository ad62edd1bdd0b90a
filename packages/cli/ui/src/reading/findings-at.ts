import type { Finding, TimelineItem } from '../../../src/page/data.ts';

/** What a check found in a session and in what it inherits, by place. */
export type FindingsByPlace = ReadonlyMap<string, readonly Finding[]>;

/** The key of a session, or of an entry of it: no two have the same. */
export function placeKey(session = '', seq?: number): string {
  return `${seq ?? ''} ${session}`;
}

/** What was found at an item, and at the results that stand in it: of its session, and of one that inherits it. */
export function findingsAt(
  found: FindingsByPlace,
  session: string,
  { seq, kind, owner, parts }: TimelineItem,
): readonly Finding[] {
  if (kind === 'forks') return [];
  const results = parts.flatMap((part) => (part.type === 'call' ? [part.outputSeq ?? seq] : []));
  const places = [seq, ...results].flatMap((at) => [placeKey(owner, at), placeKey(session, at)]);
  return [...new Set(places)].flatMap((place) => found.get(place) ?? []);
}
