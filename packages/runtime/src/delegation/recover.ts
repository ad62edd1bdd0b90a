import { note, processOwner, type SessionInfo, type TapeStore } from '@tapedeck/tape';
import { runPoint } from '../crash-point.ts';
import { messageOf, SessionError } from '../errors.ts';
import { assertFields, type Fields } from '../fields.ts';
import { hold } from '../lease/hold.ts';
import { childIsBusy } from '../merge/merge.ts';
import { settleParent } from '../merge/settle-parent.ts';
import { isEnded } from '../merge/spawn-calls.ts';
import { getModel } from '../model/model.ts';
import { type ModelSpec, resolveModel } from '../model/spec.ts';
import { endOnTape } from '../run/end-on-tape.ts';
import { factsOf } from '../terms/terms.ts';
import { wasInterrupted } from '../tools/interrupted.ts';
import { openBatch } from '../tools/open-batch.ts';
import { closeOrphans, settleLeftovers } from '../tools/orphans.ts';
import { releaseLeftWorktrees } from '../workspace/release.ts';
import { deliver, wake } from './deliver.ts';
import type { DelegationParts, Delegator } from './parts.ts';

/** Options of `Deck.recover`. */
export interface RecoverOptions {
  /** Recover only this session and its descendants. */
  readonly session?: string;
  /** True: abort unfinished children instead of resuming them. Their parents receive the status `aborted`. */
  readonly abort?: boolean;
  /** The model to resume with, instead of each child's own. */
  readonly model?: ModelSpec;
  /** How long to wait for a busy parent to merge, in milliseconds (default 10,000). */
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
}

/** The fields of `RecoverOptions`. */
export const recoverFields: Fields<RecoverOptions> = {
  session: 'text',
  abort: 'flag',
  model: true,
  waitMs: 'duration',
  signal: 'signal',
};

/** The recovered sessions, by name. */
export interface RecoveryReport {
  /** Resumed from their last recorded step and ended; also parents that a result started. */
  readonly resumed: readonly string[];
  readonly aborted: readonly string[];
  /** Merged into their parents, including those that had already ended. */
  readonly merged: readonly string[];
  /** Wait until a user or client answers a call. */
  readonly waiting: readonly string[];
  /** Run by another process, or posted to the inbox of a parent that another process writes. */
  readonly busy: readonly string[];
  /** Could not be resumed or merged, and why. */
  readonly failed: readonly { readonly session: string; readonly message: string }[];
}

type Report = { -readonly [name in keyof RecoveryReport]: RecoveryReport[name][number][] };

/**
 * Recovers delegated children whose process was killed: resumes or aborts each, then merges each ended child
 * into its parent, once. Children come before their parents. A recorded answer is never requested again, and
 * a call that may have run is not run again unless its tool is safe to repeat. Finally runs the parents that
 * results were to start.
 * @throws SESSION_NO_MODEL, before anything is changed, when a child must be resumed and no model is
 *   configured
 */
