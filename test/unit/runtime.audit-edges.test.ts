import { readFileSync, writeFileSync } from 'node:fs';
import { openJournal } from '@tapedeck/graph/journal';
import { audit } from '@tapedeck/runtime';
import { anchor, assistant, type SqliteTapeStore, user } from '@tapedeck/tape';
import { wrapStore } from '@tapedeck/tape/store';
import { describe, expect, test } from 'vitest';
import { audited } from '../support/audited.ts';
import { type RawDb, rawDb } from '../support/raw-db.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

interface Scene extends Disposable {
  readonly path: string;
  readonly graph: string;
  readonly store: SqliteTapeStore;
}

/** `main` with `kid` merged at 3, `left` discarded at 5, and `idle`, forked; lines 1 to 6. */
function scene(): Scene {
  const dir = tempDir();
  const [path, graph] = [dir.file('tape.db'), dir.file('session_graph.jsonl')];
  const store = openStore(path, { journal: openJournal(graph) });
  store.sessions.open('main');
  store.entries.append('main', [user('Go')]);
  for (const name of ['kid', 'left']) {
    store.lineage.fork('main', { name });
    store.entries.append(name, [assistant('Done.')]);
  }
  store.lineage.merge('kid');
  store.lineage.merge('left', { strategy: 'discard' });
  store.lineage.fork('main', { name: 'idle' });
  return {
    path,
    graph,
    store,
    [Symbol.dispose]: () => {
      store.close();
      dir[Symbol.dispose]();
    },
  };
}

/** Changes the file behind the store's back, as nothing but a forger or a broken disk would. */
function forge({ path }: Scene, act: (db: RawDb) => void): void {
  using db = rawDb(path);
  db.exec('PRAGMA foreign_keys = OFF');
  db.dropTriggers();
  act(db);
}

async function edges({ store }: Scene, graph?: string): Promise<string[]> {
  const { findings } = await audited(store, graph === undefined ? {} : { graph });
  return findings.map(
    ({ code, session, seq, message }) =>
      `${code === 'edge-on-one-side' ? '' : code}${session}@${seq}: ${message}`,
  );
}

/** A mark that no merge wrote, at the end of `main`. */
function fakeMark(db: RawDb, child: string, state: object): void {
  db.run(
    `INSERT INTO entry (tape_id, seq, kind, mark, name, at, epoch, salt, body_hash, hash, payload)
       SELECT t.id, t.head_seq + 1, 'anchor', 'anchor', ?, 0, 0, zeroblob(16), zeroblob(32), zeroblob(32), ?
         FROM tape t WHERE t.name = 'main'`,
    `merge/${child}`,
    JSON.stringify({ state }),
  );
  db.run(`UPDATE tape SET head_seq = head_seq + 1, settled_seq = settled_seq + 1 WHERE name = 'main'`);
}

