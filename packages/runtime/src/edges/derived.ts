import type { Draft, HomeStore } from '@tapedeck/tape';
import { copiesIn } from '../copies/copies.ts';
import { derivedKind } from '../imported/derived-edges.ts';
import { keyOf } from '../imported/keys.ts';
import type { DerivedEdge, ImportPlan } from '../plan/plan.ts';
import { appendBeside } from './beside.ts';
import { isBetween } from './edges.ts';
import type { OnConcluded } from './link.ts';

/**
 * Records the derived edges inside of the session of a conversation: each once, again when it changed, and as gone when
 * the source names the predecessor by now.
 */
export function recordDerived(
  store: HomeStore,
  session: string,
  { derived, onConcluded }: Pick<ImportPlan, 'derived'> & { readonly onConcluded: OnConcluded },
  conversation: string,
): void {
  const edges = derived.filter((edge) => !isBetween(edge) && edge.conversation === conversation);
  const there = new Map<string, { readonly text: string; readonly times: number }>();
  for (const entry of store.entries.read(session, { own: true, kind: derivedKind })) {
    const of = keyOf(entry).replace(/^derived:/, '');
    there.set(of, { text: JSON.stringify(entry.payload), times: (there.get(of)?.times ?? 0) + 1 });
  }
  const drafts: Draft[] = [];
  const say = (of: string, payload: Draft['payload']): void => {
    const before = there.get(of);
    if (before?.text === JSON.stringify(payload)) return;
    const key = `derived:${of}${before === undefined ? '' : `~again${before.times}`}`;
    drafts.push({ kind: derivedKind, payload, meta: { source: 'import' }, key });
  };
  for (const edge of edges) say(edge.of, payloadOf(edge));
  const now = new Set(edges.map(({ of }) => of));
  for (const of of there.keys()) if (!now.has(of)) say(of, { of, gone: true });
  if (drafts.length === 0) return;
  appendBeside(store, session, drafts);
  for (const { of } of edges) if (!there.has(of)) onConcluded();
  const id = store.sessions.find(session)?.id;
  // A copy may begin with what follows a lost parent.
  if (id !== undefined) copiesIn(store).wrote(id);
}

function payloadOf({ of, from, why, evidence }: DerivedEdge): { readonly [field: string]: string } {
  return { of, from, why, evidence };
}
