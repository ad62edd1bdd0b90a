import {
  anchor,
  assistant,
  compaction,
  note,
  prune,
  remakeOf,
  type SqliteTapeStore,
  streamView,
  toolCall,
  toolResult,
  user,
  type ViewPolicy,
  view,
} from '@tapedeck/tape';
import { type Manifest, omit, viewVersions } from '@tapedeck/tape/internal';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyHistory } from '../support/golden/arbitrary-history.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';

function manifest(store: SqliteTapeStore, policy: ViewPolicy, name = 'main'): Manifest {
  return view(store.views.entries(name, { policy }), { policy }).manifest();
}

/** The ranges that are in and out. */
function ranges(store: SqliteTapeStore, policy: ViewPolicy = 'last-boundary', name = 'main') {
  const { in: within, out } = manifest(store, policy, name);
  return { in: within, out };
}

describe('a manifest of a view', () => {
  test('contains its policy, its rules, its head, its ranges, its size and its digest', () => {
    using store = openStore();
    store.sessions.open('main');
    store.entries.append('main', [user('1'), assistant('2')]);
    const shown = view(store.views.entries('main'), { target: { provider: 'anthropic' } });
    expect(shown.manifest()).toEqual({
      policy: 'last-boundary',
      version: viewVersions[0],
      target: 'anthropic',
      head: 3,
      in: [[1, 3]],
      out: [],
      tokens: shown.tokens,
      digest: shown.digest,
    });
  });

  test('states why an entry is left out, though it was not read', () => {
    using store = openStore();
    store.sessions.open('main');
    store.entries.append('main', [user('2'), user('3'), user('4')]);
    store.history.rewind('main', 3);
    store.entries.append('main', [user('6'), user('7')]);
    expect(ranges(store)).toEqual({
      in: [
        [1, 3],
        [6, 7],
      ],
      out: [[4, 5, 'rewound']],
    });
    expect(ranges(store, ['full', { window: 3 }])).toEqual({
      in: [
        [3, 3],
        [6, 7],
      ],
      out: [
        [1, 2, 'older than the window'],
        [4, 5, 'rewound'],
      ],
    });
    store.entries.append('main', [compaction({ summary: 'S', range: [1, 6] }, { keepFrom: 7 })]);
    store.entries.append('main', [user('9'), anchor('t'), user('11')]);
    expect(ranges(store)).toEqual({ in: [[7, 11]], out: [[1, 6, 'before compaction@8']] });
    expect(ranges(store, { window: 1 })).toEqual({
      in: [
        [8, 8],
        [11, 11],
      ],
      out: [
        [1, 6, 'before compaction@8'],
        [7, 7, 'older than the window'],
        [9, 10, 'older than the window'],
      ],
    });
  });

  test('of a fork begins where the fork does', () => {
    using store = openStore();
    store.sessions.open('main');
    store.entries.append('main', [user('2'), anchor('a'), user('4')]);
    store.lineage.fork('main', { name: 'since', inherit: { since: 'a' }, intention: { nextSteps: 'Look.' } });
    store.entries.append('since', [user('7')]);
    expect(ranges(store, 'last-boundary', 'since')).toEqual({ in: [[4, 7]], out: [] });
    store.lineage.fork('main', { name: 'fresh', inherit: 'nothing' });
    expect(ranges(store, 'last-boundary', 'fresh')).toEqual({ in: [[5, 5]], out: [] });
  });

  test('counts the outputs that are left out', () => {
    using store = openStore();
    store.sessions.open('main');
    store.entries.append('main', [
      assistant([toolCall('c', 'read', {})]),
      toolResult({ toolCallId: 'c', toolName: 'read' }, 'x'.repeat(99)),
      prune([{ seq: 3, toolCallId: 'c', tokens: 25 }], { trigger: 'manual' }),
    ]);
    expect(manifest(store, 'last-boundary').pruned).toBe(1);
    expect(manifest(store, 'full').pruned).toBeUndefined();
  });

  test('has the rules that leave messages out where they do, and older rules elsewhere', () => {
    using store = openStore();
    store.sessions.open('main');
    store.entries.append('main', [user('2'), user('3'), omit([2, 4, 9]), user('5')]);
    const { version, out } = manifest(store, 'last-boundary');
    expect({ version, out }).toEqual({ version: viewVersions[1], out: [[2, 2, 'left out']] });
    for (const policy of ['full', { window: 2 }, { fromAnchor: 3 }] as const)
      expect(manifest(store, policy).version).toBe(viewVersions[0]);
  });

  test.each([
    undefined,
    null,
    'full',
    {},
    { policy: 'full' },
    { policy: 'fool', head: 1 },
    { policy: 'full,topic:billing', head: 1 },
    { policy: { toString: 1 }, head: 1 },
  ])('%j is no manifest', (told) => {
    expect(remakeOf(told)).toBeUndefined();
  });

  test('is small, however long the session is', () => {
    using store = openStore();
    store.sessions.open('main');
    for (let i = 0; i < 300; i += 1)
      store.entries.append('main', [user('ask'), note('x', {}), assistant('say')]);
    expect(JSON.stringify(manifest(store, 'last-boundary')).length).toBeLessThan(300);
  });
});

