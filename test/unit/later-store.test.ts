import { assistant, type Lease, type SqliteTapeStore, type TapeStore, user } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { describe, expect, test, vi } from 'vitest';
import { laterStore, type Method } from '../support/later-store.ts';
import { openStore } from '../support/store.ts';

/** A store on which every method has something to do. */
interface Scene {
  readonly raw: SqliteTapeStore;
  readonly lease: Lease;
  readonly staged: string;
  readonly blob: string;
}

function scene(): Scene {
  const raw = openStore();
  for (const name of ['main', 'leased', 'rewound']) raw.sessions.open(name);
  raw.entries.append('main', [user([{ type: 'file', mediaType: 'image/png', data: new Uint8Array(300) }])]);
  raw.lineage.fork('main', { name: 'kid' });
  raw.entries.append('kid', [assistant('Done.')]);
  raw.lineage.fork('kid', { name: 'grandkid' });
  raw.lineage.merge('grandkid');
  raw.lineage.link('grandkid', 'main');
  raw.entries.append('rewound', [user('One'), user('Two')]);
  raw.history.rewind('rewound', 2);
  const lease = raw.leases.acquire('leased', { id: 'owner' });
  raw.live.save([{ session: 'leased', run: 'run', chunks: [{ index: 0, chunk: 'so' }] }]);
  const { id: staged } = raw.imports.stage('staged');
  const blob = /[0-9a-f]{64}/.exec(JSON.stringify([...raw.entries.read('main')].at(-1)?.payload))?.[0] ?? '';
  return { raw, lease, staged, blob };
}

/** One act of every method. */
const acts: Readonly<Record<Method, (store: TapeStore, scene: Scene) => unknown>> = {
  'sessions.open': (store) => store.sessions.open('new'),
  'sessions.find': (store) => store.sessions.find('main'),
  'sessions.list': (store) => store.sessions.list(),
  'sessions.calls': (store) => store.sessions.calls(),
  'sessions.unfinished': (store) => store.sessions.unfinished('main'),
  'sessions.update': (store) =>
    store.sessions.update('kid', {
      lifecycle: 'archived',
      task: 'completed',
      alias: { name: 'also', reason: 'a test' },
    }),
  'sessions.purge': (store) => store.sessions.purge('rewound', 'a test'),
  'sessions.previewPurge': (store) => store.sessions.previewPurge('rewound'),
  'entries.append': (store) => store.entries.append('main', [user('Hi')]),
  'entries.read': (store) => store.entries.read('main'),
  'entries.resolve': (store) => store.entries.resolve('main', 'head'),
  'entries.blob': (store, { blob }) => store.entries.blob(blob),
  'entries.search': (store) => store.entries.search({ text: 'One' }),
  'entries.previewRedact': (store) => store.entries.previewRedact('main', 2),
  'entries.redact': (store) => store.entries.redact('main', 2, 'a test'),
  'views.entries': (store) => store.views.entries('main'),
  'views.ranges': (store) => store.views.ranges('rewound'),
  'history.rewind': (store) => store.history.rewind('main', 1),
  'history.unrewind': (store) => store.history.unrewind('rewound'),
  'lineage.read': (store) => store.lineage.read(),
  'lineage.fork': (store) => store.lineage.fork('main'),
  'lineage.previewFork': (store) => store.lineage.previewFork('main'),
  'lineage.merge': (store) => store.lineage.merge([{ child: 'kid' }]),
  'lineage.previewMerge': (store) => store.lineage.previewMerge('kid'),
  'lineage.collect': (store) => store.lineage.collect('kid', [3, 4]),
  'lineage.link': (store) => store.lineage.link('rewound', 'main'),
  'lineage.unlink': (store) => store.lineage.unlink('grandkid'),
  'leases.acquire': (store) => store.leases.acquire('main', { id: 'owner' }),
  'leases.extend': (store, { lease }) => store.leases.extend(lease),
  'leases.holds': (store, { lease }) => store.leases.holds(lease),
  'leases.list': (store) => store.leases.list(),
  'leases.release': (store, { lease }) => store.leases.release(lease),
  'inbox.post': (store) => store.inbox.post('leased', { body: { type: 'append', drafts: [user('Hi')] } }),
  'inbox.list': (store) => store.inbox.list('leased'),
  'inbox.drain': (store, { lease }) => store.inbox.drain(lease),
  'live.save': (store) =>
    store.live.save([{ session: 'leased', run: 'run', chunks: [{ index: 1, chunk: 'far' }] }]),
  'live.read': (store) => store.live.read('leased'),
  'imports.stage': (store) => store.imports.stage('another'),
  'imports.append': (store, { staged }) => store.imports.append(staged, [user('Hi')]),
  'imports.publish': (store, { staged }) => store.imports.publish([staged]),
  'imports.unfinished': (store) => store.imports.unfinished(),
  'imports.discard': (store, { staged }) => store.imports.discard([staged]),
  'identities.resolve': (store) => store.identities.resolve('dm:mom', { address: 'main' }),
  'identities.find': (store) => store.identities.find('main'),
  'identities.link': (store) => store.identities.link('main', ['dm:mom']),
  'identities.unlink': (store) => store.identities.unlink('main'),
  'identities.list': (store) => store.identities.list(),
  verify: (store) => store.verify(),
  changes: (store) => store.changes(),
};

