import { anchor, assistant, note, result, user } from '../entry/entry.ts';
import { all, answers, asks, type Chapter, refusal, sessionOf, textOf } from './contract.ts';

/** Sessions and appends. */
export const appendChapter: Chapter = ({ test, expect }, open) => {
  test('a session is created once, with its mark as the first entry', async () => {
    await using store = await open();
    const made = await store.sessions.open('main', { title: 'First' });
    expect(made).toMatchObject({
      session: 'main',
      created: true,
      lifecycle: 'active',
      head: 1,
      title: 'First',
    });
    expect(made.tape).toBe('tape:main');
    const again = await store.sessions.open('main');
    expect(again).toMatchObject({ id: made.id, created: false, head: 1 });
    const entries = await all(store.entries.read('main'));
    expect(entries.map((e) => [e.seq, e.mark, e.name])).toEqual([[1, 'anchor', 'session/start']]);
  });

  test('a session is found by its name, an alias, its id and a prefix of its id', async () => {
    await using store = await open();
    const { id } = await store.sessions.open('main');
    await store.sessions.update('main', { alias: { name: 'dm:mom', reason: 'manual' } });
    for (const ref of ['main', 'dm:mom', id, `worker:${id}`, id.slice(0, 20), id.slice(0, 20).toLowerCase()])
      expect((await store.sessions.find(ref))?.id).toBe(id);
    expect(await store.sessions.find('other')).toBe(undefined);
    expect((await store.sessions.find('main'))?.aliases).toEqual(['dm:mom']);
    expect(await store.sessions.open('dm:mom')).toMatchObject({ session: 'main', created: false });
    expect(
      (await refusal(() => store.sessions.update('dm:mom', { alias: { name: 'main', reason: 'manual' } })))
        .code,
    ).toBe('TAPE_EXISTS');
  });

  test('an alias that is taken away names no session, and a name that looks like another is refused', async () => {
    await using store = await open();
    await store.sessions.open('main');
    await store.sessions.update('main', { alias: { name: 'dm:mom', reason: 'manual' } });
    await store.sessions.update('main', { unalias: { name: 'dm:mom', reason: 'a mistake' } });
    expect(await store.sessions.find('dm:mom')).toBe(undefined);
    for (const name of ['Main', 'worker:01JD0000000000000000000099'])
      expect((await refusal(() => store.sessions.open(name))).code).toMatch(/^TAPE_(?:EXISTS|BAD_NAME)$/);
    expect(await store.sessions.list()).toMatchObject([{ session: 'main', aliases: [] }]);
  });

  test('an unknown session is an error with near names', async () => {
    await using store = await open();
    await store.sessions.open('main');
    expect(await refusal(() => store.entries.append('mian', [user('x')]))).toMatchObject({
      code: 'TAPE_NO_SESSION',
      data: { near: ['main'] },
    });
  });

  test('an unknown lifecycle or task is an error that lists the valid ones, and nothing is written', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const odd = await refusal(() => store.sessions.open('odd', { lifecycle: 'gone' } as never));
    expect(odd.code).toBe('TAPE_BAD_OPTION');
    expect(await store.sessions.find('odd')).toBe(undefined);
    const before = [await store.sessions.find('main'), await all(store.lineage.read())];
    const lifecycle = ['active', 'archived', 'destroyed', 'purged'];
    const task = ['running', 'completed', 'halted', 'failed', 'aborted', 'filtered', 'orphaned'];
    for (const value of ['gone', 'staging', '', 'Archived', 'timed_out', undefined, {}] as never[]) {
      const done = { drafts: [], task: value };
      for (const [allowed, act] of [
        [lifecycle, () => store.sessions.update('main', { lifecycle: value })],
        [task, () => store.sessions.update('main', { task: value })],
        [task, () => store.lineage.fork('main', { name: 'child', done })],
        [task, () => store.lineage.previewFork('main', { name: 'child', done })],
      ] as const) {
        const refused = await refusal(act);
        expect(refused).toMatchObject({ code: 'TAPE_BAD_STATUS', data: { value, allowed } });
        expect(refused.message.endsWith(`the values are ${allowed.join(', ')}`)).toBe(true);
      }
    }
    const listed = await refusal(() => store.sessions.list({ lifecycle: 'gone' as never }));
    expect(listed).toMatchObject({ code: 'TAPE_BAD_STATUS', data: { value: 'gone', allowed: lifecycle } });
    expect([await store.sessions.find('main'), await all(store.lineage.read())]).toEqual(before);
    expect(await store.sessions.find('child')).toBe(undefined);
  });

  test('a name that is a point of an existing session is an error', async () => {
    await using store = await open();
    await store.sessions.open('main');
    await store.entries.append('main', [anchor('task')]);
    expect((await refusal(() => store.sessions.open('main@task'))).code).toBe('TAPE_EXISTS');
    expect((await refusal(() => store.sessions.open('main@7'))).code).toBe('TAPE_EXISTS');
    expect(await store.sessions.open('main@mom.example')).toMatchObject({ created: true });
  });

  test('positions have no gaps, and the receipt names them', async () => {
    await using store = await open();
    await store.sessions.open('main');
    expect(await store.entries.append('main', [user('a'), assistant('b')])).toMatchObject({
      session: 'main',
      from: 2,
      to: 3,
      added: 2,
      repeated: 0,
    });
    const { head } = await store.entries.append('main', [note('run/start', { n: 1 })]);
    const entries = await all(store.entries.read('main'));
    expect(entries.map((e) => e.seq)).toEqual([1, 2, 3, 4]);
    expect(entries.at(-1)?.hash).toBe(head);
    expect((await store.sessions.find('main'))?.headHash).toBe(head);
  });

  test('parts and meta are read back exactly', async () => {
    await using store = await open();
    await store.sessions.open('main');
    const parts = [
      { type: 'reasoning', text: '', providerOptions: { anthropic: { signature: 'c2ln\ud800' } } },
      {
        type: 'text',
        text: 'é \u2028 "\\" \ud83d\ude00 \udc00',
        __proto__x: { constructor: [null, 1.5, -0.25] },
      },
    ];
    await store.entries.append('main', [
      assistant(parts, { model: 'm', nested: { deep: [1, { a: null }] } }),
    ]);
    const entry = (await all(store.entries.read('main', { last: 1 })))[0];
    expect(entry?.payload).toEqual({ role: 'assistant', content: parts });
    expect(entry?.meta).toEqual({ model: 'm', nested: { deep: [1, { a: null }] } });
  });

  test('a result is appended like any other entry, and only with a value', async () => {
    await using store = await open();
    await store.sessions.open('main');
    const draft = { ...result({ answer: 42 }, { run: 'r' }), key: 'k' };
    expect(await store.entries.append('main', [user('x'), draft])).toMatchObject({ added: 2 });
    expect(await store.entries.append('main', [draft])).toMatchObject({ added: 0, repeated: 1 });
    const [entry] = await all(store.entries.read('main', { kind: 'result' }));
    expect(entry).toMatchObject({ payload: { value: { answer: 42 } }, meta: { run: 'r' }, key: 'u:k' });
    for (const payload of [{}, 'x', null, { value: undefined }])
      expect((await refusal(() => store.entries.append('main', [{ kind: 'result', payload }]))).code).toBe(
        'TAPE_BAD_ENTRY',
      );
  });

  test('a batch is all or nothing', async () => {
    await using store = await open();
    await store.sessions.open('main');
    const batch = [user('fine'), { kind: 'rewind' as const, payload: {} }];
    expect((await refusal(() => store.entries.append('main', batch))).code).toBe('TAPE_BAD_ENTRY');
    expect((await refusal(() => store.entries.append('main', []))).code).toBe('TAPE_BAD_ENTRY');
    expect((await store.sessions.find('main'))?.head).toBe(1);
  });

  test('an append with the same key adds nothing', async () => {
    await using store = await open();
    await store.sessions.open('main');
    const first = await store.entries.append('main', [user('a'), assistant('b')], { key: 'turn-1' });
    await store.entries.append('main', [user('later')]);
    const again = await store.entries.append('main', [user('a'), assistant('b')], { key: 'turn-1' });
    expect(again).toMatchObject({ from: first.from, to: first.to, added: 0, repeated: 2 });
    expect((await store.sessions.find('main'))?.head).toBe(4);
  });

  test('a batch adds only its new entries', async () => {
    await using store = await open();
    await store.sessions.open('main');
    await store.entries.append('main', [{ ...user('a'), key: 'k1' }]);
    const mixed = await store.entries.append('main', [
      { ...user('a'), key: 'k1' },
      { ...user('b'), key: 'k2' },
      user('c'),
    ]);
    expect(mixed).toMatchObject({ from: 2, to: 4, added: 2, repeated: 1 });
    expect((await all(store.entries.read('main', { from: 2 }))).map(textOf)).toEqual(['a', 'b', 'c']);
  });

  test('a key with other content is an error, and nothing of its batch is stored', async () => {
    await using store = await open();
    await store.sessions.open('main');
    await store.entries.append('main', [user('a')], { key: 'k' });
    const batch = [user('new'), { ...user('other'), key: 'k' }];
    expect(await refusal(() => store.entries.append('main', batch))).toMatchObject({
      code: 'TAPE_KEY_CONFLICT',
      data: { session: 'main', seq: 2 },
    });
    expect((await store.sessions.find('main'))?.head).toBe(2);
  });

  test('a key on the inherited part does not count for the child', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 0);
    await store.entries.append('main', [user('a')], { key: 'k' });
    const { session } = await store.lineage.fork('main');
    expect(await store.entries.append(session, [user('a')], { key: 'k' })).toMatchObject({
      added: 1,
      repeated: 0,
    });
  });

  test('an append that expects an older head is an error', async () => {
    await using store = await open();
    const { headHash } = await store.sessions.open('main');
    await store.entries.append('main', [user('a')], { expectHead: headHash });
    const late = await refusal(() => store.entries.append('main', [user('b')], { expectHead: headHash }));
    expect(late).toMatchObject({ code: 'TAPE_STALE_HEAD', data: { session: 'main', head: 2 } });
  });

  test('a system message becomes an event, and a tool message one entry per result', async () => {
    await using store = await open();
    await store.sessions.open('main');
    await store.entries.append('main', [
      { kind: 'message', payload: { role: 'system', content: 'Obey.' } },
      { kind: 'message', payload: { role: 'tool', content: [answers('c1').payload, answers('c2').payload] } },
    ]);
    const entries = await all(store.entries.read('main', { from: 2 }));
    expect(entries.map((e) => [e.kind, e.name])).toEqual([
      ['event', 'system'],
      ['tool-result', undefined],
      ['tool-result', undefined],
    ]);
  });

  test('a session counts the messages of its conversation', async () => {
    await using store = await open();
    await store.sessions.open('main');
    const counted = async () => (await store.sessions.find('main'))?.messageCount;
    await store.entries.append('main', [user('one'), asks('c1')]);
    expect(await counted()).toBe(2);
    // What follows the results of calls belongs to the answer, and so does what follows a note.
    await store.entries.append('main', [
      answers('c1'),
      assistant('two'),
      note('event', {}),
      assistant('three'),
    ]);
    expect(await counted()).toBe(2);
    await store.entries.append('main', [user('four'), assistant('five')]);
    await store.entries.append('main', [{ ...user('hidden'), meta: { context: false } }]);
    expect(await counted()).toBe(4);
    await store.history.rewind('main', '@1');
    expect(await counted()).toBe(4);
    await store.lineage.fork('main', { name: 'child' });
    await store.entries.append('child', [assistant('six')]);
    expect(await store.sessions.find('child')).toMatchObject({ messageCount: 1 });
    await store.lineage.merge('child');
    expect(await counted()).toBe(5);
    await store.entries.redact('main', '@2', 'a secret');
    expect(await counted()).toBe(5);
    expect(await all(store.verify())).toEqual([]);
  });

  test('a rewind of a log is appended where it leads to a settled point before it', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const rewind = (to: number) => ({ kind: 'rewind', mark: 'rewind', ref: to, payload: { to } }) as const;
    await store.entries.append('main', [user('One'), asks('c1'), answers('c1'), rewind(3)]);
    expect(await store.views.ranges('main')).toEqual([
      { from: 1, to: 3 },
      { from: 4, to: 6, hiddenBy: 6 },
    ]);
    // Within the batch of a call, at itself, and before the beginning.
    for (const to of [4, 8, -1, 1.5])
      expect((await refusal(() => store.entries.append('main', [user('x'), rewind(to)]))).code).toBe(
        'TAPE_BAD_ENTRY',
      );
    expect(await store.history.unrewind('main')).toMatchObject({ to: 5, shown: 2 });
    expect(await all(store.verify())).toEqual([]);
  });

  test('a session is settled while no tool call is open', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const settled = async () => (await store.sessions.find('main'))?.settled;
    await store.entries.append('main', [asks('c1', 'c2')]);
    expect(await settled()).toBe(2);
    await store.entries.append('main', [answers('c2'), user('meanwhile')]);
    expect(await settled()).toBe(2);
    await store.entries.append('main', [answers('c1')]);
    expect(await settled()).toBe(6);
  });
};
