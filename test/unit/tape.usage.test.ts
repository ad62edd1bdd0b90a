import { assistant, compaction, type Draft, user } from '@tapedeck/tape';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';

const count = fc.oneof(fc.nat(1000), fc.constantFrom(0.5, -1, 1e300, 'x'));
const usage = fc.record({ input: count, output: count, cacheRead: count }, { requiredKeys: [] });
const meta = fc.record(
  {
    model: fc.constantFrom('a/b', 'c/d', ''),
    usage,
    usageBefore: usage,
    cost: fc.constantFrom(0, 0.1, 0.7, 1e-9),
  },
  { requiredKeys: [] },
);
const draft: fc.Arbitrary<Draft> = fc.oneof(
  meta.map((of) => assistant('An answer', of)),
  meta.map((of) => user('A question', of)),
  meta.map((of) => ({ ...compaction({ summary: 'So far.', range: [2, 3] }), meta: of })),
);
const act = fc.oneof(
  fc.array(draft, { minLength: 1, maxLength: 5 }).map((drafts) => ({ drafts })),
  fc.nat().map((redacted) => ({ redacted })),
);

test('the stored sums follow from the entries after any appends and redactions', () => {
  fc.assert(
    fc.property(fc.array(act, { maxLength: 20 }), (acts) => {
      using store = openStore();
      store.sessions.open('main');
      for (const one of acts)
        if ('drafts' in one) store.entries.append('main', one.drafts);
        else {
          const messages = [...store.entries.read('main')].filter(
            ({ kind, payload }) => payload !== null && (kind === 'message' || kind === 'compaction'),
          );
          const chosen = messages[one.redacted % messages.length];
          if (chosen !== undefined) store.entries.redact('main', chosen.seq, 'a test');
        }
      expect([...store.verify()]).toEqual([]);
    }),
    { numRuns: sized(25, 40, 20_000) },
  );
});

test('the sums follow from the entries when the first writing of an answer is redacted that was written again', () => {
  using store = openStore();
  store.sessions.open('main');
  const usage = { input: 3, output: 5 };
  store.entries.append('main', [
    assistant('An ans', { model: 'a/b', usage }),
    assistant('An answer', { model: 'a/b', usage: { input: 3, output: 7 }, usageBefore: usage }),
  ]);
  store.entries.redact('main', 2, 'a test');
  expect([...store.verify()]).toEqual([]);
  expect(store.sessions.calls()).toMatchObject([{ steps: 0, usage: { input: 0, output: 2 } }]);
  store.entries.redact('main', 3, 'a test');
  expect([...store.verify()]).toEqual([]);
  expect(store.sessions.calls()).toEqual([]);
});
