import type { HomeStore } from '@tapedeck/tape';
import { continuedFrom } from '../imported/copy-notes.ts';
import { sessionWithId } from '../imported/of-realm.ts';
import { sessionOf } from '../imported/origins.ts';
import type { ImportPlan } from '../plan/plan.ts';

/**
 * A plan of a transcript that an export wrote, as one of a session that is here: where the exported one is not, of the nearest from
 * which that was forked, whose entries it has, too. One that was imported before stays one of the same session.
 */
export function withExportHere(store: HomeStore, plan: ImportPlan): ImportPlan {
  const { exportOf, exportFrom = [] } = plan;
  if (exportOf === undefined || exportFrom.length === 0) return plan;
  const here = [exportOf, ...exportFrom].filter((one) => sessionWithId(store, one) !== undefined);
  const info = sessionOf(store, plan);
  const before = info && continuedFrom(store, info.id);
  const found = here.find((one) => one === before) ?? here[0];
  return found === undefined || found === exportOf ? plan : { ...plan, exportOf: found };
}
