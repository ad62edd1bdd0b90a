import { isBlobRef } from '../entry/blob.ts';
import { anchor, assistant, handoff, note, toolCall, toolResult, user } from '../entry/entry.ts';
import type { SessionQuery } from '../tape/listing.ts';
import { all, type Chapter, partsOf, refusal, sessionOf, textOf } from './contract.ts';

/** Reads, points and verify. */
export const readChapter: Chapter = ({ test, expect }, open) => {
  test('a read is limited by position, kind and count', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 6);
    await store.entries.append('main', [anchor('mark')]);
    const seqs = async (query: object) => (await all(store.entries.read('main', query))).map((e) => e.seq);
    expect(await seqs({ from: 3, to: 5 })).toEqual([3, 4, 5]);
    expect(await seqs({ kind: 'anchor' })).toEqual([1, 8]);
    expect(await seqs({ last: 2 })).toEqual([7, 8]);
    expect(await seqs({ last: 2, kind: 'message', to: 6 })).toEqual([5, 6]);
    expect(await seqs({ limit: 2, from: 2 })).toEqual([2, 3]);
    expect(await seqs({ since: 6 })).toEqual([7, 8]);
    expect(await seqs({ since: 'mark' })).toEqual([]);
    expect(await seqs({ from: 9 })).toEqual([]);
    expect(await seqs({ to: 99 })).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  test('a read is limited to messages with tool calls', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 2);
    const call = (id: string) => assistant([toolCall(id, 'read', {})]);
    const answer = (id: string) => toolResult({ toolCallId: id, toolName: 'read' }, 'x');
    await store.entries.append('main', [call('a'), answer('a'), user('between'), call('b'), call('c')]);
    await store.entries.append('main', [answer('b'), answer('c'), user('after')]);
    await store.lineage.fork('main', { name: 'child' });
    await store.entries.append('child', [user('own'), call('d'), user('open')]);
    const seqs = async (query: object) =>
      (await all(store.entries.read('child', { calls: true, ...query }))).map((e) => e.seq);
    expect(await seqs({})).toEqual([4, 7, 8, 14]);
    expect(await seqs({ last: 2 })).toEqual([8, 14]);
    expect(await seqs({ limit: 2 })).toEqual([4, 7]);
    expect(await seqs({ from: 5, to: 8 })).toEqual([7, 8]);
    expect(await seqs({ own: true })).toEqual([14]);
    expect(await seqs({ last: 1, to: 7 })).toEqual([7]);
    expect(await seqs({ kind: 'anchor' })).toEqual([]);
  });

  test('a read is limited to anchors and events of one name', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    await store.entries.append('main', [anchor('task'), note('task', {}), user('between'), anchor('task')]);
    await store.lineage.fork('main', { name: 'child' });
    await store.entries.append('child', [anchor('task')]);
    const seqs = async (query: object) => (await all(store.entries.read('child', query))).map((e) => e.seq);
    expect(await seqs({ name: 'task' })).toEqual([3, 4, 6, 8]);
    expect(await seqs({ name: 'task', kind: 'anchor', own: false })).toEqual([3, 6]);
    expect(await seqs({ name: 'task', last: 2 })).toEqual([6, 8]);
    expect(await seqs({ name: 'other' })).toEqual([]);
  });

  test('a read is limited to the entry with a key', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    await store.entries.append('main', [{ ...user('one'), key: 'k1' }, user('two'), anchor('task')]);
    await store.lineage.fork('main', { name: 'child' });
    await store.entries.append('child', [{ ...user('own'), key: 'k2' }]);
    const seqs = async (query: object) => (await all(store.entries.read('child', query))).map((e) => e.seq);
    expect(await seqs({ key: 'u:k1' })).toEqual([3]);
    expect(await seqs({ key: 'u:k2' })).toEqual([7]);
    expect(await seqs({ key: 'u:k2', to: 6 })).toEqual([]);
    expect(await seqs({ key: 'u:k1', own: true })).toEqual([]);
    expect(await seqs({ key: 'u:k1', kind: 'anchor' })).toEqual([]);
    expect(await seqs({ key: 'u:k1', last: 1 })).toEqual([3]);
    expect(await seqs({ key: 'u:k1', calls: true })).toEqual([]);
    expect(await seqs({ key: 'u:k1', namePrefix: 'ta' })).toEqual([]);
  });

  test('sessions are listed in order of creation, page by page', async () => {
    await using store = await open();
    for (const name of ['c', 'a', 'b']) await store.sessions.open(name);
    await store.lineage.fork('c', { name: 'kid' });
    await store.entries.append('c', [user('newest')]);
    const names = async (query: object) =>
      (await store.sessions.list({ all: true, ...query })).map(({ session: name }) => name);
    expect(await names({ after: null, limit: 2 })).toEqual(['c', 'a']);
    expect(await names({ after: 'a' })).toEqual(['b', 'kid']);
    expect(await names({ after: 'kid' })).toEqual([]);
    expect(await names({ parent: 'c', after: null })).toEqual(['kid']);
    expect(await names({ parent: 'c', after: 'kid' })).toEqual([]);
    expect((await refusal(() => store.sessions.list({ after: 'missing' }))).code).toBe('TAPE_NO_SESSION');
  });

  test('sessions are listed by the key of their fork, by the tree they are in, and by what they still owe', async () => {
    await using store = await open();
    for (const name of ['main', 'other']) await store.sessions.open(name);
    const fork = async (
      parent: string,
      name: string,
      request: Pick<SessionQuery, 'key'> & {
        deliver?: 'merge' | 'merge+turn' | 'notify' | 'tool-result';
      } = {},
    ) => await store.lineage.fork(parent, { name, ...request });
    await fork('main', 'one', { key: 'k', deliver: 'merge' });
    await fork('one', 'two', { key: 'k', deliver: 'merge+turn' });
    await fork('main', 'aside');
    await fork('aside', 'three', { deliver: 'tool-result' });
    await fork('other', 'far', { deliver: 'merge' });
    const names = async (query: SessionQuery) =>
      (await store.sessions.list({ all: true, after: null, ...query })).map(({ session: name }) => name);
    expect(await names({ parent: 'main', key: 'k' })).toEqual(['one']);
    expect(await names({ parent: 'main', key: 'none' })).toEqual([]);
    expect(await names({ under: 'main' })).toEqual(['one', 'two', 'aside', 'three']);
    expect(await names({ under: 'main', unfinished: true })).toEqual(['one', 'two', 'three']);
    expect(await names({ parent: 'main', unfinished: true })).toEqual(['one']);
    expect(await store.sessions.unfinished('main')).toEqual({ children: 1, below: 3 });
    expect(await store.sessions.unfinished('one', 'main')).toEqual({ children: 1, below: 3 });
    expect(await store.sessions.unfinished('aside')).toEqual({ children: 1, below: 1 });
    await store.lineage.merge('two');
    await store.sessions.update('three', { lifecycle: 'archived' });
    expect(await names({ unfinished: true })).toEqual(['one', 'far']);
    expect(await store.sessions.unfinished('one', 'main')).toEqual({ children: 0, below: 1 });
  });

  test('the lineage is read in order, from a line on, by session, and by type', async () => {
    await using store = await open();
    await store.sessions.open('main');
    for (const name of ['one', 'two']) await store.lineage.fork('main', { name });
    await store.lineage.merge('one');
    await store.sessions.update('one', { lifecycle: 'archived' });
    const read = async (query: object) =>
      (await all(store.lineage.read(query))).map(({ g, type, session_id }) => `${g} ${type} ${session_id}`);
    const lines = ['1 session main', '2 fork one', '3 fork two', '4 merge one', '5 archive one'];
    expect(await read({})).toEqual(lines);
    expect(await read({ from: 4 })).toEqual(lines.slice(3));
    expect(await read({ session: 'one' })).toEqual([lines[1], lines[3], lines[4]]);
    expect(await read({ session: 'one', types: ['merge', 'discard'] })).toEqual([lines[3]]);
    expect(await read({ from: 6 })).toEqual([]);
    const merge = (await all(store.lineage.read({ from: 4 })))[0];
    expect(merge).toMatchObject({ into_session_id: 'main', seq: 2, range: [2, 2] });
    expect((await refusal(() => all(store.lineage.read({ session: 'missing' })))).code).toBe(
      'TAPE_NO_SESSION',
    );
  });

  test('a long tape is read page by page, while it grows', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1200);
    let count = 0;
    for await (const entry of store.entries.read('main')) {
      count += 1;
      expect(entry.seq).toBe(count);
      if (count % 400 === 0) await store.entries.append('main', [user('meanwhile')]);
    }
    expect(count).toBe(1201);
    expect((await store.sessions.find('main'))?.head).toBe(1204);
  });

  test('an event gives a title to a session without one; a list gives it the beginning of its first prompt', async () => {
    await using store = await open();
    const titles = async () =>
      Object.fromEntries(
        (await store.sessions.list({ titles: true, all: true })).map(({ session, title }) => [
          session,
          title,
        ]),
      );
    const naming = (title: string) => note('session/title', { title });
    await store.sessions.open('given', { title: 'Given' });
    await store.entries.append('given', [user('Prompt'), naming('Written')]);
    await store.sessions.open('main');
    await store.entries.append('main', [assistant('Hello'), user('Plan\nthe  release'), user('More')]);
    await store.lineage.fork('main', { name: 'child', intention: { nextSteps: 'Check the tests' } });
    await store.sessions.open('imported');
    await store.entries.append('imported', [
      user('<command-name>/clear</command-name>', { source: 'import', localCommand: 'command' }),
      user('What a skill wrote', { source: 'import', isMeta: true }),
      user('What was typed', { source: 'import' }),
    ]);
    await store.sessions.open('long');
    await store.entries.append('long', [user(`${'word '.repeat(100)}end`)]);
    await store.sessions.open('huge');
    await store.entries.append('huge', [user(`Read "this": ${'x'.repeat(50_000)}`)]);
    const { long, huge, ...others } = await titles();
    expect(huge).toMatch(/^Read "this": x{66}…$/);
    expect(others).toEqual({
      given: 'Given',
      main: 'Plan the release',
      child: 'Check the tests',
      imported: 'What was typed',
    });
    expect(long).toBe(`${'word '.repeat(15).trimEnd()}…`);
    expect((await store.sessions.find('main'))?.title).toBe(undefined);
    await store.entries.append('main', [naming('First'), naming('Release\u001b[31m\u202e notes\r\nin red')]);
    expect((await store.sessions.find('main'))?.title).toBe('Release [31m notes in red');
    expect(await titles()).toMatchObject({ main: 'Release [31m notes in red', child: 'Check the tests' });
    await store.entries.append('main', [note('session/title', { title: 5 }), naming(' \n\t ')]);
    expect(await titles()).toMatchObject({ main: 'Plan the release' });
  });

  test('a child reads what it inherited and its own entries, or its own entries only', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 3);
    const child = await store.lineage.fork('main', { name: 'child' });
    await store.entries.append('child', [user('own')]);
    const grand = await store.lineage.fork('child', { name: 'grand' });
    const read = await all(store.entries.read('grand'));
    expect(read.map((e) => [e.seq, e.tape, e.inherited])).toEqual([
      ...[1, 2, 3, 4].map((seq) => [seq, 'tape:main', true]),
      [5, child.tape, true],
      [6, child.tape, true],
      [7, grand.tape, false],
    ]);
    expect(read.every((e) => e.session === 'grand')).toBe(true);
    expect((await all(store.entries.read('grand', { own: true }))).map((e) => e.name)).toEqual([
      'fork/start',
    ]);
    expect((await all(store.entries.read('grand', { last: 3 }))).map((e) => e.seq)).toEqual([5, 6, 7]);
  });

  test('a point is the head, a position, an anchor, or an earlier anchor of that name', async () => {
    await using store = await open();
    await store.sessions.open('main');
    await store.entries.append('main', [
      anchor('task'),
      user('a'),
      anchor('task'),
      handoff('phase/2'),
      user('b'),
    ]);
    const points = { head: 6, '@3': 3, '4': 4, task: 4, 'task~1': 2, 'task~0': 4, 'phase/2': 5 };
    for (const [point, seq] of Object.entries(points))
      expect(await store.entries.resolve('main', point)).toBe(seq);
    expect(await store.entries.resolve('main', 2)).toBe(2);
    expect(await store.entries.resolve('main', 'session/start')).toBe(1);
  });

  test('a point that does not exist is an error, with near names', async () => {
    await using store = await open();
    await store.sessions.open('main');
    await store.entries.append('main', [anchor('design'), anchor('task')]);
    const at = (point: string | number) => refusal(() => store.entries.resolve('main', point));
    expect(await at('desing')).toMatchObject({ code: 'TAPE_NO_ANCHOR', data: { near: ['design'] } });
    expect((await at('design~1')).code).toBe('TAPE_NO_ANCHOR');
    for (const seq of [0, 4, '@0', '@4', '99']) expect((await at(seq)).code).toBe('TAPE_NO_SEQ');
    expect((await at(1.5)).code).toBe('TAPE_BAD_POINT');
  });

  test('a child has no positions at or below its floor', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 4);
    await store.lineage.fork('main', { inherit: { since: 3 }, name: 'child' });
    expect((await refusal(() => store.entries.resolve('child', 3))).code).toBe('TAPE_NO_SEQ');
    expect(await store.entries.resolve('child', 4)).toBe(4);
    expect((await all(store.entries.read('child'))).map(textOf)).toEqual(['m3', 'm4', 'anchor fork/start']);
  });

  test('bytes in a part are stored as a blob and read back exactly', async () => {
    await using store = await open();
    await store.sessions.open('main');
    const bytes = new Uint8Array([0, 255, 1, 2]);
    await store.entries.append('main', [user([{ type: 'file', mediaType: 'image/png', data: bytes }])]);
    const ref = partsOf((await all(store.entries.read('main', { last: 1 })))[0])[0]?.data;
    expect(ref).toMatchObject({ type: 'blob', size: 4, as: 'bytes' });
    expect([...(await store.entries.blob(isBlobRef(ref) ? ref.hash : ''))]).toEqual([...bytes]);
    expect((await refusal(() => store.entries.blob('00'.repeat(32)))).code).toBe('TAPE_NO_BLOB');
  });

  test('an unaltered store has no problems', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 5);
    await store.lineage.fork('main', { name: 'one', cut: 4 });
    await store.entries.append('one', [user('own')]);
    // A fork at a position that `one` inherits: none of the own entries of `one` are below it.
    await store.lineage.fork('one', { name: 'two', cut: 3 });
    await store.lineage.fork('two', { name: 'three', inherit: 'nothing' });
    await store.lineage.merge('one');
    await store.history.rewind('main', 2);
    expect(await all(store.verify())).toEqual([]);
    for (const name of ['main', 'one', 'two', 'three']) expect(await all(store.verify(name))).toEqual([]);
  });
};
