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
import { wasInterrupted } from '../run/interrupted.ts';
import { factsOf } from '../terms/terms.ts';
import { openBatch } from '../tools/open-batch.ts';
import { closeOrphans } from '../tools/orphans.ts';
import { releaseLeftWorktrees } from '../workspace/release.ts';
import { deliver, wake } from './deliver.ts';
import type { DelegationParts, Delegator } from './parts.ts';

export interface RecoverOptions {
  /** Only the children, grandchildren and so on of this session, and itself. */
  readonly session?: string;
  /** End unfinished children instead of going on with them; their parents are told that they were aborted. */
  readonly abort?: boolean;
  /** What to go on with, instead of the model that each child had. */
  readonly model?: ModelSpec;
  /** How long to wait for a parent that is being written to take a merge in, in milliseconds (default 10,000). */
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
}

/** The fields of `RecoverOptions`. */
export const recoverFields: Fields<RecoverOptions> = {
  session: true,
  abort: true,
  model: true,
  waitMs: true,
  signal: true,
};

/** What became of delegated children, by name. */
export interface RecoveryReport {
  /** Went on from their last recorded step, to an end; parents, too, that a result was to start. */
  readonly resumed: readonly string[];
  readonly aborted: readonly string[];
  /** Merged into their parents, those that had ended before too. */
  readonly merged: readonly string[];
  /** Have a call that a person or a client has to answer: then they go on. */
  readonly waiting: readonly string[];
  /** Somebody else is running them, or writes their parent and has their merge in its inbox. */
  readonly busy: readonly string[];
  /** Could not be gone on with or merged, and why. */
  readonly failed: readonly { readonly session: string; readonly message: string }[];
}

type Report = { -readonly [name in keyof RecoveryReport]: RecoveryReport[name][number][] };

/**
 * Takes care of delegated children that nobody runs any more, because the process that did was killed: each is gone on
 * with, or aborted, and each that has ended is merged into its parent, once (R11). Children come before their parents. An
 * answer that is recorded is never asked for again, and a call that may have been run is not run again, unless its tool is
 * safe to repeat. Parents that results were to start are run in the end.
 * @throws SESSION_NO_MODEL, before anything is changed, when a child must go on and there is no model
 */
export async function recover(parts: DelegationParts, options: RecoverOptions = {}): Promise<RecoveryReport> {
  assertFields(options, recoverFields, 'recover');
  const { store, startedChildren } = parts;
  const scope = await inScope(store, options.session);
  const left = byDepth(scope.filter(({ info }) => isLeft(info)));
  if (options.abort !== true) await assertUsableModel(parts, left.flat(), options.model);
  const report: Report = { resumed: [], aborted: [], merged: [], waiting: [], busy: [], failed: [] };
  const held: SessionInfo[] = [];
  // All children of one call come to their ends before the call gets its result, and that before its session goes on.
  for (const found of left) {
    const [infos, under] = parted(found, ({ name }) => !startedChildren.has(name));
    report.busy.push(...under.map(({ name }) => name));
    // Until they are at home nobody else here brings them.
    const done = Promise.withResolvers<Record<string, never>>();
    for (const { name } of infos) startedChildren.set(name, { run: async () => {}, end: done.promise });
    const ended: SessionInfo[] = [];
    for (const info of infos)
      await attempt(report, info, async () => {
        options.signal?.throwIfAborted();
        const what = await end(parts, parts.child(info, { onUnmerged: 'keep' }), options);
        runPoint('recover/child-ended');
        if (what !== undefined) report[what].push(info.name);
        if (what !== 'waiting') ended.push(info);
      });
    for (const siblings of Map.groupBy(ended, ({ parentId }) => parentId).values()) {
      const deadline = performance.now() + (options.waitMs ?? 10_000);
      for (const info of siblings)
        await attempt(report, info, async () => {
          // What is aborted runs no call again.
          await settleParent(parts, info, {
            leaves: options.abort === true ? 'none' : 'half-spawned',
            ...options,
            deadline,
          });
          if (await bringHome(parts, info, { ...options, deadline })) report.merged.push(info.name);
          else held.push(info);
          runPoint('recover/child-merged');
        });
    }
    for (const { name } of infos) startedChildren.delete(name);
    done.resolve({});
  }
  await releaseLeftWorktrees(parts);
  for (const { id, name } of held) {
    const isHome = (await store.find(id))?.delivery !== undefined;
    report[isHome ? 'merged' : 'busy'].push(name);
  }
  if (options.abort !== true) await takeTurns(parts, scope, { options, report });
  return report;
}

function parted<T>(items: readonly T[], test: (item: T) => boolean): readonly [readonly T[], readonly T[]] {
  return [items.filter(test), items.filter((item) => !test(item))];
}

/** One child that cannot be helped must not keep the others from it. */
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
  /** When to give up waiting for those who write a parent, as of `performance.now()`. */
  readonly deadline: number;
}

/** Merges a child, as it stands now; false while a call of its parent waits for it that is still to be run again. */
async function bringHome(
  parts: DelegationParts,
  { id }: SessionInfo,
  { deadline, signal }: Patience,
): Promise<boolean> {
  const info = await parts.store.find(id);
  if (info === undefined) return true;
  const { merged } = await deliver(parts, info, {
    waitMs: Math.max(0, deadline - performance.now()),
    wakes: false,
    ...(signal !== undefined && { signal }),
  });
  return merged !== undefined;
}

