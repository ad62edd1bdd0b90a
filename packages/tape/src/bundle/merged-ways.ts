import type { Seq } from '../entry/entry.ts';
import { TapeError } from '../errors.ts';
import type { Writer } from '../tape/append.ts';
import { ownHash, rowOf } from './part.ts';
import { entriesFrom } from './records.ts';
import type { BundledLine, BundledTape, Scanned } from './scan.ts';

/** Sessions that went on in two ways, and what their parents merged of them: the mark of a merge has one way alone. */

/**
 * The children that its new entries merge are the same here, as far as they are here: a mark has the hash of its child.
 * @throws TAPE_DIVERGED
 */
export function assertSameChildren(
  writer: Writer,
  {
    bundled: { tape },
    merges,
    common,
  }: {
    readonly bundled: BundledTape;
    /** The lines of merges into it. */
    readonly merges: readonly BundledLine[];
    readonly common: Seq;
  },
): void {
  for (const { line } of merges) {
    const { seq = 0, range, child_head: head } = line;
    const last = range?.[1] ?? 0;
    const child = seq > common && head !== undefined ? rowOf(writer, line.session) : undefined;
    if (child === undefined || last > child.head_seq || ownHash(writer.db, child, last) === head) continue;
    throw new TapeError(
      'TAPE_DIVERGED',
      `cannot import '${tape.name}': it merges '${child.name}', which went on in another way here: @${last} is another entry`,
      { data: { session: child.name, seq: last } },
    );
  }
}

/**
 * Its new entries are those that its parent here has merged, if it has: the mark came before the child.
 * @throws TAPE_DIVERGED
 */
export function assertAsMerged(
  writer: Writer,
  { file }: Scanned,
  { bundled: { tape, start, from }, common }: { readonly bundled: BundledTape; readonly common: Seq },
): void {
  const parent = tape.parent === null ? undefined : rowOf(writer, tape.parent);
  if (parent === undefined) return;
  const marks = writer.db.all<{ head: string; last: Seq }>(
    `SELECT payload ->> '$.state.child_head' AS head, payload ->> '$.state.range[1]' AS last FROM entry
       WHERE tape_id = @id AND key >= @from AND key < @end AND kind = 'anchor' AND payload IS NOT NULL`,
    { id: parent.id, from: `merge:${tape.ulid}:`, end: `merge:${tape.ulid};` },
  );
  const heads = new Map(
    marks.filter(({ last }) => last > common && last <= tape.head).map(({ head, last }) => [last, head]),
  );
  if (heads.size === 0) return;
  for (const { entry } of entriesFrom(file, { from, after: start.after }))
    if ((heads.get(entry.seq) ?? entry.hash) !== entry.hash)
      throw new TapeError(
        'TAPE_DIVERGED',
        `cannot import '${tape.name}': it went on in another way where '${parent.name}' here merged it: @${entry.seq} is another entry`,
        { data: { session: tape.name, seq: entry.seq } },
      );
}
