import { type Ref, type SessionInfo, TapeError } from '@tapedeck/tape';
import type { DelegationParts } from '../delegation/parts.ts';
import { hasTask } from '../delegation/settle.ts';
import { SessionError } from '../errors.ts';
import { isBlocked, isEnded } from '../merge/spawn-calls.ts';
import type { ModelSpec } from '../model/spec.ts';
import { endOnTape } from '../run/end-on-tape.ts';
import { canHaveTool } from '../run/mcp-tools.ts';
import { factsOf } from '../terms/terms.ts';
import { awaitsTool, isOrphan } from '../tools/open-batch.ts';
import { type RecoveryModel, recoveryModel } from './model.ts';
import { type Left, lookAtLeft, type RecoveryAct } from './report.ts';
import type { RecoveryReason, Unfinished, Unusable } from './scope.ts';

/** What a recovery will do with a session. */
export interface Plan {
  readonly why: RecoveryReason;
  readonly left: Left;
  readonly act: RecoveryAct;
  /** The model to continue with, when the run does not find it itself. */
  readonly spec: ModelSpec | undefined;
  /** The name of the model to continue with, if it has one. */
  readonly model: string | undefined;
}

/** What to do with what is unfinished. */
interface Wish {
  readonly session?: Ref;
  readonly abort?: boolean;
  readonly dryRun?: boolean;
  readonly model?: ModelSpec;
}

/**
 * Plans a recovery. Nothing is written, so that a session without a usable model stops it before it begins. When
 * no session is named, one whose own recorded model cannot be used stops only itself, and so does any in a dry
 * run: it is added to `failed`.
 * @throws the errors of `recoveryModel`
 */
export async function plansFor(
  parts: DelegationParts,
  found: readonly (readonly Unfinished[])[],
  { failed, ...wish }: Wish & { readonly failed: Unusable[] },
): Promise<readonly (readonly Plan[])[]> {
  const owned = new Set((await parts.store.leases.list()).map(({ id }) => id));
  const plans: Plan[][] = [];
  for (const group of found) {
    const planned: Plan[] = [];
    for (const { info, why } of group) {
      try {
        const left = await lookAtLeft(parts, info);
        const act = owned.has(info.id) ? 'leave' : await actFor(parts, { why, left }, wish);
        if (act === undefined) continue;
        const { model: spec, name }: Partial<RecoveryModel> =
          act === 'continue' ? await recoveryModel(parts, info, wish.model) : {};
        planned.push({ why, left, act, spec, model: name });
      } catch (error) {
        if (!stopsOnlyItself(error, wish)) throw error;
        failed.push({ session: info.session, message: error.message, code: error.code });
      }
    }
    plans.push(planned);
  }
  return plans;
}

function stopsOnlyItself(error: unknown, { session, dryRun }: Wish): error is SessionError | TapeError {
  if (error instanceof TapeError) return error.code === 'TAPE_CORRUPT';
  if (!(error instanceof SessionError) || error.data.abortable !== true) return false;
  return dryRun === true || (session === undefined && error.data.recorded === true);
}

async function actFor(
  parts: DelegationParts,
  { why, left }: { readonly why: RecoveryReason; readonly left: Left },
  { abort = false }: Wish,
): Promise<RecoveryAct | undefined> {
  const { store, config } = parts;
  // A deck with an approval hook may answer.
  const waits = config.onApproval === undefined && (await isBlocked(store, left.info));
  if (why === 'children') return abort ? 'abort' : waits ? 'wait' : 'continue';
  const canRun = left.calls.some((call) => awaitsTool(call) && canHaveTool(parts, {}, call.toolName));
  if (why === 'calls') return abort ? 'abort' : canRun ? 'continue' : 'wait';
  if (why === 'orphans') return 'answer';
  // A message that waits is no run that could be aborted.
  if (why === 'inbox') return abort ? (left.calls.some(isOrphan) ? 'answer' : undefined) : 'continue';
  if (await hasEnded(parts, left.info)) return 'merge';
  if (abort) return 'abort';
  return why === 'task' && waits ? 'wait' : 'continue';
}

async function hasEnded({ store }: DelegationParts, info: SessionInfo): Promise<boolean> {
  if (!hasTask(info)) return false;
  return isEnded(info) || (await endOnTape(store, await factsOf(store, info))) !== undefined;
}
