import { diffSessions, type SessionDiff } from '@tapedeck/runtime';
import {
  anchor,
  assistant,
  handoff,
  note,
  type Seq,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
} from '@tapedeck/tape';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { storeUnderTest } from '../support/deck.ts';
import { openStore } from '../support/store.ts';

/** Two points as the command line names them: `main@40`. */
async function diff(store: SqliteTapeStore, a: string, b: string): Promise<SessionDiff> {
  const [one, other] = [a, b].map((text) => {
    const [session = '', point] = text.split('@');
    return { session, ...(point !== undefined && { at: Number(point) }) };
  });
  return await diffSessions(storeUnderTest(store), one ?? { session: '' }, other ?? { session: '' });
}

/** Where two points part, and what each has since: `main@5 1-5 | main 6-8 | kid 6-7,9-9`. */
async function parting(store: SqliteTapeStore, a: string, b: string): Promise<string> {
  const { base, ...sides } = await diff(store, a, b);
  const at = base === undefined ? 'nowhere' : `${base.session}@${base.seq} ${base.shared?.join('-') ?? '-'}`;
  const added = [sides.a, sides.b].map(({ session, ranges }) =>
    `${session} ${ranges.map((range) => range.join('-')).join(',')}`.trimEnd(),
  );
  return [at, ...added].join(' | ');
}

/** `main` with positions 1 to 6, five of them messages. */
function withMain(): SqliteTapeStore {
  const store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('m2'), assistant('m3'), user('m4'), assistant('m5'), user('m6')]);
  return store;
}

test('a session and its fork diverge at the fork, and cousins at their common ancestor', async () => {
  using store = withMain();
  store.lineage.fork('main', { name: 'kid', cut: 4 });
  store.lineage.fork('main', { name: 'sib', cut: 3 });
  store.lineage.fork('kid', { name: 'grandkid' });
  store.entries.append('kid', [assistant('k')]);
  store.entries.append('grandkid', [assistant('g')]);
  expect(await parting(store, 'main', 'kid')).toBe('main@4 1-4 | main 5-6 | kid 5-6');
  expect(await parting(store, 'kid', 'main')).toBe('main@4 1-4 | kid 5-6 | main 5-6');
  expect(await parting(store, 'kid', 'grandkid')).toBe('kid@5 1-5 | kid 6-6 | grandkid 6-7');
  expect(await parting(store, 'sib', 'grandkid')).toBe('main@3 1-3 | sib 4-4 | grandkid 4-7');
  expect(await parting(store, 'main', 'grandkid')).toBe('main@4 1-4 | main 5-6 | grandkid 5-7');
});

test('points are compared at their positions: in one session, before a fork, or in inherited entries', async () => {
  using store = withMain();
  store.lineage.fork('main', { name: 'kid', cut: 4 });
  expect(await parting(store, 'main@3', 'main')).toBe('main@3 1-3 | main | main 4-6');
  expect(await parting(store, 'main', 'main')).toBe('main@6 1-6 | main | main');
  expect(await parting(store, 'main@2', 'kid')).toBe('main@2 1-2 | main | kid 3-5');
  expect(await parting(store, 'kid@3', 'main')).toBe('main@3 1-3 | kid | main 4-6');
  await expect(diff(store, 'main@7', 'kid')).rejects.toMatchObject({ code: 'TAPE_NO_SEQ' });
  await expect(diff(store, 'main', 'kit')).rejects.toMatchObject({ code: 'TAPE_NO_SESSION' });
});

test('sessions without a common tape have no base, and a fork that inherits nothing has one', async () => {
  using store = withMain();
  store.sessions.open('other');
  store.lineage.fork('main', { name: 'fresh', inherit: 'nothing' });
  store.lineage.fork('main', { name: 'part', inherit: { since: 3 }, cut: 5 });
  expect(await parting(store, 'main', 'other')).toBe('nowhere | main 1-6 | other 1-1');
  expect(await parting(store, 'main', 'fresh')).toBe('main@6 - | main | fresh 7-7');
  expect(await parting(store, 'part', 'main')).toBe('main@5 4-5 | part 6-6 | main 6-6');
  expect(await parting(store, 'part', 'fresh')).toBe('main@5 - | part 6-6 | fresh 7-7');
});