test('ranges contain entries that are all in or all out, with none in between (every random history)', () => {
  fc.assert(
    fc.property(anyHistory, (drafts) => {
      using store = openStore();
      store.sessions.open('main');
      for (const draft of drafts) store.entries.append('main', [draft]);
      const { head } = store.sessions.find('main') ?? { head: 0 };
      for (const policy of ['last-boundary', 'full', { window: 2 }, { window: { tokens: 40 } }] as const) {
        const told = manifest(store, policy);
        const covered = [...told.in, ...told.out].flatMap(([from, to]) =>
          Array.from({ length: to - from + 1 }, (_, i) => from + i),
        );
        expect(covered.sort((a, b) => a - b)).toEqual(Array.from({ length: told.head }, (_, i) => i + 1));
        expect(told.head).toBeLessThanOrEqual(head);
        // A reader with all entries computes the same of what was shown.
        const whole = view(store.entries.read('main', { to: told.head }), { policy }).manifest();
        expect([whole.in, whole.digest]).toEqual([told.in, told.digest]);
      }
    }),
    { numRuns: sized(25, 25, 3_000), seed: 20261121 },
  );
});

test('messages yielded one by one are those of the view, for every provider', async () => {
  let [compared, forks] = [0, 0];
  await fc.assert(
    fc.asyncProperty(
      anyHistory,
      fc.constantFrom(undefined, 'anthropic', 'openai.chat', 'google'),
      fc.constantFrom<ViewPolicy>('full', 'last-boundary', ['full', { window: 3 }]),
      async (drafts, provider, policy) => {
        using store = openStore();
        store.sessions.open('main');
        for (const draft of drafts.slice(0, -2)) store.entries.append('main', [draft]);
        const name = drafts.length % 2 === 0 ? 'main' : store.lineage.fork('main', { name: 'child' }).session;
        forks += name === 'child' ? 1 : 0;
        for (const draft of drafts.slice(-2)) store.entries.append(name, [draft]);
        const options = { policy, ...(provider !== undefined && { target: { provider } }) };
        const whole = view(store.views.entries(name, { policy }), options);
        const stream = streamView(() => store.views.entries(name, { policy }), options);
        const messages: unknown[] = [];
        let end = await stream.next();
        for (; end.done !== true; end = await stream.next()) messages.push(end.value);
        expect(messages).toEqual(whole.messages);
        expect(end.value).toMatchObject({ digest: whole.digest, from: whole.from, to: whole.to });
        compared += messages.length;
      },
    ),
    { numRuns: sized(100, 100, 6_000), seed: 20261121 },
  );
  expect(compared).toBeGreaterThan(sized(150, 150, 10_000));
  expect(forks).toBeGreaterThan(sized(15, 15, 1_000));
});

test('a call is yielded with its result, however late that arrives, and a call without one blocks nothing', async () => {
  using store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('1'), assistant([toolCall('late', 'read', {})]), user('2'), user('3')]);
  store.entries.append('main', [assistant([toolCall('never', 'read', {})]), user('4')]);
  store.entries.append('main', [toolResult({ toolCallId: 'late', toolName: 'read' }, 'At last.'), user('5')]);
  const given: string[] = [];
  for await (const { role } of streamView(() => store.views.entries('main', { policy: 'full' }), {
    policy: 'full',
  }))
    given.push(role);
  expect(given).toEqual(['user', 'assistant', 'tool', 'user', 'assistant', 'tool', 'user']);
});
