import { assistant, user } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { disagreements } from '../support/python.ts';
import { type RawDb, rawDb } from '../support/raw-db.ts';
import { openStore } from '../support/store.ts';
import { type TempDir, tempDir } from '../support/temp-dir.ts';

/**
 * `main` with positions 1 to 6; `child` forked at 4, own 5 to 7; `grand` forked from it where it inherits, at 3, own 4
 * and 5; `late` forked from `child` at 6, own 7 and 8.
 */
function threeLevels(): { dir: TempDir; path: string } {
  const dir = tempDir();
  const path = dir.file('tape.db');
  using store = openStore(path);
  store.sessions.open('main');
  store.entries.append('main', [user('m2', { source: 'cli' }), assistant('m3'), user('m4')], { key: 'k' });
  store.entries.append('main', [assistant('m5'), user('m6')]);
  store.lineage.fork('main', { name: 'child', cut: 4 });
  store.entries.append('child', [user('c6'), assistant('c7')]);
  store.lineage.fork('child', { name: 'grand', cut: 3 });
  store.entries.append('grand', [user('g5')]);
  store.lineage.fork('child', { name: 'late', cut: 6 });
  store.entries.append('late', [user('l8')]);
  return { dir, path };
}

/** The problems that verify reports, after a change without triggers: code, session and position. */
function verified(alter: (db: RawDb) => void, ref?: string): [string, string | null, number | null][] {
  const { dir, path } = threeLevels();
  using _dir = dir;
  {
    using db = rawDb(path);
    db.dropTriggers();
    db.exec('PRAGMA foreign_keys = OFF');
    alter(db);
  }
  using store = openStore(path);
  if (ref === undefined) {
    const found = [...store.verifyDatabase(), ...store.verify()];
    expect(
      disagreements(
        path,
        found.filter(({ code }) => code !== 'database-damaged'),
      ),
    ).toEqual([]);
  }
  return [...store.verify(ref)].map(({ code, session, seq }) => [code, session, seq]);
}

/** Alters what one statement says, and makes sure that it changed something. */
const sql =
  (text: string, rows = 1) =>
  (db: RawDb) => {
    expect(db.run(text)).toBe(rows);
  };

const main = "(SELECT id FROM tape WHERE name = 'main')";
const child = "(SELECT id FROM tape WHERE name = 'child')";
const at = (seq: number, tape = main) => `tape_id = ${tape} AND seq = ${seq}`;

test('an unaltered file is clean, as a whole and for each session', () => {
  expect(verified(() => {})).toEqual([]);
  for (const name of ['main', 'child', 'grand', 'late']) expect(verified(() => {}, name)).toEqual([]);
});

