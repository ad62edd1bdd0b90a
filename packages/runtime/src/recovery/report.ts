import { type Draft, type Json, type Seq, type SessionInfo, type TapeStore, view } from '@tapedeck/tape';
import { isObject, leftoverEntries } from '@tapedeck/tape/internal';
import { viewPolicyOf } from '../config/config.ts';
import type { DelegationParts } from '../delegation/parts.ts';
import type { AwaitedAnswer, CallName, OpenCall } from '../stream/call.ts';
import { awaitsAnswer, openBatch, openCallsOf } from '../tools/open-batch.ts';
import { isRepeatable, nameOf } from '../tools/traits.ts';

/**
 * What a recovery does with a session. `continue`: it runs on; `abort`: its run ends as aborted; `merge`: it
 * had ended, and only its result was due; `answer`: its run was over, and only calls of it lacked results; `wait`:
 * calls need answers first; `leave`: another process runs it.
 */
export type RecoveryAct = 'continue' | 'abort' | 'merge' | 'answer' | 'wait' | 'leave';

/**
 * What became of a call that had no result. `repeated`: it ran again, because its tool is safe to repeat;
 * `unknown`: it may have run, and got the result "outcome unknown"; `not-run`: it cannot have run, and got a
 * result that says so; `answered`: it got the outcomes of its children, or an answer that waited in the
 * inbox; `open`: it waits for an answer.
 */
export type CallEnd = 'repeated' | 'unknown' | 'not-run' | 'answered' | 'open';

/** What a recovery did with one session, or would do. */
export interface RecoveredSession {
  readonly session: string;
  /** ULID. */
  readonly id: string;
  readonly act: RecoveryAct;
  /** The name of the model that it continues with, if it has one. */
  readonly model?: string;
  /**
   * The digest of the view that the killed process left, recomputed from the tape, and that after the
   * recovery. Of a dry run, only the first.
   */
  readonly view: { readonly before: string; readonly after?: string };
  /** The last positions before and after. */
  readonly head: { readonly before: Seq; readonly after?: Seq };
  /** Whether a part of an answer was saved, and not on the tape yet. */
  readonly saved: boolean;
  /** The calls that had no result, and those that the continued run left open. */
  readonly calls: readonly (CallName & {
    readonly became: CallEnd;
    /** What an open call waits for. */
    readonly for?: AwaitedAnswer;
  })[];
  /** Messages and answers that are left in the inbox; of a dry run, those that wait there now. */
  readonly queued: number;
}

/** A session as the killed process left it. */
export interface Left {
  readonly info: SessionInfo;
  readonly digest: string;
  readonly saved: boolean;
  readonly calls: readonly OpenCall[];
  /** The calls that started children, which get the outcomes of these. */
  readonly spawning: ReadonlySet<string>;
  readonly queued: number;
}

/** Reads a session as the killed process left it. */
export async function lookAtLeft(parts: DelegationParts, info: SessionInfo): Promise<Left> {
  const { store } = parts;
  const children = await store.sessions.list({ parent: info.id, all: true });
  const saved = (await store.live.read(info.id)).map(leftoverEntries);
  return {
    info,
    digest: await digestOf(parts, info.id),
    saved: saved.some((entries) => entries.length > 1),
    calls: [...(await openBatch(store, info)), ...saved.flatMap(callsIn)],
    spawning: new Set(children.flatMap(({ spawnCall }) => spawnCall ?? [])),
    queued: await queuedIn(store, info.id),
  };
}

/** The calls of a saved part of an answer, whose input was cut off or which had not begun. */
function callsIn(entries: readonly Draft[]): readonly OpenCall[] {
  return openCallsOf(
    entries.map(({ kind, payload, meta }) => ({ kind, payload: payload as Json, meta: meta ?? {} })),
  );
}

