import { assistant, type Seq, type SessionInfo, type SqliteTapeStore, user } from '@tapedeck/tape';
import { deliveryOf } from '@tapedeck/tape/internal';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';

function need(store: SqliteTapeStore, name: string): SessionInfo {
  const info = store.sessions.find(name);
  if (info === undefined) throw new Error(`there is no session '${name}'`);
  return info;
}

/** Forks a child of a session, lets it speak, and merges it; returns where. */
function merged(store: SqliteTapeStore, parent: string, name: string, into = parent): Seq {
  store.lineage.fork(parent, { name });
  store.entries.append(name, [assistant(`${name} is done`)]);
  return store.lineage.merge(name, { into }).seq;
}

/** The counts of a session, as a list of sessions has them. */
function countsOf(store: SqliteTapeStore, name: string) {
  return store.sessions.list({ counts: true, all: true }).find(({ session }) => session === name)?.counts;
}

/** Whether the lines of a child say that its merges are undone. */
const undoneLines = (store: SqliteTapeStore, name: string) =>
  store
    .familyOf(name)
    .filter(({ type, session_id }) => type === 'merge' && session_id === name)
    .map(({ undone }) => undone === true);

test('after an undo of its merge a child is open, and after an undo of that merged', () => {
  using store = openStore();
  store.sessions.open('main');
  const seq = merged(store, 'main', 'kid');
  const look = () => {
    const info = need(store, 'kid');
    const { children, openChildren, mergedChildren } = countsOf(store, 'main') ?? {};
    return { delivery: deliveryOf(info), children, openChildren, mergedChildren };
  };
  const [before, after] = [
    { delivery: 'merged', children: 1, openChildren: 0, mergedChildren: 1 },
    { delivery: undefined, children: 1, openChildren: 1, mergedChildren: 0 },
  ];
  expect(look()).toEqual(before);
  store.history.rewind('main', seq - 1);
  expect(look()).toEqual(after);
  expect(store.sessions.list({ parent: 'main' })).toMatchObject([{ delivery: 'merged', undone: true }]);
  store.history.unrewind('main');
  expect(look()).toEqual(before);
  expect([...store.verify()]).toEqual([]);
});

test('a child that was merged twice is open when both merges are undone', () => {
  using store = openStore();
  store.sessions.open('main');
  const first = merged(store, 'main', 'kid');
  store.entries.append('kid', [assistant('More.')]);
  const { seq: second } = store.lineage.merge('kid');
  store.history.rewind('main', second - 1);
  expect([deliveryOf(need(store, 'kid')), undoneLines(store, 'kid')]).toEqual(['merged', [false, true]]);
  store.history.rewind('main', first - 1);
  expect([deliveryOf(need(store, 'kid')), undoneLines(store, 'kid')]).toEqual([undefined, [true, true]]);
  store.lineage.merge('kid');
  expect([deliveryOf(need(store, 'kid')), undoneLines(store, 'kid')]).toEqual([
    'merged',
    [true, true, false],
  ]);
});

test('the rewinds that count are those of the session that received the merge', () => {
  using store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('Go')]);
  store.lineage.fork('main', { name: 'middle' });
  store.entries.append('middle', [user('Go on')]);
  const seq = merged(store, 'middle', 'kid', 'main');
  store.history.rewind('middle', 'head');
  expect(deliveryOf(need(store, 'kid'))).toBe('merged');
  store.history.rewind('main', seq - 1);
  expect(deliveryOf(need(store, 'kid'))).toBeUndefined();
  expect(countsOf(store, 'middle')).toMatchObject({ openChildren: 1, mergedChildren: 0 });
});

test('a child whose merge was undone can be discarded, and that is for good', () => {
  using store = openStore();
  store.sessions.open('main');
  const seq = merged(store, 'main', 'kid');
  expect(() => store.lineage.merge('kid', { strategy: 'discard' })).toThrow('it is already merged');
  store.history.rewind('main', seq - 1);
  const discard = store.lineage.merge('kid', { strategy: 'discard' });
  expect(discard).toMatchObject({ state: 'discarded', repeated: false });
  expect(deliveryOf(need(store, 'kid'))).toBe('discarded');
  store.history.rewind('main', seq - 1);
  expect(deliveryOf(need(store, 'kid'))).toBe('discarded');
  expect(() => store.lineage.merge('kid')).toThrow('it is already discarded');
  expect([...store.verify()]).toEqual([]);
});

test('after any history a merge counts exactly if no rewind hides it', () => {
  const act = fc.record({
    what: fc.constantFrom('say', 'merge', 'rewind', 'unrewind'),
    where: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  fc.assert(
    fc.property(fc.array(act, { maxLength: 24 }), (acts) => {
      using store = openStore();
      store.sessions.open('main');
      const seqs = new Map<string, Seq>();
      for (const { what, where } of acts) {
        if (what === 'say') store.entries.append('main', [user('Go')]);
        if (what === 'merge') {
          const name = `kid-${seqs.size}`;
          seqs.set(name, merged(store, 'main', name));
        }
        if (what === 'rewind') store.history.rewind('main', Math.ceil(where * need(store, 'main').head));
        if (what === 'unrewind' && store.views.ranges('main').some(({ hiddenBy }) => hiddenBy !== undefined))
          store.history.unrewind('main');
      }
      const isHidden = (seq: Seq) => store.views.ranges('main', { from: seq })[0]?.hiddenBy !== undefined;
      const hidden = [...seqs].filter(([, seq]) => isHidden(seq)).map(([name]) => name);
      const children = store.sessions.list({ parent: 'main', all: true });
      expect(children.filter(({ undone }) => undone).map(({ session }) => session)).toEqual(hidden);
      expect([...seqs.keys()].filter((name) => undoneLines(store, name)[0])).toEqual(hidden);
      expect(countsOf(store, 'main')).toMatchObject({
        children: seqs.size,
        openChildren: hidden.length,
        mergedChildren: seqs.size - hidden.length,
      });
    }),
    { numRuns: sized(10, 40, 10_000) },
  );
});
