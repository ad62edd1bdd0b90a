import type { PictureRow } from '@tapedeck/graph';
import { isDeleted } from '@tapedeck/tape/internal';

/** A row, and how many sessions below it are left out. */
export type Drawn = PictureRow & { readonly left?: number };

/** The rows of a drawing without what is below some sessions. */
export function* without(rows: Iterable<PictureRow>, closed: ReadonlySet<string>): Generator<Drawn> {
  let kept: PictureRow | undefined;
  let left = 0;
  for (const row of rows) {
    if (kept !== undefined && row.depth > kept.depth) {
      left += row.node !== undefined && isDeleted(row.node) ? row.sessions - 1 : row.sessions;
      continue;
    }
    if (kept !== undefined) yield { ...kept, left };
    [kept, left] = [undefined, 0];
    if (row.node !== undefined && closed.has(row.node.id)) kept = row;
    else yield row;
  }
  if (kept !== undefined) yield { ...kept, left };
}
