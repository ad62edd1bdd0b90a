import type { TimelineItem } from '../../../src/page/data.ts';
import type { Blocks } from './blocks.ts';

/** A row of a timeline: an item, where what is inherited ends, or a block that is not loaded. */
export type FeedRow =
  | { readonly type: 'item'; readonly key: number; readonly block: number; readonly item: TimelineItem }
  | { readonly type: 'own'; readonly key: number; readonly block: number; readonly seq: number }
  | { readonly type: 'block'; readonly key: number; readonly block: number };

/** The rows of a timeline, as far as its blocks are loaded. A row keeps its key while others are loaded or dropped. */
export function feedRows(
  { count, items }: { readonly count: number; readonly items: Blocks['items'] },
  base: number,
): readonly FeedRow[] {
  const rows: FeedRow[] = [];
  let isInherited = false;
  for (let block = 0; block < count; block += 1) {
    const found = items(block);
    if (found === undefined) rows.push({ type: 'block', key: -1 - block, block });
    for (const item of found ?? []) {
      const { seq, kind } = item;
      if (isInherited && seq > base) rows.push({ type: 'own', key: seq * 4 + 2, block, seq });
      isInherited = seq <= base;
      rows.push({ type: 'item', key: seq * 4 + (kind === 'forks' ? 1 : 0), block, item });
    }
  }
  return rows;
}

/** The row that has a position. */
interface Found {
  readonly index: number;
  /** Whether it has just that, as its own or as that of a result; else it is the one before, or hides it. */
  readonly isExact: boolean;
  /** The part with the result, which may be folded. */
  readonly part?: number;
}

/** The row that has a position, or the one before. */
export function rowAt(rows: readonly FeedRow[], seq: number): Found | undefined {
  let before: number | undefined;
  for (const [index, row] of rows.entries()) {
    if (row.type !== 'item') continue;
    const { seq: own, kind, hides, parts } = row.item;
    if (own === seq && kind !== 'forks') return { index, isExact: true };
    const part = parts.findIndex((one) => one.type === 'call' && one.outputSeq === seq);
    if (part >= 0) return { index, isExact: true, part };
    if (hides !== undefined && hides.from <= seq && seq <= hides.to) return { index, isExact: false };
    if (own < seq) before = index;
  }
  const first = rows.findIndex(({ type }) => type === 'item');
  const index = before ?? first;
  return index < 0 ? undefined : { index, isExact: false };
}

/** The row that is where another one was before rows were loaded or dropped, and the part of it that is above. */
export function rowInstead(
  rows: readonly FeedRow[],
  was: FeedRow,
  share: number,
): { readonly index: number; readonly isSame: boolean } | undefined {
  const same = rows.findIndex(({ key }) => key === was.key);
  if (same >= 0) return { index: same, isSame: true };
  const first = rows.findIndex(({ block }) => block >= was.block);
  if (first < 0) return rows.length === 0 ? undefined : { index: rows.length - 1, isSame: false };
  const inBlock = rows.filter(({ block }) => block === was.block);
  if (was.type === 'block')
    return { index: first + Math.floor(Math.max(0, inBlock.length - 1) * share), isSame: false };
  const behind = inBlock.findIndex((row) => row.key >= was.key);
  return { index: first + Math.max(0, behind), isSame: false };
}