export async function recover(parts: DelegationParts, options: RecoverOptions = {}): Promise<RecoveryReport> {
  assertFields(options, recoverFields, 'recover');
  const { store, startedChildren } = parts;
  const scope = await inScope(store, options.session);
  const left = byDepth(scope.filter(({ info }) => isLeft(info)));
  if (options.abort !== true) await assertUsableModel(parts, left.flat(), options.model);
  const report: Report = { resumed: [], aborted: [], merged: [], waiting: [], busy: [], failed: [] };
  const held: SessionInfo[] = [];
  // All children of a call end before the call gets its result, and the call gets it before its session
  // continues.
  for (const found of left) {
    const [infos, under] = parted(found, ({ name }) => !startedChildren.has(name));
    report.busy.push(...under.map(({ name }) => name));
    // An entry in startedChildren keeps other parts of this process from merging the children.
    const done = Promise.withResolvers<Record<string, never>>();
    for (const { name } of infos) startedChildren.set(name, { run: async () => {}, end: done.promise });
    const ended: SessionInfo[] = [];
    for (const info of infos)
      await attempt(report, info, async () => {
        options.signal?.throwIfAborted();
        const what = await end(parts, parts.child(info, { onUnmerged: 'keep' }), options);
        runPoint('recover/child-ended');
        if (what !== undefined) report[what].push(info.name);
        // The end of a child that only notifies has told its parent.
        if (what !== 'waiting' && info.deliver !== 'notify') ended.push(info);
      });
    for (const siblings of Map.groupBy(ended, ({ parentId }) => parentId).values()) {
      const deadline = performance.now() + (options.waitMs ?? 10_000);
      for (const info of siblings)
        await attempt(report, info, async () => {
          // An aborted session runs no call again.
          await settleParent(parts, info, {
            leaves: options.abort === true ? 'none' : 'half-spawned',
            ...options,
            deadline,
          });
          if (await merge(parts, info, { ...options, deadline })) report.merged.push(info.name);
          else held.push(info);
          runPoint('recover/child-merged');
        });
    }
    for (const { name } of infos) startedChildren.delete(name);
    done.resolve({});
  }
  await releaseLeftWorktrees(parts);
  for (const { id, name } of held) {
    const isMerged = (await store.sessions.find(id))?.delivery !== undefined;
    report[isMerged ? 'merged' : 'busy'].push(name);
  }
  if (options.abort !== true) await takeTurns(parts, scope, { options, report });
  return report;
}

function parted<T>(items: readonly T[], test: (item: T) => boolean): readonly [readonly T[], readonly T[]] {
  return [items.filter(test), items.filter((item) => !test(item))];
}

/** Reports the failure of one child, so that the others are recovered all the same. */
async function attempt(report: Report, info: SessionInfo, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    const { code } = error as { code?: unknown };
    const busy = code === 'SESSION_BUSY' || code === 'SESSION_MERGE_WAITING' || childIsBusy(error);
    if (busy) report.busy.push(info.name);
    else report.failed.push({ session: info.name, message: messageOf(error) });
  }
}

interface Patience extends RecoverOptions {
  /** When to stop waiting for a busy parent, as of `performance.now()`. */
  readonly deadline: number;
}

/** Merges a child in its current state. False while a repeatable call of its parent still waits for it. */
async function merge(
  parts: DelegationParts,
  { id }: SessionInfo,
  { deadline, signal }: Patience,
): Promise<boolean> {
  const info = await parts.store.sessions.find(id);
  if (info === undefined) return true;
  const { merged } = await deliver(parts, info, {
    waitMs: Math.max(0, deadline - performance.now()),
    wakes: false,
    ...(signal !== undefined && { signal }),
  });
  return merged !== undefined;
}

/** A session and the length of its line up to the root. */
interface Placed {
  readonly info: SessionInfo;
  readonly depth: number;
}

