import type { Draft, Seq } from '@tapedeck/tape';
import { wholeDraft } from '../plan/later-draft.ts';
import type { ConversationPlan } from '../plan/plan.ts';
import type { Shown } from './imported.ts';
import { keyOf } from './keys.ts';

/** Gives each boundary of a batch the position of the first entry that it keeps in view. `next`: that of the first draft. */
export function withRefs(
  batch: readonly Draft[],
  {
    plan: { keeps, base },
    next,
    shown,
  }: {
    readonly shown: readonly Pick<Shown, 'key' | 'seq'>[];
    readonly plan: Pick<ConversationPlan, 'keeps' | 'base'>;
    readonly next: Seq;
  },
): readonly Draft[] {
  if (keeps.size === 0) return batch;
  const places = new Map([...(base?.places ?? []), ...shown.map(({ key, seq }) => [key, seq] as const)]);
  return batch.map((draft, i) => {
    const key = keyOf(draft);
    places.set(key, next + i);
    const kept = draft.mark === 'boundary' ? keeps.get(key) : undefined;
    const ref = kept === undefined ? undefined : places.get(kept);
    return ref === undefined ? draft : { ...wholeDraft(draft), ref };
  });
}
