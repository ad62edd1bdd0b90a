import { type Draft, type Entry, note, type Seq } from '../entry/entry.ts';
import { isObject } from '../entry/json.ts';

/** Name of the event that leaves messages out of all later views. */
const omittedName = 'context/omitted';

/**
 * Leaves messages out of all later views. The copy of a log needs it: what its session was asked is shown once, wherever
 * the boundaries of the log place it.
 */
export const omit = (entries: readonly Seq[]): Draft => note(omittedName, { entries: [...entries] });

/** Returns whether an entry leaves messages out. */
export function isOmission({
  kind,
  name,
}: {
  readonly kind: string;
  readonly name?: string | undefined;
}): boolean {
  return kind === 'event' && name === omittedName;
}

/** The positions that the payload of an omission names: payloads are not trusted. */
export function omittedIn(payload: unknown): readonly Seq[] {
  const { entries } = isObject(payload) ? payload : {};
  return Array.isArray(entries) ? entries.filter((seq) => typeof seq === 'number') : [];
}

/** Returns the positions that omissions among entries name; of those only messages before the omission are left out. */
export function omittedMessages(entries: readonly Entry[]): ReadonlySet<Seq> {
  const positions = new Set<Seq>();
  for (const entry of entries) {
    if (!isOmission(entry)) continue;
    for (const seq of omittedIn(entry.payload)) if (seq < entry.seq) positions.add(seq);
  }
  return positions;
}