/** A session and its descendants, or all sessions. */
async function inScope(store: TapeStore, session: string | undefined): Promise<readonly Placed[]> {
  const all = await store.sessions.list({ all: true });
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

/** Sessions grouped by depth, the deepest first. */
function byDepth(placed: readonly Placed[]): readonly (readonly SessionInfo[])[] {
  return [...Map.groupBy(placed, ({ depth }) => depth)]
    .sort(([a], [b]) => b - a)
    .map(([, found]) => found.map(({ info }) => info).sort((a, b) => a.createdAt - b.createdAt));
}

/** Whether a child is unmerged, or was merged and has been given another task since. */
function isLeft({ deliver: how, delivery, lifecycle, task }: SessionInfo): boolean {
  if (how === undefined || lifecycle !== 'active') return false;
  if (how === 'notify') return task === undefined || task === 'running';
  return delivery === undefined || (delivery === 'merged' && task === 'running');
}

async function assertUsableModel(
  { store, config, env }: DelegationParts,
  left: readonly SessionInfo[],
  given: ModelSpec | undefined,
): Promise<void> {
  const spec = given ?? config.model;
  for (const info of left) {
    if (isEnded(info) || (await endOnTape(store, await factsOf(store, info))) !== undefined) continue;
    if (spec === undefined)
      throw new SessionError('SESSION_NO_MODEL', 'cannot resume unfinished children: no model was given', {
        data: { abortable: true },
      });
    getModel((await resolveModel(spec, { env, store }))(''), info.name);
    return;
  }
}

/** Resumes or aborts a child that has not ended. Undefined when it had already ended. */
async function end(
  { store, newId, worker }: DelegationParts,
  child: Delegator,
  { abort = false, model, signal }: RecoverOptions,
): Promise<'resumed' | 'aborted' | 'waiting' | undefined> {
  const before = await child.info();
  if (isEnded(before)) return undefined;
  // A child whose tape shows its end needs no model.
  if (!abort && (await endOnTape(store, await worker(child).facts(before))) === undefined) {
    try {
      const { finish } = await child.run(undefined, {
        unlessEnded: true,
        ...(model !== undefined && { model }),
        ...(signal !== undefined && { signal }),
      });
      return finish === 'waiting' ? 'waiting' : 'resumed';
    } catch (error) {
      // Its tape shows its end, or another process ended it meanwhile.
      if ((error as { code?: unknown }).code === 'SESSION_ENDED') return undefined;
      throw error;
    }
  }
  const held = await hold(store, child.id, { owner: processOwner(newId()) });
  try {
    // Read again under the lease. An end that the tape shows takes precedence over the requested abort.
    const info = await child.info();
    if (isEnded(info)) return undefined;
    const reached = await endOnTape(store, await worker(child).facts(info));
    // Another process has resumed it meanwhile.
    if (reached === undefined && !abort) return undefined;
    await settleLeftovers(store, child.id, held);
    await closeOrphans(store, child.id, { hold: held });
    if (reached === undefined) {
      const unbegun = (await openBatch(store, child.id)).map(({ toolCallId }) => toolCallId);
      const reason = 'aborted by recovery';
      await store.entries.append(
        child.id,
        [note('run/aborted', { reason, ...(unbegun.length > 0 && { unbegun }) })],
        { lease: held.lease },
      );
      // The abort also closes the calls that waited for an answer.
      await closeOrphans(store, child.id, { hold: held });
    }
    await store.sessions.update(child.id, { task: reached ?? 'aborted' }, { lease: held.lease });
    return reached === undefined ? 'aborted' : undefined;
  } finally {
    await held.release();
  }
}

/**
 * Runs the idle parents that results of children start (`merge+turn`): the message that starts them is in
 * their inbox, or the run that it started was interrupted.
 */
async function takeTurns(
  parts: DelegationParts,
  scope: readonly Placed[],
  { options: { model, signal }, report }: { options: RecoverOptions; report: Report },
): Promise<void> {
  const { store } = parts;
  const owners = new Set((await store.leases.list()).map(({ id }) => id));
  const parents = new Set(
    scope.flatMap(({ info }) => (info.deliver === 'merge+turn' ? [info.parentId ?? ''] : [])),
  );
  for (const id of parents) {
    const info = await store.sessions.find(id);
    if (info === undefined || owners.has(id) || !(await owesTurn(store, id))) continue;
    signal?.throwIfAborted();
    const run = { ...(model !== undefined && { model }), ...(signal !== undefined && { signal }) };
    await wake(parts, { parentId: id, parent: info.name }, run);
    await parts.worker(info).idle();
    if (!(await owesTurn(store, id))) report.resumed.push(info.name);
  }
}

async function owesTurn(store: TapeStore, id: string): Promise<boolean> {
  const isNotice = (key: string | undefined) => key?.startsWith('notify:') === true;
  if ((await store.inbox.list(id)).some(({ key }) => isNotice(key))) return true;
  if (!(await wasInterrupted(store, id))) return false;
  const messages = await Array.fromAsync(store.entries.read(id, { own: true, kind: 'message', last: 50 }));
  const last = messages.findLast(({ payload, meta }) => isUser(payload) && meta.run !== undefined);
  return isNotice(last?.key?.replace(/^u:/, ''));
}

function isUser(payload: unknown): boolean {
  return typeof payload === 'object' && payload !== null && 'role' in payload && payload.role === 'user';
}
