import {
  type Entry,
  isObject,
  type JsonObject,
  note,
  processOwner,
  type SessionInfo,
  type TapeStore,
  type Task,
  toolResult,
} from '@tapedeck/tape';
import { Child } from './child.ts';
import type { DeckParts } from './deck.ts';
import { outcomesJson } from './delegate-tool.ts';
import { deliver, isEnded } from './deliver.ts';
import { messageOf, SessionError } from './errors.ts';
import { type Hold, hold } from './hold.ts';
import { childIsBusy } from './merge.ts';
import { needModel } from './model.ts';
import { type ModelSpec, resolveModel } from './model-spec.ts';
import { openBatch } from './open-batch.ts';
import { closeOrphans } from './orphans.ts';
import { toldBy } from './outcome.ts';
import { forkTermsOf } from './settings.ts';
import { releaseLeftWorktrees } from './workspace-release.ts';

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

/** What became of delegated children, by name. */
export interface RecoveryReport {
  /** Went on from their last recorded step, to an end. */
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
 * safe to repeat.
 * @throws SESSION_NO_MODEL, before anything is changed, when a child must go on and there is no model
 */
export async function recover(parts: DeckParts, options: RecoverOptions = {}): Promise<RecoveryReport> {
  const { store, config, env } = parts;
  const left = await leftBehind(store, options.session);
  const spec = options.model ?? config.model;
  if (options.abort !== true && (await anyUnfinished(store, left.flat()))) {
    if (spec === undefined)
      throw new SessionError(
        'SESSION_NO_MODEL',
        'cannot go on with unfinished children: no model was given',
        {
          data: { abortable: true },
        },
      );
    needModel((await resolveModel(spec, { env, store }))(''), left[0]?.[0]?.name ?? '');
  }
  const report: Report = { resumed: [], aborted: [], merged: [], waiting: [], busy: [], failed: [] };
  // All children of one call come to their ends before the call gets its result, and that before its session goes on.
  for (const infos of left) {
    const ended: SessionInfo[] = [];
    for (const info of infos)
      await attempt(report, info, async () => {
        options.signal?.throwIfAborted();
        const what = await end(parts, new Child(parts, info, { onUnmerged: 'keep' }), options);
        if (what !== undefined) report[what].push(info.name);
        if (what !== 'waiting') ended.push(info);
      });
    for (const info of ended)
      await attempt(report, info, async () => {
        await settleParent(parts, info);
        await bringHome(parts, info, options);
        report.merged.push(info.name);
      });
  }
  await releaseLeftWorktrees(parts);
  return report;
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

/** Merges a child, as it stands now; one whose call has just got its result is left in the inbox, and taken from it. */
async function bringHome(
  parts: DeckParts,
  { id }: SessionInfo,
  { waitMs = 10_000, signal }: RecoverOptions,
): Promise<void> {
  const info = await parts.store.find(id);
  if (info === undefined) return;
  await deliver(parts, info, {
    waitMs,
    ...(signal !== undefined && { signal }),
    // The call of a child that it waited for has its result: what the merge tells is known.
    ...(info.deliver === 'tool-result' && (await isAnswered(parts.store, info)) && { context: false }),
  });
}

/** Whether the result of the call that asked for a child says what the child came to. */
async function isAnswered(store: TapeStore, { spawnCall, parentId, name }: SessionInfo): Promise<boolean> {
  if (spawnCall === undefined || parentId === undefined) return false;
  for await (const { payload } of store.read(parentId, { own: true, kind: 'tool-result' }))
    if (isObject(payload) && payload.toolCallId === spawnCall) return tellsOf(payload, name);
  return false;
}

function tellsOf({ output }: JsonObject, child: string): boolean {
  const value = isObject(output) ? output.value : undefined;
  const results = isObject(value) && Array.isArray(value.results) ? value.results : [];
  return results.some((one) => isObject(one) && one.session === child && one.status !== 'running');
}

/** Delegated children that are not merged yet, by their depth, the deepest first. */
async function leftBehind(
  store: TapeStore,
  session: string | undefined,
): Promise<readonly (readonly SessionInfo[])[]> {
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
  const left = all
    .filter(isLeft)
    .map((info) => ({ info, line: lineOf(info) }))
    .filter(({ line }) => root === undefined || line.includes(root));
  const byDepth = Map.groupBy(left, ({ line }) => line.length);
  return [...byDepth]
    .sort(([a], [b]) => b - a)
    .map(([, found]) => found.map(({ info }) => info).sort((a, b) => a.createdAt - b.createdAt));
}

/** One that was merged and has been given more to do since is left behind like one that never was. */
function isLeft({ deliver: how, delivery, lifecycle, task }: SessionInfo): boolean {
  if (how === undefined || lifecycle !== 'active') return false;
  return delivery === undefined || (delivery === 'merged' && task === 'running');
}

async function anyUnfinished(store: TapeStore, infos: readonly SessionInfo[]): Promise<boolean> {
  for (const info of infos)
    if (isUnfinished(info) && (await endOnTape(store, info)) === undefined) return true;
  return false;
}

const isUnfinished = ({ task }: SessionInfo): boolean => task === undefined || task === 'running';

/**
 * A parent that died inside a tool call cannot take a merge in before its calls have results: as its next run would give.
 * A call that waits for children gets what they came to, and none before all of them have ended.
 */
async function settleParent({ store, newId }: DeckParts, child: SessionInfo): Promise<void> {
  const parent = child.parentId === undefined ? undefined : await store.find(child.parentId);
  if (parent === undefined || parent.settled === parent.head) return;
  try {
    const held = await hold(store, parent.id, { owner: processOwner(newId()) });
    try {
      const awaited = await answerSpawns(store, parent, held);
      await closeOrphans(store, parent.id, { hold: held, keep: awaited });
    } finally {
      await held.release();
    }
  } catch (error) {
    // Somebody is running the parent: its calls are theirs, and the merge waits in its inbox.
    if ((error as { code?: unknown }).code !== 'SESSION_BUSY') throw error;
  }
}

/** Gives open calls the results of the children that they asked for; returns those that still wait for one. */
async function answerSpawns(
  store: TapeStore,
  parent: SessionInfo,
  { lease }: Hold,
): Promise<readonly string[]> {
  const open = await openBatch(store, parent.id);
  const children = await store.sessions({ parent: parent.id, all: true });
  const awaited: string[] = [];
  for (const call of open) {
    const own = children.filter(
      ({ spawnCall, deliver: how }) => spawnCall === call.toolCallId && how === 'tool-result',
    );
    if (own.length === 0) continue;
    if (!own.every(isEnded)) {
      awaited.push(call.toolCallId);
      continue;
    }
    const outcomes = await Promise.all(
      own.map(async (info) => {
        const { text, value } = await toldBy(store, info);
        const output = value === undefined || typeof value === 'string' ? {} : { output: value };
        return { session: info.name, status: info.task ?? 'completed', text, ...output };
      }),
    );
    const result = toolResult(call, { type: 'json', value: outcomesJson(outcomes) });
    await store.append(
      parent.id,
      [{ ...result, meta: { source: 'repair', paths: { read: [], write: [] } } }],
      { lease },
    );
  }
  return awaited;
}

/** Brings a child to its end, if it has not come to it. */
async function end(
  { store, newId }: DeckParts,
  child: Child,
  { abort = false, model, signal }: RecoverOptions,
): Promise<'resumed' | 'aborted' | 'waiting' | undefined> {
  const info = await child.info();
  if (!isUnfinished(info)) return undefined;
  const reached = await endOnTape(store, info);
  if (reached === undefined && !abort) {
    try {
      const { finish } = await child.run(undefined, {
        unlessEnded: true,
        ...(model !== undefined && { model }),
        ...(signal !== undefined && { signal }),
      });
      return finish === 'waiting' ? 'waiting' : 'resumed';
    } catch (error) {
      // Whoever ran it has come to its end in the meantime.
      if ((error as { code?: unknown }).code === 'SESSION_ENDED') return undefined;
      throw error;
    }
  }
  const held = await hold(store, child.id, { owner: processOwner(newId()) });
  try {
    await closeOrphans(store, child.id, { hold: held });
    // What the tape says of its end was true before anyone asked for another.
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
  } finally {
    await held.release();
  }
  return reached === undefined ? 'aborted' : undefined;
}

/**
 * The end that a child's own entries show, when its process died before it could record the task: asking its model again
 * would double an answer.
 */
async function endOnTape(store: TapeStore, info: SessionInfo): Promise<Task | undefined> {
  if (info.settled !== info.head) return undefined;
  let last: Entry | undefined;
  // That a worktree was made or recorded says nothing of the work.
  for await (const entry of store.read(info.id, { last: 4 }))
    if (entry.kind !== 'event' || entry.name?.startsWith('workspace/') !== true) last = entry;
  if (last === undefined || last.inherited) return undefined;
  if (last.kind === 'event') return endNotes[last.name ?? ''];
  if (last.kind === 'result' && last.meta.run !== undefined) return 'completed';
  // One that is to give its result in a form has not given it yet.
  if ((await forkTermsOf(store, info)).terms.output !== undefined) return undefined;
  const answered =
    last.kind === 'message' && (last.payload as { role?: unknown } | null)?.role === 'assistant';
  if (!answered || last.meta.run === undefined) return undefined;
  if (last.meta.partial === true) return 'aborted';
  return last.meta.finish === 'error' ? 'failed' : 'completed';
}

const endNotes: Readonly<Record<string, Task>> = {
  'run/aborted': 'aborted',
  'run/halted': 'halted',
  'run/error': 'failed',
};
