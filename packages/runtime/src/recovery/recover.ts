/**
 * Recovery: continues or aborts what a process left that died. `scope.ts` finds the sessions, `plan.ts` decides what to
 * do with each, `model.ts` chooses their models, `end.ts` continues or aborts one, `take-turns.ts` runs the parents
 * that results start, `quiet.ts` waits for their children, and `report.ts` says what was done. Imports `delegation`
 * and what lies below.
 */
import type { Ref, SessionInfo } from '@tapedeck/tape';
import { runPoint } from '../crash-point.ts';
import { continueWaiting } from '../delegation/continue.ts';
import { deliver } from '../delegation/deliver.ts';
import type { DelegationParts } from '../delegation/parts.ts';
import { settle } from '../delegation/settle.ts';
import { messageOf, SessionError } from '../errors.ts';
import { assertFields, type Fields } from '../fields.ts';
import { childIsBusy } from '../merge/merge.ts';
import { settleParent } from '../merge/settle-parent.ts';
import type { ModelSpec } from '../model/spec.ts';
import { awaitsChildren, isPending, openBatch } from '../tools/open-batch.ts';
import { releaseLeftWorktrees } from '../workspace/release.ts';
import { answerOrphans, resume, resumeRun } from './end.ts';
import { type Plan, plansFor } from './plan.ts';
import { untilQuiet } from './quiet.ts';
import { done, planned, type RecoveredSession } from './report.ts';
import { byDepth, inScope, type Placed, type Unusable, unfinishedIn } from './scope.ts';
import { takeTurns } from './take-turns.ts';

/** Options of `Deck.recover`. */
export interface RecoverOptions {
  /**
   * Recover this session and its descendants, inboxes included. By default: all delegated children that are
   * unfinished, all sessions whose process died during a run, and those with an approved call that waits for a process
   * with its tool.
   */
  readonly session?: Ref;
  /** True: abort what is unfinished instead of resuming it. Parents receive the status `aborted`. */
  readonly abort?: boolean;
  /** The model for sessions whose tapes record none, or one that cannot be used here. */
  readonly model?: ModelSpec;
  /** How long to wait for a busy parent to merge, in milliseconds (default 10,000). */
  readonly waitMs?: number;
  /** True: report what a recovery would do, and write nothing. */
  readonly dryRun?: boolean;
  readonly signal?: AbortSignal;
}

/** The fields of `RecoverOptions`. */
const recoverFields: Fields<RecoverOptions> = {
  session: 'text',
  abort: 'flag',
  model: true,
  waitMs: 'duration',
  dryRun: 'flag',
  signal: 'signal',
};

/**
 * The options of a recovery that was given a session, options or both. Pure.
 * @throws SESSION_BAD_INPUT for a second argument that is no options for a session
 */
export function recoverOptions(
  given: Ref | RecoverOptions = {},
  more?: Omit<RecoverOptions, 'session'>,
): RecoverOptions {
  if (more === undefined) return typeof given === 'string' ? { session: given } : given;
  const { session: _, ...known } = recoverFields;
  if (typeof more !== 'object' || more === null)
    throw new SessionError('SESSION_BAD_INPUT', 'cannot recover: the options must be an object');
  if (typeof given !== 'string')
    throw new SessionError(
      'SESSION_BAD_INPUT',
      'cannot recover: options that follow a session need its name or ULID before them',
    );
  assertFields(more, known, 'recover');
  return { ...more, session: given };
}

/** The recovered sessions, by name; of a dry run, those that would be. */
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
  /**
   * Could not be resumed or merged, and why; `code`: of the error of a model that cannot be used, or of a session that
   * cannot be read.
   */
  readonly failed: readonly { readonly session: string; readonly message: string; readonly code?: string }[];
  /** What was done with each, or would be, children before their parents. */
  readonly sessions: readonly RecoveredSession[];
  /** Present when nothing was written. */
  readonly dryRun?: true;
}

/** The reports on several realms as one. */
export function joinedReport(first: RecoveryReport, others: readonly RecoveryReport[]): RecoveryReport {
  const all = [first, ...others];
  return {
    ...first,
    resumed: all.flatMap(({ resumed }) => resumed),
    aborted: all.flatMap(({ aborted }) => aborted),
    merged: all.flatMap(({ merged }) => merged),
    waiting: all.flatMap(({ waiting }) => waiting),
    busy: all.flatMap(({ busy }) => busy),
    failed: all.flatMap(({ failed }) => failed),
    sessions: all.flatMap(({ sessions }) => sessions),
  };
}

