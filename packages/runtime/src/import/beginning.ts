import type { Draft } from '@tapedeck/tape';
import { titleDraft } from '../edges/titles.ts';
import { continuedNote, resumedBranchNote, resumedNote } from '../imported/copy-notes.ts';
import { firstPromptIn } from '../imported/first-prompt.ts';
import { wholeDraft } from '../plan/later-draft.ts';
import { isStandIn } from '../plan/output.ts';
import { inheritedOf, notErased } from './inherited-part.ts';
import type { Writing } from './writing.ts';

/**
 * What a session begins with that is forked: where it comes from, what it inherits of a branch, and when what it inherits was said,
 * where it says nothing else.
 * @param same how many drafts of the conversation it inherits
 * @param erased the keys of those that say nothing any more
 * @param originOf makes what says where it comes from, of the time of what it inherits
 * @param saidInBase the time of the last message that it has in another session, which its drafts do not have
 * @param promptInBase the first prompt that it has there
 */
export function beginningOf(
  writing: Writing,
  {
    same,
    erased,
    originOf,
    saidInBase,
    promptInBase,
  }: {
    readonly same: number;
    readonly erased: ReadonlySet<string>;
    readonly originOf: (timestamp: string | undefined) => Draft;
    readonly saidInBase: () => string | undefined;
    readonly promptInBase: () => string | undefined;
  },
): readonly Draft[] {
  const { common, conversation } = writing;
  const { spine } = conversation;
  const saysMore = spine.slice(same).some(isMessage);
  const from = common ?? (saysMore ? same : Math.max(0, spine.slice(0, same).findLastIndex(isMessage)));
  // All that a branch says can be in its base, where it has nothing in common with its parent.
  const isInBase = common === 0 && !saysMore;
  const { timestamp, title = isInBase ? promptInBase() : ownTitle(writing, same, erased) } = inheritedOf([
    ...notErased(writing, { from, to: same, erased }),
  ]);
  // The title of a copy that is no branch depends on what all that begin alike say.
  const isNamed = common === undefined || title === undefined || conversation.title !== undefined;
  const titles = isNamed ? [] : [titleDraft(title)];
  return [originOf(timestamp ?? (saysMore ? undefined : saidInBase())), ...titles];
}

/** The first prompt of a branch that its parent does not have, where the session begins with one that both have. */
function ownTitle(writing: Writing, same: number, erased: ReadonlySet<string>): string | undefined {
  const { common = 0 } = writing;
  const promptIn = (from: number, to: number) =>
    firstPromptIn(notErased(writing, { from, to, erased }).filter(isMessage).map(wholeDraft));
  const isShared = same < common && promptIn(same, common) !== undefined;
  return isShared ? promptIn(common, writing.conversation.spine.length) : undefined;
}

function isMessage({ kind }: Draft): boolean {
  return kind === 'message';
}

/**
 * What says of which session a fork is the continuation, where that was exported, or resumed under new ids. Pure.
 * @param parentId the session from which it is forked
 */
export function continuationNotes(parentId: string | undefined, writing: Writing): readonly Draft[] {
  const { base, kind } = writing.conversation;
  if (base?.isResumed !== true) return exportNotes(writing);
  const keys = [...base.places.keys()];
  // What stands for a result is not there any more once that has come.
  const [first = '', last = ''] = [keys[0], keys.findLast((key) => !isStandIn(key))];
  if (kind === 'main') return [resumedNote(base.session, { first, last })];
  return parentId === base.session ? [resumedBranchNote(base.session, last)] : [];
}

/** What says which exported session is continued. Pure. */
export function exportNotes({ plan, conversation: { base } }: Writing): readonly Draft[] {
  // A copy can be forked from what continues that.
  return base !== undefined && base.session === plan.exportOf ? [continuedNote(base.session)] : [];
}
