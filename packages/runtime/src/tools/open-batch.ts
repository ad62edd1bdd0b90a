import type { Entry, Json, Part, SessionInfo, TapeStore } from '@tapedeck/tape';
import { isClientCall, isObject } from '@tapedeck/tape/internal';
import { isAwaited, type OpenCall, requestIn } from '../stream/call.ts';

/** The names of the notes about the open calls of a batch. */
export const batchNotes = { waiting: 'run/waiting', begun: 'run/begun', answered: 'call/answered' } as const;

/** Whether a user or client can still answer a call. */
export function awaitsAnswer({ state, decision, for: what }: OpenCall): boolean {
  return state === 'waiting' && decision === undefined && what !== 'children';
}

/** Whether a call is approved, and waits for a process that has its tool. */
export function awaitsTool({ state, for: what }: OpenCall): boolean {
  return state === 'waiting' && what === 'tool';
}

/** Whether a delegating call waits for its children. */
export function awaitsChildren({ state, for: what }: OpenCall): boolean {
  return state === 'waiting' && what === 'children';
}

/** Whether a call waits: for an answer that can still be given, or for children. */
export function isPending(call: OpenCall): boolean {
  return awaitsAnswer(call) || awaitsChildren(call);
}

/** Whether no user, client or run answers a call once its process is gone. */
export function isOrphan({ state }: OpenCall): boolean {
  return state === 'begun' || state === 'unbegun';
}

/**
 * Why an answer does not fit a call: an approval needs a decision, a client-side call an output or a denial.
 */
export function answerFault(call: OpenCall | undefined, answer: unknown): string | undefined {
  if (call?.for === 'tool') return `it is approved and waits for a run with the tool '${call.toolName}'`;
  if (call !== undefined && awaitsChildren(call)) return 'it waits for its children';
  if (call === undefined || !awaitsAnswer(call)) return 'it does not wait for an answer';
  const { output, approved, error, remember }: Readonly<Record<string, unknown>> = isObject(answer)
    ? answer
    : {};
  if (call.for === 'approval') {
    if (typeof approved !== 'boolean') return 'it waits for an approval';
    return remember === undefined ? undefined : rememberFault(remember, call.offers);
  }
  if (remember !== undefined) return 'only the answer to a request for approval counts for good';
  const isResult = output !== undefined || approved === false || typeof error === 'string';
  return isResult ? undefined : 'it waits for a result';
}

/** Why a decision cannot count for good for these; undefined when it can. */
export function rememberFault(remember: unknown, offers: readonly string[] = []): string | undefined {
  if (remember === undefined) return undefined;
  if (!Array.isArray(remember)) return 'what it counts for is a list of offers';
  const odd = remember.find((one) => !offers.includes(one));
  if (odd === undefined) return undefined;
  return `it cannot count for ${JSON.stringify(odd)}: the offers are ${offers.join(', ') || 'none'}`;
}

/** The open calls at the end of a session, given by its ULID or its current row. */
export async function openBatch(
  store: TapeStore,
  session: string | Pick<SessionInfo, 'id' | 'settled' | 'head'>,
): Promise<readonly OpenCall[]> {
  const info = typeof session === 'string' ? await store.sessions.find(session) : session;
  if (info === undefined || info.settled === info.head) return [];
  return openCallsOf(await Array.fromAsync(store.entries.read(info.id, { from: info.settled + 1 })));
}

/** The calls that these entries leave open, in order, with their states. Pure. */
export function openCallsOf(
  entries: readonly Pick<Entry, 'kind' | 'name' | 'payload' | 'meta' | 'elsewhere'>[],
): readonly OpenCall[] {
  const calls: OpenCall[] = [];
  const change = (id: unknown, more: Partial<OpenCall>) => {
    const at = calls.findIndex((call) => call.toolCallId === id);
    const call = calls[at];
    if (call !== undefined) calls[at] = { ...call, ...more };
  };
  for (const { kind, name, payload, meta, elsewhere } of entries) {
    if (!isObject(payload)) continue;
    if (kind === 'message')
      calls.push(...callsIn(payload, meta).map((call) => ({ ...call, ...(elsewhere && { elsewhere }) })));
    else if (kind === 'tool-result') {
      const at = calls.findIndex((call) => call.toolCallId === payload.toolCallId);
      if (at !== -1) calls.splice(at, 1);
    } else if (name === batchNotes.answered && !(elsewhere === true && payload.approved === true))
      // An approval counts where it was given, a denial everywhere.
      change(payload.toolCallId, {
        decision: {
          approved: payload.approved === true,
          ...(typeof payload.reason === 'string' && { reason: payload.reason }),
        },
      });
    else if (name === 'run/aborted' || name === 'run/halted')
      for (const call of calls) {
        const { toolCallId } = call;
        const isUnbegun = Array.isArray(payload.unbegun) && payload.unbegun.includes(toolCallId);
        // A call that has started children has begun, whichever run waits for them.
        const state = awaitsChildren(call) ? 'begun' : isUnbegun ? 'unbegun' : call.state;
        change(toolCallId, { aborted: true, state });
      }
    else if (name === batchNotes.waiting || name === batchNotes.begun)
      // What was recorded elsewhere begins no call that was recorded here.
      for (const call of Array.isArray(payload.calls) ? payload.calls : [])
        if (isObject(call) && (elsewhere !== true || isElsewhere(calls, call.toolCallId)))
          change(call.toolCallId, {
            ...stateOf(name, elsewhere === true && call.for === 'tool' ? 'approval' : call.for),
            ...requestIn(call),
          });
  }
  return calls;
}

function isElsewhere(calls: readonly OpenCall[], id: unknown): boolean {
  return calls.find((call) => call.toolCallId === id)?.elsewhere === true;
}

function stateOf(name: string, waitsFor: unknown): Partial<OpenCall> {
  if (name === batchNotes.begun) return { state: 'begun' };
  return isAwaited(waitsFor) ? { state: 'waiting', for: waitsFor } : { state: 'held' };
}

function callsIn(payload: Readonly<Record<string, Json>>, meta: Entry['meta']): OpenCall[] {
  if (payload.role !== 'assistant' || !Array.isArray(payload.content)) return [];
  const content = payload.content.filter(isObject) as unknown as readonly Part[];
  const raw = isObject(meta.raw_input) ? meta.raw_input : {};
  return content.filter(isClientCall).map((part) => ({
    toolCallId: String(part.toolCallId),
    toolName: String(part.toolName),
    input: (part.input ?? {}) as Json,
    ...(Object.hasOwn(raw, String(part.toolCallId)) && { invalid: 'its arguments are not JSON' }),
    state: meta.partial === true ? 'unbegun' : 'begun',
  }));
}
