import { assistant, result, toolResult, user } from '../entry/entry.ts';
import type { TapeStore } from '../store/store.ts';
import {
  all,
  asks,
  type Refusal,
  type ReopenablePlace,
  type Runner,
  refusal,
  sessionOf,
  textOf,
} from './contract.ts';

/** Lets messages of a server arrive. */
const pause = async () => await new Promise((resolve) => setTimeout(resolve, 10));

/** What survives a restart, and two stores in one place. */
export const restartChapter = (
  { test, expect }: Runner,
  makePlace: () => ReopenablePlace | Promise<ReopenablePlace>,
): void => {
  test('acknowledged writes survive a restart, and repeating them changes nothing', async () => {
    await using place = await makePlace();
    const keyed = (store: TapeStore) =>
      store.entries.append('main', [user('hello'), assistant('well')], { key: 'turn' });
    const forked = (store: TapeStore) =>
      store.lineage.fork('main', { key: 'call', intention: { nextSteps: 'Look.' } });
    let before: unknown[] = [];
    {
      await using store = await place.open();
      await store.sessions.open('main');
      const [appended, child] = [await keyed(store), await forked(store)];
      await store.entries.append(child.id, [assistant('done')], { key: 'answer' });
      before = [appended.to, child.session, (await store.lineage.merge(child.id)).seq];
    }
    await using store = await place.open();
    const heads = async () =>
      (await store.sessions.list()).map(({ session: name, headHash }) => [name, headHash]);
    const was = await heads();
    const child = await forked(store);
    expect(child.repeated).toBe(true);
    expect([(await keyed(store)).to, child.session, (await store.lineage.merge(child.id)).seq]).toEqual(
      before,
    );
    expect((await store.sessions.open('main')).created).toBe(false);
    expect(await heads()).toEqual(was);
    expect(await all(store.verify())).toEqual([]);
  });

  test('an import continues after a restart', async () => {
    await using place = await makePlace();
    const line = (n: number) => ({ ...user(`m${n}`), key: `line-${n}` });
    {
      await using store = await place.open();
      const staged = await store.imports.stage('old', { keys: ['line-1', 'line-2'] });
      await store.imports.append(staged.id, [line(1)]);
    }
    await using store = await place.open();
    expect(await store.sessions.find('old')).toBe(undefined);
    const staged = await store.imports.stage('old', { keys: ['line-1', 'line-2'] });
    expect(await store.imports.append(staged.id, [line(1), line(2)])).toMatchObject({
      added: 1,
      repeated: 1,
    });
    await store.imports.publish([staged.id]);
    expect((await all(store.entries.read('old', { from: 2 }))).map(textOf)).toEqual(['m1', 'm2']);
  });

  test('of two stores in one place, one owns a session at a time, and each sees what the other wrote', async () => {
    await using place = await makePlace();
    await using one = await place.open();
    await using two = await place.open();
    await sessionOf(one, 'main', 1);
    const lease = await one.leases.acquire('main', { id: 'one', host: 'elsewhere' });
    const busy = { code: 'TAPE_BUSY', data: { session: 'main', owner: { id: 'one' } } };
    expect(await refusal(() => two.leases.acquire('main', { id: 'two' }))).toMatchObject(busy);
    expect(await refusal(() => two.entries.append('main', [user('x')]))).toMatchObject(busy);
    await one.entries.append('main', [user('mine')], { lease });
    expect((await all(two.entries.read('main', { last: 1 }))).map(textOf)).toEqual(['mine']);
    const seen = await one.changes();
    await two.inbox.post('main', { body: { type: 'append', drafts: [user('posted')] } });
    // A store on a server gets a notification of it.
    for (let tries = 0; (await one.changes()) === seen && tries < 200; tries += 1) await pause();
    expect((await one.changes()) === seen).toBe(false);
    expect(await one.leases.release(lease)).toBe(false);
    expect(await one.inbox.drain(lease)).toBe(1);
    expect(await one.leases.release(lease)).toBe(true);
    expect((await two.leases.acquire('main', { id: 'two' })).owner).toBe('two');
  });

  test('every write of a superseded owner is an error, permanently', async () => {
    await using place = await makePlace();
    await using late = await place.open();
    await using next = await place.open();
    await sessionOf(late, 'main', 2);
    const lease = await late.leases.acquire('main', { id: 'late' }, { ttlMs: 0 });
    expect(await late.leases.holds(lease)).toBe(true);
    // Each store measures the time of a server for itself: one can be some milliseconds behind the other.
    for (let tries = 0; (await next.leases.list()).length > 0 && tries < 200; tries += 1) await pause();
    const held = await next.leases.acquire('main', { id: 'next' });
    expect(await late.leases.holds(lease)).toBe(false);
    const acts: readonly (() => unknown)[] = [
      () => late.entries.append('main', [user('x')], { lease }),
      () => late.entries.append('main', [result('x')], { lease }),
      () => late.history.rewind('main', 2, { lease }),
      () => late.history.unrewind('main', { lease }),
      () => late.sessions.update('main', { task: 'completed' }, { lease }),
      () => late.entries.append(lease.id, [user('x')], { lease, settles: 'run' }),
      () => late.entries.redact('main', 2, 'x', { lease }),
      () => late.inbox.drain(lease),
      () => late.leases.extend(lease),
      () => late.leases.release(lease),
    ];
    const codes = async () => {
      const refused: Refusal[] = [];
      for (const act of acts) refused.push(await refusal(act));
      return new Set(refused.map(({ code }) => code));
    };
    const head = (await next.sessions.find('main'))?.headHash;
    expect([...(await codes())]).toEqual(['TAPE_FENCED']);
    await next.leases.release(held);
    expect([...(await codes())]).toEqual(['TAPE_FENCED']);
    expect((await next.sessions.find('main'))?.headHash).toBe(head);
  });

  test('a write without a lease supersedes an owner whose lease has expired, a change of status too', async () => {
    await using place = await makePlace();
    await using store = await place.open();
    await sessionOf(store, 'main', 1);
    for (const act of [
      () => store.sessions.update('main', { task: 'completed' }),
      () => store.sessions.update('main', { lifecycle: 'archived' }),
    ]) {
      const late = await store.leases.acquire('main', { id: 'late' }, { ttlMs: 0 });
      await act();
      expect((await refusal(() => store.entries.append('main', [user('x')], { lease: late }))).code).toBe(
        'TAPE_FENCED',
      );
    }
  });

  test('opening drains the inbox of a session without an owner', async () => {
    await using place = await makePlace();
    {
      await using store = await place.open();
      await sessionOf(store, 'main', 1);
      await store.entries.append('main', [asks('c1')]);
      await store.inbox.post('main', {
        body: { type: 'append', drafts: [toolResult({ toolCallId: 'c1', toolName: 'read' }, 'found')] },
      });
    }
    await using store = await place.open();
    expect(await store.inbox.list('main')).toEqual([]);
    const info = await store.sessions.find('main');
    expect(info?.settled === info?.head).toBe(true);
  });
};
