import type { Draft, HomeStore } from '@tapedeck/tape';
import type { OnProgress } from '@tapedeck/tape/store';
import { LaterDraft, wholeDraft } from '../plan/later-draft.ts';
import { type Reconciled, repairsIn } from './reconciled.ts';

/** Drafts of a new session, and their bytes, that are written in one transaction, before all of them become visible. */
const chunkMax = { drafts: 500, bytes: 4 * 1024 * 1024 };

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
): Omit<Reconciled, 'conversation' | 'session'> {
  // Nothing of an import that was killed is continued: its source may have changed since.
  const staged = store.imports.stage(session, { keys: [], ...(title !== undefined && { title }) });
  let [added, redacted, omitted] = [0, 0, 0];
  for (const chunk of chunksOf(drafts)) {
    store.imports.append(staged.id, chunk);
    const repairs = repairsIn(chunk);
    redacted += repairs.redacted;
    omitted += repairs.omitted;
    added += chunk.length;
    onAdded?.({ done: added, total: drafts.length });
  }
  store.imports.publish([staged.id]);
  return { created: true, added, rewound: false, redacted, omitted };
}

function* chunksOf(drafts: readonly Draft[]): Generator<readonly Draft[]> {
  let chunk: Draft[] = [];
  let bytes = 0;
  for (const draft of drafts) {
    chunk.push(wholeDraft(draft));
    bytes += draft instanceof LaterDraft ? draft.bytes : 0;
    if (chunk.length < chunkMax.drafts && bytes < chunkMax.bytes) continue;
    yield chunk;
    [chunk, bytes] = [[], 0];
  }
  if (chunk.length > 0) yield chunk;
}
