import { setTimeout as sleep } from 'node:timers/promises';
import { note, type SessionInfo, TapeError } from '@tapedeck/tape';
import { deliverUnattended } from '../delegation/deliver.ts';
import type { RunOrder, RunSpec } from '../delegation/engine.ts';
import type { DelegationParts } from '../delegation/parts.ts';
import { settle } from '../delegation/settle.ts';
import { isOfDatabase, messageOf, SessionError } from '../errors.ts';
import { recordFailure } from '../merge/failure.ts';
import { hasTaken, isEnded } from '../merge/spawn-calls.ts';
import { endOnTape } from '../run/end-on-tape.ts';
import { contextOf } from '../telemetry/runs.ts';
import { below } from '../telemetry/span.ts';

const pollMs = 100;

/**
 * Runs a child that another process has started, from the last step that its tape records, and delivers its result. A
 * failure that a repeat would meet again is recorded on the tape. Done again, it does what is left to do.
 * @throws when the database cannot be reached, or another process has taken the child over: then the run is repeated
 */
export async function runStarted(parts: DelegationParts, run: RunSpec, signal: AbortSignal): Promise<void> {
  const { order } = run;
  if (order === undefined) return;
  const { store } = parts;
  for (;;) {
    const info = await store.sessions.find(order.session);
    if (info === undefined || info.lifecycle !== 'active' || info.delivery === 'discarded') return;
    const child = { id: info.id, name: info.session };
    try {
      if (!(await isDone(parts, info, order)))
        await below(contextOf(order.traceparent), async () => await goOn(parts, info, { order, signal }));
      await parts.worker(info).delivered;
      if (order.isMergedByStarter !== true) await deliverUnattended(parts, child);
      return;
    } catch (error) {
      const code = error instanceof SessionError || error instanceof TapeError ? error.code : undefined;
      if (code === 'SESSION_BUSY') {
        // Its last owner has not gone yet, or a person runs it here and now.
        await sleep(pollMs);
        continue;
      }
      if (code === 'SESSION_ENDED') continue;
      if (code === 'SESSION_CLOSED' || isOfDatabase(error)) throw error;
      await recordFailure(store, info, note('run/error', { message: messageOf(error) }));
    }
  }
}

async function isDone(
  { store }: DelegationParts,
  info: SessionInfo,
  { message }: RunOrder,
): Promise<boolean> {
  return isEnded(info) && (message === undefined || (await hasTaken(store, info, message.key)));
}

async function goOn(
  parts: DelegationParts,
  info: SessionInfo,
  { order, signal }: { readonly order: RunOrder; readonly signal: AbortSignal },
): Promise<void> {
  const { store } = parts;
  const { message, options } = order;
  const isNew = message !== undefined && !(await hasTaken(store, info, message.key));
  // A task whose tape shows its end needs no model.
  if (!isNew && (await endOnTape(store, await parts.worker(info).facts(info))) !== undefined) {
    await settle(parts, info, { abort: false });
    return;
  }
  const child = parts.child(info, { onUnmerged: 'keep' });
  if (isNew) await child.run(message.text, { ...options, signal, meta: message.meta });
  else await child.run(undefined, { ...options, signal, unlessEnded: true });
}