type Names = Exclude<keyof RecoveryReport, 'dryRun'>;
type Report = { -readonly [name in Names]: RecoveryReport[name][number][] };

/**
 * Recovers sessions whose process was killed, the deepest first: resumes or aborts each, then merges each ended
 * delegated child into its parent, once. A recorded answer is never requested again, and a call that may have
 * run is not run again unless its tool is safe to repeat. Finally runs the parents that results were to start.
 * @throws TAPE_NO_SESSION; before anything is changed, the errors of `recoveryModel` for a session that must be
 *   resumed and has no usable model. When no session is named, one whose own recorded model cannot be used is
 *   reported as failed instead, and the others are recovered
 */
export async function recover(parts: DelegationParts, options: RecoverOptions = {}): Promise<RecoveryReport> {
  assertFields(options, recoverFields, 'recover');
  const { store, startedChildren } = parts;
  const scope = await inScope(store, options.session);
  const failed: Unusable[] = [];
  const found = await unfinishedIn(store, scope, { isNamed: options.session !== undefined, failed });
  const plans = await plansFor(parts, byDepth(found), { ...options, failed });
  if (options.dryRun === true) return { ...preview(parts, plans.flat()), failed };
  const report: Report = {
    resumed: [],
    aborted: [],
    merged: [],
    waiting: [],
    busy: [],
    failed: [...failed],
    sessions: [],
  };
  const held: SessionInfo[] = [];
  const aborting = new Map(
    plans.flat().flatMap((plan) => (plan.act === 'abort' ? [[plan.left.info.id, plan] as const] : [])),
  );
  const by = { options, report, aborting };
  // Calls of a parent that wait for answers block the merges of its children. It is aborted between their ends, which
  // the call that started them gets as its result, and their merges.
  const over = new Set<Plan>();
  const endParent = async ({ parentId = '' }: SessionInfo) => {
    const plan = aborting.get(parentId);
    if (plan === undefined || over.has(plan) || !plan.left.calls.some(isPending)) return;
    over.add(plan);
    await attempt(report, plan.left.info, async () => void (await finish(parts, plan, by)));
  };
  // All children of a call end before the call gets its result, and the call gets it before its session
  // continues.
  for (const group of plans) {
    const children = group.filter(({ why }) => why === 'task');
    const [mine, under] = parted(children, ({ left }) => !startedChildren.has(left.info.session));
    report.busy.push(...under.map(({ left }) => left.info.session));
    // An entry in startedChildren keeps other parts of this process from merging the children.
    const end = Promise.withResolvers<Record<string, never>>();
    for (const { left } of mine)
      startedChildren.set(left.info.session, { run: async () => {}, end: end.promise });
    const ended: SessionInfo[] = [];
    for (const plan of mine)
      await attempt(report, plan.left.info, async () => {
        const how = await finish(parts, plan, by);
        // The end of a child that only notifies has notified its parent.
        if (how !== 'waiting' && plan.left.info.deliver !== 'notify') ended.push(plan.left.info);
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
          await endParent(info);
          if (await merge(parts, info, { ...options, deadline })) report.merged.push(info.session);
          else held.push(info);
          runPoint('recover/child-merged');
        });
    }
    for (const { left } of mine) startedChildren.delete(left.info.session);
    end.resolve({});
    for (const plan of group)
      if (plan.why !== 'task' && !over.has(plan))
        await attempt(report, plan.left.info, async () => void (await finish(parts, plan, by)));
  }
  if (options.session !== undefined && options.abort !== true)
    for (const plan of await messagesLeft(parts, plans.flat(), {
      ...options,
      failed: report.failed,
    }))
      await attempt(report, plan.left.info, async () => void (await finish(parts, plan, by)));
  // A run that goes on can start children in the background.
  const resumed = plans.flat().filter(({ left }) => report.resumed.includes(left.info.session));
  await untilQuiet(
    parts,
    resumed.map(({ left }) => left.info),
    options.signal,
  );
  if (options.abort !== true) for (const { parentId = '' } of held) await continueWaiting(parts, parentId);
  await untilQuiet(parts, held, options.signal);
  await releaseLeftWorktrees(parts);
  for (const { id, session: name, parentId = '' } of held) {
    const isMerged = (await store.sessions.find(id))?.delivery !== undefined;
    // Its parent waits for a sibling of it.
    const waits = (await openBatch(store, parentId)).some(awaitsChildren);
    report[isMerged ? 'merged' : waits ? 'waiting' : 'busy'].push(name);
  }
  for (const plan of plans.flat()) {
    const { session: name } = plan.left.info;
    const act = report.busy.includes(name) ? 'leave' : report.resumed.includes(name) ? 'continue' : plan.act;
    report.sessions.push(await done(parts, plan.left, { act, model: plan.model }));
  }
  if (options.abort !== true) {
    for (const turn of await takeTurns(parts, scope, options)) {
      const { session } = turn;
      if (!report.resumed.includes(session)) report.resumed.push(session);
      report.sessions = [...report.sessions.filter((one) => one.session !== session), turn];
    }
  }
  return report;
}

