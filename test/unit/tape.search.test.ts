import { copyFileSync } from 'node:fs';
import {
  anchor,
  assistant,
  openTapeStore,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
} from '@tapedeck/tape';
import type { Condition, Progress } from '@tapedeck/tape/store';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { anyText } from '../support/arbitrary-json.ts';
import { atFullSize, sized } from '../support/size.ts';
import { type TempDir, tempDir } from '../support/temp-dir.ts';

function storeWith(...texts: string[]): SqliteTapeStore {
  const store = openTapeStore(':memory:');
  store.sessions.open('main');
  for (const text of texts) store.entries.append('main', [user(text)]);
  return store;
}

const seqs = (store: SqliteTapeStore, text: string) =>
  store.entries.search({ text }).hits.map((hit) => hit.seq);

describe('search', () => {
  test('finds an entry by every word and the text as written, in any case, newest first', () => {
    using store = storeWith('Round invoices half to even', 'half an invoice', 'ROUND INVOICES HALF up');
    expect(seqs(store, 'round invoices half')).toEqual([4, 2]);
    expect(seqs(store, 'half to even')).toEqual([2]);
    expect(seqs(store, 'even half')).toEqual([]);
  });

  test('selects by what entries record of where they were said', () => {
    using store = storeWith('A needle');
    const place = { cwd: '/src/app', git: { branch: 'fix' } };
    store.entries.append('main', [{ ...user('A needle'), meta: { place, version: '2.1' } }]);
    const found = (field: Condition['field'], value: string) =>
      store.entries.search({ text: 'needle', where: [{ field, value }] }).hits.map(({ seq }) => seq);
    expect([found('dir', '/src'), found('branch', 'fix'), found('version', '2.*')]).toEqual([[3], [3], [3]]);
    expect([found('dir', '/sr'), found('model', 'x')]).toEqual([[], []]);
  });

  test('refers to a session of another realm by its id', () => {
    using dir = tempDir();
    using shop = openTapeStore(dir.file('tape.db'), { base: 'shop' });
    using store = openTapeStore(dir.file('tape.db'), { base: 'tape' });
    for (const one of [store, shop]) {
      one.sessions.open('main');
      one.entries.append('main', [user('Find me.')]);
    }
    const other = shop.sessions.find('main')?.id ?? '';
    expect(store.entries.search({ text: 'find me' }).hits).toMatchObject([
      { session: other, tape: 'shop:main', sessions: [other] },
      { session: 'main', tape: 'tape:main', sessions: ['main'] },
    ]);
    expect(shop.entries.search({ text: 'find me' }).hits[0]).toMatchObject({
      session: 'main',
      sessions: ['main'],
    });
  });

  test('finds no ids and no signatures of providers, but what a tool was called with and returned', () => {
    using store = storeWith();
    const providerOptions = { anthropic: { signature: 'SIGNED-BY-PROVIDER' }, openai: { itemId: 'rs_4711' } };
    store.entries.append('main', [
      assistant([
        { type: 'reasoning', text: 'Compare the lists.', providerOptions },
        { type: 'source', sourceType: 'url', id: 'source-9', url: 'https://example.org/list' },
        { ...toolCall('call-77', 'look', { id: 'order-12', path: 'lists' }), providerOptions },
        { type: 'tool-approval-request', approvalId: 'approval-5', toolCallId: 'call-77' },
      ]),
      toolResult({ toolCallId: 'call-77', toolName: 'look' }, { id: 'found-8' }),
    ]);
    // From the entries themselves, and from the index.
    for (let round = 0; round < 2; round += 1) {
      for (const id of ['SIGNED-BY-PROVIDER', 'rs_4711', 'source-9', 'call-77', 'approval-5'])
        expect(seqs(store, id), id).toEqual([]);
      expect(seqs(store, 'Compare the lists')).toEqual([2]);
      expect(seqs(store, 'order-12')).toEqual([2]);
      expect(seqs(store, 'example.org')).toEqual([2]);
      expect(seqs(store, 'found-8')).toEqual([3]);
    }
  });

  test.each([
    ...[
      "don't",
      'multi-agent',
      'a AND b',
      'a OR b',
      'NOT a',
      'a NEAR b',
      'NEAR(x, y)',
      'NEAR(x y, 2)',
      '"quoted"',
      '"half',
    ],
    ...[
      'star*',
      '*',
      '^first',
      'col:umn',
      'text : x',
      'text:x',
      '{text} : x',
      '-x',
      '- x',
      '+x',
      '((',
      ')',
      'a + b',
      '--',
      '|',
      '&',
    ],
    ...[
      '100%',
      'under_score',
      '%',
      '_',
      '\\',
      '\\%',
      '?',
      '@a',
      ':a',
      '$a',
      '?1',
      "'",
      "''",
      "'; DROP TABLE entry;--",
      '"; DELETE',
    ],
    ...[
      "x' OR '1'='1",
      ') OR 1=1 --',
      'UNION SELECT 1',
      '/* */',
      ';',
      '\0',
      'a\0b',
      '\ud800',
      'a\u2028b',
      'a\ufeffb',
      '\u19c8',
      '𐓐𐓑',
      '\u202e',
    ],
    ...[
      '.*',
      '[a-z]+',
      '(?:x',
      '$&',
      '$1',
      'İ',
      'ß',
      'é',
      'e\u0301',
      '日本語',
      '👩\u200d💻',
      '\u00ad',
      'ﬁ',
      '1e400',
      '0x1F',
      '-1',
    ],
  ])('takes %j literally, for itself and in a session, a kind or a text', (text) => {
    using store = storeWith('something else', `before ${text} after`, 'x y AND NEAR text 1 entry');
    expect(seqs(store, text)).toContain(3);
    for (const seq of seqs(store, text)) expect([2, 3, 4]).toContain(seq);
    expect(seqs(store, `before ${text} after`)).toEqual([3]);
    expect(seqs(store, `before ${text} before`)).toEqual([]);
    expect(store.entries.search({ text: 'before', kind: text as 'message' }).hits).toEqual([]);
    expect(() => store.entries.search({ text: 'before', session: text })).toThrow(
      expect.objectContaining({ code: 'TAPE_NO_SESSION' }),
    );
    expect(store.sessions.find('main')?.head).toBe(4);
  });

  test(
    'raises no error for any text, finds every entry that contains it, and no other',
    () => {
      // Two hundred entries at a time, each looked for among all of them: words, and pieces of words, of the same few.
      const words = fc.constantFrom(
        'half',
        'HALF',
        'halfway',
        'ha',
        'x',
        'AND',
        'NEAR(',
        '"',
        '*',
        ' ',
        ' ',
        '-',
        'é',
        'e\u0301',
        '\0',
      );
      const text = fc.oneof(
        anyText,
        fc.string({ unit: 'grapheme', maxLength: 30 }),
        fc.array(words, { maxLength: 6 }).map((pieces) => pieces.join('')),
        fc.array(words, { maxLength: 6 }).map((pieces) => pieces.join(' ')),
      );
      for (let round = 1; round <= sized(5, 6, 500); round += 1) {
        const texts = fc.sample(text, { numRuns: sized(66, 100, 4_000), seed: round });
        using store = openTapeStore(':memory:');
        store.sessions.open('main');
        store.entries.append(
          'main',
          texts.map((one) => user(one)),
        );
        // The first entry of a session has this name, and no other text.
        const said = ['', 'session/start', ...texts];
        for (const [i, one] of texts.entries()) {
          const asked = one.trim();
          const found = store.entries.search({ text: one, limit: 1000 }).hits.map((hit) => hit.seq);
          if (asked === '') expect(found).toEqual([]);
          else expect(found, `${round}: ${JSON.stringify(one)}`).toContain(i + 2);
          const literal = new RegExp(RegExp.escape(asked), 'iu');
          for (const seq of found) expect(said[seq], `${round}: ${JSON.stringify(one)}`).toMatch(literal);
        }
      }
    },
    sized(180_000, 180_000, 600_000),
  );

  test('finds tool results, anchors and their states', () => {
    using store = storeWith();
    store.entries.append('main', [
      assistant([{ type: 'tool-call', toolCallId: 'c1', toolName: 'read', input: { path: 'CHANGELOG.md' } }]),
    ]);
    store.entries.append('main', [toolResult({ toolCallId: 'c1', toolName: 'read' }, 'Unreleased: nothing')]);
    store.entries.append('main', [anchor('task-start', { phase: 'polishing' })]);
    expect(seqs(store, 'CHANGELOG.md')).toEqual([2]);
    expect(seqs(store, 'unreleased')).toEqual([3]);
    expect(seqs(store, 'polishing')).toEqual([4]);
    expect(seqs(store, 'task-start')).toEqual([4]);
  });

  test('names a hundred of the sessions that see an entry, its own first', () => {
    using store = storeWith('needle');
    for (let i = 0; i < 60; i += 1) store.lineage.fork('main');
    const { session } = store.lineage.fork('main');
    for (let i = 0; i < 60; i += 1) store.lineage.fork(session);
    const [hit] = store.entries.search({ text: 'needle' }).hits;
    const seq = hit?.seq ?? 0;
    const [entry] = store.entries.read('main', { from: seq, to: seq });
    expect(hit?.sessions.length).toBe(100);
    expect(new Set(hit?.sessions).size).toBe(100);
    expect(hit?.sessions[0]).toBe('main');
    for (const name of hit?.sessions ?? [])
      expect([...store.entries.read(name, { from: seq, to: seq })].map(({ hash }) => hash)).toEqual([
        entry?.hash,
      ]);
  });

  test('a snippet has an ellipsis where it is cut, and no half of a character', () => {
    const [before, after] = ['ab '.repeat(30), ' cd'.repeat(50)];
    using store = storeWith(
      'needle one',
      `${before}needle two`,
      `needle three${after}`,
      `🧾${'x'.repeat(38)} needle four`,
    );
    const snippet = (text: string) => store.entries.search({ text }).hits[0]?.snippet;
    expect(snippet('needle one')).toBe('needle one');
    expect(snippet('needle two')).toBe(`…${'ab '.repeat(13)}needle two`);
    expect(snippet('needle three')).toBe(`needle three${' cd'.repeat(27).slice(0, 80)}…`);
    expect(snippet('needle four')).toBe(`…${'x'.repeat(38)} needle four`);
  });

  test('returns an inherited entry once, with the sessions that see it', () => {
    using store = storeWith('seen by all', 'seen later');
    store.lineage.fork('main', { name: 'all' });
    store.lineage.fork('main', { name: 'late', inherit: { since: 2 } });
    store.lineage.fork('all', { name: 'grandchild' });
    const [hit, ...others] = store.entries.search({ text: 'seen by all' }).hits;
    expect(others).toEqual([]);
    expect(hit?.sessions).toEqual(['main', 'all', 'grandchild']);
    expect(store.entries.search({ text: 'seen by all', session: 'late' }).hits).toEqual([]);
    expect(store.entries.search({ text: 'seen later', session: 'late' }).hits.map((h) => h.session)).toEqual([
      'main',
    ]);
  });

  test('gives the same hits with the index behind, dropped, or up to date', () => {
    using store = storeWith(
      ...Array.from({ length: 1200 }, (_, n) => `line ${n} of ${n % 7 === 0 ? 'seven' : 'others'}`),
    );
    const look = () => store.entries.search({ text: 'of seven', limit: 1000 }).hits.map((hit) => hit.seq);
    const indexed = look();
    expect(indexed).toHaveLength(172);
    store.dropSearchIndex();
    expect(look()).toEqual(indexed);
    store.entries.append('main', [user('one more of seven')]);
    expect(look()).toEqual([1202, ...indexed]);
  });
});

