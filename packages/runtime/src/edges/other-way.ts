import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { isDeleted, treeParentOf } from '@tapedeck/tape/internal';
import { copiesIn } from '../copies/copies.ts';
import { resemblanceIn } from '../copies/resemblance.ts';
import { spineOf } from '../imported/change.ts';
import { resumedAs } from '../imported/copy-notes.ts';
import { importedIn } from '../imported/imported.ts';
import { isOf, sourceOf } from '../imported/origins.ts';
import { keysOf } from '../plan/keys-of.ts';
import { isStandIn } from '../plan/output.ts';
import type { ImportPlan } from '../plan/plan.ts';

/**
 * Whether a session is of another file of its source, a copy that went on in another way than the one that was read, which does not
 * say what becomes of it then: it, or one above it that does not show all of it, shows something that this file lacks.
 */
export function isOfOtherWay(store: HomeStore, plan: ImportPlan, session: SessionInfo): boolean {
  const source = sourceOf(plan.format, plan.session);
  const seen = new Set<string>();
  for (let at: SessionInfo | undefined = session; at !== undefined && !seen.has(at.id); ) {
    if (copiesIn(store).sourceOf(at.id) !== source) return false;
    seen.add(at.id);
    const { id } = at;
    const hasIt = () => id !== session.id && resemblanceIn(store).showing(session.id, [id], undefined);
    if (!isDeleted(at) && hasOther(store, plan, at) && !hasIt()) return true;
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