/** A session, and how many sessions it goes back to. */
interface Placed {
  readonly info: SessionInfo;
  readonly depth: number;
}

/** A session and all that go back to it, or all of them. */
async function inScope(store: TapeStore, session: string | undefined): Promise<readonly Placed[]> {
  const all = await store.sessions({ all: true });
  const byId = new Map(all.map((info) => [info.id, info]));
  const lineOf = (info: SessionInfo): readonly string[] => {
    const line: string[] = [];
    for (let at: SessionInfo | undefined = info; at !== undefined; at = byId.get(at.parentId ?? ''))
      line.push(at.id);
    return line;
  };
  // Resolving, unlike finding, throws when there is no such session.
  if (session !== undefined) await store.resolve(session, 'head');
  const root = session === undefined ? undefined : (await store.find(session))?.id;
  return all
    .map((info) => ({ info, line: lineOf(info) }))
    .filter(({ line }) => root === undefined || line.includes(root))
    .map(({ info, line }) => ({ info, depth: line.length }));
}

/** Sessions by their depth, the deepest first. */
function byDepth(placed: readonly Placed[]): readonly (readonly SessionInfo[])[] {
  return [...Map.groupBy(placed, ({ depth }) => depth)]
    .sort(([a], [b]) => b - a)
    .map(([, found]) => found.map(({ info }) => info).sort((a, b) => a.createdAt - b.createdAt));
}

/** One that was merged and has been given more to do since is left behind like one that never was. */
function isLeft({ deliver: how, delivery, lifecycle, task }: SessionInfo): boolean {
  if (how === undefined || lifecycle !== 'active') return false;
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
      throw new SessionError(
        'SESSION_NO_MODEL',
        'cannot go on with unfinished children: no model was given',
        { data: { abortable: true } },
      );
    getModel((await resolveModel(spec, { env, store }))(''), info.name);
    return;
  }
}

/** Brings a child to its end, if it has not come to it. */
async function end(
  { store, newId, worker }: DelegationParts,
  child: Delegator,
  { abort = false, model, signal }: RecoverOptions,
): Promise<'resumed' | 'aborted' | 'waiting' | undefined> {
  const before = await child.info();
  if (isEnded(before)) return undefined;
  // What has come to its end needs no model to say so.
  if (!abort && (await endOnTape(store, await worker(child).facts(before))) === undefined) {
    try {
      const { finish } = await child.run(undefined, {
        unlessEnded: true,
        ...(model !== undefined && { model }),
        ...(signal !== undefined && { signal }),
      });
      return finish === 'waiting' ? 'waiting' : 'resumed';
    } catch (error) {
      // Its tape shows its end, or whoever ran it has come to it in the meantime.
      if ((error as { code?: unknown }).code === 'SESSION_ENDED') return undefined;
      throw error;
    }
  }
  const held = await hold(store, child.id, { owner: processOwner(newId()) });
  try {
    // Nobody ends it now but we; what the tape says of its end was true before anyone asked for another.
    const info = await child.info();
    if (isEnded(info)) return undefined;
    const reached = await endOnTape(store, await worker(child).facts(info));
    // Somebody has gone on with it meanwhile.
    if (reached === undefined && !abort) return undefined;
    await closeOrphans(store, child.id, { hold: held });
    if (reached === undefined) {
      const unbegun = (await openBatch(store, child.id)).map(({ toolCallId }) => toolCallId);
      const reason = 'aborted by recovery';
      await store.append(
        child.id,
        [note('run/aborted', { reason, ...(unbegun.length > 0 && { unbegun }) })],
        { lease: held.lease },
      );
      // Calls that waited for somebody are not going to be run.
      await closeOrphans(store, child.id, { hold: held });
    }
    await store.setTask(child.id, reached ?? 'aborted', { lease: held.lease });
    return reached === undefined ? 'aborted' : undefined;
  } finally {
    await held.release();
  }
}

/**
 * Runs the parents that results of children were to start (`merge+turn`), and that nobody runs: the message that starts them
 * is in their inbox, or the turn that it began was cut off.
 */
async function takeTurns(
  parts: DelegationParts,
  scope: readonly Placed[],
  { options: { model, signal }, report }: { options: RecoverOptions; report: Report },
): Promise<void> {
  const { store } = parts;
  const owners = new Set((await store.owners()).map(({ id }) => id));
  const parents = new Set(
    scope.flatMap(({ info }) => (info.deliver === 'merge+turn' ? [info.parentId ?? ''] : [])),
  );
  for (const id of parents) {
    const info = await store.find(id);
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
  if ((await store.inbox(id)).some(({ key }) => isNotice(key))) return true;
  if (!(await wasInterrupted(store, id))) return false;
  const messages = await Array.fromAsync(store.read(id, { own: true, kind: 'message', last: 50 }));
  const last = messages.findLast(({ payload, meta }) => isUser(payload) && meta.run !== undefined);
  return isNotice(last?.key?.replace(/^u:/, ''));
}

function isUser(payload: unknown): boolean {
  return typeof payload === 'object' && payload !== null && 'role' in payload && payload.role === 'user';
}
