import { anchor, type SqliteTapeStore, user } from '@tapedeck/tape';

/** Twelve acts of lineage, one of every kind at least: a graph file of twelve lines. */
export function twelveActs(store: SqliteTapeStore): void {
  store.session('main');
  store.append('main', [user('hello'), anchor('start')]);
  store.fork('main', { name: 'a', intention: { nextSteps: 'x'.repeat(300) } });
  store.fork('main', { name: 'b', inherit: { since: 'start' } });
  store.append('a', [user('done')]);
  store.setTask('a', 'completed');
  store.merge('a');
  store.fork('b', { name: 'c' });
  store.merge('c', { strategy: 'discard' });
  store.alias('other', 'b', 'asked');
  store.session('second');
  store.setLifecycle('second', 'archived');
  store.fork('a', { name: 'd' });
  store.fork('main', { name: 'e' });
}
