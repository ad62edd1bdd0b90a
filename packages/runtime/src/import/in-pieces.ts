import type { Draft, HomeStore } from '@tapedeck/tape';
import type { OnProgress } from '@tapedeck/tape/store';
import { releaseBehind, savesMemory } from '../lines/collect.ts';
import { LaterDraft, wholeDraft } from '../plan/later-draft.ts';
import { bothOf, type Wrote, wroteOf } from './append-drafts.ts';
import { discardStaged } from './discard-staged.ts';
import { ChangedMeanwhile } from './unless-changed.ts';

/** Drafts of a new session, and their bytes, that are written in one transaction, before all of them become visible. */
const chunkMax = { drafts: 500, bytes: 4 * 1024 * 1024 };

/** What is in memory for longer than V8's young generation lasts is garbage of the old one, which is collected late. */
const briefBytes = 32 * 1024;

/** What became of a session that was written in pieces. */
export interface InPieces {
  /** The session, if it was begun: the same as that of another import which began at once with this one. */
  readonly id?: string;
  /** What this import wrote of it. */
  readonly wrote: Wrote;
  /** Why not all of it was written. */
  readonly error?: unknown;
}

/** Writes a new session without a parent, of which no more than a piece is in memory. It appears when all of it is written. */
export function createInPieces(
  store: HomeStore,
  session: string,
  {
    drafts,
    title,
    onAdded,
  }: {
    readonly drafts: readonly Draft[];
    readonly title: string | undefined;
    readonly onAdded: OnProgress | undefined;
  },
): InPieces {
  let id: string | undefined;
  let [wrote, done] = [wroteOf([]), 0];
  const became = () => ({ ...(id !== undefined && { id }), wrote });
  try {
    releaseBehind(drafts.length);
    // Nothing of an import that was killed is continued: its source may have changed since.
    id = store.imports.stage(session, { keys: [], ...(title !== undefined && { title }) }).id;
    const bytes = savesMemory(drafts.length) ? briefBytes : chunkMax.bytes;
    for (const chunk of chunksOf(drafts, { ...chunkMax, bytes })) {
      const { added } = store.imports.append(id, chunk);
      wrote = bothOf(wrote, wroteOf(added === 0 ? [] : chunk, added));
      done += chunk.length;
      onAdded?.({ done, total: drafts.length });
    }
    store.imports.publish([id]);
  } catch (error) {
    if (error instanceof ChangedMeanwhile && id !== undefined) error.staged.push(id);
    return { ...became(), error };
  }
  // What imports that were killed left under its name.
  discardStaged(store, () => store.imports.unfinished({ session }).map((left) => left.id));
  return became();
}

function* chunksOf(drafts: readonly Draft[], most: typeof chunkMax): Generator<readonly Draft[]> {
  let chunk: Draft[] = [];
  let bytes = 0;
  for (const draft of drafts) {
    chunk.push(wholeDraft(draft));
    bytes += draft instanceof LaterDraft ? draft.bytes : 0;
    if (chunk.length < most.drafts && bytes < most.bytes) continue;
    yield chunk;
    [chunk, bytes] = [[], 0];
  }
  if (chunk.length > 0) yield chunk;
}
