import { anchor, type SqliteTapeStore, user } from '@tapedeck/tape';

/** Twelve acts of lineage, one of every kind at least: a graph file of twelve lines. */
export function twelveActs(store: SqliteTapeStore): void {
  store.sessions.open('main');
  store.entries.append('main', [user('hello'), anchor('start')]);
  store.lineage.fork('main', { name: 'a', intention: { nextSteps: 'x'.repeat(300) } });
  store.lineage.fork('main', { name: 'b', inherit: { since: 'start' } });
  store.entries.append('a', [user('done')]);
  store.sessions.update('a', { task: 'completed' });
  store.lineage.merge('a');
  store.lineage.fork('b', { name: 'c' });
  store.lineage.merge('c', { strategy: 'discard' });
  store.sessions.update('b', { alias: { name: 'other', reason: 'asked' } });
  store.sessions.open('second');
  store.sessions.update('second', { lifecycle: 'archived' });
  store.lineage.fork('a', { name: 'd' });
  store.lineage.fork('main', { name: 'e' });
}