const methods = Object.keys(acts) as Method[];

/** Whether an answer is there once everything is done that can be done in this tick. */
async function isHereAtOnce(answer: PromiseLike<unknown>): Promise<boolean> {
  let here = false;
  const note = () => {
    here = true;
  };
  answer.then(note, note);
  // The second comes after all promises that the first resolves.
  for (let n = 0; n < 2; n += 1) await new Promise<void>((resolve) => process.nextTick(resolve));
  return here;
}

/** Watches a method of a store. */
function spyOn(store: SqliteTapeStore, method: Method) {
  const [name = '', group] = method.split('.').toReversed();
  const owner = group === undefined ? store : Reflect.get(store, group);
  return vi.spyOn(owner, name as never);
}

const isStream = (answer: unknown): answer is AsyncIterable<unknown> =>
  isObject(answer) && Symbol.asyncIterator in answer;

/** The promise that an act answered with: of a sequence, that of its first item. */
function promiseOf(answer: unknown): Promise<unknown> {
  if (isStream(answer)) return answer[Symbol.asyncIterator]().next();
  if (answer instanceof Promise) return answer;
  throw new TypeError('the answer is neither a promise nor an async iterable');
}

describe.each(methods)('%s of a later store', (method) => {
  test('does its act, and returns what the store returns, on a later tick', async () => {
    const { raw, ...rest } = scene();
    const act = spyOn(raw, method);
    const answer = acts[method](laterStore(raw), { raw, ...rest });
    const promise = promiseOf(answer);
    expect(await isHereAtOnce(promise)).toBe(false);
    expect(act).not.toHaveBeenCalled();
    await promise;
    expect(act).toHaveBeenCalledOnce();
  });

  test('fails on a later tick', async () => {
    const { raw, ...rest } = scene();
    raw.close();
    const promise = promiseOf(acts[method](laterStore(raw), { raw, ...rest }));
    expect(await isHereAtOnce(promise)).toBe(false);
    await expect(promise).rejects.toMatchObject({ code: 'TAPE_CLOSED' });
  });
});

test('answers are those of the wrapped store', async () => {
  for (const method of methods) {
    const [one, other] = [scene(), scene()];
    const plain = acts[method](one.raw, one);
    const later = acts[method](laterStore(other.raw), other);
    if (isStream(later)) expect(await Array.fromAsync(later)).toEqual([...(plain as Iterable<unknown>)]);
    else expect(await later).toEqual(await plain);
  }
});

test('every item of a sequence arrives on its own tick', async () => {
  const { raw } = scene();
  raw.entries.append('main', [user('Two'), user('Three')]);
  const items = laterStore(raw).entries.read('main') as AsyncIterable<unknown>;
  const iterator = items[Symbol.asyncIterator]();
  const seen: unknown[] = [];
  for (;;) {
    const next = iterator.next();
    expect(await isHereAtOnce(next)).toBe(false);
    const { done, value } = await next;
    if (done === true) break;
    seen.push(value);
  }
  expect(seen).toEqual([...raw.entries.read('main')]);
});

test('later calls overtake acts that are not awaited', async () => {
  const { raw } = scene();
  const store = laterStore(raw);
  await Promise.all(['a', 'b', 'c', 'd'].map((text) => store.entries.append('main', [user(text)])));
  const said = [...raw.entries.read('main', { last: 4 })].map(({ payload }) => JSON.stringify(payload));
  expect(said).not.toEqual([...said].sort());
});

test('a later store is closed on a later tick', async () => {
  const { raw } = scene();
  const closed = laterStore(raw)[Symbol.asyncDispose]();
  expect(await isHereAtOnce(closed)).toBe(false);
  expect(raw.sessions.find('main')).toMatchObject({ session: 'main' });
  await closed;
  expect(() => raw.sessions.find('main')).toThrow(expect.objectContaining({ code: 'TAPE_CLOSED' }));
});
