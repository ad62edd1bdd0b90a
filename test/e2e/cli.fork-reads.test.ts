import { user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { rawDb } from '../support/raw-db.ts';
import { tempHome } from '../support/temp-home.ts';

test('tape fork reads no entry that the child inherits, however many', async () => {
  using home = tempHome();
  home.session('main', user('One'), user('Two'), user('Three'));
  using db = rawDb(home.db);
  const triggers = db.all<{ sql: string }>(`SELECT sql FROM sqlite_schema WHERE type = 'trigger'`);
  db.dropTriggers();
  // Whoever reads it fails.
  expect(db.run(`UPDATE entry SET payload = 'no JSON' WHERE seq = 2`)).toBe(1);
  for (const { sql } of triggers) db.exec(sql);
  expect(await home.tape(['view', 'main'])).toMatchObject({ code: 5 });

  const made = await home.tape(['fork', 'main@3', '--as', 'child']);
  expect(made).toMatchObject({ code: 0, stderr: '' });
  expect(made.stdout).toContain('child inherits main 1-3 (3 entries)\n');
});
