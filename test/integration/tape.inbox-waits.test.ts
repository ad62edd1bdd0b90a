import { assistant, openTapeStore, processOwner, toolCall, toolResult, user } from '@tapedeck/tape';
import type { InboxDraft } from '@tapedeck/tape/store';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { tempDir } from '../support/temp-dir.ts';

const gone = { ...processOwner('gone'), pid: 2 ** 22 - 1, pidStart: '1' };

/** A parent whose owner is gone, with an open call, and a merge of its child in the inbox. */
function abandoned(path: string, ...more: InboxDraft[]): void {
  using store = openTapeStore(path);
  store.sessions.open('main');
  store.entries.append('main', [user('hello')]);
  store.lineage.fork('main', { name: 'child' });
  const lease = store.leases.acquire('main', processOwner('holder'));
  store.entries.append('main', [assistant([toolCall('c1', 'read', {})])], { lease });
  store.inbox.post('main', { body: { type: 'merge', draft: { child: 'child', text: 'done' } } });
  for (const item of more) store.inbox.post('main', item);
  const raw = new Database(path);
  raw.prepare('UPDATE lease SET pid = ?, pid_start = ?').run(gone.pid, gone.pidStart);
  raw.close();
}

const result = toolResult({ toolCallId: 'c1', toolName: 'read' }, 'text');

describe('an inbox without an owner', () => {
  test('is emptied although its appends settle the tape only on the way', () => {
    using dir = tempDir();
    abandoned(dir.file('tape.db'), { body: { type: 'append', drafts: [result] } });
    using store = openTapeStore(dir.file('tape.db'));
    expect(store.inbox.list('main')).toEqual([]);
    expect(store.sessions.find('child')?.delivery).toBe('merged');
    // The session has no owner: an act without a lease is not refused.
    expect(store.entries.append('main', [user('next')]).added).toBe(1);
  });

  test('keeps a merge while calls are open, and does it once they have their results', () => {
    using dir = tempDir();
    abandoned(dir.file('tape.db'));
    using store = openTapeStore(dir.file('tape.db'));
    expect(store.inbox.list('main').map(({ body }) => body.type)).toEqual(['merge']);
    store.entries.append('main', [result]);
    expect(store.inbox.drain('main')).toBe(1);
    expect(store.inbox.list('main')).toEqual([]);
    expect(store.sessions.find('child')?.delivery).toBe('merged');
  });
});
