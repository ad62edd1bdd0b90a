import { type TraceDestination, type TraceSource, trace } from '@tapedeck/runtime';
import { anchor, assistant, result, type SqliteTapeStore, toolCall, toolResult, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { storeUnderTest } from '../support/deck.ts';
import { openStore } from '../support/store.ts';

/** `main` with `child` merged at 3, which had `grand` merged at 5, which said something at 7. */
function nested(): SqliteTapeStore {
  const store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('Go')]);
  store.lineage.fork('main', { name: 'child' });
  store.entries.append('child', [user('Look')]);
  store.lineage.fork('child', { name: 'grand' });
  store.entries.append('grand', [user('Closer'), assistant('Deep.')]);
  store.lineage.merge('grand');
  store.entries.append('child', [assistant('Done.')]);
  store.lineage.merge('child');
  return store;
}

/** Sources as nested texts: `child 3-7 by main@3 says child@7`. */
function sourceLines(sources: readonly TraceSource[], depth = 0): string[] {
  return sources.flatMap(({ session, range, mark, state, text, quoted, missing, again, from }) => {
    const parts = [
      `${'  '.repeat(depth)}${session}`,
      range === null ? 'nothing' : range.join('-'),
      mark === null ? state : `${state} by ${mark.session}@${mark.seq}`,
      ...(mark?.hiddenBy === undefined ? [] : [`hidden by @${mark.hiddenBy}`]),
      ...(text === null ? [] : [`says ${text.kind}@${text.seq}`]),
      ...(quoted ? ['quoted'] : []),
      ...(missing ? ['missing'] : []),
      ...(again ? ['again'] : []),
    ];
    return [parts.join(' '), ...sourceLines(from, depth + 1)];
  });
}

/** Destinations as nested texts: `merged into main@3 (3-7)`. */
function landingLines(landings: readonly TraceDestination[], depth = 0): string[] {
  return landings.flatMap(({ session, seq, state, range, hiddenBy, again, into }) => {
    const more = `${hiddenBy === undefined ? '' : ` hidden by @${hiddenBy}`}${again ? ' again' : ''}`;
    const line = `${'  '.repeat(depth)}${state} ${session}@${seq} (${range.join('-')})${more}`;
    return [line, ...landingLines(into, depth + 1)];
  });
}

const from = async (store: SqliteTapeStore, session: string, seq: number) =>
  sourceLines((await trace(storeUnderTest(store), session, seq)).from);
const into = async (store: SqliteTapeStore, session: string, seq: number) =>
  landingLines((await trace(storeUnderTest(store), session, seq)).into);

test('a merged message and its mark lead back to the entries of children and grandchildren', async () => {
  const store = nested();
  const told = ['child 3-7 merged by main@3 says message@7', '  grand 5-7 merged by child@5 says message@7'];
  expect(await from(store, 'main', 4)).toEqual(told);
  expect(await from(store, 'main', 3)).toEqual(told);
  expect(await from(store, 'child', 6)).toEqual([told[1]?.trim()]);
  expect(await from(store, 'main', 2)).toEqual([]);
  expect(await trace(storeUnderTest(store), 'main', 4)).toMatchObject({
    session: 'main',
    owner: 'main',
    seq: 4,
    kind: 'message',
    from: [{ status: 'completed', mark: { session: 'main', seq: 3 } }],
    into: [],
    inheritedBy: [],
    inheritedCount: 0,
  });
});

test('an entry of a child leads forward to its merges, level by level', async () => {
  const store = nested();
  const told = ['merged child@5 (5-7)', '  merged main@3 (3-7)'];
  for (const seq of [5, 6, 7]) expect(await into(store, 'grand', seq)).toEqual(told);
  expect(await into(store, 'child', 4)).toEqual(['merged main@3 (3-7)']);
  expect(await into(store, 'child', 5)).toEqual(['merged main@3 (3-7)']);
  expect(await into(store, 'main', 3)).toEqual([]);
});

test('an entry without a merge lists the forks that inherit it', async () => {
  const store = nested();
  store.lineage.fork('grand', { name: 'leaf', cut: 6 });
  store.lineage.fork('main', { name: 'later', inherit: { since: 2 } });
  store.lineage.fork('main', { name: 'fresh', inherit: 'nothing' });
  const has = async (session: string, seq: number) =>
    (await trace(storeUnderTest(store), session, seq)).inheritedBy;
  expect(await has('main', 2)).toEqual(['child', 'grand', 'leaf']);
  expect(await has('main', 4)).toEqual(['later']);
  expect(await has('grand', 6)).toEqual(['leaf']);
  expect(await has('grand', 7)).toEqual([]);
  // Traced from a session that inherited it, it is the same entry.
  expect(await trace(storeUnderTest(store), 'leaf', 4)).toEqual({
    ...(await trace(storeUnderTest(store), 'child', 4)),
    session: 'leaf',
  });
  expect(await trace(storeUnderTest(store), 'leaf', 4)).toMatchObject({ owner: 'child', inheritedCount: 2 });
});

test('entries that a rewind hides, and discarded ones, are marked', async () => {
  const store = nested();
  store.entries.append('child', [assistant('More.')]);
  store.lineage.merge('child');
  store.history.rewind('main', 2);
  store.lineage.fork('main', { name: 'left' });
  store.entries.append('left', [assistant('It is not wanted.')]);
  store.lineage.merge('left', { strategy: 'discard' });
  const { seq } = store.lineage.merge('child');
  expect(await from(store, 'main', 6)).toEqual(['child 8-8 merged by main@5 hidden by @7 says message@8']);
  expect(await into(store, 'child', 8)).toEqual([
    'merged main@5 (8-8) hidden by @7',
    `merged main@${seq} (3-8)`,
  ]);
  expect(await from(store, 'main', 8)).toEqual(['left 8-9 discarded by main@8']);
  expect(await into(store, 'left', 9)).toEqual(['discarded main@8 (8-9)']);
});

