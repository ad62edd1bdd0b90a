import type { Draft } from '@tapedeck/tape';
import { titleLine } from '@tapedeck/tape/internal';
import type { Cleaner } from '../imported/cleaner.ts';
import { cleaned } from '../imported/raw-form.ts';
import { changedLater } from '../plan/later-draft.ts';
import type { ConversationPlan } from '../plan/plan.ts';
import { fitting } from './fitting.ts';

/**
 * A conversation as it is written, and compared with what was written of it.
 * @param made what was made of drafts that conversations share
 * @param above what was made of the spine of its parent
 */
export function prepared(
  conversation: ConversationPlan,
  clean: Cleaner | undefined,
  made?: Map<Draft, Draft>,
  above?: readonly Draft[],
): ConversationPlan {
  const { title: given, ...rest } = conversation;
  const { spine, asides, shared = 0 } = rest;
  // As one line from the beginning: a title that comes later is written so, too.
  const title = given === undefined ? undefined : titleLine(clean?.text(given) ?? given);
  const begun = above?.slice(0, shared) ?? [];
  const prepare = (draft: Draft) => {
    const fits = fitting(draft);
    return clean === undefined ? fits : cleaned(fits, clean);
  };
  const prepareOnce = (draft: Draft): Draft => {
    const known = made?.get(draft);
    if (known !== undefined) return known;
    const one = changedLater(draft, prepare);
    made?.set(draft, one);
    return one;
  };
  return {
    ...rest,
    ...(title !== undefined && { title }),
    spine: [...begun, ...spine.slice(begun.length).map(prepareOnce)],
    asides: asides.map((one) => {
      const draft = changedLater(one.draft, prepare);
      return draft === one.draft ? one : { draft, after: one.after };
    }),
  };
}
