import { anchor, user } from '../entry/entry.ts';
import { all, answers, asks, type Chapter, refusal, sessionOf, textOf } from './contract.ts';

/** Leases and the inbox. */
export const leaseChapter: Chapter = ({ test, expect }, open) => {
  test('one owner writes at a time; other writers get an error that names it, and can read', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const lease = await store.leases.acquire('main', { id: 'alice', host: 'elsewhere', pid: 7 });
    const other = { code: 'TAPE_BUSY', data: { session: 'main', owner: { id: 'alice', pid: 7 } } };
    const acts = [
      () => store.leases.acquire('main', { id: 'bob' }),
      () => store.entries.append('main', [user('x')]),
      () => store.entries.append('main', [anchor('x')]),
      () => store.history.rewind('main', 1),
      () => store.sessions.update('main', { lifecycle: 'archived' }),
    ];
    for (const act of acts) expect(await refusal(act)).toMatchObject(other);
    expect(await store.entries.append('main', [user('mine')], { lease })).toMatchObject({ added: 1 });
    expect((await all(store.entries.read('main'))).length).toBe(3);
    expect((await store.lineage.fork('main')).base).toBe(3);
    expect(await store.leases.release(lease)).toBe(true);
    expect((await store.leases.acquire('main', { id: 'bob' })).owner).toBe('bob');
  });

  test('an owner that was overtaken cannot write', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const late = await store.leases.acquire('main', { id: 'late' }, { ttlMs: 0 });
    const next = await store.leases.acquire('main', { id: 'next' });
    expect(next.epoch > late.epoch).toBe(true);
    expect((await refusal(() => store.entries.append('main', [user('x')], { lease: late }))).code).toBe(
      'TAPE_FENCED',
    );
    expect((await refusal(() => store.leases.extend(late))).code).toBe('TAPE_FENCED');
    expect((await refusal(() => store.leases.release(late))).code).toBe('TAPE_FENCED');
    expect((await refusal(() => store.inbox.drain(late))).code).toBe('TAPE_FENCED');
    expect((await store.sessions.find('main'))?.head).toBe(2);
    expect((await store.leases.extend(next, { ttlMs: 60_000 })).expiresAt > next.expiresAt).toBe(true);
  });

  test('a write without a lease fences an owner whose lease has expired', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const late = await store.leases.acquire('main', { id: 'late' }, { ttlMs: 0 });
    await store.entries.append('main', [user('one-shot')]);
    expect((await refusal(() => store.entries.append('main', [user('x')], { lease: late }))).code).toBe(
      'TAPE_FENCED',
    );
  });

  test('a released lease cannot write', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const lease = await store.leases.acquire('main', { id: 'alice' });
    await store.leases.release(lease);
    expect((await refusal(() => store.entries.append('main', [user('x')], { lease }))).code).toBe(
      'TAPE_FENCED',
    );
  });

  test('input to an archived session is an error, and its inbox does not change', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const sent = { body: { type: 'input', drafts: [user('before')] }, key: 'sent' } as const;
    const { id } = await store.inbox.post('main', sent);
    await store.sessions.update('main', { lifecycle: 'archived' });
    const before = [await store.sessions.find('main'), await store.inbox.list('main')];
    for (const body of [
      { type: 'input', drafts: [user('x')] },
      { type: 'answer', toolCallId: 'c1', answer: { approved: true } },
    ] as const)
      expect(await refusal(() => store.inbox.post('main', { body }))).toMatchObject({
        code: 'TAPE_ARCHIVED',
        data: { session: 'main', lifecycle: 'archived' },
      });
    expect((await store.inbox.post('main', sent)).id).toBe(id);
    expect([await store.sessions.find('main'), await store.inbox.list('main')]).toEqual(before);
    await store.sessions.update('main', { lifecycle: 'active' });
    await store.inbox.post('main', { body: { type: 'input', drafts: [user('x')] } });
    expect((await store.inbox.list('main')).length).toBe(2);
  });

  test('a posted item waits for the owner, which cannot release before it drains', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const lease = await store.leases.acquire('main', { id: 'alice' });
    const posted = await store.inbox.post('main', {
      body: { type: 'append', drafts: [user('hello')] },
      source: 'cli',
      mode: 'followup',
    });
    expect(posted.owner).toMatchObject({ id: 'alice' });
    expect((await store.inbox.list('main')).map((item) => [item.id, item.mode])).toEqual([
      [posted.id, 'followup'],
    ]);
    expect(await store.leases.release(lease)).toBe(false);
    expect(await store.inbox.drain(lease)).toBe(1);
    expect(await store.inbox.list('main')).toEqual([]);
    const entry = (await all(store.entries.read('main', { last: 1 })))[0];
    expect(textOf(entry)).toBe('hello');
    expect(entry?.meta).toMatchObject({ source: 'cli', mode: 'followup' });
    expect(await store.leases.release(lease)).toBe(true);
  });

  test('posting the same key again makes one item and one append', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const item = { body: { type: 'append' as const, drafts: [user('hello')] }, key: 'k' };
    const first = await store.inbox.post('main', item);
    expect((await store.inbox.post('main', item)).id).toBe(first.id);
    const other = { ...item, body: { type: 'append' as const, drafts: [user('else')] } };
    expect((await refusal(() => store.inbox.post('main', other))).code).toBe('TAPE_KEY_CONFLICT');
    await store.inbox.drain('main');
    expect(await store.inbox.post('main', item)).toMatchObject({ appended: { from: 3, to: 3, repeated: 1 } });
    expect((await refusal(() => store.inbox.post('main', other))).code).toBe('TAPE_KEY_CONFLICT');
    expect(await store.inbox.list('main')).toEqual([]);
    expect((await store.sessions.find('main'))?.head).toBe(3);
    expect(await store.entries.append('main', [user('hello')], { key: 'k' })).toMatchObject({
      repeated: 1,
      added: 0,
    });
  });

  test('posted bytes are stored exactly', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 0);
    const bytes = new Uint8Array([1, 2, 3, 250]);
    const drafts = [user([{ type: 'file', mediaType: 'image/png', data: bytes }])];
    await store.inbox.post('main', { body: { type: 'append', drafts } });
    await store.inbox.drain('main');
    await store.entries.append('main', drafts);
    const [posted, appended] = await all(store.entries.read('main', { last: 2 }));
    expect(posted?.payload).toEqual(appended?.payload);
    expect(JSON.stringify(posted?.payload)).toMatch(/"type":"blob"/);
  });

  test('an invalid item is an error when it is posted', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 0);
    const body = { type: 'append' as const, drafts: [{ kind: 'status' as const, payload: {} }] };
    expect((await refusal(() => store.inbox.post('main', { body }))).code).toBe('TAPE_BAD_ENTRY');
    const fine = { type: 'append' as const, drafts: [user('x')] };
    expect((await refusal(() => store.inbox.post('none', { body: fine }))).code).toBe('TAPE_NO_SESSION');
  });

  test('an item that fails leaves an event, and does not stop the others', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    await store.sessions.open('other');
    await store.lineage.fork('other', { name: 'stranger' });
    const bodies = [
      { type: 'merge', draft: { child: 'missing' } },
      { type: 'merge', draft: { child: 'stranger' } },
      { type: 'append', drafts: [user('fine')] },
    ] as const;
    for (const body of bodies) await store.inbox.post('main', { body });
    expect(await store.inbox.drain('main')).toBe(3);
    const entries = await all(store.entries.read('main', { from: 3 }));
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
    await store.lineage.fork('main', { name: 'child' });
    const lease = await store.leases.acquire('main', { id: 'alice' });
    await store.entries.append('main', [asks('c1')], { lease });
    await store.inbox.post('main', { body: { type: 'merge', draft: { child: 'child' } } });
    expect(await store.inbox.drain(lease)).toBe(0);
    expect(await store.leases.release(lease)).toBe(true);
    expect((await store.inbox.list('main')).length).toBe(1);
    await store.entries.append('main', [answers('c1')]);
    expect(await store.inbox.drain('main')).toBe(1);
    expect(await store.inbox.list('main')).toEqual([]);
    expect((await store.sessions.find('child'))?.delivery).toBe('merged');
  });

  test('other processes drain only a session without an owner', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const lease = await store.leases.acquire('main', { id: 'alice' });
    expect(await store.inbox.drain('main')).toBe(undefined);
    await store.leases.release(lease);
    expect(await store.inbox.drain('main')).toBe(0);
  });

  test('a live answer is read while it arrives, and is replaced by entries when it settles', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const lease = await store.leases.acquire('main', { id: 'alice' });
    const chunk = (index: number) => ({ index, chunk: { type: 'text-delta', text: `t${index}` } });
    const stream = (...chunks: ReturnType<typeof chunk>[]) => ({ session: 'main', run: 'run-1', chunks });
    await store.live.save([stream(chunk(0), chunk(1))]);
    await store.live.save([stream(chunk(1), chunk(2)), { ...stream(chunk(0)), run: 'run-0' }]);
    const runs = async () => (await store.live.read('main')).map(({ run }) => run).sort();
    expect(await runs()).toEqual(['run-0', 'run-1']);
    const chunksOf = async (run: string, from?: number) =>
      (await store.live.read('main', { run, ...(from !== undefined && { from }) }))[0]?.chunks ?? [];
    expect(await chunksOf('run-1')).toEqual([chunk(0), chunk(1), chunk(2)]);
    expect(await chunksOf('run-1', 2)).toEqual([chunk(2)]);
    expect(await store.live.read('main', { from: { 'run-0': 1, 'run-1': 2 } })).toEqual([
      { run: 'run-0', chunks: [] },
      { run: 'run-1', chunks: [chunk(2)] },
    ]);
    expect(await store.entries.append(lease.id, [user('t0t1t2')], { lease, settles: 'run-1' })).toMatchObject(
      { added: 1 },
    );
    expect(await chunksOf('run-1')).toEqual([]);
    expect(await store.entries.append(lease.id, [], { lease, settles: 'run-0' })).toMatchObject({
      added: 0,
      to: 3,
    });
    expect(await runs()).toEqual([]);
  });

  test('an owner that was overtaken saves nothing more of its answer', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const first = await store.leases.acquire('main', { id: 'alice' });
    const save = async (index: number, { epoch }: { readonly epoch: number }) =>
      await store.live.save([{ session: 'main', run: 'run-1', chunks: [{ index, chunk: index }], epoch }]);
    await save(0, first);
    await store.leases.release(first);
    const second = await store.leases.acquire('main', { id: 'bob' });
    await save(1, first);
    await save(2, second);
    const [live] = await store.live.read('main');
    expect(live?.chunks.map(({ index }) => index)).toEqual([0, 2]);
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
    const { id } = await store.inbox.post('main', input('one', 'k1'));
    const two = await store.inbox.post('main', input('two', 'k2'));
    await store.inbox.post('main', { body: { type: 'append', drafts: [user('a fact')] } });
    const lease = await store.leases.acquire('main', { id: 'alice' });
    expect(await store.leases.list()).toMatchObject([{ session: 'main', owner: { id: 'alice' } }]);
    expect(await store.inbox.drain(lease)).toBe(1);
    expect((await store.inbox.list('main')).map((item) => item.id)).toEqual([id, two.id]);
    expect(await store.leases.release(lease, { inputs: true })).toBe(false);
    const [item] = await store.inbox.list('main');
    const drafts = item?.body.type === 'input' ? item.body.drafts : [];
    expect(
      await store.inbox.drain(lease, {
        taken: [
          { id, drafts },
          { id: 'gone', drafts: [user('never')] },
        ],
      }),
    ).toBe(1);
    const [entry] = await all(store.entries.read('main', { last: 1 }));
    expect(entry).toMatchObject({ payload: { content: [{ text: 'one' }] } });
    expect(entry?.meta).toMatchObject({ source: 'timer', mode: 'followup' });
    // Posting it again returns the append, and adds nothing.
    expect(await store.inbox.post('main', input('one', 'k1'))).toMatchObject({ appended: { repeated: 1 } });
    expect(await store.leases.release(lease)).toBe(true);
    expect((await store.inbox.list('main')).length).toBe(1);
    expect(await store.leases.list()).toEqual([]);
  });
};