describe('one altered entry is reported once', () => {
  test.each([
    [
      'a byte of its payload',
      `UPDATE entry SET payload = replace(payload, 'm3', 'm4') WHERE ${at(3)}`,
      'entry-changed',
    ],
    [
      'a byte of its meta',
      `UPDATE entry SET meta = replace(meta, 'cli', 'cl1') WHERE ${at(2)}`,
      'entry-changed',
    ],
    ['its meta dropped', `UPDATE entry SET meta = NULL WHERE ${at(2)}`, 'entry-changed'],
    ['a byte of its salt', `UPDATE entry SET salt = zeroblob(16) WHERE ${at(3)}`, 'entry-changed'],
    ['its body', `UPDATE entry SET payload = NULL, meta = NULL, salt = NULL WHERE ${at(3)}`, 'body-erased'],
    ['its name', `UPDATE entry SET name = 'x' WHERE ${at(3)}`, 'chain-broken'],
    ['its key', `UPDATE entry SET key = 'u:x' WHERE ${at(3)}`, 'chain-broken'],
    ['its key dropped', `UPDATE entry SET key = NULL WHERE ${at(3)}`, 'chain-broken'],
    ['its time', `UPDATE entry SET at = at + 1 WHERE ${at(3)}`, 'chain-broken'],
    ['its kind', `UPDATE entry SET kind = 'event' WHERE ${at(3)}`, 'chain-broken'],
    ['its mark', `UPDATE entry SET mark = 'boundary' WHERE ${at(3)}`, 'chain-broken'],
    ['what it refers to', `UPDATE entry SET ref = 1 WHERE ${at(3)}`, 'chain-broken'],
    ['its body hash', `UPDATE entry SET body_hash = zeroblob(32) WHERE ${at(3)}`, 'entry-changed'],
    ['its hash', `UPDATE entry SET hash = zeroblob(32) WHERE ${at(2)}`, 'chain-broken'],
  ])('%s', (_, text, code) => {
    const seq = Number(/seq = (\d)$/.exec(text)?.[1]);
    expect(verified(sql(text))).toEqual([[code, 'main', seq]]);
  });

  test('a payload forged together with its body hash', () => {
    const forge = sql(`UPDATE entry SET (payload, salt, meta, body_hash) =
      (SELECT payload, salt, meta, body_hash FROM entry WHERE ${at(2)}) WHERE ${at(3)}`);
    expect(verified(forge)).toEqual([['chain-broken', 'main', 3]]);
  });

  test('the last one', () => {
    expect(verified(sql(`UPDATE entry SET hash = zeroblob(32) WHERE ${at(6)}`))).toEqual([
      ['chain-broken', 'main', 6],
    ]);
    expect(verified(sql(`UPDATE entry SET at = 0 WHERE ${at(6)}`))).toEqual([['chain-broken', 'main', 6]]);
  });

  test('two of them are two problems', () => {
    const both = (db: RawDb) => {
      sql(`UPDATE entry SET payload = '{}' WHERE ${at(2)}`)(db);
      sql(`UPDATE entry SET at = 0 WHERE ${at(5)}`)(db);
    };
    expect(verified(both)).toEqual([
      ['entry-changed', 'main', 2],
      ['chain-broken', 'main', 5],
    ]);
  });
});

describe('the order of entries', () => {
  test('a deleted one is missing', () => {
    expect(verified(sql(`DELETE FROM entry WHERE ${at(3)}`), 'main')).toEqual([['entry-missing', 'main', 3]]);
    expect(verified(sql(`DELETE FROM entry WHERE ${at(1)}`), 'main')).toEqual([['entry-missing', 'main', 1]]);
  });

  test('a tail that was cut off is missing', () => {
    expect(verified(sql(`DELETE FROM entry WHERE tape_id = ${main} AND seq > 4`, 2))).toEqual([
      ['entry-missing', 'main', 5],
    ]);
  });

  test('two that were swapped no longer follow', () => {
    const swap = (db: RawDb) => {
      for (const [from, to] of [
        [3, 99],
        [5, 3],
        [99, 5],
      ])
        sql(`UPDATE entry SET seq = ${to} WHERE ${at(Number(from))}`)(db);
    };
    const found = verified(swap, 'main');
    expect(found[0]).toEqual(['chain-broken', 'main', 3]);
    expect(found.map(([, , seq]) => seq)).toContain(5);
    expect(new Set(found.map(([code]) => code))).toEqual(new Set(['chain-broken']));
  });

  test('one that was inserted makes the rest not follow', () => {
    const insert = (db: RawDb) => {
      for (const seq of [6, 5, 4]) sql(`UPDATE entry SET seq = ${seq + 1} WHERE ${at(seq)}`)(db);
      sql(`INSERT INTO entry (tape_id, seq, kind, at, epoch, salt, body_hash, hash, payload)
        SELECT tape_id, 4, kind, at, epoch, salt, body_hash, hash, payload FROM entry WHERE ${at(3)}`)(db);
    };
    expect(verified(insert, 'main')[0]).toEqual(['chain-broken', 'main', 4]);
  });

  test('one past the head, or below the base, belongs to no session', () => {
    const put = (tape: string, seq: number) =>
      sql(`INSERT INTO entry (tape_id, seq, kind, at, epoch, salt, body_hash, hash, payload)
        SELECT ${tape}, ${seq}, kind, at, epoch, salt, body_hash, hash, payload FROM entry WHERE ${at(3)}`);
    expect(verified(put(main, 7))).toEqual([['head-wrong', 'main', 7]]);
    expect(verified(put(child, 2))).toEqual([['head-wrong', 'child', 2]]);
  });
});

