import {
  assistant,
  openTapeStore,
  processOwner,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
} from '@tapedeck/tape';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { tempDir } from '../support/temp-dir.ts';

const gone = { ...processOwner('gone'), pid: 2 ** 22 - 1, pidStart: '1' };

/** A parent whose owner is gone, with an open call, and a merge of its child in the inbox. */
function abandoned(path: string, ...more: Parameters<SqliteTapeStore['post']>[1][]): void {
  using store = openTapeStore(path);
  store.session('main');
  store.append('main', [user('hello')]);
  store.fork('main', { name: 'child' });
  const lease = store.acquire('main', processOwner('holder'));
  store.append('main', [assistant([toolCall('c1', 'read', {})])], { lease });
  store.post('main', { body: { type: 'merge', draft: { child: 'child', text: 'done' } } });
  for (const item of more) store.post('main', item);
  const raw = new Database(path);
  raw.prepare('UPDATE lease SET pid = ?, pid_start = ?').run(gone.pid, gone.pidStart);
  raw.close();
}

const result = toolResult({ toolCallId: 'c1', toolName: 'read' }, 'text');

describe('an inbox that nobody owns', () => {
  test('is emptied although what it appends settles the tape only on the way', () => {
    using dir = tempDir();
    abandoned(dir.file('tape.db'), { body: { type: 'append', drafts: [result] } });
    using store = openTapeStore(dir.file('tape.db'));
    expect(store.inbox('main')).toEqual([]);
    expect(store.find('child')?.delivery).toBe('merged');
    // Nobody holds the session: an act without a lease is not refused.
    expect(store.append('main', [user('next')]).added).toBe(1);
  });

  test('keeps a merge while calls are open, and does it once they have their results', () => {
    using dir = tempDir();
    abandoned(dir.file('tape.db'));
    using store = openTapeStore(dir.file('tape.db'));
    expect(store.inbox('main').map(({ body }) => body.type)).toEqual(['merge']);
    store.append('main', [result]);
    expect(store.drainOwnerless('main')).toBe(true);
    expect(store.inbox('main')).toEqual([]);
    expect(store.find('child')?.delivery).toBe('merged');
  });
});
