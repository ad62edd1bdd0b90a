import type { Entry, HomeStore, Json, SessionInfo } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/**
 * The whole of an output of which an import shows the beginning, since the program that wrote it kept it in a file: a reference
 * to its bytes, from the session or one from which it comes. Undefined where no import found the file.
 */
export function savedOutput(store: HomeStore, { session, meta }: Entry): Json | undefined {
  if (typeof meta.savedAs !== 'string') return undefined;
  for (let at: SessionInfo | undefined = store.sessions.find(session); at !== undefined; ) {
    let found: Json | undefined;
    for (const { payload } of store.entries.read(at.id, { own: true, kind: 'x-claude-code' }))
      if (isObject(payload) && payload.type === 'tool-result-file' && payload.file === meta.savedAs)
        found = payload.content;
    if (found !== undefined) return found;
    at = at.parentId === undefined ? undefined : store.sessions.find(at.parentId);
  }
  return undefined;
}