test('a text that was given with the merge is on no tape of the child', async () => {
  const store = openStore();
  store.sessions.open('main');
  store.lineage.fork('main', { name: 'child' });
  store.entries.append('child', [assistant('Mine.')]);
  store.lineage.merge('child', { text: 'Yours.' });
  expect(await from(store, 'main', 3)).toEqual(['child 2-3 merged by main@2']);
  store.entries.append('child', [result({ answer: 42 })]);
  store.lineage.merge('child');
  expect(await from(store, 'main', 5)).toEqual(['child 4-4 merged by main@4 says result@4']);
});

test('a merge that a text quotes is followed, though it lies outside of the merged range', async () => {
  const store = nested();
  const quoted = JSON.stringify([...store.entries.read('child', { from: 6, to: 6 })][0]?.payload);
  const own = JSON.stringify([...store.entries.read('main', { from: 4, to: 4 })][0]?.payload);
  store.entries.append('child', [assistant(`The request was: ${JSON.parse(quoted).content[0].text}`)]);
  store.lineage.merge('child');
  expect(await from(store, 'main', 6)).toEqual([
    'child 8-8 merged by main@5 says message@8',
    '  grand 5-7 merged by child@5 says message@7 quoted',
  ]);
  store.lineage.fork('main', { name: 'reader' });
  store.entries.append('reader', [assistant(`Main knows: ${JSON.parse(own).content[0].text}`)]);
  store.lineage.merge('reader');
  expect(await from(store, 'main', 8)).toEqual([
    'reader 7-8 merged by main@7 says message@8',
    '  child 3-7 merged by main@3 says message@7 quoted',
    '    grand 5-7 merged by child@5 says message@7',
  ]);
});

test('the result of a call leads to the children that the call started, merged or not', async () => {
  const store = openStore();
  store.sessions.open('main');
  const call = { toolCallId: 'c1', toolName: 'delegate' };
  store.entries.append('main', [assistant([toolCall('c1', 'delegate', {})])]);
  for (const name of ['one', 'two']) {
    store.lineage.fork('main', { name, spawnCall: 'c1', deliver: 'tool-result' });
    store.entries.append(name, [assistant(name)]);
  }
  store.lineage.fork('main', { name: 'other', spawnCall: 'c2' });
  store.sessions.update('two', { task: 'failed' });
  store.entries.append('main', [toolResult(call, 'one')]);
  store.lineage.merge('one', { context: false });
  expect(await from(store, 'main', 3)).toEqual([
    'one 2-3 merged by main@4 says message@3',
    'two nothing unmerged',
  ]);
  expect((await trace(storeUnderTest(store), 'main', 3)).from[1]).toMatchObject({
    status: 'failed',
    mark: null,
  });
});

test('a child that was merged many times is followed once below each', async () => {
  const store = nested();
  for (let n = 0; n < 3; n += 1) {
    store.history.rewind('child', 4);
    store.lineage.merge('grand');
  }
  store.lineage.merge('child');
  const lines = await into(store, 'grand', 7);
  expect(lines.filter((line) => line.startsWith('merged child'))).toHaveLength(4);
  expect(new Set(lines.filter((line) => !line.includes('again'))).size).toBe(
    lines.filter((line) => !line.includes('again')).length,
  );
  expect(lines.filter((line) => line.includes('main@5') && !line.includes('again'))).toHaveLength(1);
});

test('sources shared by two merges are listed below the first of them', async () => {
  const store = openStore();
  store.sessions.open('top');
  store.lineage.fork('top', { name: 'main' });
  store.lineage.fork('main', { name: 'child' });
  store.lineage.fork('child', { name: 'grand' });
  store.entries.append('grand', [assistant('Deep.')]);
  store.lineage.merge('grand');
  store.lineage.merge('child');
  store.history.rewind('main', 2);
  store.lineage.merge('child');
  store.lineage.merge('main');
  const [, ...below] = await from(store, 'top', 3);
  expect(below).toEqual([
    '  child 3-5 merged by main@3 hidden by @5',
    '    grand 4-5 merged by child@4 says message@5',
    '  child 3-5 merged by main@6',
    '    grand 4-5 merged by child@4 again',
  ]);
});

test('a mark whose content was erased is traced by its graph line', async () => {
  const store = nested();
  store.entries.redact('main', 3, 'a test');
  expect(await from(store, 'main', 4)).toEqual([
    'child 3-7 merged by main@3',
    '  grand 5-7 merged by child@5 says message@7',
  ]);
});

test('an unknown place is refused', async () => {
  const store = storeUnderTest(nested());
  await expect(trace(store, 'missing', 1)).rejects.toMatchObject({ code: 'TAPE_NO_SESSION' });
  await expect(trace(store, 'main', 99)).rejects.toMatchObject({ code: 'TAPE_NO_SEQ' });
  await expect(trace(store, 'main', 'plan')).rejects.toMatchObject({ code: 'TAPE_NO_ANCHOR' });
});

test('a point may be an anchor', async () => {
  const store = nested();
  store.entries.append('child', [anchor('here')]);
  expect(await trace(storeUnderTest(store), 'child', 'here')).toMatchObject({
    seq: 8,
    kind: 'anchor',
    name: 'here',
  });
});