/** Plans for the messages of children that had ended when the recovery began, and are merged now. */
async function messagesLeft(
  parts: DelegationParts,
  plans: readonly Plan[],
  options: RecoverOptions & { readonly failed: Unusable[] },
): Promise<readonly Plan[]> {
  const merged: Placed[] = [];
  for (const { why, act, left } of plans) {
    const info =
      why === 'task' && act === 'merge' ? await parts.store.sessions.find(left.info.id) : undefined;
    if (info !== undefined) merged.push({ info, depth: 0 });
  }
  const found = await unfinishedIn(parts.store, merged, { isNamed: true, failed: options.failed });
  return (await plansFor(parts, [found.filter(({ why }) => why === 'inbox')], options)).flat();
}

/** What a recovery acts on a session with. */
interface Finishing {
  readonly options: RecoverOptions;
  readonly report: Report;
  /** The plans of the sessions that it aborts, by id. */
  readonly aborting: ReadonlyMap<string, Plan>;
}

/** Resumes or aborts one session, or leaves it as it is, and reports which. */
async function finish(
  parts: DelegationParts,
  { act, why, left: { info }, spec }: Plan,
  { options: { abort = false, signal }, report, aborting }: Finishing,
): Promise<'waiting' | 'settled'> {
  signal?.throwIfAborted();
  if (act === 'leave') {
    report.busy.push(info.session);
    return 'waiting';
  }
  if (act === 'wait') {
    report.waiting.push(info.session);
    return 'waiting';
  }
  if (act === 'answer') {
    await answerOrphans(parts, info);
    return 'settled';
  }
  const how = abort
    ? await settle(parts, info, { abort: aborting.has(info.parentId ?? '') ? 'by parent' : 'by recovery' })
    : await (why === 'inbox' ? resumeRun : resume)(parts, info, {
        model: spec,
        signal,
        ...((why === 'children' || why === 'calls') && { waiting: true }),
      });
  runPoint('recover/child-ended');
  if (how !== undefined) report[how].push(info.session);
  return how === 'waiting' ? 'waiting' : 'settled';
}

function preview(parts: DelegationParts, plans: readonly Plan[]): RecoveryReport {
  const named = (test: (plan: Plan) => boolean) => plans.filter(test).map(({ left }) => left.info.session);
  return {
    resumed: named(({ act }) => act === 'continue'),
    aborted: named(({ act }) => act === 'abort'),
    merged: named(
      ({ act, why, left }) =>
        why === 'task' && act !== 'wait' && act !== 'leave' && left.info.deliver !== 'notify',
    ),
    waiting: named(({ act }) => act === 'wait'),
    busy: named(({ act }) => act === 'leave'),
    failed: [],
    sessions: plans.map((plan) => planned(parts, plan.left, plan)),
    dryRun: true,
  };
}

function parted<T>(items: readonly T[], test: (item: T) => boolean): readonly [readonly T[], readonly T[]] {
  return [items.filter(test), items.filter((item) => !test(item))];
}

/** Reports the failure of one session, so that the others are recovered all the same. */
async function attempt(report: Report, info: SessionInfo, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    const { code } = error as { code?: unknown };
    const busy = code === 'SESSION_BUSY' || code === 'SESSION_MERGE_WAITING' || childIsBusy(error);
    if (busy) report.busy.push(info.session);
    else report.failed.push({ session: info.session, message: messageOf(error) });
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
