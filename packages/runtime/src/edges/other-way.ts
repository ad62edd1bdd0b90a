import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { isDeleted, treeParentOf } from '@tapedeck/tape/internal';
import { copiesIn } from '../copies/copies.ts';
import { resemblanceIn } from '../copies/resemblance.ts';
import { spineOf } from '../imported/change.ts';
import { resumedAs } from '../imported/copy-notes.ts';
import { importedIn } from '../imported/imported.ts';
import { isOf, sourceOf } from '../imported/origins.ts';
import { isStandIn } from '../plan/output.ts';
import type { ImportPlan } from '../plan/plan.ts';

/**
 * Whether a session is one of another file of its source, a copy of which went on elsewhere than the one that was read: it, or one
 * above it that has not all of it, shows something that this file lacks. What that other file says of it counts, too.
 */
export function isOfOtherWay(store: HomeStore, plan: ImportPlan, session: SessionInfo): boolean {
  const source = sourceOf(plan.format, plan.session);
  const seen = new Set<string>();
  for (let at: SessionInfo | undefined = session; at !== undefined && !seen.has(at.id); ) {
    if (copiesIn(store).sourceOf(at.id) !== source) return false;
    seen.add(at.id);
    const isIt = !isDeleted(at) && hasOther(store, plan, at);
    if (
      isIt &&
      (at === session || resemblanceIn(store).showing(session.id, [at.id], undefined) === undefined)
    )
      return true;
    at = store.sessions.find(treeParentOf(at).parentId ?? '');
  }
  return false;
}

/** Whether a session shows something of its source that a plan has nowhere. */
function hasOther(store: HomeStore, plan: ImportPlan, { id, base, session }: SessionInfo): boolean {
  const main = plan.conversations.find(({ kind }) => kind === 'main');
  const isMain = main !== undefined && isOf(store, id, { plan, conversation: main });
  // What it inherits may be there under other ids.
  const from = isMain && resumedAs(store, id) === undefined ? 0 : base;
  const keys = keysOf(plan);
  return spineOf(importedIn(store, session).shown).some(
    ({ seq, key }) => seq > from && !keys.has(key) && !isStandIn(key),
  );
}

/** The keys of all that a source has. */
const keysOfAll = new WeakMap<ImportPlan, ReadonlySet<string>>();

function keysOf(plan: ImportPlan): ReadonlySet<string> {
  const spines = plan.conversations.map(({ spine }) => spine);
  const known = keysOfAll.get(plan) ?? new Set(spines.flatMap((spine) => spine.map(({ key = '' }) => key)));
  keysOfAll.set(plan, known);
  return known;
}
