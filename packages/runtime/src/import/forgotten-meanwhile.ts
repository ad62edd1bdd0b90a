import type { HomeStore, Seq } from '@tapedeck/tape';
import { importedEvent } from '@tapedeck/tape/internal';
import { appendBeside } from '../edges/beside.ts';
import { forgottenEvent } from '../imported/copy-notes.ts';
import { forgottenDraft, refusalOf, refusalSince } from '../imported/forgotten.ts';
import { isOf, type Origins } from '../imported/origins.ts';
import type { ImportPlan } from '../plan/plan.ts';
import { nothing, type Reconciled } from './reconciled.ts';

/** What the redactions of a forgotten source say. */
const reason = 'its source was forgotten';

/**
 * What is left of an import whose source another process has forgotten while it was written. That process erases what is on tapes
 * by then: what was written since is erased here. Undefined where the source was not forgotten.
 */
export function forgottenMeanwhile(
  store: HomeStore,
  plan: ImportPlan,
  {
    done,
    as,
    origins,
  }: {
    readonly done: ReadonlyMap<string, Reconciled>;
    readonly as: string | undefined;
    readonly origins: Origins;
  },
): readonly Reconciled[] | undefined {
  const isNew = as === undefined && done.get(plan.conversations[0]?.key ?? '')?.created === true;
  const forgotten =
    refusalOf(store, plan, { as, origins }) ?? (isNew ? refusalSince(store, plan, origins) : undefined);
  if (forgotten === undefined) return undefined;
  const { refused } = forgotten;
  for (const conversation of plan.conversations) {
    const { session = '' } = done.get(conversation.key) ?? {};
    const id = store.sessions.find(session)?.id;
    // What continues an export may have nothing but the session of that.
    if (id === undefined || !isOf(store, id, { plan, conversation })) continue;
    appendBeside(store, id, [forgottenDraft()]);
    const seqs = contentOf(store, id);
    if (seqs.length > 0) store.entries.redact(id, seqs, reason);
  }
  return [...done.values()].map(({ conversation, session }) => ({
    ...{ conversation, session, ...nothing, refused },
  }));
}

/** The own entries of a session that say something of its source: its title goes with the first. */
function contentOf(store: HomeStore, id: string): readonly Seq[] {
  const isTitled = store.sessions.find(id)?.title !== undefined;
  return [...store.entries.read(id, { own: true })].flatMap(({ seq, kind, name, payload }, i) => {
    const isKept = name === importedEvent || name === forgottenEvent || (i === 0 && !isTitled);
    return isKept || kind === 'rewind' || kind === 'redaction' || payload === null ? [] : seq;
  });
}
