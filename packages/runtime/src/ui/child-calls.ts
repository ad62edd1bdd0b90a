import type { Entry, Json, Part, TapeStore } from '@tapedeck/tape';
import { isClientCall, isObject } from '@tapedeck/tape/internal';
import type { Decision } from '../stream/call.ts';
import { type Chunk, decisionChunk } from '../stream/chunks.ts';
import { outputChunk } from '../stream/replay.ts';
import { childrenOf, entriesSince, type StartedChild } from './started.ts';

/** A call of a session below that waits, or waited, for an answer, as the sessions above show it. */
export interface ChildCall {
  /** The name of its session, and its id there. */
  readonly session: string;
  readonly toolCallId: string;
  /** Its id in the sessions above: calls of different sessions can have one id. */
  readonly ref: string;
  readonly toolName: string;
  readonly input: Json;
  readonly for: 'approval' | 'result';
  /** When it began to wait, in milliseconds since the epoch. */
  readonly at: number;
  readonly decision?: Decision;
  /** The payload of its result. */
  readonly result?: Part;
}

/** The name of a call in the sessions above its own. */
export function refOf(session: string, toolCallId: string): string {
  return `${session}/${toolCallId}`;
}

/**
 * The calls that waited for answers in these children since they were started or resumed, and in those to which they
 * delegate in turn, in the order in which they began to wait.
 */
export async function childCallsOf(
  store: TapeStore,
  children: readonly StartedChild[],
): Promise<readonly ChildCall[]> {
  const calls: ChildCall[] = [];
  for (const child of children) {
    const { info } = child;
    const waits = await Array.fromAsync(
      store.entries.read(info.id, { own: true, kind: 'event', name: 'run/waiting' }),
    );
    if (waits.length === 0) continue;
    const entries = await entriesSince(store, child);
    calls.push(...callsIn(info.session, entries));
    const below = await childrenOf({ store, session: info.id }, { entries });
    calls.push(
      ...(await childCallsOf(
        store,
        below.filter(({ isAwaited }) => isAwaited),
      )),
    );
  }
  return calls.toSorted((a, b) => a.at - b.at);
}

/** The calls of a session that waited for answers. Pure. */
function callsIn(session: string, entries: readonly Entry[]): readonly ChildCall[] {
  const parts = new Map<string, Part>();
  const calls = new Map<string, ChildCall>();
  const change = (id: unknown, more: Partial<ChildCall>) => {
    const call = calls.get(String(id));
    if (call !== undefined && call.result === undefined) calls.set(String(id), { ...call, ...more });
  };
  for (const { kind, name, payload, at } of entries) {
    if (!isObject(payload)) continue;
    if (kind === 'message' && payload.role === 'assistant')
      for (const part of Array.isArray(payload.content) ? (payload.content as unknown as Part[]) : [])
        if (isClientCall(part)) parts.set(String(part.toolCallId), part);
    if (kind === 'tool-result') change(payload.toolCallId, { result: payload as unknown as Part });
    else if (name === 'call/answered')
      change(payload.toolCallId, {
        decision: {
          approved: payload.approved === true,
          ...(typeof payload.reason === 'string' && { reason: payload.reason }),
        },
      });
    else if (name === 'run/waiting')
      for (const { toolCallId, toolName, for: what } of (Array.isArray(payload.calls)
        ? payload.calls
        : []
      ).filter(isObject)) {
        const id = String(toolCallId);
        const before = calls.get(id);
        if ((what !== 'approval' && what !== 'result') || (before && before.result === undefined)) continue;
        const input = (parts.get(id)?.input ?? {}) as Json;
        const ref = refOf(session, id);
        calls.set(id, { session, toolCallId: id, ref, toolName: String(toolName), input, for: what, at });
      }
  }
  return [...calls.values()];
}

/** Whether a call still waits for its answer. */
export function isUnanswered({ decision, result }: ChildCall): boolean {
  return decision === undefined && result === undefined;
}

/** Such calls as a step of the answer of the session above. */
export function childCallChunks(calls: readonly ChildCall[]): readonly Chunk[] {
  if (calls.length === 0) return [];
  return [{ type: 'start-step' }, ...calls.flatMap(chunksOf), { type: 'finish-step' }];
}

function chunksOf(call: ChildCall): readonly Chunk[] {
  const { session, toolCallId, ref, toolName, input, decision, result } = call;
  const asks = call.for === 'approval';
  return [
    { type: 'tool-input-available', toolCallId: ref, toolName, input, toolMetadata: { session, toolCallId } },
    ...(asks ? [{ type: 'tool-approval-request', approvalId: ref, toolCallId: ref } as const] : []),
    ...(decision !== undefined && asks ? [decisionChunk({ toolCallId: ref, ...decision })] : []),
    ...(result === undefined ? [] : [outputChunk({ ...result, toolCallId: ref }, false)]),
  ];
}

/** The id of a call of a session below that a chunk shows; undefined for other chunks. Pure. */
export function childCallIn(chunk: Chunk): string | undefined {
  if (chunk.type !== 'tool-input-available') return undefined;
  return chunk.toolMetadata?.session === undefined ? undefined : chunk.toolCallId;
}
