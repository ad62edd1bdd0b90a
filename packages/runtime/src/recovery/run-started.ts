import { setTimeout as sleep } from 'node:timers/promises';
import { type Draft, note, type SessionInfo, TapeError, type TapeStore, user } from '@tapedeck/tape';
import { deliverUnattended } from '../delegation/deliver.ts';
import type { RunOrder, RunSpec } from '../delegation/engine.ts';
import { assertToolNames } from '../delegation/options.ts';
import type { DelegationParts } from '../delegation/parts.ts';
import { settle } from '../delegation/settle.ts';
import { isOfDatabase, messageOf, SessionError } from '../errors.ts';
import { recordFailure } from '../merge/failure.ts';
import { hasTaken, isDone } from '../merge/spawn-calls.ts';
import { endOnTape } from '../run/end-on-tape.ts';
import { toolsOf } from '../run/instructions.ts';
import { contextOf } from '../telemetry/runs.ts';
import { below } from '../telemetry/span.ts';
import { usedTools } from '../terms/terms.ts';

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
      if (!(await isDone(store, info, order.message)))
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
      const failed = note('run/error', { message: messageOf(error) });
      // Without its message, the run would be begun again.
      await recordFailure(store, info, failed, await untaken(store, info, order));
    }
  }
}

/** The message of a child that is resumed, as long as its tape does not have it. */
async function untaken(
  store: TapeStore,
  info: SessionInfo,
  { message }: RunOrder,
): Promise<Draft | undefined> {
  if (message === undefined || (await hasTaken(store, info, message.key))) return undefined;
  return user(message.text, message.meta);
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
  await assertHasTools(parts, info, options);
  const child = parts.child(info, { onUnmerged: 'keep' });
  if (isNew) await child.run(message.text, { ...options, signal, meta: message.meta });
  else await child.run(undefined, { ...options, signal, unlessEnded: true });
}

/**
 * Refuses a child that names tools which this process does not have: without them it would do another task.
 * @throws SESSION_BAD_INPUT
 */
async function assertHasTools(
  parts: DelegationParts,
  info: SessionInfo,
  options: RunOrder['options'] = {},
): Promise<void> {
  if (options.useTools === false) return;
  const offered = { tools: toolsOf(parts, options), servers: parts.config.mcpServers };
  const names = [...(usedTools(await parts.worker(info).line(info)) ?? [])];
  assertToolNames(names, offered, { act: `run '${info.session}'`, session: info.session });
}
