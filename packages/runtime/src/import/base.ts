import type { Draft, Seq, SqliteTapeStore } from '@tapedeck/tape';
import type { ConversationPlan, ImportPlan } from './plan.ts';

/** The entries of an exported session, by their hashes. */
export interface Exported {
  readonly session: string;
  readonly seqs: ReadonlyMap<string, Seq>;
}

/** Finds the session of which a plan is the continuation; undefined where the home does not have it. */
export function exportedOf(store: SqliteTapeStore, plan: ImportPlan): Exported | undefined {
  const { exportOf } = plan;
  const found = exportOf === undefined ? undefined : store.sessions.find(exportOf);
  // A name is no id, whatever it looks like.
  if (found === undefined || found.id !== exportOf) return undefined;
  const wanted = new Set(plan.conversations.flatMap(({ exported = new Map() }) => [...exported.values()]));
  const seqs = new Map<string, Seq>();
  for (const { hash, seq } of store.entries.read(found.id)) if (wanted.has(hash)) seqs.set(hash, seq);
  return { session: found.id, seqs };
}

/**
 * A conversation without what the home has of it: the drafts that it begins with, where their entries are those of the
 * exported session, and all records that only the export wrote. Pure.
 */
export function withBase(conversation: ConversationPlan, { session, seqs }: Exported): ConversationPlan {
  const { exported, spine, settled, asides } = conversation;
  if (exported === undefined) return conversation;
  const known = knownOf(spine, { exported, seqs });
  const places = new Map<string, Seq>();
  for (const { key = '' } of spine.slice(0, known)) places.set(key, seqs.get(exported.get(key) ?? '') ?? 0);
  const cut = Math.max(...places.values());
  if (known === 0) return conversation;
  return {
    ...conversation,
    base: { session, cut, places },
    spine: spine.slice(known),
    settled: Math.max(0, settled - known),
    asides: asides
      .filter(({ draft }) => !exported.has(draft.key ?? ''))
      .map(({ draft, after }) => ({ draft, after: Math.max(0, after - known) })),
  };
}

/**
 * How many drafts a conversation begins with whose entries are there. Where something follows, a call without a result ends
 * them: nothing can be forked behind it.
 */
function knownOf(
  spine: readonly Draft[],
  { exported, seqs }: { readonly exported: ReadonlyMap<string, string> } & Pick<Exported, 'seqs'>,
): number {
  if (spine.every(({ key = '' }) => seqs.has(exported.get(key) ?? ''))) return spine.length;
  let message = { at: 0, hash: '' };
  for (const [at, { key = '', kind }] of spine.entries()) {
    const hash = exported.get(key) ?? '';
    if (!seqs.has(hash)) return at;
    // The record of a result that the tape lacks was made of the message.
    if (kind === 'tool-result' && hash === message.hash) return message.at;
    if (kind === 'message') message = { at, hash };
  }
  return spine.length;
}
