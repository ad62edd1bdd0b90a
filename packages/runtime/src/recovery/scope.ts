import { type SessionInfo, TapeError, type TapeStore } from '@tapedeck/tape';
import { isSummarizer } from '@tapedeck/tape/internal';
import { isInterrupted } from '../tools/interrupted.ts';
import { awaitsAnswer, awaitsChildren, awaitsTool, isOrphan, openBatch } from '../tools/open-batch.ts';

/**
 * Why a session is recovered. `task`: it is a delegated child without a merged result; `run`: its process died
 * during a run; `children`: a call waits for children; `inbox`: messages or answers wait in its inbox; `calls`: calls wait
 * for answers or, approved, for a process with their tools; `orphans`: calls of a run that is over have no result.
 */
export type RecoveryReason = 'task' | 'run' | 'children' | 'inbox' | 'calls' | 'orphans';

/** A session that cannot be read, or has no usable model. */
export interface Unusable {
  readonly session: string;
  readonly message: string;
  readonly code?: string;
}

/** A session to recover, and the length of its line up to the root. */
export interface Unfinished {
  readonly info: SessionInfo;
  readonly depth: number;
  readonly why: RecoveryReason;
}

/** A session and the length of its line up to the root. */
export interface Placed {
  readonly info: SessionInfo;
  readonly depth: number;
}

/**
 * A session and its descendants, or all sessions.
 * @throws TAPE_NO_SESSION
 */
export async function inScope(store: TapeStore, session: string | undefined): Promise<readonly Placed[]> {
  const all = await store.sessions.list({ all: true, allRealms: session !== undefined });
  const byId = new Map(all.map((info) => [info.id, info]));
  const lineOf = (info: SessionInfo): readonly string[] => {
    const line: string[] = [];
    for (let at: SessionInfo | undefined = info; at !== undefined; at = byId.get(at.parentId ?? ''))
      line.push(at.id);
    return line;
  };
  // Resolving, unlike finding, throws for an unknown session.
  if (session !== undefined) await store.entries.resolve(session, 'head');
  const root = session === undefined ? undefined : (await store.sessions.find(session))?.id;
  return all
    .map((info) => ({ info, line: lineOf(info) }))
    .filter(({ line }) => root === undefined || line.includes(root))
    .map(({ info, line }) => ({ info, depth: line.length }));
}

/**
 * The sessions of a scope that a recovery has to act on. `isNamed`: a person named the scope, so that its
 * inboxes are processed too, and what other processes run in it is reported. Without a name, messages that wait on an
 * idle session stay there: it was not necessarily a crash that left them. A session that cannot be read is added to
 * `failed`, and the others are recovered.
 */
export async function unfinishedIn(
  store: TapeStore,
  scope: readonly Placed[],
  { isNamed, failed }: { readonly isNamed: boolean; readonly failed: Unusable[] },
): Promise<readonly Unfinished[]> {
  const found: Unfinished[] = [];
  const owned = new Set(isNamed ? (await store.leases.list()).map(({ id }) => id) : []);
  for (const placed of scope) {
    const { info } = placed;
    // A person who names a session that a process runs learns that it is left to that process.
    try {
      const why = (await reasonOf(store, info, isNamed)) ?? (owned.has(info.id) ? 'run' : undefined);
      if (why !== undefined) found.push({ ...placed, why });
    } catch (error) {
      if (!(error instanceof TapeError) || error.code !== 'TAPE_CORRUPT') throw error;
      failed.push({ session: info.session, message: error.message, code: error.code });
    }
  }
  return found;
}

async function reasonOf(
  store: TapeStore,
  info: SessionInfo,
  isNamed: boolean,
): Promise<RecoveryReason | undefined> {
  if (info.lifecycle !== 'active' || isSummarizer(info)) return undefined;
  if (isLeft(info)) return 'task';
  if (await isInterrupted(store, info.id)) return 'run';
  const open = await openBatch(store, info);
  if (open.some(awaitsChildren)) return 'children';
  const inbox = isNamed ? await store.inbox.list(info.id) : [];
  if (inbox.some(({ body: { type } }) => type === 'input' || type === 'answer')) return 'inbox';
  // A person has approved it, and the process that has its tool was not there.
  if (open.some(awaitsTool)) return 'calls';
  if (!isNamed) return undefined;
  if (open.some(awaitsAnswer)) return 'calls';
  return open.some(isOrphan) ? 'orphans' : undefined;
}

/** Whether a child is unmerged, or was merged and has been given another task since. */
function isLeft({ deliver: how, delivery, task }: SessionInfo): boolean {
  if (how === undefined) return false;
  if (how === 'notify') return task === undefined || task === 'running';
  return delivery === undefined || (delivery === 'merged' && task === 'running');
}

/** Groups by depth, the deepest first: children come before their parents. */
export function byDepth(found: readonly Unfinished[]): readonly (readonly Unfinished[])[] {
  return [...Map.groupBy(found, ({ depth }) => depth)]
    .sort(([a], [b]) => b - a)
    .map(([, group]) => group.toSorted((a, b) => a.info.createdAt - b.info.createdAt));
}
