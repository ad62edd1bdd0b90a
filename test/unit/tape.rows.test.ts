import { openTapeStore, user } from '@tapedeck/tape';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { disagreements } from '../support/python.ts';
import { tempDir } from '../support/temp-dir.ts';

test.each([
  ['what a fork inherits', `UPDATE tape SET floor_seq = base_seq WHERE name = 'child'`],
  ['a name', `UPDATE tape SET name = 'thief' WHERE name = 'child'`],
  ['an anchor', `UPDATE tape SET from_anchor = 'other' WHERE name = 'child'`],
  ['how a run ended', `UPDATE tape SET task = 'failed' WHERE name = 'child'`],
  ['whether it is there', `UPDATE tape SET lifecycle = 'staging' WHERE name = 'child'`],
  ['whether it was merged', `UPDATE tape SET delivery = NULL WHERE name = 'child'`],
  ['what a merge covered', `UPDATE lineage SET to_seq = 2 WHERE type = 'merge'`],
])('verify finds %s changed in a row', (what, sql) => {
  using dir = tempDir();
  {
    using store = openTapeStore(dir.file('tape.db'));
    store.sessions.open('main');
    store.entries.append('main', [user('hello')]);
    store.lineage.fork('main', { name: 'child' });
    store.lineage.merge('child', { text: 'done' });
    expect([...store.verify()]).toEqual([]);
  }
  const raw = new Database(dir.file('tape.db'));
  for (const name of ['tape_update', 'lineage_update']) raw.exec(`DROP TRIGGER ${name}`);
  raw.exec(sql);
  raw.close();
  using store = openTapeStore(dir.file('tape.db'), { readonly: true });
  const found = [...store.verify()];
  expect(disagreements(dir.file('tape.db'), [...found, ...store.verifyDatabase()])).toEqual([]);
  // The mark of the merge has the name of the child and where it began.
  const byMark = what === 'a name' || what === 'an anchor' ? ['merge-contradicted'] : [];
  const byLine = sql.includes('lineage') ? 'lineage-broken' : 'row-changed';
  expect(found.map(({ code }) => code)).toEqual([...byMark, byLine]);
});