describe.runIf(atFullSize)('search of more than a search may index', () => {
  const count = 60;

  /** Entries of a megabyte, written once. A search indexes, and scans, about 17. */
  let written: TempDir;
  beforeAll(() => {
    written = tempDir();
    using store = openTapeStore(written.file('tape.db'), { durability: 'fast' });
    store.sessions.open('main');
    for (let n = 0; n < count; n += 1)
      store.entries.append('main', [user(`special ${n} ${'. '.repeat(500_000)}`)]);
    return () => written[Symbol.dispose]();
  });

  /** A copy of them that no search has indexed. */
  function largeStore(name: string): SqliteTapeStore {
    copyFileSync(written.file('tape.db'), written.file(name));
    return openTapeStore(written.file(name), { durability: 'fast' });
  }

  test('answers from the oldest and the newest, and says how many it left out', () => {
    using store = largeStore('part');
    const look = (limit = 100) => store.entries.search({ text: 'special', limit });
    const { hits, unsearched, unindexed } = look();
    const { indexed } = store.searchIndex();
    expect([indexed > 14, indexed < 22]).toEqual([true, true]);
    expect(unindexed).toBe(count + 1 - indexed);
    expect(hits.length + unsearched).toBe(count);
    const found = hits.map(({ seq }) => seq);
    expect(found).toEqual(found.toSorted((a, b) => b - a));
    expect([found[0], found.at(-1)]).toEqual([count + 1, 2]);
    // The newest hits are the whole answer where they are as many as wanted.
    const newest = look(10);
    expect([newest.hits.length, newest.unsearched]).toEqual([10, 0]);
    for (let n = 0; n < 3; n += 1) look();
    expect(look()).toMatchObject({ unsearched: 0, unindexed: 0 });
    expect(look().hits.length).toBe(count);
  });

  test('searches everything with all, also for a text without words', () => {
    using store = largeStore('whole');
    const part = store.entries.search({ text: '. . .', limit: 100 });
    expect(part.hits.length).toBeGreaterThan(14);
    // The entry that opens the session has an id, too.
    expect(part.hits.length + part.unsearched).toBe(count + 1);
    for (const text of ['special', '. . .']) {
      const found = store.entries.search({ text, limit: 100, all: true });
      expect([found.hits.length, found.unsearched, found.unindexed]).toEqual([count, 0, 0]);
    }
  });

  test('the index is filled with progress', () => {
    using store = largeStore('filled');
    const seen: number[] = [];
    const onProgress = ({ done, total }: Progress) => seen.push(done / total);
    expect(store.fillSearchIndex({ onProgress })).toBe(count + 1);
    expect(seen.length).toBeGreaterThan(10);
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    expect(seen.at(-1)).toBe(1);
    expect(store.searchIndex()).toEqual({ indexed: count + 1, unindexed: 0 });
  });

  test('the ends of runs index a chunk each, once a search has begun', () => {
    using store = storeWith('first');
    const grow = () => {
      store.entries.append(
        'main',
        Array.from({ length: 700 }, () => user('more')),
      );
      store.leases.release(store.leases.acquire('main', { id: 'run' }));
      return store.searchIndex().indexed;
    };
    expect(grow()).toBe(0);
    store.entries.search({ text: 'first' });
    expect(store.searchIndex()).toEqual({ indexed: 702, unindexed: 0 });
    expect([grow(), grow()]).toEqual([1202, 1702]);
    store.leases.release(store.leases.acquire('main', { id: 'run' }));
    // Fewer than a chunk wait.
    expect(store.searchIndex()).toEqual({ indexed: 1702, unindexed: 400 });
  });
});

test.runIf(atFullSize)(
  'a text of 100,000 characters is found like any other, and one that differs at its end is not',
  () => {
    using store = openTapeStore(':memory:');
    store.sessions.open('main');
    const long = `${'lorem ipsum '.repeat(10_000)}THE end`;
    store.entries.append('main', [user(`before ${long} after`)]);
    expect(store.entries.search({ text: long.toUpperCase() }).hits).toMatchObject([
      { session: 'main', seq: 2 },
    ]);
    expect(store.entries.search({ text: `${long}ing` }).hits).toEqual([]);
  },
);
