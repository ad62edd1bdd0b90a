import {
  type Draft,
  type InboxItem,
  isObject,
  type Json,
  note,
  type Taken,
  toolResult,
  user,
} from '@tapedeck/tape';
import type { Job, Stage } from './job.ts';
import type { LoopContext } from './loop.ts';
import { answerFault, awaitsAnswer, batchNotes, type OpenCall, openBatch } from './open-batch.ts';
import { superseded } from './orphans.ts';
import { decide } from './queue.ts';
import { forkTermsOf } from './settings.ts';
import { denied, plainOutput } from './tools.ts';

/** Appends what the run begins with; input answers the calls that wait for somebody: they are superseded. */
export async function begin(
  stage: Stage,
  { input, items = [], run, options }: Job,
  { context, spec }: { context: LoopContext; spec: string | undefined },
): Promise<void> {
  const { hold, parts, session } = stage;
  const open = (await openBatch(parts.store, session.id)).filter(({ state }) => state !== 'begun');
  const isInput = input !== undefined || items.some(({ body }) => body.type === 'input');
  const before = isInput ? superseded(open) : [];
  if (input !== undefined) {
    await hold.drain();
    const meta = { run, source: 'user', ...options.meta, ...(spec !== undefined && { model: spec }) };
    await context.append([...before, user(input, meta)]);
    return;
  }
  const taken = items.map((item, i): Taken => {
    const drafts = itemDrafts(item, { open, run, spec });
    return { id: item.id, drafts: i === 0 ? [...before, ...drafts] : drafts };
  });
  await hold.drain(taken);
}

/** The entries that an item of the inbox becomes. */
export function itemDrafts(
  { body, id, source }: InboxItem,
  { open, run, spec }: { open: readonly OpenCall[]; run: string; spec: string | undefined },
): readonly Draft[] {
  const facts = { run, ...(spec !== undefined && { model: spec }) };
  if (body.type === 'input')
    return body.drafts.map((draft) => ({ ...draft, meta: { ...facts, ...draft.meta } }));
  if (body.type !== 'answer') return [];
  const { toolCallId, answer } = body;
  const call = open.find((one) => one.toolCallId === toolCallId && awaitsAnswer(one));
  const fault = answerFault(call, answer);
  if (call !== undefined && isObject(answer) && fault === undefined) {
    if (call.for === 'approval') return [note(batchNotes.answered, { toolCallId, ...answer })];
    const { output, reason } = answer;
    const result =
      output === undefined ? denied(call, asText(reason)).draft : toolResult(call, plainOutput(output));
    return [{ ...result, meta: { run, paths: { read: [], write: [] } } }];
  }
  const message = `cannot answer call '${toolCallId}': ${fault}`;
  return [note('inbox/refused', { id, source, type: body.type, code: 'SESSION_NO_CALL', message })];
}

/** Does what arrived in the inbox between two steps, and takes in what is to steer this run. */
export async function takeMessages(
  stage: Stage,
  context: LoopContext,
  { at, spec }: { at: 'step' | 'last'; spec: string | undefined },
): Promise<boolean> {
  const { hold } = stage;
  const inbox = await hold.inbox();
  if (inbox.length === 0) return false;
  const decision = decide(inbox, at, hold.lease.owner);
  if (decision.do === 'abort') stage.abort(decision.reason);
  const items = decision.do === 'steer' ? decision.items : [];
  await hold.drain(
    items.map((item) => ({ id: item.id, drafts: itemDrafts(item, { open: [], run: context.run, spec }) })),
    { later: await mergesForLater(context, inbox) },
  );
  if (items.length > 0) context.tell({ type: 'steered', messages: items.length });
  return items.length > 0;
}

/** Results of children that this run did not ask for, and that can wait until it has ended. */
async function mergesForLater({ store, run }: LoopContext, inbox: readonly InboxItem[]): Promise<string[]> {
  const later: string[] = [];
  for (const { id, body } of inbox) {
    if (body.type !== 'merge' || body.draft.at === 'step') continue;
    const child = body.draft.at === 'idle' ? undefined : await store.find(body.draft.child);
    const asked = child === undefined ? undefined : (await forkTermsOf(store, child)).terms.run;
    if (asked !== run) later.push(id);
  }
  return later;
}

function asText(value: Json | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