describe('an edge that only one side records is reported at that side', () => {
  const tape = (name: string) => `(SELECT id FROM tape WHERE name = '${name}')`;
  const cases: Readonly<Record<string, readonly [act: (db: RawDb) => void, told: readonly string[]]>> = {
    'a fork without its line': [
      (db) => db.run(`DELETE FROM lineage WHERE type = 'fork' AND tape_id = ${tape('idle')}`),
      ["idle@6: the lineage has no line of the fork of 'idle' from 'main'"],
    ],
    'a fork without its mark': [
      (db) => db.run(`UPDATE entry SET name = 'task' WHERE tape_id = ${tape('idle')}`),
      ["idle@6: line 6 of the lineage says that 'idle' was forked from 'main'; its tape does not"],
    ],
    'a fork from another parent': [
      (db) =>
        db.run(
          `UPDATE entry SET payload = json_set(payload, '$.parent', 'another') WHERE tape_id = ${tape('idle')}`,
        ),
      ["idle@6: line 6 of the lineage says that 'idle' was forked from 'main'; its tape does not"],
    ],
    'a merge without its line': [
      (db) => db.run(`DELETE FROM lineage WHERE type = 'merge'`),
      ["main@3: the lineage has no line of the mark main@3 of 'kid'"],
    ],
    'a discard without its line': [
      (db) => db.run(`DELETE FROM lineage WHERE type = 'discard'`),
      ["main@5: the lineage has no line of the mark main@5 of 'left'"],
    ],
    'a merge without its mark': [
      (db) => db.run(`UPDATE entry SET name = 'task' WHERE name = 'merge/kid'`),
      ["main@3: line 4 of the lineage says that 'kid' was merged into main@3; that position has no mark"],
    ],
    'a merge into what there is not': [
      (db) => {
        db.run(`UPDATE lineage SET line = replace(line, '"into":"', '"into":"X') WHERE type = 'discard'`);
      },
      [
        "main@5: the lineage has no line of the mark main@5 of 'left'",
        "left@null: line 5 of the lineage says that 'left' was discarded at main@5; that position has no mark",
      ],
    ],
    'a line of another range than its mark': [
      (db) =>
        db.run(
          `UPDATE lineage SET line = replace(line, '"range":[3,4]', '"range":[3,3]') WHERE type = 'merge'`,
        ),
      [
        "main@3: line 4 of the lineage says that 'kid' was merged into main@3; the mark there records another act",
      ],
    ],
    'a line of another head than its mark': [
      (db) =>
        db.run(`UPDATE lineage SET line = json_set(line, '$.child_head', 'another') WHERE type = 'merge'`),
      [
        "main@3: line 4 of the lineage says that 'kid' was merged into main@3; the mark there records another act",
      ],
    ],
    'a merge where the line records a discard': [
      (db) => db.run(`UPDATE entry SET payload = replace(payload, '"discard"', '"result"')`),
      [
        "main@5: line 5 of the lineage says that 'left' was discarded at main@5; the mark there records another act",
      ],
    ],
    'a mark of another child than its line': [
      (db) => {
        const [idle] = db.all<{ ulid: string }>(`SELECT ulid FROM tape WHERE name = 'idle'`);
        db.run(
          `UPDATE entry SET payload = json_set(payload, '$.state.child', ?) WHERE name = 'merge/kid'`,
          idle?.ulid,
        );
      },
      [
        "main@3: the lineage has no line of the mark main@3 of 'kid'",
        "main@3: the mark main@3 covers positions [3,4], which 'idle' does not have",
        "main@3: line 4 of the lineage says that 'kid' was merged into main@3; the mark there records another act",
      ],
    ],
    'a mark of what its child inherited': [
      (db) => {
        const [idle] = db.all<{ ulid: string }>(`SELECT ulid FROM tape WHERE name = 'idle'`);
        fakeMark(db, 'idle', { child: idle?.ulid, range: [5, 6], child_head: '' });
      },
      [
        "main@6: the lineage has no line of the mark main@6 of 'idle'",
        "main@6: the mark main@6 covers positions [5,6], which 'idle' does not have",
      ],
    ],
    'a mark of a child that there is not': [
      (db) => fakeMark(db, 'missing', { child: 'missing', range: [3, 4], child_head: '' }),
      ["main@6: the mark main@6 names 'missing', which is not a session"],
    ],
    'a mark of positions that its child has not': [
      (db) => {
        const [idle] = db.all<{ ulid: string }>(`SELECT ulid FROM tape WHERE name = 'idle'`);
        fakeMark(db, 'idle', { child: idle?.ulid, range: [6, 9], child_head: '' });
      },
      [
        "main@6: the lineage has no line of the mark main@6 of 'idle'",
        "main@6: the mark main@6 covers positions [6,9], which 'idle' does not have",
      ],
    ],
    'a mark of a head that its child has not': [
      (db) => db.run(`UPDATE entry SET hash = zeroblob(32) WHERE tape_id = ${tape('kid')} AND seq = 4`),
      [
        expect.stringMatching(
          /^main@3: the mark main@3 covers head [0-9a-f]{8} at @4, which 'kid' does not have$/,
        ),
      ],
    ],
  };
  test.each(Object.entries(cases))('%s', async (_, [act, told]) => {
    using home = scene();
    expect(await edges(home)).toEqual([]);
    forge(home, act);
    expect(await edges(home)).toEqual(told);
  });
});

