import { anchor, user } from '../entry/entry.ts';
import { all, answers, asks, type Chapter, refusal, sessionOf, textOf } from './contract.ts';

/** Leases and the inbox. */
export const leaseChapter: Chapter = ({ test, expect }, open) => {
  test('one owner writes at a time; other writers get an error that names it, and can read', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const lease = await store.acquire('main', { id: 'alice', host: 'elsewhere', pid: 7 });
    const other = { code: 'TAPE_BUSY', data: { session: 'main', owner: { id: 'alice', pid: 7 } } };
    const acts = [
      () => store.acquire('main', { id: 'bob' }),
      () => store.append('main', [user('x')]),
      () => store.append('main', [anchor('x')]),
      () => store.rewind('main', 1),
      () => store.setLifecycle('main', 'archived'),
    ];
    for (const act of acts) expect(await refusal(act)).toMatchObject(other);
    expect(await store.append('main', [user('mine')], { lease })).toMatchObject({ added: 1 });
    expect((await all(store.read('main'))).length).toBe(3);
    expect((await store.fork('main')).base).toBe(3);
    expect(await store.release(lease)).toBe(true);
    expect((await store.acquire('main', { id: 'bob' })).owner).toBe('bob');
  });

  test('an owner that was overtaken cannot write', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const late = await store.acquire('main', { id: 'late' }, { ttlMs: 0 });
    const next = await store.acquire('main', { id: 'next' });
    expect(next.epoch > late.epoch).toBe(true);
    expect((await refusal(() => store.append('main', [user('x')], { lease: late }))).code).toBe(
      'TAPE_FENCED',
    );
    expect((await refusal(() => store.extend(late))).code).toBe('TAPE_FENCED');
    expect((await refusal(() => store.release(late))).code).toBe('TAPE_FENCED');
    expect((await refusal(() => store.drain(late))).code).toBe('TAPE_FENCED');
    expect((await store.find('main'))?.head).toBe(2);
    expect((await store.extend(next, { ttlMs: 60_000 })).expiresAt > next.expiresAt).toBe(true);
  });

  test('a write without a lease fences an owner whose lease has expired', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const late = await store.acquire('main', { id: 'late' }, { ttlMs: 0 });
    await store.append('main', [user('one-shot')]);
    expect((await refusal(() => store.append('main', [user('x')], { lease: late }))).code).toBe(
      'TAPE_FENCED',
    );
  });

  test('a released lease cannot write', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const lease = await store.acquire('main', { id: 'alice' });
    await store.release(lease);
    expect((await refusal(() => store.append('main', [user('x')], { lease }))).code).toBe('TAPE_FENCED');
  });

  test('input to an archived session is an error, and its inbox does not change', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const sent = { body: { type: 'input', drafts: [user('before')] }, key: 'sent' } as const;
    const { id } = await store.post('main', sent);
    await store.setLifecycle('main', 'archived');
    const before = [await store.find('main'), await store.inbox('main')];
    for (const body of [
      { type: 'input', drafts: [user('x')] },
      { type: 'answer', toolCallId: 'c1', answer: { approved: true } },
    ] as const)
      expect(await refusal(() => store.post('main', { body }))).toMatchObject({
        code: 'TAPE_ARCHIVED',
        data: { session: 'main', lifecycle: 'archived' },
      });
    expect((await store.post('main', sent)).id).toBe(id);
    expect([await store.find('main'), await store.inbox('main')]).toEqual(before);
    await store.setLifecycle('main', 'active');
    await store.post('main', { body: { type: 'input', drafts: [user('x')] } });
    expect((await store.inbox('main')).length).toBe(2);
  });

  test('a posted item waits for the owner, which cannot release before it drains', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const lease = await store.acquire('main', { id: 'alice' });
    const posted = await store.post('main', {
      body: { type: 'append', drafts: [user('hello')] },
      source: 'cli',
      mode: 'followup',
    });
    expect(posted.owner).toMatchObject({ id: 'alice' });
    expect((await store.inbox('main')).map((item) => [item.id, item.mode])).toEqual([
      [posted.id, 'followup'],
    ]);
    expect(await store.release(lease)).toBe(false);
    expect(await store.drain(lease)).toBe(1);
    expect(await store.inbox('main')).toEqual([]);
    const entry = (await all(store.read('main', { last: 1 })))[0];
    expect(textOf(entry)).toBe('hello');
    expect(entry?.meta).toMatchObject({ source: 'cli', mode: 'followup' });
    expect(await store.release(lease)).toBe(true);
  });

  test('posting the same key again makes one item and one append', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const item = { body: { type: 'append' as const, drafts: [user('hello')] }, key: 'k' };
    const first = await store.post('main', item);
    expect((await store.post('main', item)).id).toBe(first.id);
    const other = { ...item, body: { type: 'append' as const, drafts: [user('else')] } };
    expect((await refusal(() => store.post('main', other))).code).toBe('TAPE_KEY_CONFLICT');
    await store.drainOwnerless('main');
    expect(await store.post('main', item)).toMatchObject({ appended: { from: 3, to: 3, repeated: 1 } });
    expect((await refusal(() => store.post('main', other))).code).toBe('TAPE_KEY_CONFLICT');
    expect(await store.inbox('main')).toEqual([]);
    expect((await store.find('main'))?.head).toBe(3);
    expect(await store.append('main', [user('hello')], { key: 'k' })).toMatchObject({
      repeated: 1,
      added: 0,
    });
  });

  test('posted bytes are stored exactly', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 0);
    const bytes = new Uint8Array([1, 2, 3, 250]);
    const drafts = [user([{ type: 'file', mediaType: 'image/png', data: bytes }])];
    await store.post('main', { body: { type: 'append', drafts } });
    await store.drainOwnerless('main');
    await store.append('main', drafts);
    const [posted, appended] = await all(store.read('main', { last: 2 }));
    expect(posted?.payload).toEqual(appended?.payload);
    expect(JSON.stringify(posted?.payload)).toMatch(/"type":"blob"/);
  });

  test('an invalid item is an error when it is posted', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 0);
    const body = { type: 'append' as const, drafts: [{ kind: 'status' as const, payload: {} }] };
    expect((await refusal(() => store.post('main', { body }))).code).toBe('TAPE_BAD_ENTRY');
    const fine = { type: 'append' as const, drafts: [user('x')] };
    expect((await refusal(() => store.post('none', { body: fine }))).code).toBe('TAPE_NO_SESSION');
  });

  test('an item that fails leaves an event, and does not stop the others', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    await store.session('other');
    await store.fork('other', { name: 'stranger' });
    const bodies = [
      { type: 'merge', draft: { child: 'nobody' } },
      { type: 'merge', draft: { child: 'stranger' } },
      { type: 'append', drafts: [user('fine')] },
    ] as const;
    for (const body of bodies) await store.post('main', { body });
    expect(await store.drainOwnerless('main')).toBe(true);
    const entries = await all(store.read('main', { from: 3 }));
    expect(entries.map(textOf)).toEqual(['event merge/refused', 'event merge/refused', 'fine']);
    expect(entries.map((e) => (e.payload as { code?: string }).code)).toEqual([
      'TAPE_NO_SESSION',
      'TAPE_CONFLICT',
      undefined,
    ]);
  });

  test('a posted merge waits while calls are open, and does not prevent a release', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    await store.fork('main', { name: 'child' });
    const lease = await store.acquire('main', { id: 'alice' });
    await store.append('main', [asks('c1')], { lease });
    await store.post('main', { body: { type: 'merge', draft: { child: 'child' } } });
    expect(await store.drain(lease)).toBe(0);
    expect(await store.release(lease)).toBe(true);
    expect((await store.inbox('main')).length).toBe(1);
    await store.append('main', [answers('c1')]);
    expect(await store.drainOwnerless('main')).toBe(true);
    expect(await store.inbox('main')).toEqual([]);
    expect((await store.find('child'))?.delivery).toBe('merged');
  });

  test('other processes drain only a session without an owner', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const lease = await store.acquire('main', { id: 'alice' });
    expect(await store.drainOwnerless('main')).toBe(false);
    await store.release(lease);
    expect(await store.drainOwnerless('main')).toBe(true);
  });

  test('a live answer is read while it arrives, and is replaced by entries when it settles', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const lease = await store.acquire('main', { id: 'alice' });
    const chunk = (index: number) => ({ index, chunk: { type: 'text-delta', text: `t${index}` } });
    const stream = (...chunks: ReturnType<typeof chunk>[]) => ({ session: 'main', run: 'run-1', chunks });
    await store.saveChunks([stream(chunk(0), chunk(1))]);
    await store.saveChunks([stream(chunk(1), chunk(2)), { ...stream(chunk(0)), run: 'run-0' }]);
    expect([...(await store.liveRuns('main'))].sort()).toEqual(['run-0', 'run-1']);
    expect(await store.chunks('main', 'run-1')).toEqual([chunk(0), chunk(1), chunk(2)]);
    expect(await store.chunks('main', 'run-1', 2)).toEqual([chunk(2)]);
    expect(await store.settle('run-1', [user('t0t1t2')], { lease })).toMatchObject({ added: 1 });
    expect(await store.chunks('main', 'run-1')).toEqual([]);
    expect(await store.settle('run-0', [], { lease })).toMatchObject({ added: 0, to: 3 });
    expect(await store.liveRuns('main')).toEqual([]);
  });

  test('an item for a run waits for one, and is removed with the append of its entries', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const input = (text: string, key: string) => ({
      body: { type: 'input' as const, drafts: [user(text)] },
      mode: 'followup',
      source: 'timer',
      key,
    });
    const { id } = await store.post('main', input('one', 'k1'));
    const two = await store.post('main', input('two', 'k2'));
    await store.post('main', { body: { type: 'append', drafts: [user('a fact')] } });
    const lease = await store.acquire('main', { id: 'alice' });
    expect(await store.owners()).toMatchObject([{ session: 'main', owner: { id: 'alice' } }]);
    expect(await store.drain(lease)).toBe(1);
    expect((await store.inbox('main')).map((item) => item.id)).toEqual([id, two.id]);
    expect(await store.release(lease, { inputs: true })).toBe(false);
    const [item] = await store.inbox('main');
    const drafts = item?.body.type === 'input' ? item.body.drafts : [];
    expect(
      await store.drain(lease, [
        { id, drafts },
        { id: 'gone', drafts: [user('never')] },
      ]),
    ).toBe(1);
    const [entry] = await all(store.read('main', { last: 1 }));
    expect(entry).toMatchObject({ payload: { content: [{ text: 'one' }] } });
    expect(entry?.meta).toMatchObject({ source: 'timer', mode: 'followup' });
    // Posting it again returns the append, and adds nothing.
    expect(await store.post('main', input('one', 'k1'))).toMatchObject({ appended: { repeated: 1 } });
    expect(await store.release(lease)).toBe(true);
    expect((await store.inbox('main')).length).toBe(1);
    expect(await store.owners()).toEqual([]);
  });
};
