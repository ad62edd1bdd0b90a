import type { Session } from '@tapedeck/runtime';
import {
  anchor,
  assistant,
  compaction,
  type Entry,
  note,
  prune,
  type Seq,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
  view,
} from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { scriptedDeck } from '../support/scripted.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';

const shown = (store: SqliteTapeStore, name = 'main') =>
  JSON.stringify(view(store.views.entries(name)).messages);
const refused = (data: object, message = '') => ({
  code: 'SESSION_CANNOT_UNDO',
  message: expect.stringContaining(message),
  data: { session: 'main', ...data },
});

/** A session of two turns: messages at 2 to 5. */
async function talked() {
  const store = openStore();
  const home = await scriptedDeck([{ text: 'Fine.' }], { store });
  const main = await home.deck.session('main');
  store.entries.append('main', [user('One'), assistant('First.'), user('Two'), assistant('Second.')]);
  return Object.assign(home, { main });
}
const summary = compaction({ summary: 'Of the first.', range: [1, 3] }, { keepFrom: 4 });

test('undo reverts the last summary, then that undo; no entry is removed', async () => {
  await using home = await talked();
  const { main, store } = home;
  const whole = shown(store);
  const { to: seq } = store.entries.append('main', [summary]);
  const compacted = shown(store);
  expect(compacted).not.toBe(whole);
  expect(await main.undo()).toEqual({
    session: 'main',
    seq: seq + 1,
    to: seq - 1,
    hidden: 1,
    shown: 0,
    forks: [],
    undone: seq,
    act: 'compaction',
  });
  expect(shown(store)).toBe(whole);
  expect([...store.entries.read('main')].at(-1)).toMatchObject({
    kind: 'rewind',
    payload: { mode: 'uncompact' },
  });
  expect(await main.undo()).toMatchObject({ undone: seq + 1, act: 'rewind' });
  expect(shown(store)).toBe(compacted);
  expect(await main.undo()).toMatchObject({ undone: seq + 2, act: 'rewind' });
  expect(shown(store)).toBe(whole);
});

test('undo reverts the last pruning; with `at`, the one before it', async () => {
  await using home = await talked();
  const { main, store } = home;
  const call = { toolCallId: 'c1', toolName: 'read' };
  store.entries.append('main', [assistant([toolCall('c1', 'read', {})]), toolResult(call, 'a long text')]);
  const whole = shown(store);
  store.entries.append('main', [summary]);
  const compacted = shown(store);
  store.entries.append('main', [prune([{ seq: 7, toolCallId: 'c1', tokens: 3 }], { trigger: 'manual' })]);
  expect(shown(store)).toContain('<output pruned');
  expect(await main.undo()).toMatchObject({ undone: 9, to: 8, act: 'prune' });
  expect(shown(store)).toBe(compacted);
  expect(await main.undo({ at: 8 })).toMatchObject({ undone: 8, to: 7, act: 'compaction' });
  expect(shown(store)).toBe(whole);
});

test('events after the act do not block it; a message does, until it is rewound', async () => {
  await using home = await talked();
  const { main, store } = home;
  const { to: seq } = store.entries.append('main', [summary]);
  store.entries.append('main', [note('run/aborted', { run: 'r', reason: 'enough' })]);
  store.entries.append('main', [user('More'), assistant('So.')]);
  const after = { seq: seq + 2, kind: 'message' };
  await expect(main.undo()).rejects.toMatchObject(
    refused({ seq, after, message: seq + 2 }, `message main@${seq + 2} follows it`),
  );
  await main.rewind(seq + 2);
  expect(await main.undo({ at: seq })).toMatchObject({ undone: seq, act: 'compaction' });
});

test.each([
  { what: 'an answer', draft: assistant('Said.'), kind: 'message' },
  { what: 'the report of a merge', draft: user('Told.', { source: 'merge' }), kind: 'message' },
])('$what after it names no message to go back to', async ({ draft, kind }) => {
  await using home = await talked();
  const { main, store } = home;
  const { to: seq } = store.entries.append('main', [summary]);
  store.entries.append('main', [draft]);
  const before = [...store.entries.read('main')];
  await expect(main.undo()).rejects.toMatchObject({
    code: 'SESSION_CANNOT_UNDO',
    data: { session: 'main', seq, after: { seq: seq + 1, kind } },
  });
  expect([...store.entries.read('main')]).toEqual(before);
});

