/**
 * Transcripts on tapes: `reconcile.ts` makes the sessions of a home read as a plan does. `known-beginnings.ts` takes from its
 * conversations what the home has of them (`base.ts`), `plan-writer.ts` says in which order they are written and from which
 * sessions they are forked (`left-branches.ts`, `forked-from.ts`), and `conversation-writer.ts` writes one to one of its
 * sessions (`written-session.ts`), behind what that has of it (`read-tape.ts`, `parted.ts`), or forks it (`fork-session.ts`).
 * `reconcile-end.ts` writes the end of a file that grew, without reading the rest. Where another process erases or writes
 * something meanwhile that may be of it (`traces.ts`), nothing more is written (`unless-changed.ts`), and the import begins
 * anew (`reconciling.ts`). `foreseen.ts` says which sessions would take nothing. Imports `edges` and what lies below.
 */

import type { HomeStore } from '@tapedeck/tape';
import type { OnProgress } from '@tapedeck/tape/store';
import { copiesIn } from '../copies/copies.ts';
import { erasedIn } from '../copies/erased-in-plan.ts';
import { recordDerived } from '../edges/derived.ts';
import { linkSessions } from '../edges/edges.ts';
import type { OnConcluded } from '../edges/link.ts';
import { mergeAgain } from '../edges/merge-again.ts';
import { mergeEnded } from '../edges/merge-ended.ts';
import { deleteReturned } from '../edges/returned.ts';
import { saveTitle } from '../edges/titles.ts';
import type { Cleaner } from '../imported/cleaner.ts';
import { refusalOf } from '../imported/forgotten.ts';
import { Origins } from '../imported/origins.ts';
import type { ConversationPlan, ImportPlan } from '../plan/plan.ts';
import { KnownBeginnings } from './known-beginnings.ts';
import { olderTitles } from './older-titles.ts';
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
  /** Called for each edge that no record names, once it is made. */
  readonly onConcluded?: OnConcluded;
}

/**
 * Writes a plan, as `reconcile` does, where nothing of it is erased, or written elsewhere, meanwhile.
 * @param onWritten called with what was written of a conversation, as soon as it is
 */
export function reconcileOnce(
  store: HomeStore,
  plan: ImportPlan,
  {
    clean,
    rewritten = false,
    as,
    origins = new Origins(store),
    onAdded,
    onConcluded = () => {},
  }: ReconcileOptions,
  onWritten: (one: Reconciled) => void,
): readonly Reconciled[] {
  const copies = copiesIn(store);
  copies.begin();
  const forgotten = refusalOf(store, plan, { as, origins });
  if (forgotten !== undefined)
    return plan.conversations.map(({ key }) => ({ conversation: key, ...forgotten, ...nothing }));
  const erasedElsewhere = as === undefined ? erasedIn(store, plan, clean) : undefined;
  const known = new KnownBeginnings(store, plan, { clean, as, origins, erasedElsewhere });
  const how = { known, rewritten, as, origins, erasedElsewhere };
  const writer = new PlanWriter(store, plan, { ...how, onAdded, onWritten });
  const placed = (key: string) => writer.placed(key);
  // An export that no program continued says nothing of the session from which it was made.
  const isTaken = ({ refused, created, added }: Reconciled) =>
    refused === undefined && (known.exported === undefined || created || added > 0);
  const write = (conversations: readonly ConversationPlan[]): void => {
    for (const one of conversations) writer.write(one);
    const keys = new Set(conversations.map(({ key }) => key));
    // An older copy has less to conclude from.
    for (const { conversation: of, session, isBehind } of writer.done.filter(isTaken))
      if (keys.has(of) && isBehind !== true)
        recordDerived(store, session, { derived: known.edgesOf(of), onConcluded }, of);
    // What follows a lost parent says of what others are copies.
    linkSessions(store, plan, placed, { conversations, copies: as === undefined, onConcluded });
  };
  const agents = plan.conversations.findIndex(({ kind }) => kind === 'subagent');
  const count = agents === -1 ? plan.conversations.length : agents;
  const own = plan.conversations.slice(0, count);
  // Which branches are left says from which session a subagent is forked.
  write(own);
  const sessions = own.flatMap(({ key }) => placed(key)?.session ?? []);
  if (as === undefined) deleteReturned(store, plan, sessions, clean);
  write(plan.conversations.slice(count));
  // Titles and reports are content of the source, too.
  const isEarlier = olderTitles(store, plan, { done: writer.done, clean });
  for (const one of writer.done) {
    const isNothing = !one.created && one.added === 0;
    // The title of an older copy may be one that the session had before.
    if (isTaken(one) && (one.isBehind !== true || !isNothing))
      saveTitle(store, one.session, writer.titleOf(one.conversation), () => isEarlier(one.conversation));
  }
  mergeEnded(store, plan, (key) => placed(key)?.session);
  const wasHere = ({ created, refused }: Reconciled) => !created && refused === undefined;
  for (const { session } of writer.done.filter(wasHere)) mergeAgain(store, session);
  copies.end();
  return writer.done;
}
