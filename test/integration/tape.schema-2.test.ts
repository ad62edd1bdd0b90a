import { expect, test } from 'vitest';
import { writeSchema2 } from '../support/old-schemas.ts';
import { disagreements } from '../support/python.ts';
import { facts, rawDb } from '../support/raw-db.ts';
import { tempHome } from '../support/temp-home.ts';

function factsOf(path: string): string {
  using db = rawDb(path);
  return facts(db);
}

test('a home of schema 2 is upgraded without changing a fact, and kept as it was', () => {
  using home = tempHome();
  writeSchema2(home);
  const before = factsOf(home.db);
  expect(disagreements(home.path, [])).toEqual([]);
  {
    using store = home.open();
    expect([...store.verify(), ...store.verifyDatabase()]).toEqual([]);
    expect(disagreements(home.path, [])).toEqual([]);
  }
  expect(factsOf(home.db)).toBe(before);
  expect(factsOf(home.file('tape.db.schema-2'))).toBe(before);
});

test('the upgrade records which runs of schema 2 are open', async () => {
  using home = tempHome();
  writeSchema2(home);
  using store = home.open();
  const open = store.sessions.list({ all: true }).filter(({ openRun }) => openRun === true);
  expect(open.map(({ session }) => session).sort()).toEqual(['begun', 'cut', 'live']);
  const { stdout } = await home.here(['status', '--jsonl']);
  const states = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { session: string; state: string });
  expect(states.map(({ session, state }) => `${session} ${state}`).sort()).toEqual([
    'begun interrupted',
    'cut interrupted',
    'live interrupted',
    'task interrupted',
    'waits waiting',
  ]);
});
