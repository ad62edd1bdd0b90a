import type { Draft, Entry, HomeStore } from '@tapedeck/tape';
import { commonOf } from '../imported/change.ts';
import { isOfImport, isSaid, type Shown } from '../imported/imported.ts';
import { keyOf } from '../imported/keys.ts';
import type { ConversationPlan } from '../plan/plan.ts';
import { behindKept, placed } from './placed.ts';

/** The session that a copy is forked from behind a compaction, what that shows from it on, and what the compaction keeps. */
export interface Behind {
  readonly session: string;
  readonly shown: readonly Shown[];
  readonly kept: readonly Entry[];
}

/**
 * How a copy is forked behind a compaction that follows own work: no draft can say that again. Undefined without such work.
 * @param shown what the session shows from the compaction on
 */
export function forkedBehind(store: HomeStore, session: string, shown: readonly Shown[]): Behind | undefined {
  const id = store.sessions.find(session)?.id;
  const [boundary] = shown;
  if (id === undefined || boundary === undefined) return undefined;
  const { seq, ref = seq } = boundary;
  const kept: Entry[] = [];
  let hasOwnWork = false;
  for (const entry of store.views.entries(session, { at: seq - 1, policy: 'full' })) {
    if (!isSaid(entry)) continue;
    hasOwnWork ||= entry.key === undefined || !isOfImport(entry);
    if (entry.seq >= ref) kept.push(entry);
  }
  return hasOwnWork ? { session: id, shown, kept } : undefined;
}

/**
 * A conversation without what it has in common with the session that it is forked from, up to its compaction and behind that;
 * undefined where that has another compaction.
 * @param at the place of the compaction
 */
export function behindOwnWork(
  conversation: ConversationPlan,
  at: number,
  { session, shown, kept, named }: Behind & { readonly named: (boundary: Draft) => Draft },
): ConversationPlan | undefined {
  const [boundary, ...rest] = conversation.spine.slice(at);
  if (boundary === undefined) return undefined;
  const isKept = (entry: Entry, { key = '', kind }: Partial<Draft> = {}) =>
    conversation.exported?.get(key) === entry.hash ||
    (entry.key !== undefined && kind === entry.kind && keyOf(entry) === key);
  const isRepeated = kept.every((entry, i) => isKept(entry, rest[i]));
  if (!isRepeated || (at > 0 && kept.length === 0)) return undefined;
  const spine = [named(boundary), ...rest.slice(kept.length)];
  const places = new Map(kept.map(({ seq }, i) => [rest[i]?.key ?? '', seq]));
  const [first] = places.keys();
  const keeps = new Map(conversation.keeps);
  if (first !== undefined) keeps.set(boundary.key ?? '', first);
  const whole = { ...conversation, spine, keeps };
  let same = commonOf({ ...whole, base: { session, cut: (shown[0]?.seq ?? 1) - 1, places } }, shown);
  // Between a call and its last result nothing can be cut.
  while (same > 0 && [spine[same], shown[same]].some((next) => next?.kind === 'tool-result')) same -= 1;
  const last = shown[same - 1];
  if (last === undefined) return undefined;
  for (const [i, { key = '' }] of spine.slice(0, same).entries()) places.set(key, shown[i]?.seq ?? 0);
  return {
    ...placed(whole, (after) => Math.max(0, behindKept(after - at, kept.length) - same)),
    ...{ spine: spine.slice(same), base: { session, cut: last.seq, places } },
  };
}
