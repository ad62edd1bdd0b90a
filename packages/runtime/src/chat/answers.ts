import type { Entry, Json } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { UIMessage } from 'ai';
import type { Decision, OpenCall } from '../stream/call.ts';
import { awaitsAnswer, batchNotes, openCallsOf } from '../tools/open-batch.ts';
import type { ChildCall } from '../ui/child-calls.ts';
import type { Turn } from '../ui/turns.ts';
import type { ChatBody } from './body.ts';
import { ChatError } from './errors.ts';

/** An answer to a call: a decision, or the output or error of a tool that the client ran. */
export type ChatAnswer = Decision | { readonly output: Json } | { readonly error: string };

/**
 * The answers in a message of a chat to the calls that wait in a turn, or `below` in what it delegates. Parts of calls that have the same answer on the
 * tape already are no answers.
 * @throws CHAT_CONFLICT for a call that the turn does not have, that does not wait, or that waits for another answer
 */
export function answersIn(
  message: UIMessage,
  turn: Pick<Turn, 'entries'>,
  {
    below = [],
    remember = {},
  }: {
    readonly below?: readonly ChildCall[];
    readonly remember?: ChatBody['remember'] | undefined;
  } = {},
): ReadonlyMap<string, ChatAnswer> {
  const open = new Map(
    [...openCallsOf(turn.entries), ...below.map(openOf)].map((call) => [call.toolCallId, call]),
  );
  const known = recorded(turn.entries);
  for (const { ref, result, decision } of below) {
    if (result !== undefined) known.results.add(ref);
    if (decision !== undefined) known.decisions.set(ref, decision.approved);
  }
  const answers = new Map<string, ChatAnswer>();
  for (const part of message.parts) {
    if (!isToolPart(part) || part.providerExecuted === true) continue;
    const { toolCallId, state } = part;
    if (state === 'input-streaming' || state === 'input-available' || state === 'approval-requested')
      continue;
    const call = open.get(toolCallId);
    const isRemembered = Object.hasOwn(remember, toolCallId);
    const given = isRemembered ? { remember: remember[toolCallId] ?? [] } : {};
    if (call !== undefined && awaitsAnswer(call))
      answers.set(toolCallId, { ...answerOf(part, call), ...given });
    else if (!isRecorded(part, known, call)) throw refused(toolCallId, 'it does not wait for this answer');
  }
  return answers;
}

type ToolPart = Extract<UIMessage['parts'][number], { toolCallId: string }>;

function isToolPart(part: UIMessage['parts'][number]): part is ToolPart {
  return part.type === 'dynamic-tool' || part.type.startsWith('tool-');
}

function answerOf(part: ToolPart, { toolCallId, for: what }: OpenCall): ChatAnswer {
  if (what === 'approval') {
    if (part.state !== 'approval-responded') throw refused(toolCallId, 'it waits for an approval');
    const { approved, reason } = part.approval;
    return { approved, ...(reason !== undefined && { reason }) };
  }
  if (part.state === 'output-available') return { output: (part.output ?? null) as Json };
  if (part.state === 'output-error') return { error: part.errorText };
  throw refused(toolCallId, 'it waits for its output');
}

/** A call of a session below, as the message of this one shows it. */
function openOf({ ref: toolCallId, toolName, input, for: what, decision, result }: ChildCall): OpenCall {
  return {
    toolCallId,
    toolName,
    input,
    state: result === undefined ? 'waiting' : 'held',
    for: what,
    ...(decision !== undefined && { decision }),
  };
}

interface Recorded {
  readonly results: Set<string>;
  readonly decisions: Map<string, boolean>;
}

/** The results and decisions on the tape. */
function recorded(entries: readonly Entry[]): Recorded {
  const results = new Set<string>();
  const decisions = new Map<string, boolean>();
  for (const { kind, name, payload } of entries) {
    if (!isObject(payload)) continue;
    if (kind === 'tool-result') results.add(String(payload.toolCallId));
    else if (name === batchNotes.answered)
      decisions.set(String(payload.toolCallId), payload.approved === true);
  }
  return { results, decisions };
}

function isRecorded(part: ToolPart, { results, decisions }: Recorded, call: OpenCall | undefined): boolean {
  const { toolCallId } = part;
  if (part.state !== 'approval-responded') return results.has(toolCallId);
  return (call?.decision?.approved ?? decisions.get(toolCallId)) === part.approval.approved;
}

function refused(call: string, why: string): ChatError {
  return new ChatError('CHAT_CONFLICT', `cannot answer call '${call}': ${why}`, { data: { call } });
}
