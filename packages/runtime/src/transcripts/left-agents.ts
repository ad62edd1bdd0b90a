import type { HomeStore } from '@tapedeck/tape';
import type { FoundFile } from '../discovery/index.ts';
import { showsCall } from '../edges/parent-session.ts';
import type { Reconciled } from '../import/reconciled.ts';
import { factsAt } from '../lines/index.ts';
import type { SourceTable } from '../sources/index.ts';
import type { Conversation } from './conversations.ts';
import { isRecorded } from './lacking.ts';

/**
 * The files of a conversation that lie beside another copy of it, where this one lacks them and was rewound to before the call of
 * a subagent: its own files do not say to which session that belongs now. Has those that are as they were when they were read, so
 * that nothing else of the other copy is taken.
 */
export function besideOther(
  store: HomeStore,
  { tool, session: main, files }: Conversation,
  { done, table }: { readonly done: readonly Reconciled[]; readonly table: SourceTable },
): readonly FoundFile[] {
  if (!done.some(({ session, rewound }) => rewound && hasLeftAgent(store, session))) return [];
  const seen = new Set(files.map(({ session }) => session));
  const found: FoundFile[] = [];
  for (const source of table.all) {
    const { path, session, role, project, first } = source;
    if (role === 'main' || source.tool !== tool.name || source.main !== main || seen.has(session)) continue;
    const facts = factsAt(path);
    if (facts === undefined) continue;
    const about = { ...(project !== undefined && { project }), ...(first !== undefined && { first }) };
    const file = { path, facts, tool, session, main, role, ...about };
    if (isRecorded(file, source)) found.push(file);
    seen.add(session);
  }
  return found;
}

/** Whether a session has a subagent whose call it shows no more. */
function hasLeftAgent(store: HomeStore, session: string): boolean {
  return store.sessions
    .list({ parent: session, all: true, deleted: false })
    .some(
      ({ kind, spawnCall }) =>
        kind === 'subagent' && spawnCall !== undefined && !showsCall(store, session, spawnCall),
    );
}
