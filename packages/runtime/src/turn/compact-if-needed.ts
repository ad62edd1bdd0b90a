import { type Entry, note, prune, select } from '@tapedeck/tape';
import { compact, notCompacted } from '../compaction/compact.ts';
import { NoSummary } from '../compaction/no-summary.ts';
import { isToBePruned, isTooFull } from '../compaction/policy.ts';
import { outputsToPrune } from '../compaction/prune-outputs.ts';
import { ModelFailure } from '../model/model.ts';
import type { ModelWindow } from '../model/window.ts';
import { usedBy } from './asked.ts';
import type { LoopContext, Prompt } from './context.ts';

/** Runs whose summaries could not be had: they are not asked for again before each step. */
const gaveUp = new WeakSet<LoopContext>();

/**
 * Before a model call: makes room where the policy says that too much of the window is used (G34, N46). Whether anything was
 * written. A summary that cannot be had for now is warned of, and the call made all the same (G45).
 * @throws ModelFailure of SESSION_COMPACTION_FAILED when it never can (G46), and of an abort
 */
export async function compactIfNeeded(
  context: LoopContext,
  { entries, view: shown }: Prompt,
): Promise<boolean> {
  const { policy, window } = context.compaction;
  if (window === undefined || !policy.enabled) return false;
  const instructions = await context.instruct(entries);
  const used = usedBy({ ...context, instructions }, shown);
  const saved = isToBePruned(policy, window, used) ? await pruneDown(context, entries, { used, window }) : 0;
  const isPruned = saved > 0;
  if (gaveUp.has(context) || !isTooFull(policy, window, used - saved)) return isPruned;
  context.enter('compacting');
  try {
    const now = isPruned ? await Array.fromAsync(context.store.viewEntries(context.session)) : entries;
    return (await compact(context, now, { trigger: 'threshold' })) !== undefined || isPruned;
  } catch (error) {
    gaveUp.add(context);
    const why = reasonOf(context, error);
    const message = `'${context.session}' is not summarised: ${why.message}`;
    await context.append([
      note('context/not-compacted', {
        run: context.run,
        trigger: 'threshold',
        message: why.message,
        ...(why.response !== undefined && { response: why.response }),
        ...(why.summarizer !== undefined && { summarizer: { ...why.summarizer } }),
      }),
    ]);
    context.tell({ type: 'warning', message });
    return true;
  }
}

/** How far below the level at which outputs are left out it goes, as a share of that level: each time costs what a cache kept. */
const pruneTo = 0.75;

/** What leaving outputs out must save to be done by itself, as a share of the window. */
const pruneLeast = 0.05;

/** Leaves out the oldest large outputs (G52); how many tokens that saves. */
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
  context.tell({ type: 'pruned', seq, outputs: outputs.length, tokens });
  return tokens;
}

/**
 * After a model refused what the session holds: makes room, keeping the last turn alone (N50). False where there is nothing to
 * summarise, or no summary could be had: then what the model said is what is wrong.
 * @throws ModelFailure of SESSION_COMPACTION_FAILED when what is to be summarised is too large for that, too, and of an abort
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

/** Why there is no summary, where the call can be made all the same; everything else is thrown on. */
function reasonOf({ session, signal }: LoopContext, error: unknown): NoSummary {
  if (signal.aborted) throw new ModelFailure(signal.reason);
  if (!(error instanceof NoSummary)) throw error;
  if (error.tooLarge) throw new ModelFailure(notCompacted(session, error));
  return error;
}