/** What a recovery would do with a session. */
export function planned(
  { config }: DelegationParts,
  { info, digest, saved, calls, spawning, queued }: Left,
  { act, model }: { readonly act: RecoveryAct; readonly model: string | undefined },
): RecoveredSession {
  const tools = config.tools ?? {};
  const becomes = (call: OpenCall): CallEnd => {
    if (act === 'leave' || act === 'wait') return 'open';
    if (call.state === 'unbegun') return 'not-run';
    if (spawning.has(call.toolCallId)) return 'answered';
    if (call.state === 'begun')
      return act === 'continue' && isRepeatable(tools, call) ? 'repeated' : 'unknown';
    return act === 'abort' ? 'not-run' : awaitsAnswer(call) ? 'open' : 'answered';
  };
  return {
    session: info.session,
    id: info.id,
    act,
    ...(model !== undefined && { model }),
    view: { before: digest },
    head: { before: info.head },
    saved,
    calls: calls.map((call) => ({ ...nameOf(tools, call), ...stateOf(call, becomes(call)) })),
    queued,
  };
}

/** What a recovery did with a session, read from its tape. */
export async function done(
  parts: DelegationParts,
  left: Left,
  { act, model }: { readonly act: RecoveryAct; readonly model: string | undefined },
): Promise<RecoveredSession> {
  const { store, config } = parts;
  const { info, digest, saved, calls } = left;
  const tools = config.tools ?? {};
  const now = (await store.sessions.find(info.id)) ?? info;
  const results = await resultsAfter(store, info);
  const open = await openBatch(store, now);
  const became = ({ toolCallId, state }: OpenCall): CallEnd => {
    const result = results.get(toolCallId) ?? 'open';
    if (result === 'outcomes') return 'answered';
    if (result !== 'result') return result;
    return state === 'begun' ? 'repeated' : 'answered';
  };
  const nowOf = (call: OpenCall) => open.find(({ toolCallId }) => toolCallId === call.toolCallId) ?? call;
  const later = open.filter((call) => !calls.some(({ toolCallId }) => toolCallId === call.toolCallId));
  return {
    session: info.session,
    id: info.id,
    act,
    ...(model !== undefined && { model }),
    view: { before: digest, after: await digestOf(parts, info.id) },
    head: { before: info.head, after: now.head },
    saved,
    calls: [
      ...calls.map((call) => ({ ...nameOf(tools, call), ...stateOf(nowOf(call), became(call)) })),
      ...later.map((call) => ({ ...nameOf(tools, call), ...stateOf(call, 'open') })),
    ],
    queued: await queuedIn(store, info.id),
  };
}

function stateOf({ for: what }: OpenCall, became: CallEnd) {
  return became === 'open' && what !== undefined ? { became, for: what } : { became };
}

/** The results that a session got after its row was read, by call. The first one is the end of the call. */
async function resultsAfter(
  store: TapeStore,
  { id, head }: SessionInfo,
): Promise<ReadonlyMap<string, 'result' | 'unknown' | 'not-run' | 'outcomes'>> {
  const found = new Map<string, 'result' | 'unknown' | 'not-run' | 'outcomes'>();
  for await (const { payload, meta } of store.entries.read(id, { from: head + 1, kind: 'tool-result' })) {
    if (!isObject(payload) || found.has(String(payload.toolCallId))) continue;
    const { type, value } = isObject(payload.output) ? payload.output : {};
    const closed = String(value).startsWith('Not run') ? 'not-run' : 'unknown';
    const what = meta.source !== 'repair' ? 'result' : type === 'error-text' ? closed : 'outcomes';
    found.set(String(payload.toolCallId), what);
  }
  return found;
}

async function digestOf({ store, config }: DelegationParts, id: string): Promise<string> {
  const policy = viewPolicyOf(config);
  return view(await Array.fromAsync(store.views.entries(id, { policy })), { policy }).digest;
}

async function queuedIn(store: TapeStore, id: string): Promise<number> {
  const inbox = await store.inbox.list(id);
  return inbox.filter(({ body: { type } }) => type === 'input' || type === 'answer').length;
}
