import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { sourceOf } from '../imported/origins.ts';
import type { ImportPlan } from '../plan/plan.ts';
import { copiesIn } from './copies.ts';

/** The sessions of the branches of a source that take forks. */
export function branchesOf(
  store: HomeStore,
  { format, session }: Pick<ImportPlan, 'format' | 'session'>,
): readonly SessionInfo[] {
  const branches = copiesIn(store).tools.branchesOf(sourceOf(format, session));
  const infos = branches.flatMap(([id]) => store.sessions.find(id) ?? []);
  return infos.filter(({ lifecycle }) => lifecycle === 'active');
}
