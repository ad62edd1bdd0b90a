import { anchor, assistant, openTapeStore, type SqliteTapeStore, toolResult, user } from '@tapedeck/tape';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

function storeWith(...texts: string[]): SqliteTapeStore {
  const store = openTapeStore(':memory:');
  store.session('main');
  for (const text of texts) store.append('main', [user(text)]);
  return store;
}

const seqs = (store: SqliteTapeStore, text: string) => store.search({ text }).map((hit) => hit.seq);

describe('search', () => {
  test('finds an entry by every word and the text as written, in any case, newest first', () => {
    using store = storeWith('Round invoices half to even', 'half an invoice', 'ROUND INVOICES HALF up');
    expect(seqs(store, 'round invoices half')).toEqual([4, 2]);
    expect(seqs(store, 'half to even')).toEqual([2]);
    expect(seqs(store, 'even half')).toEqual([]);
  });

  test.each([
    "don't",
    'multi-agent',
    'a AND b',
    '"quoted"',
    'star*',
    'NEAR(x, y)',
    '100%',
    'under_score',
    'col:umn',
    '-x',
    '((',
    "'; DROP TABLE entry;--",
  ])('takes %s literally', (text) => {
    using store = storeWith('something else', `before ${text} after`);
    expect(seqs(store, text)).toEqual([3]);
  });

  test('raises no error for any text, and finds what holds it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 30 }), (text) => {
        using store = storeWith('something else', text);
        const found = seqs(store, text);
        if (text.trim() !== '') expect(found).toContain(3);
        else expect(found).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  test('finds tool results, anchors and their states', () => {
    using store = storeWith();
    store.append('main', [
      assistant([{ type: 'tool-call', toolCallId: 'c1', toolName: 'read', input: { path: 'CHANGELOG.md' } }]),
    ]);
    store.append('main', [toolResult({ toolCallId: 'c1', toolName: 'read' }, 'Unreleased: nothing')]);
    store.append('main', [anchor('task-start', { phase: 'polishing' })]);
    expect(seqs(store, 'CHANGELOG.md')).toEqual([2]);
    expect(seqs(store, 'unreleased')).toEqual([3]);
    expect(seqs(store, 'polishing')).toEqual([4]);
    expect(seqs(store, 'task-start')).toEqual([4]);
  });

  test('tells an inherited entry once, with the sessions that see it', () => {
    using store = storeWith('seen by all', 'seen later');
    store.fork('main', { name: 'all' });
    store.fork('main', { name: 'late', since: 2 });
    store.fork('all', { name: 'grandchild' });
    const [hit, ...others] = store.search({ text: 'seen by all' });
    expect(others).toEqual([]);
    expect(hit?.sessions).toEqual(['main', 'all', 'grandchild']);
    expect(store.search({ text: 'seen by all', session: 'late' })).toEqual([]);
    expect(store.search({ text: 'seen later', session: 'late' }).map((h) => h.session)).toEqual(['main']);
  });

  test('gives the same hits with the index behind, dropped, or up to date', () => {
    using store = storeWith(
      ...Array.from({ length: 1200 }, (_, n) => `line ${n} of ${n % 7 === 0 ? 'seven' : 'others'}`),
    );
    const look = () => store.search({ text: 'of seven', limit: 1000 }).map((hit) => hit.seq);
    const indexed = look();
    expect(indexed).toHaveLength(172);
    store.dropSearchIndex();
    expect(look()).toEqual(indexed);
    store.append('main', [user('one more of seven')]);
    expect(look()).toEqual([1202, ...indexed]);
  });
});
