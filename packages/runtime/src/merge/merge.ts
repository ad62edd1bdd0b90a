/**
 * Merges of children into parents, from outside of a run. `merge.ts` merges, or leaves the merge in the inbox of a busy
 * parent and waits; `text.ts` writes summaries, choices and structured results; `settle-parent.ts` closes calls of a
 * parent whose process died; `spawn-calls.ts` and `answer-spawns.ts` give a waiting `delegate` call the results of its
 * children. Imports `config` and what lies below.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Merged,
  type MergeRequest,
  processOwner,
  type SessionInfo,
  TapeError,
  type TapeStore,
} from '@tapedeck/tape';
import { fieldsOf } from '@tapedeck/tape/store';
import type { Shared } from '../config/shared.ts';
import { SessionError } from '../errors.ts';
import { assertFields, type Fields, type KnownFields } from '../fields.ts';
import { drainInbox } from '../lease/drain.ts';
import { hold } from '../lease/hold.ts';
import { settleLeftovers } from '../lease/settle-leftovers.ts';
import { traceMerge } from '../telemetry/runs.ts';
import { isTraced } from '../telemetry/span.ts';
import type { SessionFacts } from '../terms/terms.ts';
import { closeOrphans } from '../tools/orphans.ts';
import { closeWorktree } from '../workspace/close.ts';
import { releaseWorktree } from '../workspace/release.ts';
import { earlierMerge } from './earlier.ts';
import { isEnded } from './spawn-calls.ts';
import { type TextOptions, writeText } from './text.ts';

/** Options of `Session.merge` and `Child.finish`. */
export interface MergeOptions extends Omit<MergeRequest, 'strategy' | 'usage' | 'asked'>, TextOptions {
  /** How long to wait for a busy parent to merge, in milliseconds. Default: no limit. */
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
}

const { child: _child, usage: _usage, asked: _asked, ...requestFields } = fieldsOf['lineage.merge'];

/** The fields of `MergeOptions`. */
export const mergeFields: Fields<MergeOptions> = {
  ...requestFields,
  strategy: ['result', 'summary', 'structured', 'pick', 'discard'],
  pick: 'list',
  model: true,
  signal: 'signal',
  waitMs: 'duration',
};

const { into: _into, ...withoutInto } = mergeFields;

/** The fields of a merge into a given session. */
export const mergeIntoFields: Fields<Omit<MergeOptions, 'into'>> = withoutInto;

/**
 * Checks the options of a merge.
 * @throws SESSION_BAD_INPUT
 */
export function assertMerge(options: MergeOptions, known: KnownFields, act: string): void {
  assertFields(options, known, act);
  if ((options.pick !== undefined) !== (options.strategy === 'pick'))
    throw new SessionError('SESSION_BAD_INPUT', `cannot ${act}: pick and strategy 'pick' require each other`);
}

/** What to do while a merge waits for a busy parent. */
export interface Waiting {
  /** Called about once a second. */
  readonly whileWaiting?: () => Promise<void>;
}

const pollMs = 50;

const pollsPerLook = 20;

/**
 * Merges a child into its parent. While the parent is busy or has open calls, it posts the merge to the
 * parent's inbox and waits until it is done; it also tries to do it itself, in case the owner dies. The
 * changes in the child's worktree are recorded before the merge, and the worktree is removed after it.
 * @throws SESSION_MERGE_WAITING after `waitMs`: the merge is in the inbox and follows later; the errors of
 *   `writeText` and `closeWorktree`
 */
export async function mergeChild(
  parts: Shared,
  child: SessionFacts,
  { waitMs = Number.POSITIVE_INFINITY, signal, whileWaiting, ...options }: MergeOptions & Waiting = {},
): Promise<Merged> {
  const { store } = parts;
  const { info, origin } = child;
  await settleChild(store, info);
  if (origin.worktree !== undefined) await closeWorktree(parts, info.id, worktreeOptions(options));
  const merged =
    (await repeated(store, info, options)) ??
    (await mergeOrPost(store, info, {
      request: await requestOf(parts, child, { ...options, ...(signal !== undefined && { signal }) }),
      waitMs,
      signal,
      whileWaiting,
    }));
  if (origin.worktree !== undefined) await releaseWorktree(parts, info.id);
  await traceMerges(store, [info], [merged]);
  return merged;
}

