import { compaction, type Entry, isObject, type Seq, view } from '@tapedeck/tape';
import type { LoopContext } from './loop.ts';
import { callModel, modelMeta } from './model.ts';
import { transcriptOf } from './transcript.ts';
import { costMeta, type Usage, usageJson } from './usage.ts';

const instructions =
  'You are handing over a conversation to a colleague who has not seen it. Summarise the transcript: the goal, ' +
  'what was decided and why, what was done and found, names, paths and values that will be needed, and what is ' +
  'left to do. Write the summary alone.';

/**
 * Makes room after a model refused what the session holds: a summary takes the place of all that came before the last
 * user message, or, when the present turn is what is large, before its last step. Nothing is removed: the summary is an
 * entry that cites its range (N48, N50). What that took; nothing when there is nothing to summarise, or no summary could be had.
 */
export async function makeRoom(context: LoopContext, entries: readonly Entry[]): Promise<Usage | undefined> {
  const cut = cutOf(entries);
  if (cut === undefined) return undefined;
  const before = entries.filter((entry) => entry.seq < cut);
  const { messages, tokens } = view(before);
  const { model = context.model } = { model: context.summarizer };
  context.enter('compacting');
  try {
    const answer = await context.calling(async () =>
      callModel({
        model,
        instructions,
        messages: [{ role: 'user', content: transcriptOf(messages, tokens * 2) }],
        tools: {},
        signal: context.signal,
        maxOutputTokens: 4_096,
        onChunk: () => {},
      }),
    );
    if (answer.text.trim() === '') return undefined;
    const range = [before[0]?.seq ?? cut - 1, cut - 1] as const;
    const state = { summary: answer.text, range, trigger: 'overflow', tokens_before: tokens };
    const meta = {
      run: context.run,
      ...modelMeta(model),
      usage: usageJson(answer.usage),
      ...costMeta(context.cost, answer.usage, modelMeta(model).model),
    };
    const { to } = await context.append([{ ...compaction(state, { keepFrom: cut }), meta }]);
    context.tell({ type: 'compacted', seq: to, range });
    return answer.usage;
  } catch {
    // The run ends with what the model said of its size, which is what is wrong; the summary was a way out of it.
    return undefined;
  }
}

/** Where what stays begins: at a message before which no call is open. */
function cutOf(entries: readonly Entry[]): Seq | undefined {
  const first = entries.find((entry) => entry.kind === 'message' || entry.mark === 'boundary');
  const roleOf = ({ payload }: Entry) => (isObject(payload) ? payload.role : undefined);
  const messages = entries.filter((entry) => entry.kind === 'message' && entry.seq > (first?.seq ?? 0));
  const asked = messages.findLast((entry) => roleOf(entry) === 'user');
  return (asked ?? messages.findLast((entry) => roleOf(entry) === 'assistant'))?.seq;
}
