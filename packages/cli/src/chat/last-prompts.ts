import type { Entry } from '@tapedeck/tape';
import { isGap } from '../transcript/fold.ts';
import { readShown } from '../transcript/read.ts';
import { infoOf, type Talk } from './talk.ts';

/** The last prompts of a conversation that no rewind hides, the newest first. */
export function lastPrompts(talk: Pick<Talk, 'store' | 'session'>, last: number): readonly Entry[] {
  const info = infoOf(talk);
  const ranges = talk.store.views.ranges(info.id);
  const selection = { from: 1, to: info.head, role: 'user', last };
  const shown = [...readShown(talk.store, info, selection, { ranges, hidden: false, all: false })];
  return shown.flatMap((entry) => (isGap(entry) ? [] : [entry])).reverse();
}
