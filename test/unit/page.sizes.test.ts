import { anchor, assistant, openTapeStore, type Part, toolCall, toolResult, user } from '@tapedeck/tape';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { pageOn } from '../support/page.ts';

/** The most bytes of an answer, whatever a tape has. */
const bytesMax = 2_000_000;

const long = fc
  .tuple(fc.constantFrom('x', '\u0000', '\ud800', '“', '<script>', '\u202e'), fc.constantFrom(1, 100, 30_000))
  .map(([text, times]) => text.repeat(times));

const part: fc.Arbitrary<Part> = fc.oneof(
  long.map((text) => ({ type: 'text', text })),
  long.map((text) => ({ type: 'reasoning', text })),
  fc
    .tuple(long, long)
    .map(([name, text]) => toolCall(`c${name.length}${text.length}`, name || 'x', { [text]: text })),
  long.map((data) => ({ type: 'file', mediaType: data, filename: data, data: 'AAAA' })),
);

const draft = fc.oneof(
  long.map((text) => user(text)),
  fc.array(part, { maxLength: 30 }).map((parts) => assistant(parts, { model: 'm'.repeat(5_000) })),
  long.map((text) => toolResult({ toolCallId: 'c', toolName: text || 'x' }, text)),
  fc.tuple(long, long).map(([key, text]) => anchor('here', { [key]: text, summary: text })),
);

test('no answer is larger than a limit, whatever the tape has', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(draft, { minLength: 1, maxLength: 60 }), async (drafts) => {
      using store = openTapeStore(':memory:', { redact: false });
      store.sessions.open('main');
      for (const one of drafts) store.entries.append('main', [one]);
      store.lineage.fork('main', { name: 'kid', intention: { nextSteps: 'x'.repeat(50_000) } });
      const page = pageOn(store);
      const head = store.sessions.find('main')?.head ?? 0;
      const answers = await Promise.all([
        page.sessions({ all: true }),
        page.sessions({ tree: true }),
        page.lineage({}),
        page.lineage({ session: 'main', all: true }),
        page.session({ session: 'main' }),
        page.timeline({ session: 'main', from: 1, to: 1_000_000, all: true, hidden: true }),
        page.seen({ session: 'main', seq: head }),
        page.parting({ a: 'main@1', b: 'kid' }),
        page.trace({ session: 'main', seq: head }),
        page.usage({}),
      ]);
      for (const answer of answers) expect(JSON.stringify(answer).length).toBeLessThan(bytesMax);
    }),
    { numRuns: 8 },
  );
});

test('a long part of a tape comes in as many answers as it takes', async () => {
  using store = openTapeStore(':memory:');
  store.sessions.open('main');
  const calls = Array.from({ length: 90 }, (_, n) => toolCall(`c${n}`, 'read', { text: 'x'.repeat(2_000) }));
  for (let n = 0; n < 40; n += 1) store.entries.append('main', [user('Go.'), assistant(calls)]);
  const page = pageOn(store);
  const seqs: number[] = [];
  let parts = 0;
  for (let from = 2; from <= 81; ) {
    const part = await page.timeline({ session: 'main', from, to: from + 199 });
    expect(JSON.stringify(part).length).toBeLessThan(bytesMax);
    seqs.push(...part.items.map(({ seq }) => seq));
    from = part.to + 1;
    parts += 1;
  }
  expect(parts).toBeGreaterThan(3);
  expect(seqs).toEqual(Array.from({ length: 80 }, (_, n) => n + 2));
});