test('entries that one of them rewound are not common', async () => {
  using store = withMain();
  store.lineage.fork('main', { name: 'kid' });
  store.history.rewind('main', 3);
  store.entries.append('main', [user('instead')]);
  expect(await parting(store, 'main', 'kid')).toBe('main@3 1-3 | main 8-8 | kid 4-7');
  store.history.rewind('kid', 2);
  expect(await parting(store, 'main', 'kid')).toBe('main@2 1-2 | main 3-3,8-8 | kid');
  store.history.unrewind('main');
  store.history.unrewind('kid');
  expect(await parting(store, 'main', 'kid')).toBe('main@6 1-6 | main | kid 7-7');
});

test('each side lists its messages, tools, files, keys and last answer', async () => {
  using store = withMain();
  const file = (id: string, read: string[], write: string[]) => [
    assistant([{ type: 'text', text: `calling ${id}` }, toolCall(id, 'edit', {})]),
    toolResult({ toolCallId: id, toolName: 'edit' }, 'ok', { paths: { read, write } }),
  ];
  store.lineage.fork('main', { name: 'kid' });
  store.entries.append('main', [
    ...file('c1', ['a.md'], ['b.md']),
    anchor('plan', { goal: 1, summary: 'x' }),
  ]);
  store.entries.append('kid', [user('Go'), ...file('c2', ['c.md'], ['b.md']), ...file('c3', [], ['c.md'])]);
  store.entries.append('kid', [
    handoff('done', { goal: 2, left: 0 }),
    assistant([toolCall('c4', 'look', {})]),
  ]);
  store.entries.append('kid', [toolResult({ toolCallId: 'c4', toolName: 'look' }, 'x')]);
  store.entries.append('kid', [note('workspace/closed', patch('d.md'))]);
  const { a, b, both } = await diff(store, 'main', 'kid');
  expect(a).toEqual({
    session: 'main',
    at: 9,
    ranges: [[7, 9]],
    entries: 3,
    messages: { user: 0, assistant: 1, merge: 0 },
    recent: [{ seq: 7, from: 'assistant', text: 'calling c1 edit()' }],
    tools: [{ tool: 'edit', calls: 1 }],
    files: [
      { path: 'b.md', wrote: true, seq: 8 },
      { path: 'a.md', wrote: false, seq: 8 },
    ],
    state: [{ key: 'goal', seq: 9 }],
    answer: { seq: 7, text: 'calling c1' },
    complete: true,
  });
  expect(b).toMatchObject({
    messages: { user: 1, assistant: 3 },
    tools: [
      { tool: 'edit', calls: 2 },
      { tool: 'look', calls: 1 },
    ],
    files: [
      { path: 'b.md', wrote: true, seq: 10 },
      { path: 'c.md', wrote: true, seq: 12 },
      { path: 'd.md', wrote: true, seq: 16 },
    ],
    state: [
      { key: 'goal', seq: 13 },
      { key: 'left', seq: 13 },
    ],
    answer: { text: 'calling c3' },
  });
  expect(both).toEqual(['state:goal', 'file:b.md']);
  // Merging brings the patch of the child's worktree, and one message.
  store.lineage.merge('kid');
  expect((await diff(store, 'main', 'main@9')).a).toMatchObject({
    messages: { user: 0, assistant: 0, merge: 1 },
    files: [{ path: 'd.md', wrote: true, seq: 10 }],
    answer: { seq: 7 },
  });
});

function patch(path: string) {
  const tree = '0'.repeat(40);
  return {
    base: tree,
    tree,
    files: [{ path, change: 'added' }],
    patch: new Uint8Array(3),
  } as never;
}

test('the last answer of a side that added none is the one that it shows', async () => {
  using store = withMain();
  store.lineage.fork('main', { name: 'kid' });
  store.entries.append(
    'kid',
    Array.from({ length: 50 }, (_, i) => user(`u${i}`)),
  );
  expect((await diff(store, 'main', 'kid')).b).toMatchObject({ answer: { seq: 5, text: 'm5' } });
  store.history.rewind('kid', 4);
  expect((await diff(store, 'main', 'kid')).b).toMatchObject({ answer: { seq: 3, text: 'm3' } });
  store.sessions.open('other');
  expect((await diff(store, 'other', 'kid')).a).not.toHaveProperty('answer');
});

