import { AsyncLocalStorage } from 'node:async_hooks';
import type { TapeStore } from '@tapedeck/tape';
import { SessionError } from '../errors.ts';

/** The call of a tool, as the code that the tool started sees it. */
export interface CurrentCall {
  readonly store: TapeStore;
  /** The name of the session that runs the tool. */
  readonly session: string;
  readonly toolName: string;
  readonly toolCallId: string;
}

const calls = new AsyncLocalStorage<(CurrentCall & { isOver: boolean }) | undefined>();

/** Does an act of a call, so that `currentCall` finds the call in whatever the act starts. */
export async function duringCall<T>(call: CurrentCall, act: () => Promise<T>): Promise<T> {
  const current = { ...call, isOver: false };
  try {
    return await calls.run(current, act);
  } finally {
    current.isOver = true;
  }
}

/** Does an act that belongs to no call, such as a run that a tool started. */
export function outsideCalls<T>(act: () => T): T {
  return calls.run(undefined, act);
}

/** The call that started the running code; it may be over. Undefined outside of calls. */
export function currentCall(): CurrentCall | undefined {
  return calls.getStore();
}

/**
 * Refuses to wait, in a tool, for the run that waits for the tool.
 * @param session the name of the session to wait for; undefined for all sessions of the store
 * @param act what cannot be done: `wait for 'main'`
 * @throws SESSION_WAITS_FOR_ITSELF
 */
export function assertOutsideRun(store: TapeStore, session: string | undefined, act: string): void {
  const call = calls.getStore();
  if (call === undefined || call.isOver || call.store !== store) return;
  if (session !== undefined && session !== call.session) return;
  const { toolName, toolCallId } = call;
  throw new SessionError(
    'SESSION_WAITS_FOR_ITSELF',
    `cannot ${act}: the tool '${toolName}' is part of the run of '${call.session}', which waits for the tool`,
    { data: { session: call.session, tool: toolName, toolCallId } },
  );
}
