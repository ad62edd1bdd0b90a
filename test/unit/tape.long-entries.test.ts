import type { Draft } from '@tapedeck/tape';
import type { EntryQuery } from '@tapedeck/tape/store';
import { describe, expect, test } from 'vitest';
import { seeded } from '../bench/random.ts';
import { openStore } from '../support/store.ts';

/** Entries of some lengths: each fifth one an event, and each seventh an answer with a call. */
function draftsOf(lengths: readonly number[]): readonly Draft[] {
  return lengths.map((length, i) => {
    const text = 'x'.repeat(length);
    if (i % 5 === 4) return { kind: 'event', name: 'x/e', payload: text };
    if (i % 7 !== 6) return { kind: 'message', payload: { role: 'user', content: text } };
    const call = { type: 'tool-call', toolCallId: `c${i}`, toolName: 'Read', input: {} };
    return { kind: 'message', payload: { role: 'assistant', content: [{ type: 'text', text }, call] } };
  });
}

const queries: readonly EntryQuery[] = [
  ...[1, 2, 3, 9, 10, 11, 41, 42, 43, 170].map((limit) => ({ limit })),
  ...[1, 2, 130].map((from) => ({ from, limit: 140 })),
  ...[{ from: 3, to: 9 }, { to: 135 }, { own: true }, { own: false }, { last: 7 }],
  ...[
    { kind: 'event' },
    { kind: 'message', limit: 50 },
    { name: 'x/e' },
    { calls: true },
    { calls: true, last: 3 },
  ],
] as const;

describe('entries are read whole and in order, however long they are', () => {
  const random = seeded(11);
  const anyOf = (lengths: readonly number[]) => lengths[Math.floor(random() * lengths.length)] ?? 0;

  test.each([
    ['all short', Array.from({ length: 700 }, () => 10)],
    ['all long', Array.from({ length: 7 }, () => 2_100_000)],
    ['one long among short ones', Array.from({ length: 300 }, (_, i) => (i === 150 ? 3_000_000 : 10))],
    ['mixed', Array.from({ length: 200 }, () => anyOf([5, 100, 20_000, 300_000]))],
  ])('%s', (_, lengths) => {
    using store = openStore();
    store.sessions.open('a');
    store.entries.append('a', draftsOf(lengths.slice(0, 5)));
    store.lineage.fork('a', { name: 'b' });
    store.entries.append('b', draftsOf(lengths));
    const all = [...store.entries.read('b')];
    expect(all.map(({ seq }) => seq)).toEqual(all.map((_, i) => i + 1));
    expect(all.length).toBe(store.sessions.find('b')?.head);
    for (const query of queries) {
      const { from = 1, to = all.length, limit, last, kind, name, own, calls } = query;
      const chosen = all.filter(
        (entry) =>
          entry.seq >= from &&
          entry.seq <= to &&
          (kind === undefined || entry.kind === kind) &&
          (name === undefined || entry.name === name) &&
          (own === undefined || entry.inherited !== own) &&
          (calls !== true || JSON.stringify(entry.payload).includes('"tool-call"')),
      );
      const expected = last === undefined ? chosen.slice(0, limit) : chosen.slice(-last);
      expect([...store.entries.read('b', query)].map(({ seq }) => seq)).toEqual(
        expected.map(({ seq }) => seq),
      );
    }
    expect([...store.verify()]).toEqual([]);
  });
});