describe('a fault of the graph file', () => {
  const linesOf = ({ graph }: Scene) => readFileSync(graph, 'utf8').trimEnd().split('\n');
  const write = ({ graph }: Scene, lines: readonly string[]) => writeFileSync(graph, `${lines.join('\n')}\n`);
  const cases: Readonly<
    Record<string, readonly [change: (lines: string[]) => string[], told: readonly string[]]>
  > = {
    'nothing is amiss': [(lines) => lines, []],
    'lines that are not written yet are nothing amiss': [(lines) => lines.slice(0, 3), []],
    'no file is one that is not written yet': [() => [], []],
    'a fragment that a crash left is nothing amiss': [
      (lines) => lines.toSpliced(2, 0, '{"v":1,"g":3,"ev'),
      [],
    ],
    'a line in the place of another is there': [([one = '', two = '', ...rest]) => [two, one, ...rest], []],
    'a duplicate line is no finding': [(lines) => [...lines, lines[1] ?? ''], []],
    'a missing line is reported': [
      (lines) => lines.toSpliced(3, 1),
      ["kid@3: line 4 of the lineage, 'merge' of 'kid', is not in the graph file"],
    ],
    'a changed line is reported': [
      (lines) => lines.map((line) => line.replace('"seq":3', '"seq":2')),
      ["kid@2: line 4 of the graph file, 'merge' of 'kid', is not in the database"],
    ],
    'a foreign line is reported': [
      (lines) => [...lines, (lines[5] ?? '').replace('"g":6', '"g":7').replace('"idle"', '"fake"')],
      ["fake@null: line 7 of the graph file, 'fork' of 'fake', is not in the database"],
    ],
    'an inserted line is reported': [
      (lines) => lines.toSpliced(2, 0, (lines[1] ?? '').replace('"kid"', '"fake"')),
      ["fake@null: line 3 of the graph file, 'fork' of 'fake', is not in the database"],
    ],
  };
  test.each(Object.entries(cases))('%s', async (_, [change, told]) => {
    using home = scene();
    write(home, change(linesOf(home)));
    expect(await edges(home, home.graph)).toEqual(told);
  });

  test('audit of one session omits other sessions', async () => {
    using home = scene();
    home.store.sessions.open('other');
    write(home, linesOf(home).toSpliced(3, 1));
    const of = async (session: string) =>
      (await audited(home.store, { graph: home.graph, session })).findings.length;
    expect([await of('main'), await of('kid'), await of('left'), await of('other')]).toEqual([1, 1, 0, 0]);
  });

  test('a write during the audit is no finding', async () => {
    using home = scene();
    let asked = 0;
    const growing = wrapStore(home.store, ({ method, args: [query], act }) => {
      const answer = act();
      if (method !== 'lineage.read' || Object.hasOwn(query ?? {}, 'session')) return answer;
      asked += 1;
      if (asked > 1) return answer;
      // The lines are read; only then one more is written, to the database and to the file.
      const read = [...(answer as Iterable<unknown>)];
      home.store.sessions.open('newer');
      return read;
    });
    expect((await audit(growing, { graph: home.graph })).findings).toEqual([]);
    expect([linesOf(home).length, asked]).toEqual([7, 2]);
  });

  test('an unreadable store is an error', async () => {
    using home = scene();
    await expect(audit(home.store, { graph: home.path.replace('tape.db', '') })).rejects.toMatchObject({
      code: 'GRAPH_UNREADABLE',
    });
  });
});

test('marks among other anchors, of one child many times, are each compared with their lines', async () => {
  using home = scene();
  for (let n = 0; n < 140; n += 1) {
    home.store.entries.append('kid', [assistant(`More ${n}.`)]);
    home.store.lineage.merge('kid');
    home.store.entries.append('main', [anchor('merged')]);
  }
  expect(await edges(home, home.graph)).toEqual([]);
  // The lines of these merges are 7 to 146.
  forge(home, (db) => db.run(`DELETE FROM lineage WHERE type = 'merge' AND g > 140`));
  expect((await edges(home)).length).toBe(6);
});

test.each<[string, (store: SqliteTapeStore) => unknown]>([
  [
    'of one of two children of the same name, of which the first was deleted',
    (store) => {
      store.lineage.fork('main', { name: 'kid' });
      // Lists have it first.
      const meta = { source: 'import', timestamp: '2099-01-01T00:00:00.000Z' };
      store.entries.append('kid', [{ ...assistant('Left.'), meta }]);
      store.sessions.update('kid', { lifecycle: 'destroyed' });
    },
  ],
  ['of a child that was moved away since', () => {}],
])('a merge mark that was redacted is no finding: %s', async (what, prepare) => {
  using store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('Go')]);
  prepare(store);
  store.lineage.fork('main', { name: 'kid' });
  store.entries.append('kid', [assistant('Done.')]);
  const { seq } = store.lineage.merge('kid');
  if (what.includes('moved')) store.lineage.link('kid', null, { type: 'moved' });
  store.entries.redact('main', [seq ?? 0], 'private');
  expect((await audited(store)).findings).toEqual([]);
});
