import type { Draft, Json } from '@tapedeck/tape';
import { note } from '@tapedeck/tape';
import type { ModelMessage, Tool } from 'ai';
import { messageOf } from '../errors.ts';
import type { Hold } from '../lease/hold.ts';
import { itemDrafts } from '../run/intake.ts';
import type { Decision, OpenCall } from '../stream/call.ts';
import { grantNotes, recordPermit } from '../terms/permit-notes.ts';
import { openPermits, type Permit, type Permits } from '../terms/permits.ts';
import { lastSenders } from '../terms/senders.ts';
import { withToolRules } from '../terms/tool-rules.ts';
import { batchNotes, openBatch } from '../tools/open-batch.ts';
import type { ToolTraits } from '../tools/traits.ts';
import { askProgram, requestOf } from '../turn/approval.ts';
import { workspaceOf } from '../workspace/open.ts';
import { leaseOf, type ToolPlace } from './tool-lease.ts';

/** What the AI SDK gives a tool. */
export interface Given {
  readonly input: unknown;
  readonly options: Pick<Parameters<NonNullable<Tool['execute']>>[1], 'toolCallId' | 'messages' | 'context'>;
}

type AskingTool = ToolTraits & Pick<Tool, 'needsApproval'> & { readonly name: string };

/** What decides on the calls of a session now. */
export async function permitsOf(
  { parts, session }: ToolPlace,
  tool: ToolTraits & { readonly name: string },
): Promise<Permits> {
  const line = await parts.worker({ session: session.name, id: session.id }).line();
  const senders = await lastSenders(parts.store, session.id);
  const tools = { ...parts.config.tools, [tool.name]: tool };
  const ruled = { ...parts, config: withToolRules(parts.config, tools) };
  return await openPermits(ruled, { line, workspace: await workspaceOf(parts, session.id) }, senders);
}

/**
 * Whether the AI SDK asks about a call: where rules ask, or the tool itself. The call then waits for approval on the tape,
 * as one of a run, with its claims and offers. What rules deny, and what has an answer on the tape, is not asked.
 */
export async function isAsked(place: ToolPlace, tool: AskingTool, given: Given): Promise<boolean> {
  const { input, options } = given;
  const own =
    typeof tool.needsApproval === 'function'
      ? await tool.needsApproval(input as never, options as never)
      : tool.needsApproval;
  const permits = await permitsOf(place, tool);
  if (own !== true && !permits.isRuled) return false;
  const permit = await permits.permit({ tool: tool.name, input }, tool);
  if (permit.verdict === 'deny') return false;
  if (permit.verdict === 'allow' && (own !== true || permit.isGranted)) return false;
  const held = await leaseOf(place).take();
  try {
    const call = await openCall(place, held, options.toolCallId);
    // `execute` refuses a call that is not there, and follows an answer that is.
    if (call === undefined) return true;
    if (call.decision !== undefined) return false;
    if (call.state === 'waiting' && call.for === 'approval') return true;
    return !(await recordRequest(place, held, { call, permit }));
  } finally {
    await leaseOf(place).release();
  }
}

/** The open call of an id, with the answer to it that waits in the inbox, which is recorded. */
export async function openCall(
  { parts, session }: ToolPlace,
  held: Hold,
  toolCallId: string,
): Promise<OpenCall | undefined> {
  const open = await openBatch(parts.store, session.id);
  const answers = (await held.inbox()).filter(
    ({ body }) => body.type === 'answer' && body.toolCallId === toolCallId,
  );
  if (answers.length > 0) {
    const run = parts.newId();
    await held.drain(answers.map((item) => ({ id: item.id, drafts: itemDrafts(item, { open, run }) })));
    return (await openBatch(parts.store, session.id)).find((call) => call.toolCallId === toolCallId);
  }
  return open.find((call) => call.toolCallId === toolCallId);
}

/** Records that a call needs an answer, or the one that the deck gives at once. Returns whether it gave one. */
async function recordRequest(
  { parts, session }: ToolPlace,
  held: Hold,
  { call, permit }: { readonly call: OpenCall; readonly permit: Permit },
): Promise<boolean> {
  const run = parts.newId();
  const append = async (drafts: readonly Draft[]) =>
    await parts.store.entries.append(session.id, drafts, { lease: held.lease });
  await recordPermit({ append, run }, call, permit);
  const { toolCallId, toolName, input } = call;
  const request = requestOf(permit, call);
  const parent = (await session.info()).parent;
  const asked = { session: session.name, ...(parent !== undefined && { parent }), toolCallId, toolName };
  const decision = await askProgram(parts.config.onApproval, {
    ...asked,
    input: structuredClone(input),
    ...request,
  }).catch((error: unknown): Decision => ({ approved: false, reason: messageOf(error) }));
  if (decision !== undefined) {
    const answered = note(batchNotes.answered, { toolCallId, ...decision } as Json);
    await append([answered, ...grantNotes(toolCallId, decision)]);
    return true;
  }
  const waiting = { toolCallId, toolName, for: 'approval', ...request };
  await append([note(batchNotes.waiting, { run, calls: [waiting] as unknown as Json })]);
  parts.worker({ session: session.name, id: session.id }).emitEvent({
    type: 'tool-waiting',
    calls: [{ toolCallId, name: toolName, input, for: 'approval', ...request }],
  });
  return false;
}

/** The answer that a history gives to the request for the approval of a call. Pure. */
export function answerIn(messages: readonly ModelMessage[], toolCallId: string): Decision | undefined {
  const asked = new Set<string>();
  let answer: Decision | undefined;
  for (const { role, content } of messages) {
    if (role === 'assistant' && typeof content !== 'string')
      for (const part of content)
        if (part.type === 'tool-approval-request' && part.toolCallId === toolCallId)
          asked.add(part.approvalId);
    if (role !== 'tool') continue;
    for (const part of content)
      if (part.type === 'tool-approval-response' && asked.has(part.approvalId))
        answer = {
          approved: part.approved === true,
          ...(part.reason !== undefined && { reason: part.reason }),
        };
  }
  return answer;
}
