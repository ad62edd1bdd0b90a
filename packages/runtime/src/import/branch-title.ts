import type { HomeStore } from '@tapedeck/tape';
import { importedTitles, titleIn } from '../edges/titles.ts';
import { firstPromptIn, ownPrompt } from '../imported/first-prompt.ts';
import { importedIn } from '../imported/imported.ts';
import { wholeDraft } from '../plan/later-draft.ts';
import { notErased } from './inherited-part.ts';
import type { Writing } from './writing.ts';

/**
 * The title that a branch needs, whose source gives it none, so that a list shows the first prompt that its parent does not have:
 * what both have changes where a later record changes the order of what one of them says, and the session of the branch keeps
 * what it has of its own. Undefined where the list shows that prompt already, or a title that is not of an import.
 */
export function titleOfBranch(
  store: HomeStore,
  writing: Pick<Writing, 'conversation' | 'common' | 'erasedElsewhere'>,
  session: string,
): string | undefined {
  const { conversation, common: from } = writing;
  const info = store.sessions.find(session);
  if (from === undefined || info === undefined) return undefined;
  const titles = importedTitles(store, session);
  if (titles.length === 0 && info.title !== undefined) return undefined;
  const last = titles.at(-1);
  const shown = last === undefined ? ownPrompt(store, session) : titleIn(last);
  const promptOf = (erased: ReadonlySet<string>): string | undefined => {
    const said = notErased(writing, { from, to: conversation.spine.length, erased });
    return firstPromptIn(said.filter(({ kind }) => kind === 'message').map(wholeDraft));
  };
  if (promptOf(new Set()) === shown) return undefined;
  // What was erased in the session is no title of it.
  const title = promptOf(importedIn(store, session, conversation.base).erased);
  return title === shown ? undefined : title;
}
