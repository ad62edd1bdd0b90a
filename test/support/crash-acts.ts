import {
  anchor,
  assistant,
  type Draft,
  processOwner,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
} from '@tapedeck/tape';
import type { Acknowledged } from './acknowledged.ts';

/** One act of a worker: its target, a key that no other act has, and the receiver of its acknowledgement. */
export interface Acting {
  readonly store: SqliteTapeStore;
  readonly session: string;
  readonly key: string;
  readonly say: (ack: Acknowledged) => void;
}

/** Every change that a store can make. Each act does everything that it needs by itself. */
export const crashActs: Readonly<Record<string, (acting: Acting) => void>> = {
  append: (acting) => append(acting, acting.session, [user(acting.key)]),
  batch: (acting) => append(acting, acting.session, batchOf(acting.key)),
  mark: (acting) => append(acting, acting.session, [anchor('mark', { [acting.key]: true })]),
  redact: ({ store, session, key, say }) => {
    const bytes = new TextEncoder().encode(key);
    const { to } = store.entries.append(session, [user([{ type: 'image', image: bytes }])], { key });
    say({ act: 'redact', session, receipt: store.entries.redact(session, to, 'a test') });
  },
  root: ({ store, key, say }) => {
    const { session: name, id } = store.sessions.open(`root-${key}`);
    say({ act: 'session', name, id });
  },
  fork: (acting) => {
    fork(acting);
  },
  'fork what is done': ({ store, session, key, say }) => {
    const drafts = [user(`${key} is to be done`, { of: 2 }), assistant(`${key} is done`, { of: 2 })].map(
      (draft, i) => ({ ...draft, key: i === 0 ? `${key}-done` : `${key}-done#2` }),
    );
    const receipt = store.lineage.fork(session, { key, done: { drafts, task: 'completed' } });
    say({ act: 'fork', parent: session, key, receipt });
    say({ act: 'done', session: receipt.session, drafts, task: 'completed' });
  },
  merge: (acting) => {
    const child = fork(acting);
    append({ ...acting, key: `${acting.key}-work` }, child, [assistant(`${acting.key} is done`)]);
    acting.say({ act: 'merge', child, receipt: acting.store.lineage.merge(child) });
  },
  status: (acting) => {
    const { store, say } = acting;
    const session = fork(acting);
    store.sessions.update(session, { task: 'completed' });
    say({ act: 'task', session, task: 'completed' });
    store.sessions.update(session, { lifecycle: 'archived' });
    say({ act: 'archive', session });
  },
  alias: (acting) => {
    const { store, key, say } = acting;
    const session = fork(acting);
    store.sessions.update(session, { alias: { name: `alias-${key}`, reason: 'a test' } });
    say({ act: 'alias', alias: `alias-${key}`, session });
    store.sessions.update(session, { alias: { name: `former-${key}`, reason: 'a test' } });
    store.sessions.update(session, { unalias: { name: `former-${key}`, reason: 'a test' } });
    say({ act: 'unalias', alias: `former-${key}` });
  },
  delete: ({ store, key, say }) => {
    const names = [`gone-${key}`, `gone-too-${key}`];
    say({ act: 'delete', id: deleted(store, names), names });
    const back = [`back-${key}`, `back-too-${key}`];
    const id = deleted(store, back);
    store.sessions.update(id, { lifecycle: 'active' });
    say({ act: 'back', id, names: back });
  },
  purge: ({ store, key, say }) => {
    const { id } = store.sessions.open(`purged-${key}`, { title: key });
    store.entries.append(id, batchOf(key));
    store.sessions.purge(id, 'a test');
    say({ act: 'purge', id });
  },
  post: ({ store, session, key, say }) => {
    const drafts = batchOf(key);
    const { owner } = store.inbox.post(session, { body: { type: 'append', drafts }, key });
    say({ act: 'post', session, key, drafts });
    if (owner === undefined) store.inbox.drain(session);
  },
  'post a merge': (acting) => {
    const { store, session, key, say } = acting;
    const child = fork(acting);
    append({ ...acting, key: `${key}-work` }, child, [assistant(`${key} is done`)]);
    const { owner } = store.inbox.post(session, { body: { type: 'merge', draft: { child } }, key });
    say({ act: 'post-merge', parent: session, child });
    if (owner === undefined) store.inbox.drain(session);
  },
  import: ({ store, key, say }) => {
    const name = `import-${key}`;
    const { id, drafts } = importAll(store, name);
    say({ act: 'import', name, id, drafts });
  },
  lease: ({ store, session, key, say }) => {
    const lease = store.leases.acquire(session, processOwner(key));
    say({ act: 'lease', lease });
    const drafts = [user(`${key} live`)];
    store.live.save([{ session, run: key, chunks: [{ index: 0, chunk: 'live' }] }]);
    say({
      act: 'settle',
      session,
      run: key,
      seq: store.entries.append(lease.id, drafts, { lease, settles: key }).to,
    });
    const posted = [user(`${key} posted`)];
    store.inbox.post(session, { body: { type: 'append', drafts: posted }, key: `${key}-posted` });
    say({ act: 'post', session, key: `${key}-posted`, drafts: posted });
    store.leases.extend(lease);
    while (!store.leases.release(lease)) store.inbox.drain(lease);
  },
};

/** Imports as `tape import` does: it continues what a crash left. */
export function importAll(store: SqliteTapeStore, name: string): { id: string; drafts: readonly Draft[] } {
  const drafts = Array.from({ length: 4 }, (_, i) => ({
    ...user(`${name} ${i}`, { of: 4 }),
    key: i === 0 ? name : `${name}#${i + 1}`,
  }));
  const { id } = store.imports.stage(name, { keys: drafts.map(({ key }) => key) });
  for (const half of [drafts.slice(0, 2), drafts.slice(2)]) store.imports.append(id, half);
  store.imports.publish([id]);
  return { id, drafts };
}

/** Makes a session with a name and an alias, and deletes it; returns its id. */
function deleted(store: SqliteTapeStore, [name = '', alias = '']: readonly string[]): string {
  const { id } = store.sessions.open(name);
  store.sessions.update(id, { alias: { name: alias, reason: 'a test' } });
  return store.sessions.update(id, { lifecycle: 'destroyed' }).id;
}

/** Calls and their results: entries that must be there together. */
function batchOf(key: string): Draft[] {
  const call = { toolCallId: key, toolName: 'read' };
  const meta = { of: 3 };
  return [
    user(`${key} asks`, meta),
    assistant([toolCall(key, 'read', {})], meta),
    toolResult(call, `of ${key}`, meta),
  ];
}

function append({ store, key, say }: Acting, session: string, drafts: readonly Draft[]): void {
  say({ act: 'append', session, key, drafts, receipt: store.entries.append(session, drafts, { key }) });
}

function fork({ store, session, key, say }: Acting): string {
  const receipt = store.lineage.fork(session, { key });
  say({ act: 'fork', parent: session, key, receipt });
  return receipt.session;
}
