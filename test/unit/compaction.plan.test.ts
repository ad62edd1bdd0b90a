import { planCompaction, resolvePolicy } from '@tapedeck/runtime/internal';
import { assistant, compaction, type SqliteTapeStore, user, view } from '@tapedeck/tape';
import { select } from '@tapedeck/tape/internal';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyHistory } from '../support/golden/arbitrary-history.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';

const policy = resolvePolicy('reserve');
const plan = (store: SqliteTapeStore, name: string, turns: number) =>
  planCompaction([...store.views.entries(name)], {
    policy,
    window: undefined,
    keep: { turns, over: 'split' },
  });

/** The inherited part of the view of a session with a plan's span. */
function inherited(store: SqliteTapeStore, parent: string, span: object) {
  const { session } = store.lineage.fork(parent, { ...span });
  const info = store.sessions.find(session);
  return { info, view: view([...store.views.entries(session)].filter((entry) => entry.inherited)) };
}

test('a summarizer that inherits the span of a plan sees what is summarised, and no more, for every tape', () => {
  let planned = 0;
  fc.assert(
    fc.property(
      anyHistory,
      anyHistory,
      fc.integer({ min: 1, max: 3 }),
      fc.nat(),
      (before, after, turns, back) => {
        using store = openStore();
        store.sessions.open('main');
        for (const draft of before) store.entries.append('main', [draft]);
        const head = store.sessions.find('main')?.head ?? 1;
        if (back % 3 > 0) store.history.rewind('main', 1 + (back % head));
        if (back % 5 === 0) store.lineage.fork('main', { name: 'kid' });
        const name = back % 5 === 0 ? 'kid' : 'main';
        for (const draft of after) store.entries.append(name, [draft]);
        const found = plan(store, name, turns);
        if (found === undefined) return;
        const { start } = select([...store.views.entries(name)], 'last-boundary');
        const seen = inherited(store, name, found.span);
        const base = seen.info?.base ?? 0;
        // A span ends where no call is open: before the last of its batch, where that has no result yet.
        if (base !== found.span.cut) return;
        planned += 1;
        const read =
          start !== undefined && start.seq <= base ? [start, ...found.summarized] : found.summarized;
        expect(seen.view.messages).toEqual(view(read.toSorted((a, b) => a.seq - b.seq)).messages);
      },
    ),
    { numRuns: sized(66, 66, 4_000) },
  );
  expect(planned).toBeGreaterThan(sized(15, 15, 1_000));
});

test('a kept tail is read from where it begins, and the text before it is not read again', () => {
  using store = openStore();
  store.sessions.open('main');
  const turns = (...texts: readonly string[]) =>
    texts.flatMap((text) => [user(text), assistant(`to ${text}`)]);
  store.entries.append('main', turns('one', 'two', 'three'));
  store.entries.append('main', [compaction({ summary: 'One.', range: [1, 3] }, { keepFrom: 4 })]);
  store.entries.append('main', turns('four'));
  // Two of the three turns in view stay: what goes lies before the summary that it comes after.
  expect(plan(store, 'main', 2)).toMatchObject({
    cut: 6,
    range: [1, 5],
    span: { inherit: { since: 3 }, cut: 5 },
    previous: { text: 'One.', seq: 8 },
  });
  expect(plan(store, 'main', 1)).toMatchObject({
    cut: 9,
    range: [1, 8],
    span: { inherit: { since: 3 }, cut: 8 },
  });
});

test.each([1e308, -7.5, 0, 99, '1', null])(
  'a previous summary with %j as its beginning is read as one without',
  (from) => {
    using store = openStore();
    store.sessions.open('main');
    store.entries.append('main', [user('one'), assistant('to one'), user('two'), assistant('to two')]);
    store.entries.append('main', [
      compaction({ summary: 'One.', range: [from as number, 3] }, { keepFrom: 4 }),
    ]);
    store.entries.append('main', [user('three'), assistant('to three')]);
    expect(plan(store, 'main', 1)?.range).toEqual([4, 6]);
  },
);