/** The options of a merge that decide how much of a worktree is recorded. */
function worktreeOptions({
  strategy,
  force,
}: Pick<MergeOptions, 'strategy' | 'force'>): Pick<MergeRequest, 'strategy' | 'force'> {
  return {
    ...(typeof strategy === 'string' && { strategy }),
    ...(force !== undefined && { force }),
  };
}

async function mergeOrPost(
  store: TapeStore,
  child: SessionInfo,
  {
    request,
    waitMs,
    signal,
    whileWaiting,
  }: {
    readonly request: MergeRequest;
    readonly waitMs: number;
    readonly signal: AbortSignal | undefined;
    readonly whileWaiting: Waiting['whileWaiting'];
  },
): Promise<Merged> {
  let posted: string | undefined;
  const deadline = performance.now() + waitMs;
  for (let polls = 1; ; polls += 1) {
    signal?.throwIfAborted();
    if (polls % pollsPerLook === 0) await whileWaiting?.();
    try {
      // After the owner has merged, this merge returns the same receipt.
      if (posted === undefined || !(await waiting(store, child, posted, request)))
        return await store.lineage.merge(child.id, request);
    } catch (error) {
      if (!parentIsBusy(error)) throw error;
      posted ??= (await postMerge(store, child, request)).id;
    }
    if (performance.now() >= deadline)
      throw new SessionError(
        'SESSION_MERGE_WAITING',
        `cannot merge '${child.session}' yet: its parent is busy or has open calls`,
        {
          data: { child: child.session, queued: posted },
        },
      );
    await sleep(Math.min(pollMs, Math.max(1, deadline - performance.now())), undefined, { signal });
  }
}

/**
 * Merges children in one transaction, all or none, in the given order.
 * @throws SESSION_MERGE_WAITING when the parent stays busy for `waitMs`; nothing is merged then
 */
export async function mergeChildren(
  parts: Shared,
  children: readonly SessionFacts[],
  { waitMs = Number.POSITIVE_INFINITY, signal, ...options }: MergeOptions = {},
): Promise<readonly Merged[]> {
  const { store } = parts;
  const drafts: (MergeRequest & { child: string })[] = [];
  for (const child of children) {
    const { info, origin } = child;
    await settleChild(store, info);
    if (origin.worktree !== undefined) await closeWorktree(parts, info.id, worktreeOptions(options));
    const done = await repeated(store, info, options);
    const request =
      done === undefined
        ? await requestOf(parts, child, { ...options, ...(signal !== undefined && { signal }) })
        : {};
    drafts.push({ ...request, child: info.id });
  }
  for (const deadline = performance.now() + waitMs; ; ) {
    signal?.throwIfAborted();
    try {
      const merged = await store.lineage.merge(drafts);
      for (const { info, origin } of children)
        if (origin.worktree !== undefined) await releaseWorktree(parts, info.id);
      const infos = children.map(({ info }) => info);
      await traceMerges(store, infos, merged);
      return merged;
    } catch (error) {
      if (!parentIsBusy(error)) throw error;
    }
    if (performance.now() >= deadline)
      throw new SessionError(
        'SESSION_MERGE_WAITING',
        `cannot merge ${children.length} children yet: their parent is busy or has open calls`,
        { data: { children: children.map(({ info }) => info.session) } },
      );
    await sleep(pollMs, undefined, { signal });
  }
}

/** Gives the merges of one act a span. One of which this is only the receipt has had its own. */
async function traceMerges(
  store: TapeStore,
  children: readonly SessionInfo[],
  merged: readonly Merged[],
): Promise<void> {
  const [first] = merged;
  if (first === undefined || !isTraced()) return;
  const made = children.filter((_, i) => merged[i]?.repeated === false).map(({ id }) => id);
  await traceMerge((await store.sessions.find(first.parent))?.id, made);
}

/** The receipt of an earlier, equal merge. */
async function repeated(
  store: TapeStore,
  { id, delivery }: SessionInfo,
  { strategy, pick: _, model: __, ...request }: Omit<MergeOptions, 'waitMs' | 'signal'>,
): Promise<Merged | undefined> {
  if (delivery === undefined) return undefined;
  return await earlierMerge(store, id, { ...request, ...(typeof strategy === 'string' && { strategy }) });
}