test('without an act in view undo has nothing to revert', async () => {
  await using home = await talked();
  const { main, store } = home;
  const nothing = refused(
    {},
    'its view has no summary, no pruned outputs, and no anchor, handoff or merge of',
  );
  await expect(main.undo()).rejects.toMatchObject(nothing);
  store.entries.append('main', [summary]);
  const { seq } = await main.handoff('next', { summary: 'On.' });
  await expect(main.undo({ at: seq - 1 })).rejects.toMatchObject(
    refused({ seq: seq - 1, after: { seq, kind: 'anchor' } }, `anchor main@${seq} follows it`),
  );
  // What began a fork stays, and the outcome of a child that was discarded is final.
  store.lineage.fork('main', { name: 'kid', inherit: 'nothing', intention: { nextSteps: 'Look.' } });
  store.lineage.fork('kid', { name: 'grandkid' });
  store.lineage.merge('grandkid', { strategy: 'discard' });
  await expect((await home.deck.session('kid')).undo()).rejects.toMatchObject({
    ...nothing,
    data: { session: 'kid' },
  });
});

test('a fork undoes an inherited summary for itself', async () => {
  await using home = await talked();
  const { main, store } = home;
  const whole = shown(store);
  const { to: seq } = store.entries.append('main', [summary]);
  const compacted = shown(store);
  const branch = await main.branch();
  expect(await branch.undo()).toMatchObject({ undone: seq, session: branch.name });
  expect(shown(store, branch.name)).toBe(whole);
  expect(shown(store)).toBe(compacted);
});

test('undo is refused while another process writes the session, and on an archived session', async () => {
  await using home = await talked();
  const { main, store } = home;
  store.entries.append('main', [summary]);
  const lease = store.leases.acquire('main', { id: 'alice' });
  await expect(main.undo()).rejects.toMatchObject({
    code: 'SESSION_BUSY',
    message: expect.stringContaining("cannot undo 'main'"),
  });
  store.leases.release(lease);
  store.sessions.update('main', { lifecycle: 'archived' });
  await expect(main.undo()).rejects.toMatchObject({ code: 'TAPE_ARCHIVED' });
});

test('undo reverts the newest act: of a rewind and a summary, the later one', async () => {
  await using home = await talked();
  const { main, store } = home;
  const whole = shown(store);
  const { seq: rewound } = await main.rewind(4);
  const rest = shown(store);
  const { to: seq } = store.entries.append('main', [compaction({ summary: 'Of all.', range: [1, 3] })]);
  expect(await main.undo()).toMatchObject({ undone: seq, act: 'compaction' });
  expect(shown(store)).toBe(rest);
  expect(await main.undo({ at: rewound })).toMatchObject({ undone: rewound, act: 'rewind' });
  expect(shown(store)).toBe(whole);
});

test('an undo never passes the newest act to undo an older one', async () => {
  await using home = await talked();
  const { main, store } = home;
  const { seq: rewound } = await main.rewind(4);
  const rest = shown(store);
  store.lineage.fork('main', { name: 'kid' });
  store.entries.append('kid', [assistant('Done.')]);
  const { seq: merged } = store.lineage.merge('kid');
  const whole = shown(store);
  // The rewind would hide the merge. The undo of the merge is undone by the next one.
  const first = await main.undo();
  expect(first).toMatchObject({ undone: merged, act: 'merge' });
  expect(shown(store)).toBe(rest);
  expect(await main.undo()).toMatchObject({ undone: first.seq, act: 'rewind' });
  expect(shown(store)).toBe(whole);
  const { seq: handed } = await main.handoff('next', { summary: 'On.' });
  expect(await main.undo()).toMatchObject({ undone: handed, act: 'handoff' });
  expect(shown(store)).toBe(whole);
  const { to: marked } = store.entries.append('main', [anchor('here')]);
  store.entries.append('main', [user('More'), assistant('So.')]);
  const before = [...store.entries.read('main')];
  await expect(main.undo()).rejects.toMatchObject(
    refused(
      { seq: marked, after: { seq: marked + 1, kind: 'message' } },
      `cannot undo the anchor main@${marked}: message main@${marked + 1} follows it`,
    ),
  );
  expect([...store.entries.read('main')]).toEqual(before);
  // By its position, the rewind is undone with all that came after it.
  expect(await main.undo({ at: rewound })).toMatchObject({ undone: rewound, act: 'rewind' });
});

