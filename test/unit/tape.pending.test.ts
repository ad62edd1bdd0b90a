import { assistant, note, type SqliteTapeStore, toolCall, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { openStore } from '../support/store.ts';

const run = 'r';

/** Acts that leave something pending on the session `main`; each returns the act that ends it. */
const pending: Readonly<Record<string, (store: SqliteTapeStore) => () => unknown>> = {
  'a lease': (store) => {
    const lease = store.leases.acquire('main', { id: 'owner' });
    return () => store.leases.release(lease);
  },
  'an item in its inbox': (store) => {
    const lease = store.leases.acquire('main', { id: 'owner' });
    store.inbox.post('main', { body: { type: 'append', drafts: [user('later')] } });
    return () => {
      store.inbox.drain(lease);
      store.leases.release(lease);
    };
  },
  'an open run': (store) => {
    store.entries.append('main', [user('Go', { run })]);
    return () => store.entries.append('main', [assistant('Done.', { run })]);
  },
  'an open run that a rewind takes back': (store) => {
    store.entries.append('main', [user('Go', { run })]);
    return () => store.history.rewind('main', 1);
  },
  'an open run whose message is redacted': (store) => {
    store.entries.append('main', [user('Go', { run })]);
    return () => store.entries.redact('main', 2, 'a secret');
  },
  'a tool call': (store) => {
    store.entries.append('main', [assistant([toolCall('c', 'read', {})])]);
    return () => store.history.rewind('main', 1);
  },
  'a saved part of an answer': (store) => {
    store.live.save([{ session: 'main', run, chunks: [{ index: 0, chunk: 'so' }] }]);
    return () => store.entries.append('main', [assistant('so far')], { settles: run });
  },
  'a running task': (store) => {
    store.sessions.update('main', { task: 'running' });
    return () => store.sessions.update('main', { task: 'completed' });
  },
};

test.each(Object.entries(pending))('a session is listed as pending while it has %s', (_, begin) => {
  using store = openStore();
  store.sessions.open('main');
  store.sessions.open('calm');
  store.entries.append('calm', [user('Go', { run }), note('run/aborted', { run, reason: 'enough' })]);
  const listed = () => store.sessions.list({ pending: true }).map(({ session }) => session);
  expect(listed()).toEqual([]);
  const end = begin(store);
  expect(listed()).toEqual(['main']);
  expect(store.sessions.list({ pending: true, lifecycle: 'archived' })).toEqual([]);
  end();
  expect(listed()).toEqual([]);
});
