import type { Db } from '../db/db.ts';
import type { Entry, Seq } from '../entry/entry.ts';
import { isObject, type Json, type JsonObject } from '../entry/json.ts';
import { TapeError } from '../errors.ts';
import { readEntries } from '../tape/read.ts';
import { type TapeRow, tapeById } from '../tape/tape.ts';
import { remakeOf } from '../view/manifest.ts';
import { isOmission } from '../view/omitted.ts';
import { viewVersions } from '../view/select.ts';
import { viewEntries } from '../view/source.ts';
import { view } from '../view/view.ts';
import { type Problem, problemsOf } from './problem.ts';
import { type Range, sizeOf, united, without } from './ranges.ts';

/** A recorded view, and the tape that it is of. */
interface Recorded {
  readonly seq: Seq;
  readonly manifest: JsonObject;
  readonly of: TapeRow;
  /** A summary for a merge was written from the child's own entries alone. */
  readonly ownOnly: boolean;
}

/** Collects the positions of a tape's entries that record a view. */
export class ViewsOnTape {
  readonly places: Seq[] = [];

  /** Receives the entries of the tape, in order. */
  saw({ seq, kind, name, key, meta, payload }: ViewEntry): void {
    const isRecord =
      (kind === 'event' &&
        name !== null &&
        recordingEvents.has(name) &&
        payload?.includes('"view":{') === true) ||
      (kind === 'anchor' && key?.startsWith('merge:') === true && payload?.includes('"asked":{') === true) ||
      meta?.includes('"view":{') === true;
    if (isRecord) this.places.push(seq);
  }
}

/** The columns of an entry that tell whether it records a view. */
interface ViewEntry {
  readonly seq: Seq;
  readonly kind: string;
  readonly name: string | null;
  readonly key: string | null;
  readonly meta: string | null;
  readonly payload: string | null;
}

const recordingEvents: ReadonlySet<string> = new Set(['run/retrying', 'run/error', 'summary/asked']);

/**
 * Makes the views again that entries of a tape recorded, and compares their digests. Views overlap: newest first,
 * those are made that add mostly new positions, and others as long as all of them together have not more than four
 * times the entries of the tape, and 2000.
 */
export function* verifyViews(
  db: Db,
  tape: TapeRow,
  { places }: Pick<ViewsOnTape, 'places'>,
): Generator<Problem> {
  let left = 2000 + 4 * (tape.head_seq - tape.base_seq);
  const covered = new Map<number, readonly Range[]>();
  for (const seq of places.toReversed())
    for (const recorded of recordedAt(db, tape, seq)) {
      const within = rangesIn(recorded.manifest);
      const before = covered.get(recorded.of.id) ?? [];
      const size = sizeOf(within);
      const isNew = sizeOf(without(within, before)) * 2 > size;
      if (!isNew && size > left) continue;
      if (!isNew) left -= size;
      covered.set(recorded.of.id, united(before, within));
      if (isContradicted(db, recorded))
        yield problemsOf(tape.name)(
          'view-contradicted',
          seq,
          `${tape.name}@${seq} recorded a view of '${recorded.of.name}' that its entries do not give`,
        );
    }
}

function recordedAt(db: Db, tape: TapeRow, seq: Seq): Recorded[] {
  const [entry] = readEntries(db, tape, { from: seq, to: seq, own: true });
  if (entry === undefined) return [];
  const payload = isObject(entry.payload) ? entry.payload : {};
  const state = isObject(payload.state) ? payload.state : {};
  const parent = tape.parent_id === null ? undefined : tapeById(db, tape.parent_id);
  const child = isObject(state.asked) ? tapeByUlid(db, state.child) : undefined;
  const recorded = (manifest: Json | undefined, of: TapeRow | undefined, ownOnly = false): Recorded[] =>
    isObject(manifest) && of !== undefined ? [{ seq, manifest, of, ownOnly }] : [];
  return [
    ...recorded(entry.meta.view, tape),
    ...recorded(payload.view, entry.name === 'summary/asked' ? parent : tape),
    ...recorded(state.asked, child, true),
  ];
}

/**
 * Whether the entries of a tape do not give a recorded view. Views of other rules, or of erased entries, are not
 * known.
 */
function isContradicted(db: Db, { manifest, of, ownOnly }: Recorded): boolean {
  const remake = remakeOf(manifest);
  if (remake === undefined || !viewVersions.some((version) => version === manifest.version)) return false;
  const { policy, target, at } = remake;
  if (at > of.head_seq) return true;
  try {
    const entries: readonly Entry[] = ownOnly
      ? [...readEntries(db, of, { own: true, to: at })]
      : [...viewEntries(db, { ...of, head_seq: at }, policy)];
    if (entries.some(({ payload }) => payload === null)) return false;
    // Rules 5 leave no message out: an older build can have recorded a view by them after an omission.
    const known = manifest.version === 5 ? entries.filter((entry) => !isOmission(entry)) : entries;
    return view(known, { policy, target }).digest !== manifest.digest;
  } catch (error) {
    // An anchor that the view began at is gone.
    if (error instanceof TapeError && error.code === 'TAPE_NO_ANCHOR') return true;
    throw error;
  }
}

function rangesIn({ in: within }: JsonObject): readonly Range[] {
  if (!Array.isArray(within)) return [];
  return within.flatMap((range: Json) => {
    const [from, to] = Array.isArray(range) ? range : [];
    return typeof from === 'number' && typeof to === 'number' && from <= to ? [[from, to] as const] : [];
  });
}

function tapeByUlid(db: Db, ulid: Json | undefined): TapeRow | undefined {
  if (typeof ulid !== 'string') return undefined;
  const row = db.get<{ id: number }>('SELECT id FROM tape WHERE ulid = @ulid', { ulid });
  return row === undefined ? undefined : tapeById(db, row.id);
}
