import { anchor, assistant, handoff, note, user } from '../entry/entry.js';
import { entryBytesMax } from '../entry/json.js';
import { all, answers, asks,               refusal, sessionOf, stateOf, textOf } from './contract.js';

/** Forks. */
export const forkChapter          = ({ test, expect }, open) => {
  test('a fork inherits everything up to the head, and continues the numbering', async () => {
    await using store = await open();
    const { id } = await store.sessions.open('main');
    await store.entries.append('main', [user('m1'), assistant('m2')]);
    const before = await store.sessions.find('main');
    const forked = await store.lineage.fork('main');
    expect(forked).toMatchObject({
      parent: 'main',
      fromAnchor: null,
      base: 3,
      range: [1, 3],
      repeated: false,
    });
    expect(forked.session).toMatch(/^main-fork-[0-9a-f]{8}$/);
    expect(await store.sessions.find(forked.session)).toMatchObject({
      parent: 'main',
      parentId: id,
      kind: 'subagent',
      floor: 0,
      base: 3,
      head: 4,
    });
    expect(await store.sessions.find('main')).toEqual(before);
  });

  test('a fork since an anchor inherits the entries after it, and its state', async () => {
    await using store = await open();
    await store.sessions.open('main');
    await store.entries.append('main', [user('m1'), anchor('A', { goal: 'x' }), user('m2'), assistant('m3')]);
    const since = await store.lineage.fork('main', { inherit: { since: 'A' }, name: 'since' });
    expect(since).toMatchObject({ fromAnchor: 'A', base: 5, range: [4, 5] });
    const entries = await all(store.entries.read('since'));
    expect(entries.map(textOf)).toEqual(['m2', 'm3', 'anchor fork/start']);
    expect(entries.at(-1)?.payload).toMatchObject({ state: { goal: 'x' }, range: [4, 5], from_anchor: 'A' });
    await store.lineage.fork('main', { name: 'full' });
    expect((await all(store.entries.read('full', { kind: 'message' }))).map(textOf)).toEqual([
      'm1',
      'm2',
      'm3',
    ]);
    const none = await store.lineage.fork('main', { name: 'none', inherit: 'nothing' });
    expect(none).toMatchObject({ base: 5, range: null });
    expect((await all(store.entries.read('none'))).map((e) => [e.seq, e.name])).toEqual([[6, 'fork/start']]);
  });

  test('cut is the last inherited position; since is the position before the first', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 6);
    expect(await store.lineage.fork('main', { inherit: { since: 2 }, cut: 5, name: 'middle' })).toMatchObject(
      {
        fromAnchor: '@2',
        range: [3, 5],
      },
    );
    expect((await all(store.entries.read('middle', { kind: 'message' }))).map(textOf)).toEqual([
      'm2',
      'm3',
      'm4',
    ]);
    expect((await refusal(() => store.lineage.fork('main', { inherit: { since: 5 }, cut: 3 }))).code).toBe(
      'TAPE_BAD_POINT',
    );
    expect((await refusal(() => store.lineage.fork('main', { cut: 8 }))).code).toBe('TAPE_NO_SEQ');
    const unknown = await refusal(() => store.lineage.fork('main', { inherit: { since: 'nowhere' } }));
    expect(unknown.code).toBe('TAPE_NO_ANCHOR');
  });

  test('a cut can lie in what the parent itself inherits', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 4);
    await store.lineage.fork('main', { name: 'child' });
    await store.entries.append('child', [user('own')]);
    const early = await store.lineage.fork('child', { cut: 3, name: 'early' });
    expect(early).toMatchObject({ parent: 'child', base: 3, range: [1, 3] });
    expect((await all(store.entries.read('early'))).map((e) => [e.seq, textOf(e)])).toEqual([
      [1, 'anchor session/start'],
      [2, 'm1'],
      [3, 'm2'],
      [4, 'anchor fork/start'],
    ]);
  });

  test('a cut inside a batch of tool calls moves back to before it', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    await store.entries.append('main', [asks('c1', 'c2', 'c3'), answers('c1'), answers('c2')]);
    expect(await store.lineage.fork('main', { name: 'busy' })).toMatchObject({ base: 2, snappedFrom: 5 });
    expect((await all(store.entries.read('busy', { kind: 'message' }))).map(textOf)).toEqual(['m1']);
    await store.entries.append('main', [answers('c3'), user('next')]);
    expect(await store.lineage.fork('main', { cut: 4, name: 'inside' })).toMatchObject({
      base: 2,
      snappedFrom: 4,
    });
    const after = await store.lineage.fork('main', { cut: 6, name: 'after' });
    expect([after.base, after.snappedFrom]).toEqual([6, undefined]);
  });

  test('parent and child do not see what the other writes after the fork', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 2);
    await store.lineage.fork('main', { name: 'child' });
    await store.entries.append('main', [user('parent only')]);
    await store.entries.append('child', [user('child only')]);
    await store.history.rewind('main', 2);
    expect((await all(store.entries.read('main', { kind: 'message' }))).map(textOf)).toEqual([
      'm1',
      'm2',
      'parent only',
    ]);
    expect((await all(store.entries.read('child', { kind: 'message' }))).map(textOf)).toEqual([
      'm1',
      'm2',
      'child only',
    ]);
    expect((await all(store.views.entries('child'))).map(textOf).includes('m2')).toBe(true);
  });

  test('the requested worktree is recorded in the first entry, and is part of the request', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const worktree = { repository: '/code/app', git: '/code/app/.git' };
    const forked = await store.lineage.fork('main', { key: 'call-7', worktree });
    const [start] = await all(store.entries.read(forked.session, { own: true }));
    expect(start?.payload).toMatchObject({ worktree });
    expect(await store.lineage.fork('main', { key: 'call-7', worktree })).toMatchObject({ repeated: true });
    expect((await refusal(() => store.lineage.fork('main', { key: 'call-7' }))).code).toBe(
      'TAPE_KEY_CONFLICT',
    );
  });

  test('the same key gives the same child, even after the parent grew', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 2);
    const first = await store.lineage.fork('main', { key: 'call-7', intention: { nextSteps: 'Look.' } });
    await store.entries.append('main', [user('more')]);
    const again = await store.lineage.fork('main', { key: 'call-7', intention: { nextSteps: 'Look.' } });
    expect(again).toEqual({ ...first, repeated: true });
    const other = await refusal(() => store.lineage.fork('main', { key: 'call-7', inherit: 'nothing' }));
    expect(other).toMatchObject({ code: 'TAPE_KEY_CONFLICT', data: { session: first.session } });
    expect((await store.sessions.list({ parent: 'main' })).length).toBe(1);
    const [a, b] = [await store.lineage.fork('main'), await store.lineage.fork('main')];
    expect(a.session === b.session).toBe(false);
  });

  test('a name can be chosen once', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    await store.lineage.fork('main', { name: 'child' });
    expect((await refusal(() => store.lineage.fork('main', { name: 'child' }))).code).toBe('TAPE_EXISTS');
    expect((await refusal(() => store.lineage.fork('main', { name: '../x' }))).code).toBe('TAPE_BAD_NAME');
    expect((await store.sessions.list({ all: true })).length).toBe(2);
  });

  test('an intention is stored after the start, as given', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const intention = {
      nextSteps: 'Fix it.',
      contextSummary: 'It broke.',
      triggerOnComplete: 'notify_parent',
    };
    await store.lineage.fork('main', { name: 'child', intention });
    const own = await all(store.entries.read('child', { own: true }));
    expect(own.map((e) => [e.seq, e.name, e.mark])).toEqual([
      [3, 'fork/start', 'anchor'],
      [4, 'intention', 'anchor'],
    ]);
    const state = stateOf(own[1]);
    expect(state).toMatchObject({
      next_steps: 'Fix it.',
      context_summary: 'It broke.',
      trigger_on_complete: 'notify_parent',
    });
    expect(state.created_at).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  });

  test('an intention that an entry cannot hold is an error, and creates no child', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const before = [await store.sessions.find('main'), await all(store.lineage.read())];
    // One is over the limit by itself, the other only as an entry.
    for (const length of [entryBytesMax + 1, entryBytesMax - 60]) {
      const request = { name: 'child', key: 'k', intention: { nextSteps: 'x'.repeat(length) } };
      expect((await refusal(() => store.lineage.previewFork('main', request))).code).toBe('TAPE_BAD_ENTRY');
      expect((await refusal(() => store.lineage.fork('main', request))).code).toBe('TAPE_BAD_ENTRY');
    }
    expect([await store.sessions.find('main'), await all(store.lineage.read())]).toEqual(before);
    expect(await store.sessions.find('child')).toBe(undefined);
    expect(await store.lineage.fork('main', { name: 'child', key: 'k' })).toMatchObject({ repeated: false });
  });

  test('the last n messages are inherited, with the entries between them', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 2);
    await store.entries.append('main', [anchor('A'), user('m3'), note('n', {})]);
    const { range } = await store.lineage.fork('main', { inherit: { last: 2 } });
    expect(range).toEqual([3, 6]);
    expect((await store.lineage.fork('main', { inherit: { last: 2 }, cut: 3 })).range).toEqual([2, 3]);
    expect((await store.lineage.fork('main', { inherit: { last: 9 } })).range).toEqual([1, 6]);
    expect((await store.lineage.fork('main', { inherit: 'all' })).range).toEqual([1, 6]);
  });

  test('another form of `inherit` is refused, and nothing is written', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 2);
    const forms = ['"none"', 'null', '[]', '{}', '{"since":null}', '{"since":2,"last":1}', '{"window":2}'];
    const amounts = ['{"last":0}', '{"last":1.5}', '{"last":"2"}'];
    for (const inherit of [...forms, ...amounts]) {
      const request = { inherit: JSON.parse(inherit) };
      for (const act of [
        () => store.lineage.fork('main', request),
        () => store.lineage.previewFork('main', request),
      ])
        expect(await refusal(act)).toMatchObject({ code: 'TAPE_BAD_POINT', data: { session: 'main' } });
    }
    expect((await store.sessions.list({ all: true })).length).toBe(1);
  });

  test('a preview of a fork returns what the fork writes and returns, and writes nothing', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 2);
    await store.entries.append('main', [anchor('A', { goal: 'x' }), asks('c1')]);
    const requests = [
      { name: 'named', inherit: { since: 'A' }, intention: { nextSteps: 'Look.' } },
      { key: 'keyed', cut: 'head' },
      { key: 'nothing', inherit: 'nothing' },
    ]         ;
    for (const request of requests) {
      const before = [await store.sessions.find('main'), await store.sessions.list({ all: true })];
      const { entries, ...receipt } = await store.lineage.previewFork('main', request);
      expect([await store.sessions.find('main'), await store.sessions.list({ all: true })]).toEqual(before);
      const { id, tape: _, ...forked } = await store.lineage.fork('main', request);
      expect(receipt).toEqual(forked);
      const own = await all(store.entries.read(id, { own: true }));
      expect(own.map(({ seq, name, kind }) => [seq, name, kind])).toEqual(
        entries.map(({ seq, name, kind }) => [seq, name, kind]),
      );
      expect(own[0]?.payload).toEqual(entries[0]?.payload);
    }
    const [{ name }] = requests;
    expect((await refusal(() => store.lineage.previewFork('main', { name }))).code).toBe('TAPE_EXISTS');
    expect((await refusal(() => store.lineage.previewFork('main', { inherit: { since: 'B' } }))).code).toBe(
      'TAPE_NO_ANCHOR',
    );
    expect((await refusal(() => store.lineage.previewFork('main', { key: 'keyed' }))).code).toBe(
      'TAPE_KEY_CONFLICT',
    );
    expect(await store.lineage.previewFork('main', { key: 'keyed', cut: 'head' })).toMatchObject({
      repeated: true,
      entries: [],
    });
    // Without a key, every child gets a new name, which a preview cannot know.
    expect((await store.lineage.previewFork('main')).session).toBe(undefined);
  });

  test('a fork can have a title, be hidden from lists, and require an idle parent', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const lease = await store.leases.acquire('main', { id: 'alice' });
    const request = { kind: 'session', name: 'aside', title: 'An aside', ephemeral: true, whenIdle: true };
    for (const act of [
      () => store.lineage.fork('main', request),
      () => store.lineage.previewFork('main', request),
    ])
      expect(await refusal(act)).toMatchObject({
        code: 'TAPE_BUSY',
        data: { session: 'main', owner: { id: 'alice' } },
      });
    expect(await store.sessions.find('aside')).toBe(undefined);
    await store.leases.release(lease);
    await store.lineage.fork('main', request);
    expect(await store.sessions.find('aside')).toMatchObject({
      kind: 'session',
      title: 'An aside',
      ephemeral: true,
    });
    expect((await store.sessions.list()).map(({ session: name }) => name)).toEqual(['main']);
    expect((await store.sessions.list({ all: true })).map(({ session: name }) => name).sort()).toEqual([
      'aside',
      'main',
    ]);
    expect(
      (await store.sessions.list({ parent: 'main', all: true })).map(({ session: name }) => name),
    ).toEqual(['aside']);
  });

  test('sessions are listed by the beginning of their names and aliases', async () => {
    await using store = await open();
    for (const name of ['release', 'release-notes', 'rel', 'other', 'r%l']) await store.sessions.open(name);
    await store.sessions.update('other', { alias: { name: 'release-proof', reason: '' } });
    const listed = async (prefix        ) =>
      (await store.sessions.list({ prefix })).map(({ session }) => session).sort();
    expect(await listed('rel')).toEqual(['other', 'rel', 'release', 'release-notes']);
    expect(await listed('release-')).toEqual(['other', 'release-notes']);
    expect(await listed('r%')).toEqual(['r%l']);
    expect(await listed('none')).toEqual([]);
    expect((await store.sessions.list({ prefix: 'rel', all: true, limit: 1 })).length).toBe(1);
    expect((await store.sessions.list({ prefix: 'r%', all: true, limit: 9 })).length).toBe(1);
  });

  test('a grandchild keeps the floor, and the state that replaces the entries below it', async () => {
    await using store = await open();
    await store.sessions.open('main');
    await store.entries.append('main', [user('m1'), handoff('H', { summary: 'so far' }), user('m2')]);
    await store.lineage.fork('main', { inherit: { since: 'H' }, name: 'child' });
    await store.entries.append('child', [user('c1')]);
    expect(await store.lineage.fork('child', { name: 'grand' })).toMatchObject({ range: [4, 6] });
    const start = (await all(store.entries.read('grand', { own: true })))[0];
    expect(start?.payload).toMatchObject({ state: { summary: 'so far' } });
    expect((await refusal(() => store.lineage.fork('child', { cut: 3 }))).code).toBe('TAPE_NO_SEQ');
  });

  test('a child remains when its parent is archived', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 2);
    await store.lineage.fork('main', { name: 'child' });
    await store.sessions.update('main', { lifecycle: 'archived' });
    expect((await store.sessions.list()).map((s) => s.session)).toEqual(['child']);
    expect((await all(store.entries.read('child', { kind: 'message' }))).map(textOf)).toEqual(['m1', 'm2']);
    expect((await store.sessions.find('child'))?.parent).toBe('main');
  });
};
