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
  for (const name of ['main', 'leased', 'rewound']) raw.session(name);
  raw.append('main', [user([{ type: 'file', mediaType: 'image/png', data: new Uint8Array(300) }])]);
  raw.fork('main', { name: 'kid' });
  raw.append('kid', [assistant('Done.')]);
  raw.fork('kid', { name: 'grandkid' });
  raw.merge('grandkid');
  raw.append('rewound', [user('One'), user('Two')]);
  raw.rewind('rewound', 2);
  const lease = raw.acquire('leased', { id: 'owner' });
  raw.saveChunks([{ session: 'leased', run: 'run', chunks: [{ index: 0, chunk: 'so' }] }]);
  const { id: staged } = raw.stage('staged');
  const blob = /[0-9a-f]{64}/.exec(JSON.stringify([...raw.read('main')].at(-1)?.payload))?.[0] ?? '';
  return { raw, lease, staged, blob };
}

/** One act of every method. */
const acts: Readonly<Record<Method, (store: TapeStore, scene: Scene) => unknown>> = {
  session: (store) => store.sessions.open('new'),
  find: (store) => store.sessions.find('main'),
  sessions: (store) => store.sessions.list(),
  resolve: (store) => store.entries.resolve('main', 'head'),
  read: (store) => store.entries.read('main'),
  viewEntries: (store) => store.views.entries('main'),
  append: (store) => store.entries.append('main', [user('Hi')]),
  result: (store) => store.result('kid', 'Yes.'),
  fork: (store) => store.lineage.fork('main'),
  previewFork: (store) => store.lineage.previewFork('main'),
  merge: (store) => store.lineage.merge('kid'),
  mergeAll: (store) => store.lineage.merge([{ child: 'kid' }]),
  merged: (store) => store.merged('kid'),
  checkMerge: (store) => store.checkMerge('kid'),
  previewMerge: (store) => store.previewMerge('kid'),
  merges: (store) => store.merges('kid'),
  collect: (store) => store.lineage.collect('kid', [3, 4]),
  hiddenBy: (store) => store.hiddenBy('rewound', 3),
  visible: (store) => store.visible('rewound'),
  lineage: (store) => store.lineage.read(),
  rewind: (store) => store.history.rewind('main', 1),
  unrewind: (store) => store.history.unrewind('rewound'),
  setLifecycle: (store) => store.setLifecycle('main', 'archived'),
  setTask: (store) => store.setTask('kid', 'completed'),
  alias: (store) => store.alias('also', 'main', 'a test'),
  acquire: (store) => store.leases.acquire('main', { id: 'owner' }),
  extend: (store, { lease }) => store.leases.extend(lease),
  holds: (store, { lease }) => store.leases.holds(lease),
  changes: (store) => store.changes(),
  release: (store, { lease }) => store.leases.release(lease),
  post: (store) => store.inbox.post('leased', { body: { type: 'append', drafts: [user('Hi')] } }),
  inbox: (store) => store.inbox.list('leased'),
  drain: (store, { lease }) => store.inbox.drain(lease),
  drainOwnerless: (store) => store.inbox.drain('main'),
  saveChunks: (store) =>
    store.live.save([{ session: 'leased', run: 'run', chunks: [{ index: 1, chunk: 'far' }] }]),
  liveRuns: (store) => store.live.read('leased'),
  owners: (store) => store.leases.list(),
  chunks: (store) => store.chunks('leased', 'run'),
  settle: (store, { lease }) => store.settle('run', [assistant('so far')], { lease }),
  stage: (store) => store.imports.stage('another'),
  appendStaged: (store, { staged }) => store.imports.append(staged, [user('Hi')]),
  publish: (store, { staged }) => store.imports.publish([staged]),
  blob: (store, { blob }) => store.entries.blob(blob),
  search: (store) => store.entries.search({ text: 'One' }),
  redact: (store) => store.entries.redact('main', 2, 'a test'),
  verify: (store) => store.verify(),
};

const methods = Object.keys(acts) as Method[];

/** Whether an answer is there once everything is done that can be done in this tick. */
async function isHereAtOnce(answer: PromiseLike<unknown>): Promise<boolean> {
  let here = false;
  const note = () => {
    here = true;
  };
  answer.then(note, note);
  // The second comes after all promises that the first let go on.
  for (let n = 0; n < 2; n += 1) await new Promise<void>((resolve) => process.nextTick(resolve));
  return here;
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
  test('does its act, and answers what the store answers, on a later tick', async () => {
    const { raw, ...rest } = scene();
    const act = vi.spyOn(raw, method);
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

test('answers are those of the store itself', async () => {
  for (const method of methods) {
    const [one, other] = [scene(), scene()];
    const plain = acts[method](one.raw, one);
    const later = acts[method](laterStore(other.raw), other);
    if (isStream(later)) expect(await Array.fromAsync(later)).toEqual([...(plain as Iterable<unknown>)]);
    else expect(await later).toEqual(await plain);
  }
});

test('every item of a sequence comes on a tick of its own', async () => {
  const { raw } = scene();
  raw.append('main', [user('Two'), user('Three')]);
  const items = laterStore(raw).read('main') as AsyncIterable<unknown>;
  const iterator = items[Symbol.asyncIterator]();
  const seen: unknown[] = [];
  for (;;) {
    const next = iterator.next();
    expect(await isHereAtOnce(next)).toBe(false);
    const { done, value } = await next;
    if (done === true) break;
    seen.push(value);
  }
  expect(seen).toEqual([...raw.read('main')]);
});

test('acts that nobody waits for are overtaken', async () => {
  const { raw } = scene();
  const store = laterStore(raw);
  await Promise.all(['a', 'b', 'c', 'd'].map((text) => store.entries.append('main', [user(text)])));
  const said = [...raw.read('main', { last: 4 })].map(({ payload }) => JSON.stringify(payload));
  expect(said).not.toEqual([...said].sort());
});

test('a later store is closed on a later tick', async () => {
  const { raw } = scene();
  const closed = laterStore(raw)[Symbol.asyncDispose]();
  expect(await isHereAtOnce(closed)).toBe(false);
  expect(raw.find('main')).toMatchObject({ name: 'main' });
  await closed;
  expect(() => raw.find('main')).toThrow(expect.objectContaining({ code: 'TAPE_CLOSED' }));
});
