import type { Entry } from '../entry/entry.ts';
import { isPrune } from '../view/pruned.ts';

/** The acts that an undo reverts, in words. An earlier undo is a rewind. */
export const actNames = {
  rewind: 'the rewind',
  compaction: 'the summary',
  prune: 'the pruning',
  anchor: 'the anchor',
  handoff: 'the handoff',
  merge: 'the merge',
} as const;

/** Returns which act an entry records, of those that can be undone; undefined for another entry. */
export function actOf(entry: Entry): keyof typeof actNames | undefined {
  const { kind, mark, name = '' } = entry;
  if (kind === 'rewind' || kind === 'compaction') return kind;
  if (isPrune(entry)) return 'prune';
  if (kind !== 'anchor' || /^(?:session\/start|fork\/start|intention)$/.test(name)) return undefined;
  return name.startsWith('merge/') ? 'merge' : mark === 'boundary' ? 'handoff' : 'anchor';
}
