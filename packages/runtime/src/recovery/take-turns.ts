import type { SessionInfo, TapeStore } from '@tapedeck/tape';
import { wake } from '../delegation/deliver.ts';
import type { DelegationParts } from '../delegation/parts.ts';
import { SessionError } from '../errors.ts';
import type { ModelSpec } from '../model/spec.ts';
import { wasInterrupted } from '../tools/interrupted.ts';
import { type RecoveryModel, recoveryModel } from './model.ts';
import { untilQuiet } from './quiet.ts';
import { done, lookAtLeft, type RecoveredSession } from './report.ts';
import type { Placed } from './scope.ts';

/**
 * Runs the idle parents that results of children start (`merge+turn`): the message that starts them is in
 * their inbox, or the run that it started was interrupted. Returns a report of each that ran.
 */
export async function takeTurns(
  parts: DelegationParts,
  scope: readonly Placed[],
  { model, signal }: { readonly model?: ModelSpec; readonly signal?: AbortSignal },
): Promise<readonly RecoveredSession[]> {
  const { store } = parts;
  const owners = new Set((await store.leases.list()).map(({ id }) => id));
  const parents = new Set(
    scope.flatMap(({ info }) => (info.deliver === 'merge+turn' ? [info.parentId ?? ''] : [])),
  );
  const ran: RecoveredSession[] = [];
  for (const id of parents) {
    const info = await store.sessions.find(id);
    if (info === undefined || owners.has(id) || !(await owesTurn(store, id))) continue;
    signal?.throwIfAborted();
    const left = await lookAtLeft(parts, info);
    const chosen = await usableModel(parts, info, model);
    if (chosen === undefined) continue;
    const { model: spec, name } = chosen;
    const run = { ...(spec !== undefined && { model: spec }), ...(signal !== undefined && { signal }) };
    await wake(parts, { parentId: id, parent: info.session }, run);
    await untilQuiet(parts, [info], signal);
    if (await owesTurn(store, id)) continue;
    ran.push(await done(parts, left, { act: 'continue', model: name }));
  }
  return ran;
}

/** Undefined without a usable model: the message that starts the parent stays in its inbox. */
async function usableModel(
  parts: DelegationParts,
  info: SessionInfo,
  given: ModelSpec | undefined,
): Promise<RecoveryModel | undefined> {
  try {
    return await recoveryModel(parts, info, given);
  } catch (error) {
    if (error instanceof SessionError) return undefined;
    throw error;
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
