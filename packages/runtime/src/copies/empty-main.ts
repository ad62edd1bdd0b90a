import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { isDeleted } from '@tapedeck/tape/internal';
import { isAgentOf, isUntouched } from '../imported/by-import.ts';
import { isOfImport } from '../imported/imported.ts';
import { keyOf } from '../imported/keys.ts';
import { mainOf, type Origins } from '../imported/origins.ts';
import { type ConversationPlan, type ImportPlan, isAside } from '../plan/plan.ts';
import { copiesIn } from './copies.ts';

/**
 * The session that an import made for the main conversation of a plan before any of that was here, for its subagents or for what
 * is beside it. Where the conversation is a fork by now, that takes its place: a session without a parent becomes none. Undefined
 * for one that shows anything, that a person did something with, or with a subagent, or that has what the plan lacks.
 */
export function emptyMainOf(store: HomeStore, plan: ImportPlan, origins: Origins): SessionInfo | undefined {
  const [main] = plan.conversations;
  const info = main === undefined || main.spine.length === 0 ? undefined : mainOf(store, plan, origins);
  if (main === undefined || info === undefined || info.parentId !== undefined) return undefined;
  const isEmpty = showsNothing(store, info.id, main) && isUntouched(store, info, isPlacedAnew);
  return isEmpty && isForkedFor(store, plan, info) ? info : undefined;
}

/** The session that has the main conversation of a plan, or a part of it. */
export function begunMainOf(store: HomeStore, plan: ImportPlan, origins: Origins): SessionInfo | undefined {
  const info = mainOf(store, plan, origins);
  return info === undefined || emptyMainOf(store, plan, origins) !== undefined ? undefined : info;
}

/** Whether a session has no more than records beside a conversation, all of which that has. */
function showsNothing(store: HomeStore, id: string, { asides }: ConversationPlan): boolean {
  // Nearly every session has a message.
  if ([...store.entries.read(id, { kind: 'message', limit: 1 })].length > 0) return false;
  const keys = new Set(asides.map(({ draft }) => draft.key));
  for (const entry of store.entries.read(id))
    if (isOfImport(entry) && !(isAside(entry) && keys.has(keyOf(entry)))) return false;
  return true;
}

/** Whether an import has put a session below another one, and puts it below what takes the place of that. */
function isPlacedAnew({ kind, link }: SessionInfo): boolean {
  return kind === 'subagent' || (link !== undefined && link.type !== 'moved');
}

/** Whether all that was forked from a session are subagents of a plan, which are forked anew. */
function isForkedFor(store: HomeStore, plan: ImportPlan, { id }: SessionInfo): boolean {
  return [...copiesIn(store).forksOf(id)].every((one) => {
    const fork = store.sessions.find(one);
    if (fork === undefined || isDeleted(fork)) return true;
    const mayHave = ({ kind }: SessionInfo) => kind === 'subagent';
    return (
      isAgentOf(store, plan, fork) && isUntouched(store, fork, mayHave) && isForkedFor(store, plan, fork)
    );
  });
}
