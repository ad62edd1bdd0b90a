import type { Draft, HomeStore } from '@tapedeck/tape';
import { copiesIn } from '../copies/copies.ts';
import { showing } from '../copies/walk.ts';
import { begins } from '../imported/blocks.ts';
import { hasAside, saysNothingNew } from '../imported/change.ts';
import { firstKeyIn } from '../imported/first-said.ts';
import { type Imported, importedIn, type Shown } from '../imported/imported.ts';
import { keyOf } from '../imported/keys.ts';
import { sourceOf } from '../imported/origins.ts';
import { OwnSessions } from '../imported/own-sessions.ts';
import { rawForm } from '../imported/raw-form.ts';
import { wholeDraft } from '../plan/later-draft.ts';
import { isAside } from '../plan/plan.ts';
import type { ReadTape } from './read-tape.ts';
import type { Writing } from './writing.ts';

/**
 * What a tape lacks of a source that has less of its conversation than before, as an older copy does: what that alone has beside
 * the conversation, such as a title that it got since. Undefined for a source whose conversation has something else.
 * @param shown how many drafts of the conversation the tape shows, or did before a person rewound it
 */
export function asOlderCopy(
  store: HomeStore,
  writing: Writing,
  tape: ReadTape & { readonly session: string },
  shown: number,
): ReadTape | undefined {
  const { conversation } = writing;
  const { imported, change, session } = tape;
  const own = [session, imported] as const;
  const others = othersOf(store, writing).map((id) => [id, importedIn(store, id)] as const);
  const saysNothing = ([of, one]: readonly [id: string, Imported]) =>
    saysNothingNew(conversation, one, (draft, entry) => isPartOf(store, draft, { of, entry }));
  const all = [own, ...others];
  const isOlder = shown === conversation.spine.length || all.some(saysNothing);
  if (!isOlder) return undefined;
  const there = new Set<string>();
  for (const { draft } of conversation.asides)
    if (all.some(([, one]) => hasAside(one, draft))) there.add(keyOf(draft));
  const drafts = change.drafts.filter((draft) => isAside(draft) && !there.has(keyOf(draft)));
  return { ...tape, change: { same: change.same, drafts } };
}

/**
 * The session that shows all of a branch of which the home has no session, and has the records beside it: to an older copy the
 * user had not returned to its end.
 */
export function newerThanBranch(
  store: HomeStore,
  sought: Pick<Writing, 'plan' | 'conversation' | 'as' | 'origins'>,
): string | undefined {
  const { conversation } = sought;
  if (new OwnSessions(store, sought).all().length > 0) return undefined;
  const family = copiesIn(store).family(firstKeyIn(conversation));
  const id = family && showing(family, conversation)?.id;
  const info = id === undefined ? undefined : store.sessions.find(id);
  if (info === undefined) return undefined;
  const has = importedIn(store, info.id);
  return conversation.asides.every(({ draft }) => hasAside(has, draft)) ? info.session : undefined;
}

/** Whether a message or a compaction had come in part that a session has as a whole, with its secrets or without. */
function isPartOf(
  store: HomeStore,
  draft: Draft,
  { of, entry: { seq } }: { readonly of: string; readonly entry: Shown },
): boolean {
  const [entry] = draft.kind === 'tool-result' ? [] : store.entries.read(of, { from: seq, to: seq });
  const whole = wholeDraft(draft);
  return (
    entry !== undefined && [whole, rawForm(whole)].some((one) => one !== undefined && begins(one, entry))
  );
}

/**
 * The branches of a source, deleted or not, and what it is a copy of: an older copy shows what is in one of them where a prompt
 * was typed anew since. The session that this import makes show something else counts for none.
 */
function othersOf(store: HomeStore, { plan, conversation, from }: Writing): readonly string[] {
  const copies = copiesIn(store);
  const branches = copies.tools.branchesOf(sourceOf(plan.format, plan.session)).map(([id]) => id);
  const settled = { ...conversation, spine: conversation.spine.slice(0, conversation.settled) };
  const family = copies.family(firstKeyIn(conversation));
  const other = family && showing(family, settled);
  const left = from?.isLeft === true ? store.sessions.find(from.session)?.id : undefined;
  return other === undefined || other.id === left ? branches : [...branches, other.id];
}
