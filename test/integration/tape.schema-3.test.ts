import { expect, test } from 'vitest';
import { writeSchema3 } from '../support/old-schemas.ts';
import { disagreements } from '../support/python.ts';
import { facts, rawDb } from '../support/raw-db.ts';
import { tempHome } from '../support/temp-home.ts';

function factsOf(path: string): string {
  using db = rawDb(path);
  return facts(db);
}

test('a home of schema 3 is upgraded without changing a fact, and counts its messages', () => {
  using home = tempHome();
  writeSchema3(home);
  const before = factsOf(home.db);
  expect(disagreements(home.path, [])).toEqual([]);
  using store = home.open();
  expect([...store.verify(), ...store.verifyDatabase()]).toEqual([]);
  expect(disagreements(home.path, [])).toEqual([]);
  const counted = store.sessions
    .list({ all: true })
    .map(({ session, messageCount }) => [session, messageCount]);
  expect(Object.fromEntries(counted)).toEqual({
    // Two questions with their answers, and the message of the merge.
    main: 5,
    child: 1,
    steered: 4,
    // The second answer counts, and the erased one no more.
    erased: 3,
    answers: 1,
    empty: 0,
  });
  expect(factsOf(home.db)).toBe(before);
  expect(factsOf(home.file('tape.db.schema-3'))).toBe(before);
});