describe('a tape’s own row', () => {
  test('a head with another hash', () => {
    expect(verified(sql(`UPDATE tape SET head_hash = zeroblob(32) WHERE name = 'main'`))).toEqual([
      ['head-wrong', 'main', 6],
    ]);
  });

  test('a head moved back, with the hash of that position', () => {
    const back = sql(`UPDATE tape SET head_seq = 5, settled_seq = 5, head_hash =
      (SELECT hash FROM entry WHERE ${at(5)}) WHERE name = 'main'`);
    expect(verified(back)).toEqual([
      ['head-wrong', 'main', 6],
      ['messages-differ', 'main', null],
    ]);
  });

  test('a base with another hash breaks the link to the parent', () => {
    const base = verified(sql(`UPDATE tape SET base_hash = zeroblob(32) WHERE name = 'child'`));
    expect(base).toEqual([
      ['base-wrong', 'child', 4],
      ['chain-broken', 'child', 5],
    ]);
  });

  test('a base at another place', () => {
    const moved = verified(sql(`UPDATE tape SET base_seq = 3 WHERE name = 'child'`), 'child');
    expect(moved).toContainEqual(['base-wrong', 'child', 3]);
    expect(moved).toContainEqual(['entry-missing', 'child', 4]);
  });

  test('another id', () => {
    const found = verified(sql(`UPDATE tape SET ulid = '01JD0000000000000000000ZZZ' WHERE name = 'late'`));
    expect(found[0]).toEqual(['chain-broken', 'late', 7]);
  });

  test('a fork grafted onto another parent', () => {
    const grafted = sql(`UPDATE tape SET parent_id = (SELECT id FROM tape WHERE name = 'grand'), base_seq = 5,
      base_hash = (SELECT head_hash FROM tape WHERE name = 'grand') WHERE name = 'late'`);
    expect(verified(grafted, 'late')[0]).toEqual(['entry-missing', 'late', 6]);
  });
});

describe('damage under a fork', () => {
  const damage = sql(`UPDATE entry SET payload = '{}' WHERE ${at(2)}`);

  test('is reported once, at its owner', () => {
    expect(verified(damage)).toEqual([['entry-changed', 'main', 2]]);
  });

  test.each(['main', 'child', 'grand', 'late'])('is seen from %s', (name) => {
    expect(verified(damage, name)).toEqual([['entry-changed', 'main', 2]]);
  });

  test('is not seen from a session that does not reach it', () => {
    const own = sql(`UPDATE entry SET payload = '{}' WHERE ${at(7, child)}`);
    const late = sql(`UPDATE entry SET payload = '{}' WHERE ${at(5)}`);
    expect(verified(own, 'child')).toEqual([['entry-changed', 'child', 7]]);
    for (const name of ['main', 'grand', 'late']) expect(verified(own, name)).toEqual([]);
    for (const name of ['child', 'grand', 'late']) expect(verified(late, name)).toEqual([]);
  });
});

describe('the lineage', () => {
  test.each([
    ['a line', `UPDATE lineage SET line = replace(line, '"active"', '"merged"') WHERE g = 2`],
    ['its hash', 'UPDATE lineage SET hash = zeroblob(32) WHERE g = 2'],
    ['a line taken out', 'DELETE FROM lineage WHERE g = 2'],
  ])('%s that was altered is named once', (_, text) => {
    expect(verified(sql(text))).toEqual([['lineage-broken', null, null]]);
  });
});
