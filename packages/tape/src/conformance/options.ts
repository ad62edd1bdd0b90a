import { user } from '../entry/entry.ts';
import type { TapeStore } from '../store/store.ts';
import type { Lease } from '../tape/lease.ts';
import { all, type Chapter, refusal, sessionOf } from './contract.ts';

/** A call of a method with options that have a field of another name than the nearest one. */
type Misspelt = readonly [
  method: string,
  field: string,
  near: string,
  call: (store: TapeStore, options: object, lease: Lease) => unknown,
];

const misspelt: readonly Misspelt[] = [
  ['sessions.open', 'titel', 'title', (store, o) => store.sessions.open('new', o)],
  ['sessions.list', 'parents', 'parent', (store, o) => store.sessions.list(o)],
  ['sessions.calls', 'sesion', 'session', (store, o) => store.sessions.calls(o)],
  ['sessions.update', 'lifecyle', 'lifecycle', (store, o) => store.sessions.update('main', o)],
  ['sessions.update', 'leese', 'lease', (store, o) => store.sessions.update('main', { task: 'failed' }, o)],
  [
    'sessions.update',
    'reasons',
    'reason',
    (store, o) => store.sessions.update('main', { alias: { name: 'also', reason: 'a test', ...o } }),
  ],
  ['entries.append', 'keys', 'key', (store, o) => store.entries.append('main', [user('x')], o)],
  ['entries.read', 'lasts', 'last', (store, o) => all(store.entries.read('main', o))],
  ['entries.blob', 'form', 'from', (store, o) => store.entries.blob('00', o)],
  ['entries.search', 'sesion', 'session', (store, o) => store.entries.search({ text: 'x', ...o })],
  ['entries.redact', 'leese', 'lease', (store, o) => store.entries.redact('main', 2, 'a test', o)],
  ['views.entries', 'polcy', 'policy', (store, o) => all(store.views.entries('main', o))],
  ['views.ranges', 'form', 'from', (store, o) => store.views.ranges('main', o)],
  ['history.rewind', 'moed', 'mode', (store, o) => store.history.rewind('main', 1, o)],
  ['history.unrewind', 'rewinds', 'rewind', (store, o) => store.history.unrewind('main', o)],
  ['lineage.read', 'type', 'types', (store, o) => all(store.lineage.read(o))],
  ['lineage.fork', 'inherits', 'inherit', (store, o) => store.lineage.fork('main', o)],
  [
    'lineage.fork',
    'draft',
    'drafts',
    (store, o) => store.lineage.fork('main', { done: { drafts: [], task: 'completed', ...o } }),
  ],
  [
    'lineage.fork',
    'nextStep',
    'nextSteps',
    (store, o) => store.lineage.fork('main', { intention: { nextSteps: 'Go.', ...o } }),
  ],
  ['lineage.previewFork', 'inherits', 'inherit', (store, o) => store.lineage.previewFork('main', o)],
  ['lineage.merge', 'stratgy', 'strategy', (store, o) => store.lineage.merge('kid', o)],
  ['lineage.merge', 'leese', 'lease', (store, o) => store.lineage.merge('kid', {}, o)],
  ['lineage.merge', 'stratgy', 'strategy', (store, o) => store.lineage.merge([{ child: 'kid', ...o }])],
  ['lineage.previewMerge', 'stratgy', 'strategy', (store, o) => store.lineage.previewMerge('kid', o)],
  ['leases.acquire', 'ttlMS', 'ttlMs', (store, o) => store.leases.acquire('main', { id: 'me' }, o)],
  ['leases.extend', 'ttlMS', 'ttlMs', (store, o, lease) => store.leases.extend(lease, o)],
  ['leases.release', 'input', 'inputs', (store, o, lease) => store.leases.release(lease, o)],
  [
    'inbox.post',
    'modes',
    'mode',
    (store, o) => store.inbox.post('main', { body: { type: 'append', drafts: [user('x')] }, ...o }),
  ],
  ['inbox.drain', 'latr', 'later', (store, o, lease) => store.inbox.drain(lease, o)],
  ['live.read', 'runs', 'run', (store, o) => store.live.read('main', o)],
  ['imports.stage', 'titel', 'title', (store, o) => store.imports.stage('old', o)],
  ['identities.resolve', 'adress', 'address', (store, o) => store.identities.resolve('main', o)],
  ['identities.link', 'inits', 'init', (store, o) => store.identities.link('main', ['kid'], o)],
];

