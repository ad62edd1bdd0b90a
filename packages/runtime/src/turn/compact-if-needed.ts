import { type Entry, note, prune } from '@tapedeck/tape';
import { select } from '@tapedeck/tape/internal';
import { compact, notCompacted } from '../compaction/compact.ts';
import { NoSummary } from '../compaction/no-summary.ts';
import { compactionRequested, isToBePruned, isTooFull } from '../compaction/policy.ts';
import { outputsToPrune } from '../compaction/prune-outputs.ts';
import { ModelFailure } from '../model/model.ts';
import type { ModelWindow } from '../model/window.ts';
import { usedBy } from './call-meta.ts';
import type { LoopContext, Prompt } from './context.ts';

/** The last request that a run has followed. */
const followed = new WeakMap<LoopContext, number>();

/** The request of this run that it has not followed, with its focus. */
function requestIn(context: LoopContext, entries: readonly Entry[]): { readonly focus?: string } | undefined {
  const request = entries.findLast(
    ({ name, payload }) =>
      name === compactionRequested && (payload as { readonly run?: string } | null)?.run === context.run,
  );
  if (request === undefined || request.seq <= (followed.get(context) ?? 0)) return undefined;
  followed.set(context, request.seq);
  const { focus } = request.payload as { readonly focus?: string };
  return focus === undefined ? {} : { focus };
}

/** Runs whose compaction failed. They do not try again before each step. */
const gaveUp = new WeakSet<LoopContext>();

/**
 * Prunes or compacts before a model call when the policy's threshold is exceeded. Returns whether it wrote
 * entries. When the summary fails, it warns, and the call is made without it.
 * @throws ModelFailure of SESSION_COMPACTION_FAILED when the entries are too large to summarise at all, and
 *   of an abort
 */
export async function compactIfNeeded(
  context: LoopContext,
  { entries, view: shown }: Prompt,
): Promise<boolean> {
  const { policy, window } = context.compaction;
  const requested = requestIn(context, entries);
  if (requested !== undefined) return await compactNow(context, entries, { trigger: 'manual', ...requested });
  if (window === undefined || !policy.enabled) return false;
  const instructions = await context.instruct(entries);
  const used = usedBy({ ...context, instructions }, shown);
  const saved = isToBePruned(policy, window, used) ? await pruneDown(context, entries, { used, window }) : 0;
  const isPruned = saved > 0;
  if (gaveUp.has(context) || !isTooFull(policy, window, used - saved)) return isPruned;
  const now = isPruned ? await Array.fromAsync(context.store.views.entries(context.session)) : entries;
  return (await compactNow(context, now, { trigger: 'threshold' })) || isPruned;
}

/** Compacts. When the summary fails, it warns. Returns whether it wrote entries. */
async function compactNow(
  context: LoopContext,
  entries: readonly Entry[],
  order: { readonly trigger: 'threshold' | 'manual'; readonly focus?: string },
): Promise<boolean> {
  context.enter('compacting');
  try {
    return (await compact(context, entries, order)) !== undefined;
  } catch (error) {
    if (order.trigger === 'threshold') gaveUp.add(context);
    const why = reasonOf(context, error);
    const message = `cannot summarise '${context.session}': ${why.message}`;
    await context.append([
      note('context/not-compacted', {
        run: context.run,
        trigger: order.trigger,
        message: why.message,
        ...(why.response !== undefined && { response: why.response }),
        ...(why.summarizer !== undefined && { summarizer: { ...why.summarizer } }),
      }),
    ]);
    context.emitEvent({ type: 'warning', message });
    return true;
  }
}

/**
 * The target of a pruning, as a share of its threshold. Pruning well below it keeps prompt cache misses rare.
 */
const pruneTo = 0.75;

/** The least that an automatic pruning must save, as a share of the window. */
const pruneLeast = 0.05;

/** Prunes the oldest large outputs. Returns the tokens saved. */
async function pruneDown(
  context: LoopContext,
  entries: readonly Entry[],
  { used, window: { window } }: { readonly used: number; readonly window: ModelWindow },
): Promise<number> {
  const { policy } = context.compaction;
  const enough = used - (policy.pruneFrom ?? 1) * pruneTo * window;
  const outputs = outputsToPrune(select(entries, context.shows).entries, policy, { enough });
  const tokens = outputs.reduce((sum, output) => sum + output.tokens, 0);
  if (tokens < pruneLeast * window) return 0;
  const { to: seq } = await context.append([prune(outputs, { trigger: 'threshold' })]);
  context.emitEvent({ type: 'pruned', seq, outputs: outputs.length, tokens });
  return tokens;
}

/**
 * Compacts after the model refused a call as too large, and keeps only the last turn. False when the view has
 * nothing to summarise or the summary failed: the run then fails with the model's error.
 * @throws ModelFailure of SESSION_COMPACTION_FAILED when the entries are too large to summarise, too, and of
 *   an abort
 */
export async function compactAfterOverflow(context: LoopContext, { entries }: Prompt): Promise<boolean> {
  context.enter('compacting');
  try {
    return (await compact(context, entries, { trigger: 'overflow', keep: { turns: 1 } })) !== undefined;
  } catch (error) {
    reasonOf(context, error);
    return false;
  }
}

/** The reason of a failed summary that the model call can do without. Throws all other errors. */
function reasonOf({ session, signal }: LoopContext, error: unknown): NoSummary {
  if (signal.aborted) throw new ModelFailure(signal.reason);
  if (!(error instanceof NoSummary)) throw error;
  if (error.tooLarge) throw new ModelFailure(notCompacted(session, error));
  return error;
}
