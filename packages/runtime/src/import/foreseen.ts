import type { HomeStore } from '@tapedeck/tape';
import { refusalOf } from '../imported/forgotten.ts';
import { Origins } from '../imported/origins.ts';
import { OwnSessions } from '../imported/own-sessions.ts';
import type { ImportPlan } from '../plan/plan.ts';
import { withExportHere } from './export-here.ts';
import type { ReconcileOptions } from './reconcile.ts';
import { nothing, type Reconciled } from './reconciled.ts';

/**
 * Which sessions of a plan would take nothing of it, since its source was forgotten, or a person deleted them, by the rules by which
 * `reconcile` writes it. Writes nothing, and compares nothing.
 * @throws TAPE_EXISTS when a session has the name of `as` that is no import of this source
 */
export function foreseen(
  store: HomeStore,
  given: ImportPlan,
  { as, origins = new Origins(store) }: Pick<ReconcileOptions, 'as' | 'origins'> = {},
): readonly Reconciled[] {
  const plan = withExportHere(store, given);
  const forgotten = refusalOf(store, plan, { as, origins });
  const done = new Map<string, Reconciled>();
  for (const conversation of plan.conversations) {
    const { key, kind, name, parent } = conversation;
    const own = new OwnSessions(store, { plan, conversation, as, origins });
    const there = own.all();
    const above = kind === 'cleared' ? undefined : done.get(parent?.key ?? '')?.refused;
    const refused = own.refusal(there, above);
    const [session = name] = there;
    const one = { conversation: key, session, ...nothing, ...(refused !== undefined && { refused }) };
    done.set(key, forgotten === undefined ? one : { ...one, ...forgotten });
  }
  return [...done.values()];
}
