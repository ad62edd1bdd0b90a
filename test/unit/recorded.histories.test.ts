import type { LanguageModelV4, LanguageModelV4Prompt } from '@ai-sdk/provider';
import { type Divergence, recorded } from '@tapedeck/runtime';
import type { Part } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { openDeck } from '../support/deck.ts';
import { seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';

const usage = {
  inputTokens: { total: 3, noCache: 3, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 3, text: 3, reasoning: undefined },
};

/** A model that answers with a number, and every second time calls one or two tools. */
function counting(): LanguageModelV4 {
  let calls = 0;
  return {
    specificationVersion: 'v4',
    provider: 'counting',
    modelId: 'counting',
    supportedUrls: {},
    doStream: () => Promise.reject(new Error('it gives whole answers')),
    doGenerate: async () => {
      calls += 1;
      const ids = calls % 2 === 0 ? [] : [`c${calls}`, ...(calls % 3 === 0 ? [`d${calls}`] : [])];
      const input = '{}';
      return {
        content: [
          { type: 'text', text: `Answer ${calls}.` },
          ...ids.map((toolCallId) => ({ type: 'tool-call', toolCallId, toolName: 'look', input }) as const),
        ],
        finishReason: { unified: ids.length > 0 ? 'tool-calls' : 'stop', raw: undefined },
        usage,
        warnings: [],
      };
    },
  };
}

type Message = Exclude<LanguageModelV4Prompt[number], { role: 'system' }>;

/** What a history says, whatever its messages are joined to. */
function said(messages: readonly { readonly role: string; readonly content: unknown }[]): string[] {
  return messages.flatMap(({ role, content }) =>
    (content as readonly Part[]).map(({ type, text, toolCallId, output }) =>
      type === 'text'
        ? `${role}: ${String(text)}`
        : `${type} ${String(toolCallId)} ${JSON.stringify(output ?? '')}`,
    ),
  );
}

const says = (role: 'user' | 'assistant', text: string): Message =>
  ({ role, content: [{ type: 'text', text }] }) as Message;

const seed = Number(process.env.TAPEDECK_SEED ?? 20261124);

test('after each call the view is the history that was sent and its answer, whatever the application did to it', async () => {
  const random = seeded(seed);
  for (let round = 0; round < sized(8, 8, 2_000); round += 1) {
    using store = openStore();
    await using deck = await openDeck({ store });
    const main = await deck.session('main');
    const found: Divergence[] = [];
    const model = await recorded(main, counting(), { onDivergence: (one) => found.push(one) });
    let history: Message[] = [];
    let n = 0;
    for (let call = 0; call < 12; call += 1) {
      const before = found.length;
      const first = history.findIndex(({ role }) => role === 'user');
      /** Where a history may begin or end: at a message of the user. */
      const starts = history.flatMap(({ role }, i) => (role === 'user' && i > first ? [i] : []));
      const at = starts[random.below(Math.max(1, starts.length))];
      const act =
        at === undefined
          ? 'nothing'
          : (['nothing', 'nothing', 'cut', 'window', 'edit', 'summarise'] as const)[random.below(6)];
      if (at !== undefined && act === 'cut') history = history.slice(0, at);
      if (at !== undefined && act === 'window') history = history.slice(at);
      if (at !== undefined && act === 'edit') history = history.with(at, says('user', `Edited ${call}`));
      if (at !== undefined && act === 'summarise')
        history = [says('user', `Summary ${call}`), ...history.slice(at)];
      n += 1;
      history.push(says('user', `Question ${n}`));
      if (random.below(4) === 0)
        history.push(says('assistant', `Of the application ${n}`), says('user', 'Well?'));
      const { content } = await model.doGenerate({ prompt: history });
      const calls = content.filter((part) => part.type === 'tool-call');
      const answer = content.map((part) => (part.type === 'tool-call' ? { ...part, input: {} } : part));
      expect(said((await main.view()).messages).filter((line) => !line.includes('No result'))).toEqual(
        said([...history, { role: 'assistant', content: answer }]),
      );
      history.push({ role: 'assistant', content: answer } as Message);
      if (calls.length > 0)
        history.push({
          role: 'tool',
          content: calls.map(({ toolCallId, toolName }) => ({
            type: 'tool-result',
            toolCallId,
            toolName,
            output: { type: 'text', value: `seen ${call}` },
          })),
        });
      if (act === 'nothing') expect(found.length).toBe(before);
      else expect(found.length).toBe(before + 1);
    }
    expect([...store.verify()]).toEqual([]);
    expect((await main.usage()).steps).toBe(12);
  }
});
