/**
 * Transcripts on tapes: `reconcile.ts` makes the sessions of a home read as a plan does. `known-beginnings.ts` takes from its
 * conversations what the home has of them (`base.ts`), `plan-writer.ts` says in which order they are written and from which
 * sessions they are forked (`left-branches.ts`, `forked-from.ts`), and `conversation-writer.ts` writes one to one of its
 * sessions (`written-session.ts`), behind what that has of it (`read-tape.ts`, `parted.ts`), or forks it (`fork-session.ts`).
 * `reconcile-end.ts` writes the end of a file that grew, without reading the rest. What others forgot or erased meanwhile is
 * erased here, too (`forgotten-meanwhile.ts`, `erased-meanwhile.ts`). Imports `edges` and what lies below.
 */

import type { HomeStore } from '@tapedeck/tape';
import type { OnProgress } from '@tapedeck/tape/store';
import { copiesIn } from '../copies/copies.ts';
import { erasedIn } from '../copies/erased-in-plan.ts';
import { recordDerived } from '../edges/derived.ts';
import { linkSessions } from '../edges/edges.ts';
import { mergeEnded } from '../edges/merge-ended.ts';
import { deleteReturned } from '../edges/returned.ts';
import { saveTitle } from '../edges/titles.ts';
import type { Cleaner } from '../imported/cleaner.ts';
import { refusalOf } from '../imported/forgotten.ts';
import { Origins } from '../imported/origins.ts';
import type { ConversationPlan, ImportPlan } from '../plan/plan.ts';
import { eraseErasedMeanwhile } from './erased-meanwhile.ts';
import { forgottenMeanwhile } from './forgotten-meanwhile.ts';
import { KnownBeginnings } from './known-beginnings.ts';
import { PlanWriter } from './plan-writer.ts';
import { nothing, type Reconciled } from './reconciled.ts';

/** How an import is written. */
export interface ReconcileOptions {
  /** Replaces what has the form of a secret, before anything is compared. */
  readonly clean?: Cleaner;
  /**
   * Whether the source no longer begins with what was read of it. What it has now in place of that becomes a session of its
   * own, forked where the two differ.
   */
  readonly rewritten?: boolean | ((conversation: ConversationPlan) => boolean);
  /**
   * The name of the session of the main conversation, with which those of its branches begin. The sessions are made even if
   * the source has others here already.
   */
  readonly as?: string;
  /** Given by who imports many plans: reads the home once. */
  readonly origins?: Origins;
  /** Called with the entries of a new session that were added, some times while they are. */
  readonly onAdded?: OnProgress;
}

/**
 * Makes the sessions of a home read as the conversations of a plan: creates those that are missing, parents first, appends
 * what is new to the others, and merges the subagents whose results came back. Each session appears, and changes, in one
 * transaction, by what its tape has: no reader sees a part of it, and an import that was killed, or ran twice at once, ends as
 * one that ran alone.
 *
 * A branch is forked where it leaves its parent, before or after the parent changed, so that what the parent has of it is
 * not written again. A session that went on here is not rewound: what its source has beyond the point where the two part
 * becomes a session beside it. One that is archived, deleted or in use takes nothing, and says so in its receipt.
 * @throws TAPE_EXISTS when a session has the name of `as` that is no import of this source
 */
export function reconcile(
  store: HomeStore,
  plan: ImportPlan,
  { clean, rewritten = false, as, origins = new Origins(store), onAdded }: ReconcileOptions = {},
): readonly Reconciled[] {
  const copies = copiesIn(store);
  copies.begin();
  const forgotten = refusalOf(store, plan, { as, origins });
  if (forgotten !== undefined)
    return plan.conversations.map(({ key }) => ({ conversation: key, ...forgotten, ...nothing }));
  const changes = store.changesOfOthers();
  const erasedElsewhere = as === undefined ? erasedIn(store, plan, clean) : undefined;
  const known = new KnownBeginnings(store, plan, { clean, as, origins, erasedElsewhere });
  const writer = new PlanWriter(store, plan, { known, rewritten, as, origins, erasedElsewhere, onAdded });
  const placed = (key: string) => writer.placed(key);
  const linkAll = (conversations: readonly ConversationPlan[]) =>
    linkSessions(store, plan, placed, { conversations, copies: as === undefined });
  const agents = plan.conversations.findIndex(({ kind }) => kind === 'subagent');
  const count = agents === -1 ? plan.conversations.length : agents;
  const own = plan.conversations.slice(0, count);
  for (const conversation of own) writer.write(conversation);
  // Which branches are left says from which session a subagent is forked.
  linkAll(own);
  const sessions = own.flatMap(({ key }) => placed(key)?.session ?? []);
  if (as === undefined) deleteReturned(store, plan, sessions, clean);
  for (const conversation of plan.conversations.slice(count)) writer.write(conversation);
  linkAll(plan.conversations.slice(count));
  const isForgotten = () => refusalOf(store, plan, { as, origins }) !== undefined;
  // Titles and reports are content of the source, too.
  for (const { conversation, session, refused, created, added } of writer.done.values()) {
    // An export that no program went on with says nothing of the session from which it was made.
    const isExport = known.exported !== undefined && !created && added === 0;
    if (refused !== undefined || isExport) continue;
    if (isForgotten()) break;
    saveTitle(store, session, writer.titleOf(conversation));
    recordDerived(store, session, { derived: known.edgesOf(conversation) }, conversation);
  }
  if (!isForgotten()) mergeEnded(store, plan, (key) => placed(key)?.session);
  const { done, heads } = writer;
  const left = forgottenMeanwhile(store, plan, { done, as, origins });
  if (left === undefined && as === undefined && store.changesOfOthers() !== changes)
    eraseErasedMeanwhile(store, plan, { done, heads, clean });
  copies.end();
  return left ?? [...done.values()];
}
