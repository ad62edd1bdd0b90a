import { isDeepStrictEqual } from 'node:util';
import { type HomeStore, TapeError } from '@tapedeck/tape';
import { isDeleted } from '@tapedeck/tape/internal';
import type { LinkRequest, SessionLink } from '@tapedeck/tape/store';
import { resemblanceIn } from '../copies/resemblance.ts';
import { isRefusal } from './refusal.ts';

/** Called for each edge that no record names, once an import has made it. */
export type OnConcluded = () => void;

/** An edge to make, and what is called where it is a concluded one. */
type Linking = LinkRequest &
  (
    | { readonly derived?: false; readonly onConcluded?: undefined }
    | { readonly derived: true; readonly onConcluded: OnConcluded }
  );

/** Makes an edge, unless a person has moved the session, or has deleted one of the two. */
export function link(store: HomeStore, child: string, parent: string | null, linking: Linking): void {
  const { onConcluded, ...request } = linking;
  const info = store.sessions.find(child);
  const above = parent === null ? null : store.sessions.find(parent);
  if (info === undefined || isDeleted(info) || above === undefined || (above !== null && isDeleted(above)))
    return;
  const { id, link: placed } = info;
  if (placed?.type === 'moved' && placed.derived !== true) return;
  const { type, derived = false, evidence, call, seq } = request;
  const wanted = [above?.session ?? null, type, derived, evidence, call, seq];
  // Nearly always it is there: no transaction is needed then.
  if (placed !== undefined && isDeepStrictEqual(wanted, edgeOf(placed))) return;
  // What was concluded of it before is concluded anew.
  resemblanceIn(store).forget(id);
  try {
    store.lineage.link(id, above?.id ?? null, request);
    if (derived && placed?.derived !== true) onConcluded?.();
  } catch (error) {
    // What was moved by hand can be in the way.
    const isInTheWay = error instanceof TapeError && error.code === 'TAPE_CONFLICT';
    if (!isInTheWay && !isRefusal(error)) throw error;
  }
}

function edgeOf({ parent, type, derived, evidence, call, seq }: SessionLink): readonly unknown[] {
  return [parent ?? null, type, derived === true, evidence, call, seq];
}
