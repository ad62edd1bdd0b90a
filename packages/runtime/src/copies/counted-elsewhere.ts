import type { Draft, HomeStore, JsonObject, SessionInfo } from '@tapedeck/tape';
import { withAncestors } from '../imported/ancestors.ts';
import { answerId, firstAnswer } from '../imported/first-said.ts';
import type { Counted } from '../imported/imported.ts';
import { countsOf, type SharedCounts, together } from '../imported/ledger.ts';
import { type Origins, sourceNamedBy, sourceOf } from '../imported/origins.ts';
import { OwnSessions } from '../imported/own-sessions.ts';
import type { ConversationPlan, ImportPlan } from '../plan/plan.ts';
import { copiesIn } from './copies.ts';

/** Who else may have counted the tokens of a conversation. */
interface Counting {
  readonly plan: ImportPlan;
  readonly conversation: ConversationPlan;
  /** The tokens that the session counted that a transcript was exported of, by the keys of drafts. */
  readonly counted: ReadonlyMap<string, JsonObject>;
  /** What the conversations of the source have counted here. */
  readonly tree: SharedCounts | undefined;
  readonly origins: Origins;
  readonly as: string | undefined;
}

/**
 * The tokens that a session of a conversation does not count: those of the exported session, of the other conversations of the
 * source, since a prompt that was left may be gone on from later, and of copies; of a subagent, those that it counted before, or in
 * a session beside this one.
 */
export function countedElsewhere(
  store: HomeStore,
  { plan, conversation, counted, tree, origins, as }: Counting,
  { id, parentId, link }: Partial<SessionInfo> = {},
): Counted | undefined {
  const all: Counted[] = [];
  if (counted.size > 0) all.push({ counted: (key) => counted.get(key), answered: () => undefined });
  const { ledger } = copiesIn(store);
  if (conversation.kind === 'subagent') {
    // It was forked from another session before.
    const { format, session } = plan;
    const before = origins.returnedOf(JSON.stringify({ format, session, conversation: conversation.key }));
    const own = new OwnSessions(store, { plan, conversation, as, origins }).all();
    const beside = own.flatMap((name) => store.sessions.find(name)?.id ?? []).filter((one) => one !== id);
    return together([...all, ...[...before, ...beside].map((one) => countsOf(ledger, one))]);
  }
  if (tree !== undefined) all.push({ ...tree.elsewhere(id), answered: () => undefined });
  for (const one of new Set([parentId, link?.parentId]))
    if (one !== undefined) all.push(countsOf(ledger, one));
  return together([...all, ...countsElsewhere(store, plan, conversation, id)]);
}

/**
 * The tokens that others than a session (`own`) have counted of what a conversation has: those that begin with the same answer,
 * its source and its copies, and those that continue the same exported session.
 */
function countsElsewhere(
  store: HomeStore,
  plan: Pick<ImportPlan, 'format' | 'session' | 'copyOf' | 'exportOf' | 'conversations' | 'derived'>,
  { key, spine, base }: ConversationPlan,
  own: string | undefined,
): readonly Counted[] {
  const copies = copiesIn(store);
  const { format, session, copyOf, exportOf, conversations, derived } = plan;
  // It may have been made of what follows a `/clear` in its source, or of a branch of that.
  const beside = copyOf === undefined ? [] : copies.tools.branchesOf(sourceOf(format, copyOf));
  // Of two that continue one exported session, one may have been made of an export of the other.
  const continuing = copies.tools.continuing(exportOf).filter(({ id }) => id !== own);
  const source = [
    sourceNamedBy(store, plan)?.id,
    ...beside.map(([id]) => id),
    ...continuing.map(({ id }) => id),
  ];
  // Behind a base its first answer is another one, and so it is in the file of a copy that begins at a compaction.
  const whole = conversations.find((one) => one.key === key)?.spine ?? [];
  // A copy of it may begin with what follows a lost parent.
  const lost = derived.filter((edge) => edge.why === 'parent-missing' && edge.conversation === key);
  const behindLost = answersBehind(whole, new Set(lost.map(({ of }) => of)));
  const answers = new Set(
    [...[spine, whole].flatMap((drafts) => firstAnswer(drafts) ?? []), ...behindLost].map(answerId),
  );
  // A copy that begins at a compaction may have another first answer than all others.
  const boundaries = [spine, ...(base === undefined ? [] : [whole])].flatMap((drafts) =>
    drafts.flatMap((one, i) => (one.mark === 'boundary' ? { boundary: one, isFirst: i === 0 } : [])),
  );
  const shared = [
    copies.countsOfCopies(session),
    ...boundaries.map(({ boundary, isFirst }) => copies.countsBehind(boundary, isFirst)),
    ...[...answers].map((answer) => copies.countsOf(answer)),
  ];
  return [
    // What the source inherits counts where it was written.
    ...[...new Set(source.flatMap((id) => withAncestors(store, id)))].map((id) =>
      countsOf(copies.ledger, id),
    ),
    ...shared.flatMap((one) => one?.elsewhere(own) ?? []),
  ];
}

/** The first answer from each of some drafts on, which are given by their keys. */
function answersBehind(drafts: readonly Draft[], keys: ReadonlySet<string>): readonly Draft[] {
  const answers: Draft[] = [];
  if (keys.size === 0) return answers;
  let next: Draft | undefined;
  for (const draft of drafts.toReversed()) {
    next = firstAnswer([draft]) ?? next;
    if (next !== undefined && keys.has(draft.key ?? '')) answers.push(next);
  }
  return answers;
}