type Wrong = (store: TapeStore, lease: Lease) => unknown;

/** Any value, as plain JavaScript passes it. */
const any = (value: unknown): never => value as never;

const wrongKinds: readonly (readonly [method: string, what: string, call: Wrong])[] = [
  ['sessions.open', 'a title that is no text', (store) => store.sessions.open('new', { title: any([]) })],
  ['sessions.list', 'options that are a number', (store) => store.sessions.list(any(5))],
  ['sessions.list', 'a limit below 0', (store) => store.sessions.list({ limit: -1 })],
  ['entries.append', 'no batch', (store) => store.entries.append('main', any(null))],
  ['entries.append', 'a batch of null', (store) => store.entries.append('main', any([null]))],
  ['entries.append', 'a key that is no text', (store) => store.entries.append('main', [], { key: any(5) })],
  ['entries.read', 'a fraction', async (store) => await all(store.entries.read('main', { last: 1.5 }))],
  ['entries.search', 'no text', (store) => store.entries.search(any({}))],
  ['lineage.fork', 'a title that is no text', (store) => store.lineage.fork('main', { title: any(5) })],
  [
    'lineage.fork',
    'first entries that are no list',
    (store) => store.lineage.fork('main', { first: any('x') }),
  ],
  [
    'lineage.fork',
    'an intention that is a text',
    (store) => store.lineage.fork('main', { intention: any('x') }),
  ],
  [
    'lineage.fork',
    'a task that is no text',
    (store) => store.lineage.fork('main', { intention: { nextSteps: any(5) } }),
  ],
  ['lineage.merge', 'no child', (store) => store.lineage.merge(any(null))],
  ['lineage.collect', 'no child', (store) => store.lineage.collect(any(null))],
  ['leases.acquire', 'an owner without an id', (store) => store.leases.acquire('main', any({}))],
  [
    'leases.extend',
    'a time that is a text',
    (store, lease) => store.leases.extend(lease, { ttlMs: any('x') }),
  ],
  ['leases.release', 'no lease', (store) => store.leases.release(any(null))],
];

/** Options that do not exist, and values of another kind. */
export const optionsChapter: Chapter = ({ test, expect }, open) => {
  for (const [method, field, near, call] of misspelt)
    test(`${method} refuses the option ${field}, suggests ${near}, and writes nothing`, async () => {
      await using store = await open();
      await sessionOf(store, 'main', 2);
      await store.sessions.open('leased');
      const lease = await store.leases.acquire('leased', { id: 'owner' });
      await store.lineage.fork('main', { name: 'kid' });
      const state = async () => [
        await store.sessions.list({ all: true }),
        await all(store.lineage.read()),
        await store.leases.list(),
        await store.inbox.list('main'),
      ];
      const before = await state();
      const refused = await refusal(() => call(store, { [field]: 'x' }, lease));
      expect(refused.code).toBe('TAPE_BAD_OPTION');
      expect(refused.message).toMatch(
        new RegExp(`^cannot .*: there is no option '${field}'; did you mean .*'${near}'`),
      );
      expect(refused.data.field).toBe(field);
      expect((refused.data.near as readonly string[]).includes(near)).toBe(true);
      expect(await state()).toEqual(before);
    });

  for (const [method, what, call] of wrongKinds)
    test(`${method} refuses ${what}, and writes nothing`, async () => {
      await using store = await open();
      await sessionOf(store, 'main', 2);
      const lease = await store.leases.acquire('main', { id: 'owner' });
      const before = await store.sessions.list({ all: true });
      const refused = await refusal(() => call(store, lease));
      expect(refused.code).toMatch(/^TAPE_(?:BAD_OPTION|BAD_ENTRY|NO_SESSION)$/);
      expect(refused.message).toMatch(/^cannot /);
      expect(await store.sessions.list({ all: true })).toEqual(before);
      expect(await store.leases.holds(lease)).toBe(true);
    });

  test('the inbox of a session without an owner is drained without options', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    const refused = await refusal(() => store.inbox.drain('main', { later: [] }));
    expect(refused).toMatchObject({ code: 'TAPE_BAD_OPTION', data: { field: 'later', near: [] } });
  });
};
