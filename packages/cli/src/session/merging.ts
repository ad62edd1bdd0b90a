import type { Application, KeptWorktree } from '@tapedeck/runtime/internal';
import type { HomeStore, Merged, MergeRequest } from '@tapedeck/tape';
import { emptyResult } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { commandLine } from '../escape.ts';
import { exit } from '../exit.ts';
import { drained } from './drained.ts';
import { mergedJson, parentIsBusy, queuedJson } from './preview.ts';

/** The merge that a command requests. */
export interface MergeCommand {
  readonly child: string;
  readonly request: MergeRequest;
}

/**
 * Merges a child, applies the patch of its worktree if `apply` is given, and prints the receipt.
 * @returns the exit code
 */
export async function mergeAndReport(
  store: HomeStore,
  command: MergeCommand & { readonly waitMs: number },
  {
    context,
    apply,
    act,
  }: {
    readonly context: Context;
    readonly apply?: { readonly dir?: string } | undefined;
    readonly act?: () => Promise<Merged | undefined>;
  },
): Promise<number> {
  const { child, request } = command;
  const { closeWorktree, giveUp, planApplication, releaseWorktree, settleChild } = await import(
    '@tapedeck/runtime/internal'
  );
  const place = { store, home: context.home.dir };
  const info = store.sessions.find(child);
  const isGivenUp =
    info !== undefined && request.strategy === 'discard' && (await giveUp(store, info, request.reason));
  if (info !== undefined) await settleChild(store, info);
  await closeWorktree(place, child, request);
  // Planned before the merge: a child whose patch does not apply is not merged.
  const application = apply === undefined ? undefined : await planApplication(place, child, apply);
  const { text, recorded } = store.lineage.collect(child);
  const isAsIs = request.text === undefined && request.strategy === undefined;
  const isEmpty = isAsIs && text === emptyResult && recorded === undefined;
  const merged = await (act?.() ?? mergeOrQueue(store, { ...command, isGivenUp }, context));
  if (merged === undefined) {
    const parent = request.into ?? info?.parent;
    if (isGivenUp && parent !== undefined)
      context.status(
        `Hint: its call gets the outcome of ${child} when it goes on: ${commandLine('run', [parent])}`,
      );
    if (application !== undefined)
      context.status('The patch is not applied yet: repeat the command after the merge');
    return exit.accepted;
  }
  await application?.write();
  const kept = await releaseWorktree(place, child);
  if (kept !== undefined) context.status(`Kept the worktree ${kept.path}: ${kept.why}`);
  else if (isEmpty) context.status(`${child} has no result and no answer: its parent reads "${emptyResult}"`);
  await reportMerged({ merged, application, kept }, context);
  return exit.done;
}

/**
 * Returns the receipt; undefined, after reporting it, when the merge is queued for the writer of the parent.
 */
async function mergeOrQueue(
  store: HomeStore,
  { child, request, waitMs, isGivenUp }: MergeCommand & { waitMs: number; isGivenUp: boolean },
  context: Context,
): Promise<Merged | undefined> {
  let isBusy = false;
  try {
    return store.lineage.merge(child, request);
  } catch (error) {
    // The call of the parent that waited for the child gets its outcome before the discard.
    if (!parentIsBusy(error) && !(isGivenUp && (error as { code?: unknown }).code === 'TAPE_UNSETTLED'))
      throw error;
    isBusy = parentIsBusy(error);
  }
  const info = store.sessions.find(child);
  const parent = request.into ?? info?.parent ?? child;
  const { id } = store.inbox.post(parent, {
    body: { type: 'merge', draft: { ...request, child } },
    key: `merge:${info?.id}:${info?.headHash}`,
    source: 'cli',
  });
  context.status(
    `${isBusy ? `Another process is writing ${parent}` : `A call of ${parent} is open`}: posted to its inbox`,
  );
  if (isBusy && (await drained(store, { name: parent, id, waitMs })))
    return { ...store.lineage.merge(child, request), repeated: false };
  await reportQueued(context, { parent, child, id, isDiscard: request.strategy === 'discard' });
  return undefined;
}

/** Reports that the merge is queued in the inbox of the parent. */
export async function reportQueued(
  context: Context,
  {
    parent,
    child,
    id,
    isDiscard = false,
  }: {
    readonly parent: string;
    readonly child: string;
    readonly id: string;
    readonly isDiscard?: boolean;
  },
): Promise<void> {
  await context.answer({
    json: queuedJson(parent, child),
    quiet: id,
    human: `Queued: ${child} will be ${isDiscard ? 'discarded at' : 'merged into'} ${parent} when it is idle`,
  });
}

interface Done {
  readonly merged: Merged;
  readonly application: Application | undefined;
  readonly kept: KeptWorktree | undefined;
}

async function reportMerged({ merged, application, kept }: Done, context: Context): Promise<void> {
  const { parent, child, state, seq, range, repeated, conflicts, artifact } = merged;
  const where = `${parent}@${seq}`;
  const done =
    state === 'discarded'
      ? `Discarded ${child}, recorded at ${where}`
      : `Merged ${child}:${range[0]}-${range[1]} into ${where}`;
  // The outcome of a child that was discarded is final: what it did can be inherited.
  const back =
    state === 'discarded'
      ? `continue its work in a fork with: ${commandLine('fork', [child])}`
      : `undo with: ${commandLine('undo', [where])}`;
  await context.answer({
    json: {
      ...mergedJson(merged),
      ...(artifact !== undefined && { artifact }),
      ...(application !== undefined && {
        applied: { state: appliedStates[application.state], dir: application.dir, files: application.files },
      }),
      ...(kept !== undefined && { kept }),
    },
    quiet: where,
    human: [
      repeated
        ? `${child} is already ${state} at ${where}${application === undefined ? ': nothing to do' : ''}`
        : `${done}${conflicts.length === 0 ? '' : `; both wrote ${conflicts.map((c) => c.what).join(', ')}`}${context.inHome(` (${back})`)}`,
      ...(application === undefined ? [] : [appliedLine(application)]),
    ].join('\n'),
  });
}

const appliedStates = { ready: 'applied', already: 'already', empty: 'empty' } as const;

function appliedLine({ state, dir, files }: Application): string {
  if (state === 'empty') return 'Nothing to apply: the child changed no file';
  if (state === 'already') return `${dir} has all changes already: nothing to apply`;
  return `Applied to ${dir}: ${files.join(', ')}`;
}