test('`at` names an own anchor, handoff or merge, too: what came of it is gone from the view, and a child can be merged again', async () => {
  await using home = await talked();
  const { main, store } = home;
  const whole = shown(store);
  const { to: mark } = store.entries.append('main', [anchor('mark', { n: 1 })]);
  await main.handoff('next', { summary: 'On.' });
  expect(shown(store)).not.toBe(whole);
  await expect(main.undo({ at: mark })).rejects.toMatchObject(
    refused({ seq: mark, after: { seq: mark + 1, kind: 'anchor' } }, `cannot undo the anchor main@${mark}`),
  );
  expect(await main.undo({ at: mark + 1 })).toMatchObject({ act: 'handoff', hidden: 1, to: mark });
  expect(shown(store)).toBe(whole);
  expect(await main.undo({ at: mark })).toMatchObject({ act: 'anchor', hidden: 1 });
  await expect(store.entries.resolve.bind(null, 'main', 'mark')).toThrow(/hides it/);

  for (const name of ['kid', 'other']) store.lineage.fork('main', { name });
  store.entries.append('kid', [assistant('Done.')]);
  const { seq } = store.lineage.merge('kid');
  expect(shown(store)).toContain('Done.');
  expect(await main.undo({ at: 'merge/kid' })).toMatchObject({ undone: seq, act: 'merge', hidden: 2 });
  expect(shown(store)).toBe(whole);
  const again = store.lineage.merge('kid');
  expect(again).toMatchObject({ repeated: false, state: 'merged' });
  store.entries.append('main', [user('Three')]);
  await expect(main.undo({ at: again.seq })).rejects.toMatchObject(
    refused({ seq: again.seq, message: again.seq + 2 }, 'cannot undo the merge'),
  );
  // The outcome of a child that was discarded is final, and a session keeps its beginning.
  const { seq: discarded } = store.lineage.merge('other', { strategy: 'discard' });
  for (const at of [discarded, 1])
    await expect(main.undo({ at })).rejects.toMatchObject({ code: 'TAPE_BAD_POINT' });
  const branch = await main.branch();
  await expect(branch.undo({ at: again.seq })).rejects.toMatchObject({ code: 'TAPE_BAD_POINT' });
});

test('an anchor behind calls without a result is not undone: that would hide the calls', async () => {
  await using home = await talked();
  const { main, store } = home;
  store.entries.append('main', [assistant([toolCall('c1', 'read', {})])]);
  const { to: seq } = store.entries.append('main', [anchor('mark')]);
  const before = [...store.entries.read('main')];
  await expect(main.undo({ at: seq })).rejects.toMatchObject(
    refused({ seq, settled: 5 }, 'calls before it have no result yet'),
  );
  expect([...store.entries.read('main')]).toEqual(before);
});

test('`at` names an act that is visible; anything else is refused', async () => {
  await using home = await talked();
  const { main, store } = home;
  const { to: seq } = store.entries.append('main', [summary]);
  const { seq: rewound } = await main.rewind(2);
  const before = [...store.entries.read('main')];
  const bad = { name: 'TapeError', code: 'TAPE_BAD_POINT' };
  await expect(main.undo({ at: 3 })).rejects.toMatchObject({
    ...bad,
    message: "cannot undo main@3: it is no rewind, summary, pruning, anchor, handoff or merge of 'main'",
    data: { session: 'main', seq: 3 },
  });
  await expect(main.undo({ at: seq })).rejects.toMatchObject({
    ...bad,
    message: `cannot undo main@${seq}: the rewind main@${rewound} hides it`,
    data: { session: 'main', seq, hidden: rewound },
  });
  await expect(main.undo({ at: 99 })).rejects.toMatchObject({ code: 'TAPE_NO_SEQ' });
  expect([...store.entries.read('main')]).toEqual(before);
  // A child cannot undo a rewind that it inherited.
  const branch = await main.branch();
  await expect(branch.undo({ at: rewound })).rejects.toMatchObject(bad);
  await expect(branch.undo()).rejects.toMatchObject({ code: 'SESSION_CANNOT_UNDO' });
});