test('a diff of a long session uses no more memory than one of a short session', async () => {
  using store = openStore();
  store.sessions.open('main');
  store.entries.append(
    'main',
    Array.from({ length: 1_500 }, (_, i) => anchor('a', { [`key-${i}`]: 'x'.repeat(100) })),
  );
  store.entries.append(
    'main',
    Array.from({ length: 100 }, (_, i) => user(`${i} ${'y'.repeat(1_000)}`)),
  );
  const { b } = await diff(store, 'main@1', 'main');
  expect([b.state.length, b.complete, b.recent.length, b.messages.user]).toEqual([1_000, false, 20, 100]);
  expect(b.recent.at(-1)?.text).toBe(`99 ${'y'.repeat(197)}`);
});

test('of a side with more entries than the limit the newest are read, and the last messages listed', async () => {
  using store = withMain();
  store.lineage.fork('main', { name: 'kid' });
  store.entries.append('kid', [assistant('only'), ...Array.from({ length: 30 }, (_, i) => user(`${i}`))]);
  const kid = { session: 'kid' };
  const { a, b } = await diffSessions(store, 'main', kid, { entries: 10, messages: 3 });
  expect([a.entries, a.read, a.complete]).toEqual([0, undefined, true]);
  expect([b.entries, b.read, b.complete, b.messages.user]).toEqual([32, 10, false, 10]);
  expect(b.ranges).toEqual([[7, 38]]);
  expect(b.recent.map(({ text }) => text)).toEqual(['27', '28', '29']);
  // The last answer is looked for before them, too.
  expect(b.answer?.text).toBe('only');
  const all = await diffSessions(store, 'main', kid, { entries: 32, messages: 0 });
  expect([all.b.read, all.b.complete, all.b.messages, all.b.recent]).toEqual([
    undefined,
    true,
    { user: 30, assistant: 1, merge: 0 },
    [],
  ]);
  await expect(diffSessions(store, 'main', kid, { entries: Number.NaN })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
  });
});

/** An act on one of the sessions there are. */
const act = fc.record({
  kind: fc.constantFrom('say', 'say', 'fork', 'part', 'fresh', 'rewind', 'unrewind'),
  who: fc.nat(),
  to: fc.nat(),
});

function play(store: SqliteTapeStore, { kind, who, to }: { kind: string; who: number; to: number }): void {
  const sessions = store.sessions.list({ all: true });
  const {
    session: name,
    floor,
    head,
  } = sessions[who % sessions.length] ?? { session: '', floor: 0, head: 0 };
  const point = floor + 1 + (to % (head - floor));
  if (kind === 'say') store.entries.append(name, [user('x')]);
  else if (kind === 'fork') store.lineage.fork(name, { cut: point });
  else if (kind === 'part') store.lineage.fork(name, { inherit: { since: point } });
  else if (kind === 'fresh') store.lineage.fork(name, { inherit: 'nothing' });
  else if (kind === 'rewind') store.history.rewind(name, point);
  else if ([...store.entries.read(name, { kind: 'rewind', own: true })].length > 0)
    store.history.unrewind(name);
}

/** The entries that a session shows, each as its tape and position. */
function shown(store: SqliteTapeStore, name: string): Map<Seq, string> {
  const visible = store.views.ranges(name).filter(({ hiddenBy }) => hiddenBy === undefined);
  return new Map(
    [...store.entries.read(name)]
      .filter(({ seq }) => visible.some(({ from, to }) => seq >= from && seq <= to))
      .map(({ seq, tape }) => [seq, `${tape}@${seq}`]),
  );
}

test('in any history, both sides show the same up to the base, and share no later entry', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 30 }), async (acts) => {
      using store = openStore();
      store.sessions.open('main');
      for (const one of acts) play(store, one);
      const sessions = store.sessions.list({ all: true }).slice(0, 4);
      for (const one of sessions)
        for (const other of sessions) {
          const { base, a, b } = await diffSessions(
            store,
            { session: one.session },
            { session: other.session },
          );
          const [seenA, seenB] = [shown(store, one.session), shown(store, other.session)];
          const floor = Math.max(one.floor, other.floor);
          const seq = base?.seq ?? 0;
          for (let at = floor + 1; at <= seq; at += 1) expect(seenA.get(at)).toBe(seenB.get(at));
          // The very next is in one of them alone, or where their tapes part.
          if (seenA.has(seq + 1) && seq >= floor) expect(seenA.get(seq + 1)).not.toBe(seenB.get(seq + 1));
          for (const [side, seen] of [[a, seenA] as const, [b, seenB] as const])
            expect(side.entries).toBe([...seen.keys()].filter((at) => at > seq).length);
        }
    }),
    { numRuns: 60 },
  );
});
