import { type Entry, note, processOwner, type SessionInfo, type TapeStore, type Task } from '@tapedeck/tape';
import { Child } from './child.ts';
import type { DeckParts } from './deck.ts';
import { messageOf, SessionError } from './errors.ts';
import { hold } from './hold.ts';
import { childIsBusy } from './merge.ts';
import { needModel } from './model.ts';
import { type ModelSpec, resolveModel } from './model-spec.ts';
import { closeOrphans } from './orphans.ts';
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
  if (options.abort !== true && (await anyUnfinished(store, left))) {
    if (spec === undefined)
      throw new SessionError(
        'SESSION_NO_MODEL',
        'cannot go on with unfinished children: no model was given',
        {
          data: { abortable: true },
        },
      );
    needModel((await resolveModel(spec, { env, store }))(''), left[0]?.name ?? '');
  }
  const report: Report = { resumed: [], aborted: [], merged: [], busy: [], failed: [] };
  for (const info of left) {
    options.signal?.throwIfAborted();
    const child = new Child(parts, info, { onUnmerged: 'keep' });
    try {
      const what = await end(parts, child, options);
      if (what !== undefined) report[what].push(info.name);
      await settleParent(parts, child);
      await child.finish({
        waitMs: options.waitMs ?? 10_000,
        ...(options.signal !== undefined && { signal: options.signal }),
      });
      report.merged.push(info.name);
    } catch (error) {
      const { code } = error as { code?: unknown };
      const busy = code === 'SESSION_BUSY' || code === 'SESSION_MERGE_WAITING' || childIsBusy(error);
      // One child that cannot be helped must not keep the others from it.
      if (busy) report.busy.push(info.name);
      else report.failed.push({ session: info.name, message: messageOf(error) });
    }
  }
  await releaseLeftWorktrees(parts);
  return report;
}

/** Delegated children that are not merged yet, the deepest first. */
async function leftBehind(store: TapeStore, session: string | undefined): Promise<readonly SessionInfo[]> {
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
    .filter(
      (info) => info.deliver !== undefined && info.delivery === undefined && info.lifecycle === 'active',
    )
    .map((info) => ({ info, line: lineOf(info) }))
    .filter(({ line }) => root === undefined || line.includes(root))
    .sort((a, b) => b.line.length - a.line.length || a.info.createdAt - b.info.createdAt)
    .map(({ info }) => info);
}

async function anyUnfinished(store: TapeStore, infos: readonly SessionInfo[]): Promise<boolean> {
  for (const info of infos)
    if (isUnfinished(info) && (await endOnTape(store, info)) === undefined) return true;
  return false;
}

const isUnfinished = ({ task }: SessionInfo): boolean => task === undefined || task === 'running';

/** A parent that died inside a tool call cannot take a merge in before its calls have results: as its next run would give. */
async function settleParent({ store, newId }: DeckParts, child: Child): Promise<void> {
  const parent = await store.find(child.parent);
  if (parent === undefined || parent.settled === parent.head) return;
  try {
    const held = await hold(store, parent.id, { owner: processOwner(newId()) });
    try {
      await closeOrphans(store, parent.id, { hold: held });
    } finally {
      await held.release();
    }
  } catch (error) {
    // Somebody is running the parent: its calls are theirs, and the merge waits in its inbox.
    if ((error as { code?: unknown }).code !== 'SESSION_BUSY') throw error;
  }
}

/** Brings a child to its end, if it has not come to it. */
async function end(
  { store, newId }: DeckParts,
  child: Child,
  { abort = false, model, signal }: RecoverOptions,
): Promise<'resumed' | 'aborted' | undefined> {
  const info = await child.info();
  if (!isUnfinished(info)) return undefined;
  const reached = await endOnTape(store, info);
  if (reached === undefined && !abort) {
    try {
      await child.run(undefined, {
        unlessEnded: true,
        ...(model !== undefined && { model }),
        ...(signal !== undefined && { signal }),
      });
      return 'resumed';
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
    if (reached === undefined)
      await store.append(child.id, [note('run/aborted', { reason: 'aborted by recovery' })], {
        lease: held.lease,
      });
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