type Act = 'say' | 'handoff' | 'rewind' | 'summary' | 'prune' | 'branch';
const anyAct = fc.record({
  act: fc.constantFrom<Act>('say', 'say', 'handoff', 'rewind', 'summary', 'prune', 'branch'),
  choice: fc.nat(),
});

/** Does an act and returns the position of its entry, when it is one that can be undone. */
async function perform(
  { act, choice }: { act: Act; choice: number },
  { session, store }: { session: Session; store: SqliteTapeStore },
): Promise<Seq | undefined> {
  const name = session.name;
  const view = [...store.views.entries(name)];
  const asked = view.filter(
    ({ kind, payload }) => kind === 'message' && isObject(payload) && payload.role === 'user',
  );
  const message = asked[choice % Math.max(1, asked.length)]?.seq;
  if (act === 'say') {
    const id = `call-${store.sessions.find(name)?.head}`;
    store.entries.append(name, [
      user(`Ask ${id}`),
      assistant([toolCall(id, 'read', {})]),
      toolResult({ toolCallId: id, toolName: 'read' }, `a long text of ${id}`),
      assistant('Read.'),
    ]);
  }
  if (act === 'handoff') {
    await session.handoff('next', { summary: `On ${choice}.` });
    return store.sessions.find(name)?.head;
  }
  if (act === 'rewind' && message !== undefined) return (await session.rewind(message)).seq;
  if (act === 'summary' && message !== undefined)
    return store.entries.append(name, [
      compaction({ summary: `Of ${choice}.`, range: [1, message - 1] }, { keepFrom: message }),
    ]).to;
  const results = view.filter(({ kind }) => kind === 'tool-result');
  const result = results[choice % Math.max(1, results.length)];
  if (act === 'prune' && result !== undefined)
    return store.entries.append(name, [
      prune([{ seq: result.seq, toolCallId: callOf(result), tokens: 3 }], {
        trigger: 'manual',
      }),
    ]).to;
  return undefined;
}

const callOf = ({ payload }: Entry) => (isObject(payload) ? String(payload.toolCallId) : '');

test('after an undo the view equals, byte for byte, that before the act; after two, that after it', async () => {
  const tally = new Map<string, number>();
  const count = (what: string) => tally.set(what, (tally.get(what) ?? 0) + 1);
  await fc.assert(
    fc.asyncProperty(fc.array(anyAct, { minLength: 4, maxLength: 24 }), async (acts) => {
      await using home = await scriptedDeck([]);
      const { store } = home;
      let session = await home.deck.session('main');
      let chain: { readonly before: string; readonly seq: Seq }[] = [];
      await perform({ act: 'say', choice: 0 }, { session, store });
      for (const one of acts) {
        const before = shown(store, session.name);
        if (one.act === 'branch') session = await session.branch();
        const seq = await perform(one, { session, store });
        const after = shown(store, session.name);
        if (seq === undefined) {
          chain = [];
          continue;
        }
        chain.push({ before, seq });
        const { act, undone } = await session.undo();
        expect(undone).toBe(seq);
        expect(shown(store, session.name)).toBe(before);
        count(act);
        await session.undo();
        expect(shown(store, session.name)).toBe(after);
        if (one.choice % 2 > 0) continue;
        // All acts since the last message, the newest first.
        if (chain.length > 1) count('chain');
        for (const link of chain.toReversed()) {
          await session.undo({ at: link.seq });
          expect(shown(store, session.name)).toBe(link.before);
        }
        chain = [];
      }
    }),
    { numRuns: sized(30, 30, 2_000) },
  );
  for (const what of ['rewind', 'compaction', 'prune', 'handoff', 'chain'])
    expect(tally.get(what), what).toBeGreaterThan(sized(1, 1, 100));
});
