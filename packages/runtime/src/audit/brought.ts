import type { SessionInfo, TapeStore } from '@tapedeck/tape';
import { inProcess } from '../store-of.ts';
import { carriedModel } from '../terms/carried-model.ts';
import { originOf } from '../terms/terms.ts';
import { openBatch } from '../tools/open-batch.ts';

/** A fact of a session, and what of it there is. */
interface Said {
  readonly session: string;
  readonly text: string;
}

/** A tool call without a result. */
interface LeftCall {
  readonly session: string;
  readonly toolCallId: string;
  readonly tool: string;
  readonly approved: boolean;
}

/**
 * What the tapes of a home would make a deck do: the models that sessions name, their instructions, calls without a
 * result, items in inboxes, and the repositories of worktrees.
 */
export interface Brought {
  readonly sessions: number;
  /** How many of them were read: the newest. */
  readonly read: number;
  readonly models: readonly { readonly name: string; readonly sessions: number }[];
  readonly instructions: readonly Said[];
  readonly calls: readonly LeftCall[];
  readonly inbox: readonly { readonly session: string; readonly items: number; readonly approvals: number }[];
  readonly worktrees: readonly Said[];
}

/** How many sessions are read. */
const readMax = 1_000;

/** Reads what the tapes of a home would make a deck do. Reads the newest sessions only. */
export async function broughtBy(store: TapeStore): Promise<Brought> {
  const infos = await store.sessions.list({ all: true, allRealms: true, limit: readMax });
  const models = new Map<string, number>();
  const instructions: Said[] = [];
  const calls: LeftCall[] = [];
  const inbox: { session: string; items: number; approvals: number }[] = [];
  const worktrees: Said[] = [];
  for (const info of infos) {
    const { session } = info;
    const { settings, worktree } = await originOf(store, info);
    const model = await carriedModel(store, info.id);
    if (model !== undefined) models.set(model, (models.get(model) ?? 0) + 1);
    if (settings.instructions !== undefined) instructions.push({ session, text: settings.instructions });
    if (worktree !== undefined) worktrees.push({ session, text: worktree.repository });
    for (const { toolCallId, toolName, decision } of await openBatch(store, info))
      calls.push({ session, toolCallId, tool: toolName, approved: decision?.approved === true });
    const waiting = await inboxOf(store, info);
    if (waiting.items > 0) inbox.push({ session, ...waiting });
  }
  return {
    sessions: countOf(store, infos.length),
    read: infos.length,
    models: [...models].map(([name, sessions]) => ({ name, sessions })),
    instructions,
    calls,
    inbox,
    worktrees,
  };
}

async function inboxOf(store: TapeStore, { id }: SessionInfo): Promise<{ items: number; approvals: number }> {
  const items = await store.inbox.list(id);
  const approvals = items.filter(
    ({ body }) =>
      body.type === 'answer' &&
      typeof body.answer === 'object' &&
      body.answer !== null &&
      'approved' in body.answer &&
      body.answer.approved === true,
  );
  return { items: items.length, approvals: approvals.length };
}

/** The number of all sessions, when not all of them were read. */
function countOf(store: TapeStore, read: number): number {
  if (read < readMax) return read;
  return inProcess(store)?.count().sessions ?? read;
}
