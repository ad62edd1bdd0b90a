import { assistant, type Draft, type Part, toolCall, toolResult, user, view } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { entriesOf } from '../support/entries.ts';
import { sized } from '../support/size.ts';

/** Large enough that a view of quadratic cost does not finish before the test ends. */
const many = sized(30_000, 30_000, 100_000);
const shown = (drafts: readonly Draft[]) =>
  view(entriesOf(drafts), { target: { provider: 'anthropic.messages' } }).messages;

test('calls that a server renumbers in each answer stay distinct, however many', () => {
  const call = { toolCallId: 'call_0', toolName: 'read' };
  const step = [assistant([toolCall('call_0', 'read', {})]), toolResult(call, 'Fine.')];
  const messages = shown([user('Go.'), ...Array.from({ length: many }, () => step).flat()]);
  expect(messages).toHaveLength(2 * many + 1);
  expect(messages.at(-1)?.content[0]?.toolCallId).toBe(`call_0_${many}`);
});

test('provider calls without a result are rendered as text, however many', () => {
  const searches = Array.from({ length: many }, (_, i) => ({
    ...assistant([
      {
        type: 'tool-call',
        toolCallId: `s${i}`,
        toolName: 'search',
        input: {},
        providerExecuted: true,
      } as Part,
    ]),
    meta: { provider: 'anthropic.messages' },
  }));
  const messages = shown([user('Go.'), ...searches]);
  expect(messages[1]?.content[0]?.text).toContain('search was called by the provider');
  // The last is for the provider to continue with.
  expect(messages.at(-1)?.content[0]).toMatchObject({ type: 'tool-call', toolCallId: `s${many - 1}` });
});