async function requestOf(
  parts: Shared,
  child: SessionFacts,
  { strategy, pick, model, signal, ...request }: Omit<MergeOptions, 'waitMs'>,
): Promise<MergeRequest> {
  const named = typeof strategy === 'string' ? { strategy } : {};
  if (request.text !== undefined || strategy === undefined) return { ...request, ...named };
  const written = await writeText(parts, child, {
    strategy,
    ...(pick !== undefined && { pick }),
    ...(model !== undefined && { model }),
    ...(signal !== undefined && { signal }),
  });
  return { ...request, ...named, ...written };
}

/**
 * Gives results to the calls that an abort or a time limit left open in a child: they will not run. Records what
 * was saved of an answer whose process died, so that the merge has it.
 */
export async function settleChild(store: TapeStore, info: SessionInfo): Promise<void> {
  const why = info.settled === info.head ? undefined : endedBy[info.task ?? ''];
  // The run that ended a task has recorded all of its answer.
  const hasLeftovers = !isEnded(info) && (await isLeftInAnswer(store, info.id));
  if (why === undefined && !hasLeftovers) return;
  const held = await hold(store, info.id, { owner: processOwner(`merge:${info.id}`) });
  try {
    await settleLeftovers(store, info.id, held);
    await closeOrphans(store, info.id, { hold: held, ...(why !== undefined && { why }) });
  } finally {
    await held.release();
  }
}

/**
 * Whether calls without a result do not keep a child from its merge or discard: it has none, or its task was ended, and they get
 * results with it.
 */
export function isSettled({ settled, head, task }: SessionInfo): boolean {
  return settled === head || endedBy[task ?? ''] !== undefined;
}

/** Whether a process died in the middle of an answer. While one writes the session, the answer goes on. */
async function isLeftInAnswer(store: TapeStore, id: string): Promise<boolean> {
  if ((await store.live.read(id)).length === 0) return false;
  return !(await store.leases.list()).some((owner) => owner.id === id);
}

const endedBy: Readonly<Record<string, string>> = {
  aborted: 'aborted by parent',
  halted: 'its time budget ran out',
};

/** Whether the parent, not the child, blocks the merge: it is busy, or it has open calls. */
function parentIsBusy(error: unknown): boolean {
  if (!(error instanceof TapeError) || error.data.child !== undefined) return false;
  return error.code === 'TAPE_BUSY' || error.code === 'TAPE_UNSETTLED';
}

/** Whether the child blocks the merge: a process is still writing it. */
export function childIsBusy(error: unknown): boolean {
  return error instanceof TapeError && error.code === 'TAPE_BUSY' && error.data.child !== undefined;
}

/** Posts a merge to the parent's inbox. The process that writes the parent does it at a settled point. */
export async function postMerge(
  store: TapeStore,
  child: SessionInfo,
  request: MergeRequest,
): Promise<{ id: string }> {
  // Read the row again: settling the child or closing its worktree may have appended entries.
  const { id, headHash } = (await store.sessions.find(child.id)) ?? child;
  const key = `merge:${id}:${headHash}`;
  const parent = targetOf(child, request);
  try {
    const body = { type: 'merge', draft: { ...request, child: id } } as const;
    return await store.inbox.post(parent, { body, source: 'agent', key });
  } catch (error) {
    if (!(error instanceof TapeError) || error.code !== 'TAPE_KEY_CONFLICT') throw error;
    // The merge is posted already, with other options. It is done once, and all callers get its receipt.
    const waits = (await store.inbox.list(parent)).find((item) => item.key === key);
    return { id: waits?.id ?? '' };
  }
}

/** Whether the posted merge is still in the inbox, after draining the inbox if it has no owner. */
async function waiting(
  store: TapeStore,
  child: SessionInfo,
  id: string,
  request: MergeRequest,
): Promise<boolean> {
  const parent = targetOf(child, request);
  await drainInbox(store, parent);
  return (await store.inbox.list(parent)).some((item) => item.id === id);
}

function targetOf({ id, parentId }: SessionInfo, { into }: MergeRequest): string {
  return into ?? parentId ?? id;
}
