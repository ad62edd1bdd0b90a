import { type Entry, note, prune, select } from '@tapedeck/tape';
import { usedBy } from './asked.ts';
import { compact } from './compact.ts';
import { isToBePruned, isTooFull } from './compaction-policy.ts';
import { messageOf, SessionError } from './errors.ts';
import type { LoopContext } from './loop.ts';
import { ModelFailure } from './model.ts';
import type { ModelWindow } from './model-window.ts';
import { outputsToPrune } from './prune-outputs.ts';
import { NoSummary } from './summarize.ts';
import type { Prompt } from './turn.ts';
import { noUsage, type Usage } from './usage.ts';

/** Runs whose summaries could not be had: they are not asked for again before each step. */
const gaveUp = new WeakSet<LoopContext>();

/**
 * Before a model call: makes room where the policy says that too much of the window is used (G34, N46). What that took; nothing
 * where nothing was done. A summary that cannot be had for now is warned of, and the call made all the same (G45).
 * @throws ModelFailure of SESSION_COMPACTION_FAILED when it never can (G46), and of an abort
 */
export async function keepRoom(
  context: LoopContext,
  { entries, view: shown }: Prompt,
): Promise<Usage | undefined> {
  const { policy, window } = context.compaction;
  if (window === undefined || !policy.enabled) return undefined;
  const instructions = await context.instruct(entries);
  const used = usedBy({ ...context, instructions }, shown);
  const saved = isToBePruned(policy, window, used) ? await pruneDown(context, entries, { used, window }) : 0;
  const done = saved > 0 ? noUsage : undefined;
  if (gaveUp.has(context) || !isTooFull(policy, window, used - saved)) return done;
  context.enter('compacting');
  try {
    const now = saved > 0 ? await Array.fromAsync(context.store.viewEntries(context.session)) : entries;
    return (await compact(context, now, { trigger: 'threshold' }))?.usage ?? done;
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
      }),
    ]);
    context.tell({ type: 'warning', message });
    return noUsage;
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
  const outputs = outputsToPrune(select(entries, 'last-boundary').entries, policy, { enough });
  const tokens = outputs.reduce((sum, output) => sum + output.tokens, 0);
  if (tokens < pruneLeast * window) return 0;
  const { to: seq } = await context.append([prune(outputs, { trigger: 'threshold' })]);
  context.tell({ type: 'pruned', seq, outputs: outputs.length, tokens });
  return tokens;
}

/**
 * After a model refused what the session holds: makes room, keeping the last turn alone (N50). Nothing where there is nothing to
 * summarise, or no summary could be had: then what the model said is what is wrong.
 * @throws ModelFailure of SESSION_COMPACTION_FAILED when what is to be summarised is too large for that, too, and of an abort
 */
export async function makeRoom(context: LoopContext, { entries }: Prompt): Promise<Usage | undefined> {
  context.enter('compacting');
  try {
    return (await compact(context, entries, { trigger: 'overflow', keep: { turns: 1 } }))?.usage;
  } catch (error) {
    reasonOf(context, error);
    return undefined;
  }
}

/** Why there is no summary, where the call can be made all the same; everything else is thrown on. */
function reasonOf({ session, signal }: LoopContext, error: unknown): NoSummary {
  if (signal.aborted) throw new ModelFailure(signal.reason);
  if (!(error instanceof NoSummary)) throw error;
  if (error.tooLarge) throw new ModelFailure(notCompacted(session, error));
  return error;
}

/** What a session that cannot be summarised fails with. */
export function notCompacted(session: string, error: unknown): SessionError {
  return new SessionError('SESSION_COMPACTION_FAILED', `cannot summarise '${session}': ${messageOf(error)}`, {
    data: { session },
    cause: error,
  });
}
