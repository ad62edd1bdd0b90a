import type { Entry, HomeStore } from '@tapedeck/tape';
import { titleEvent } from '@tapedeck/tape/internal';
import type { Likely } from '../copies/alike.ts';
import { copiesIn } from '../copies/copies.ts';
import { resemblanceIn } from '../copies/resemblance.ts';
import { isErased } from '../imported/erased.ts';
import { firstPromptIn, ownPrompt } from '../imported/first-prompt.ts';
import { shownMessages } from '../imported/first-said.ts';
import { knownSessionsIn } from '../imported/known-sessions.ts';
import { appendBeside } from './beside.ts';
import { concludedTitle, importedTitles, isConcluded, titleIn } from './titles.ts';

/**
 * The title of a conversation that begins as others do: the first prompt that those before it do not have, or else its first
 * one. Its own entries depend on what of all that begins alike came first.
 */
export function titleCopy(store: HomeStore, { id, shared }: Pick<Likely, 'id' | 'shared'>): void {
  const resemblance = resemblanceIn(store);
  const behind = (count: number) => resemblance.messagesBehind(id, count);
  conclude(store, id, () => firstPromptIn(behind(shared)) ?? firstPromptIn(beforeErased(behind(0))));
}

/** That of another one: its first prompt that it shows, where it has one that was left, or all that it has is in a copy. */
export function titleShown(store: HomeStore, session: string): void {
  const info = store.sessions.find(session);
  const copies = copiesIn(store);
  const source = info && copies.sourceOf(info.id);
  if (info === undefined || source === undefined) return;
  const over = copies.sourceOf(info.parentId ?? '');
  const isForkOfCopy = over !== undefined && over !== source;
  const isRewound = info.parentId === undefined && knownSessionsIn(store).of(info).beginning?.isRewound;
  if (isForkOfCopy || isRewound === true)
    conclude(store, info.id, () => firstPromptIn(beforeErased(shownMessages(store, info.id))));
}

/** No other prompt stands for one that was erased. Lazy. */
function* beforeErased(messages: Iterable<Entry>): Generator<Entry> {
  for (const message of messages) {
    if (isErased(message)) return;
    yield message;
  }
}

/** Gives a session a title, where its source gives it none, and a list would show another one: that of its own entries. */
function conclude(store: HomeStore, id: string, find: () => string | undefined): void {
  const [last] = [...store.entries.read(id, { own: true, name: titleEvent })].slice(-1);
  const isGiven = last === undefined ? store.sessions.find(id)?.title !== undefined : !isConcluded(last);
  if (isGiven) return;
  const title = find();
  const shown = last === undefined ? ownPrompt(store, id) : titleIn(last);
  if (title === undefined || title === shown) return;
  appendBeside(store, id, [concludedTitle(title, importedTitles(store, id).length + 1)]);
}
