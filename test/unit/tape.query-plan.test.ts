import { statSync } from 'node:fs';
import { anchor, assistant, type SqliteTapeStore, toolCall, toolResult, user, view } from '@tapedeck/tape';
import Database from 'better-sqlite3';
import { describe, expect, test, vi } from 'vitest';
import { pageOn } from '../support/page.ts';
import { type RawDb, rawDb } from '../support/raw-db.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

/** The texts of the statements that an act runs: those that the store prepares while it does so. */
function statementsOf(act: () => void): string[] {
  const prepare = vi.spyOn(Database.prototype, 'prepare');
  try {
    act();
    return prepare.mock.calls.map(([sql]) => sql);
  } finally {
    prepare.mockRestore();
  }
}

/** A step of a plan, and the step that it is a part of. */
interface Step {
  readonly id: number;
  readonly parent: number;
  readonly detail: string;
}

/** How SQLite would run a statement, its parameters being anything. */
function stepsOf(db: RawDb, sql: string): Step[] {
  const names = new Set([...sql.matchAll(/@(\w+)/g)].map(([, name]) => name));
  const params = Object.fromEntries([...names].map((name) => [name, null]));
  const values = [...sql.matchAll(/\?/g)].map(() => null);
  return db.all<Step>(`EXPLAIN QUERY PLAN ${sql}`, ...(names.size > 0 ? [params] : values));
}

function planOf(db: RawDb, sql: string): string[] {
  return stepsOf(db, sql).map(({ detail }) => detail);
}

/** Whether rows of a step's parts, but for those of a subquery that gives one value, are those of entries. */
function readsEntries(steps: readonly Step[], parent: number): boolean {
  return steps.some(
    (step) =>
      step.parent === parent &&
      !/SCALAR SUBQUERY/.test(step.detail) &&
      (/^(?:SCAN|SEARCH) (?:e|entry)\b/.test(step.detail) || readsEntries(steps, step.id)),
  );
}

/** Steps of a plan that read a whole table or index of facts, or sort entries. */
function growing(db: RawDb, sql: string): string[] {
  const steps = stepsOf(db, sql);
  return steps
    .filter(
      ({ detail, parent }) =>
        /^SCAN (?:e|t|p|r|l|entry|tape|lineage|open_calls|touch|alias)\b/.test(detail) ||
        (/TEMP B-TREE/.test(detail) && readsEntries(steps, parent)),
    )
    .map(({ detail }) => detail);
}

test('a sort of entries is found, and one of tapes beside a value of theirs is not', () => {
  using dir = tempDir();
  openStore(dir.file('tape.db')).close();
  using db = rawDb(dir.file('tape.db'));
  const sort = ['USE TEMP B-TREE FOR ORDER BY'];
  expect(growing(db, 'SELECT seq FROM entry WHERE tape_id = @id ORDER BY at')).toEqual(sort);
  expect(
    growing(
      db,
      'SELECT (SELECT seq FROM entry WHERE tape_id = t.id ORDER BY at LIMIT 1) FROM tape t WHERE id = @id',
    ),
  ).toEqual(sort);
  expect(
    growing(
      db,
      `SELECT (SELECT seq FROM entry WHERE tape_id = t.id AND name = @name ORDER BY seq DESC LIMIT 1) FROM tape t
        WHERE realm = @realm ORDER BY updated_at`,
    ),
  ).toEqual([]);
});

/** Acts that must cost the same however long the history is. Each is run once before it is looked at. */
const acts: Readonly<Record<string, (store: SqliteTapeStore) => void>> = {
  append: (store) => {
    store.entries.append('main', [user('x', { source: 'cli' })], {
      key: `k${store.sessions.find('main')?.head}`,
    });
  },
  'append of a batch of calls': (store) => {
    const id = `c${store.sessions.find('main')?.head}`;
    store.entries.append('main', [assistant([toolCall(id, 'read', {})])]);
    store.entries.append('main', [toolResult({ toolCallId: id, toolName: 'read' }, 'y')]);
  },
  anchor: (store) => {
    store.entries.append('main', [anchor('A', { n: 1 })]);
  },
  fork: (store) => {
    store.lineage.fork('main', { intention: { nextSteps: 'Go.' } });
  },
  'fork since an anchor, up to a cut, by key': (store) => {
    store.lineage.fork('main', {
      inherit: { since: 'A' },
      cut: store.sessions.find('main')?.head ?? 0,
      key: `f${store.sessions.find('main')?.head}`,
    });
  },
  'a new session, and an alias given and taken away': (store) => {
    const n = store.sessions.find('main')?.head ?? 0;
    store.sessions.open(`new-${n}`);
    store.sessions.update('main', { alias: { name: `other-${n}`, reason: '' } });
    expect(store.sessions.find(`other-${n}`)?.aliases).toContain(`other-${n}`);
    store.sessions.update('main', { unalias: { name: `other-${n}`, reason: '' } });
    store.entries.append('main', [user('named')]);
  },
  'a child by its key': (store) => {
    store.sessions.list({ parent: 'main', key: 'none' });
  },
  merge: (store) => {
    const { session } = store.lineage.fork('main');
    store.entries.append(session, [assistant('done')]);
    store.lineage.merge(session);
  },
  rewind: (store) => {
    store.history.rewind('main', (store.sessions.find('main')?.head ?? 1) - 1);
  },
  'lease, post, drain': (store) => {
    const lease = store.leases.acquire('main', { id: 'owner' });
    store.inbox.post('main', { body: { type: 'append', drafts: [user('posted')] } });
    store.inbox.drain(lease);
    store.leases.release(lease);
  },
  'view since the last boundary': (store) => {
    expect(view(store.views.entries('main')).messages.length).toBeGreaterThan(0);
  },
  'views of another policy, and as the session stood': (store) => {
    expect([...store.views.entries('main', { policy: { fromAnchor: 'A' } })].length).toBeGreaterThan(0);
    expect([...store.views.entries('main', { policy: 'full' })].length).toBeGreaterThan(0);
    expect([...store.views.entries('main', { at: 2 })].length).toBeGreaterThan(0);
  },
  'read of a kind of which there are few': (store) => {
    expect([...store.entries.read('main', { own: true, kind: 'anchor', last: 5 })].length).toBeGreaterThan(0);
    expect([...store.entries.read('main', { own: true, kind: 'anchor' })].length).toBeGreaterThan(0);
  },
  'read of the last entries': (store) => {
    expect([...store.entries.read('main', { last: 3 })].length).toBe(3);
  },
  'read of a kind, of a range and of what is inherited': (store) => {
    const { session } = store.lineage.fork('main');
    expect([...store.entries.read(session, { kind: 'message', last: 1 })].length).toBe(1);
    store.entries.append(session, [assistant('Hi')]);
    expect([...store.entries.read(session, { kind: 'message', own: true })].length).toBe(1);
    expect([...store.entries.read(session, { from: 2, limit: 1 })].length).toBe(1);
    expect([...store.entries.read(session, { own: false })].length).toBeGreaterThan(0);
  },
  'merge of a state that the parent and another child changed too': (store) => {
    const [one, two] = [store.lineage.fork('main').session, store.lineage.fork('main').session];
    for (const session of [one, two, 'main'])
      store.entries.append(session, [anchor('state', { goal: session })]);
    store.lineage.merge(one);
    expect(store.lineage.previewMerge(two).conflicts.length).toBeGreaterThan(0);
    store.lineage.merge([{ child: two }]);
  },
  'previews of forks and merges': (store) => {
    const { session } = store.lineage.fork('main');
    store.entries.append(session, [assistant('done')]);
    expect(store.lineage.previewMerge(session).entries.length).toBe(2);
    expect(
      store.lineage.previewFork('main', { key: session, intention: { nextSteps: 'Go.' } }).entries.length,
    ).toBe(2);
  },
  'what an audit and a trace ask': (store) => {
    const { session } = store.lineage.fork('main', { spawnCall: 'c' });
    store.entries.append(session, [assistant('done')]);
    const { seq, range } = store.lineage.merge(session);
    expect(store.sessions.list({ all: true, after: 'main', limit: 2 }).length).toBeGreaterThan(0);
    expect(store.sessions.list({ all: true, parent: 'main', after: null, limit: 2 }).length).toBeGreaterThan(
      0,
    );
    expect(
      [...store.entries.read('main', { own: true, kind: 'anchor', namePrefix: 'merge/' })].length,
    ).toBeGreaterThan(0);
    expect([...store.entries.read('main', { own: true, name: 'merge/refused', kind: 'event' })]).toEqual([]);
    expect([...store.entries.read(session, { own: true, from: range[1] + 1, limit: 1 })]).toEqual([]);
    expect([...store.entries.read('main', { key: 'u:none' })]).toEqual([]);
    expect([...store.lineage.read({ session, types: ['fork', 'merge', 'discard'] })].length).toBe(2);
    expect([...store.lineage.read({ session })].length).toBe(2);
    expect([...store.lineage.read({ from: 2 })].length).toBeGreaterThan(1);
    expect(store.views.ranges('main', { from: seq })[0]?.hiddenBy).toBe(undefined);
    expect(store.lineage.collect(session, range).text).toBe('done');
  },
  'un-rewind': (store) => {
    store.history.rewind('main', (store.sessions.find('main')?.head ?? 1) - 1);
    store.history.unrewind('main');
  },
  'sessions by every sort of name, made, renamed and listed by parent': (store) => {
    const { session, id } = store.lineage.fork('main');
    store.sessions.update(session, { alias: { name: `also-${session}`, reason: 'a shorter name' } });
    for (const ref of [session, id, `worker:${id}`, `${session}~1`, `also-${session}`])
      expect(store.sessions.find(ref)?.id).toBe(id);
    // Ids that are counted share their beginnings.
    expect(store.sessions.find(id.slice(0, 24))).toBeUndefined();
    expect(store.sessions.list({ prefix: session, all: true, limit: 9 }).length).toBeGreaterThan(0);
    expect(
      store.sessions.list({ idPrefix: id.slice(0, 9), all: true, allRealms: true, limit: 2 }).length,
    ).toBe(2);
    expect(store.sessions.list({ parent: 'main' }).length).toBeGreaterThan(0);
    expect(store.sessions.list({ parent: 'main', leftFrom: 2, limit: 2 }).length).toBeGreaterThan(0);
    expect(store.sessions.list({ parent: 'main', key: 'none', all: true })).toEqual([]);
    expect(store.sessions.list({ parent: 'main', unfinished: true, all: true })).toEqual([]);
    expect(store.sessions.list({ under: 'main', unfinished: true, all: true })).toEqual([]);
    store.sessions.open(`beside-${session}`);
    store.sessions.update(session, { task: 'completed' });
    store.sessions.update(session, { lifecycle: 'archived' });
  },
  'sessions with something pending, and the sessions of other realms': (store) => {
    const lease = store.leases.acquire('main', { id: 'owner' });
    expect(store.sessions.list({ pending: true, all: true }).length).toBe(1);
    expect(store.sessions.list({ pending: true, parent: 'main', all: true })).toEqual([]);
    store.leases.release(lease);
    expect(store.sessions.list({ pending: true, all: true })).toEqual([]);
    expect(store.otherRealms()).toEqual([]);
    store.entries.append('main', [user('still read')]);
  },
  'the newest sessions with their ancestors, a family, and how many there are': (store) => {
    const { session, id } = store.lineage.fork('main');
    expect(store.newestFamilies({ limit: 3 }).some((line) => line.session === id)).toBe(true);
    expect(store.newestFamilies({ limit: 1, since: 1 }).length).toBeGreaterThan(0);
    expect(store.familyOf(session).map((line) => line.session_id)).toEqual(['main', session]);
    expect(store.spokenTimes([id]).size).toBe(1);
    expect(store.countSessions(store.sessions.find('main')?.id)).toBeGreaterThan(0);
    store.entries.append('main', [user('forked')]);
  },
  'what changed in a home behind a place of it': (store) => {
    const before = store.homeHead();
    store.lineage.fork('main');
    const { head, entries, lines } = store.writtenBehind(before);
    expect([entries.length, lines.length, head.line - before.line]).toEqual([1, 1, 1]);
    expect(store.atOnce(() => store.writtenBehind(head)).entries).toEqual([]);
  },
  'the calls that a session records, a page of sessions in each order, and how many are listed': (store) => {
    store.entries.append('main', [
      assistant('Done.', { usage: { input: 1, output: 1, reasoning: 0, cacheRead: 0, cacheWrite: 0 } }),
    ]);
    expect([...store.recordedCalls('main')].length).toBeGreaterThan(0);
    expect(store.countListed()).toBeGreaterThan(0);
    expect(store.countListed({ kind: 'session', roots: true, deleted: false })).toBe(1);
    for (const order of ['last', 'created', 'name', 'messages', 'tokens'] as const)
      expect(
        [...store.readSessions({ order, counts: true, titles: true, deleted: false, limit: 3 })].length,
      ).toBeGreaterThan(0);
    expect([...store.readSessions({ roots: true, limit: 3 })].length).toBe(1);
    expect([...store.readSessions({ pending: true, all: true, limit: 3 })]).toEqual([]);
  },
  'sessions with their counts, and merges that are undone': (store) => {
    const { session } = store.lineage.fork('main');
    store.entries.append(session, [assistant('done')]);
    const { seq } = store.lineage.merge(session);
    store.history.rewind('main', seq - 1);
    expect(store.sessions.find(session)?.undone).toBe(true);
    expect(store.sessions.list({ under: 'main', counts: true }).length).toBeGreaterThan(0);
    expect([...store.linesBySession()].flat().some(({ undone }) => undone === true)).toBe(true);
  },
  'chunks of an answer, and what they come to': (store) => {
    const lease = store.leases.acquire('main', { id: 'owner' });
    store.live.save([{ session: 'main', run: 'run', chunks: [{ index: 0, chunk: 'so' }] }]);
    expect(store.live.read('main')[0]?.chunks.length).toBe(1);
    store.entries.append(lease.id, [assistant('so far')], { lease, settles: 'run' });
    store.leases.release(lease);
  },
  'import: staged, then published': (store) => {
    const { id } = store.imports.stage(`import-${store.sessions.list({ all: true }).length}`);
    store.imports.append(id, [user('x')]);
    store.imports.publish([id]);
  },
  redaction: (store) => {
    store.entries.append('main', [user('secret')]);
    store.entries.redact('main', 'head', 'a secret');
  },
  'search through the index, and what follows it': (store) => {
    store.entries.append('main', [user('needle')]);
    expect(store.entries.search({ text: 'needle', session: 'main' }).hits.length).toBeGreaterThan(0);
  },
  verification: (store) => {
    expect([...store.verify('main')]).toEqual([]);
  },
  'catching up, as every opening does': (store) => {
    store.inbox.post('main', { body: { type: 'append', drafts: [user('left')] } });
    store.catchUp();
    expect(store.inbox.list('main')).toEqual([]);
  },
};

test('the entries of a rare kind are found by an index of kinds', () => {
  using dir = tempDir();
  const path = dir.file('tape.db');
  const statements = statementsOf(() => {
    using store = openStore(path);
    store.sessions.open('main');
    expect([...store.entries.read('main', { kind: 'anchor', last: 5 })].length).toBe(1);
    expect([...store.entries.read('main', { kind: 'anchor' })].length).toBe(1);
  });
  using db = rawDb(path);
  const reads = statements.filter((sql) => sql.includes('likelihood(kind'));
  expect(reads.length).toBe(2);
  for (const sql of reads)
    expect(planOf(db, sql)).toEqual([
      expect.stringContaining('USING INDEX entry_kind (tape_id=? AND kind=? AND seq'),
    ]);
});

test('the entries of a name are found by an index of names', () => {
  using dir = tempDir();
  const path = dir.file('tape.db');
  const statements = statementsOf(() => {
    using store = openStore(path);
    store.sessions.open('main');
    store.entries.append('main', [anchor('A')]);
    const names = (query: object) => [...store.entries.read('main', { name: 'A', ...query })].length;
    expect([names({}), names({ last: 5 }), names({ own: true, kind: 'event', limit: 1 })]).toEqual([1, 1, 0]);
  });
  using db = rawDb(path);
  const reads = statements.filter((sql) => sql.includes('likelihood(name'));
  expect(reads.length).toBe(3);
  for (const sql of reads)
    expect(planOf(db, sql)).toEqual([
      expect.stringContaining('USING INDEX entry_name (tape_id=? AND name=? AND seq'),
    ]);
});

test('a look at all sessions seeks what belongs to those of a page, and makes no index of its own', () => {
  using dir = tempDir();
  const path = dir.file('tape.db');
  const statements = statementsOf(() => {
    using store = openStore(path);
    store.sessions.open('main');
    expect(store.looseEnds()).toEqual({ sessions: 1, found: [] });
    expect([...store.verify()]).toEqual([]);
  });
  using db = rawDb(path);
  const pages = statements.filter((sql) => /BETWEEN \+@first|@after.*LIMIT/s.test(sql));
  expect(pages.length).toBeGreaterThan(14);
  // Of a recursion it scans the rows that were found.
  const isLarge = (step: string) => /^SCAN (?!(?:a|b|above|below|page)\b|\()|AUTOMATIC/.test(step);
  for (const sql of pages) expect(planOf(db, sql).filter(isLarge), sql).toEqual([]);
});

test('what the page asks reads no table of entries whole, nor those of calls, lines and files', async () => {
  using dir = tempDir();
  const path = dir.file('tape.db');
  const prepare = vi.spyOn(Database.prototype, 'prepare');
  let statements: readonly string[];
  try {
    using store = openStore(path);
    store.sessions.open('main');
    const usage = { input: 1, output: 1, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
    const manifest = JSON.parse(JSON.stringify(view(store.views.entries('main')).manifest()));
    store.entries.append('main', [user('x'), anchor('A'), assistant('Done.', { usage, view: manifest })]);
    for (const name of ['kid', 'other']) {
      store.lineage.fork('main', { name });
      store.entries.append(name, [assistant([toolCall('c', 'read', { path: 'a' })])]);
      store.entries.append(name, [toolResult({ toolCallId: 'c', toolName: 'read' }, 'y'), assistant('So.')]);
    }
    const { seq } = store.lineage.merge('kid');
    const page = pageOn(store);
    prepare.mockClear();
    await page.home();
    for (const query of [
      {},
      { find: 'x' },
      { state: 'open' },
      { tree: true },
      { sort: 'tokens', offset: 1 },
    ] as const)
      expect((await page.sessions(query)).rows).toBeDefined();
    for (const query of [{}, { session: 'kid' }, { all: true }])
      expect((await page.lineage(query)).rows).not.toEqual([]);
    await page.session({ session: 'kid' });
    for (const hidden of [false, true]) await page.timeline({ session: 'kid', from: 1, to: 200, hidden });
    expect((await page.seen({ session: 'main', seq: 4 })).recorded).toBe(true);
    await page.parting({ a: 'kid', b: 'other' });
    expect((await page.trace({ session: 'main', seq })).length).toBeGreaterThan(1);
    await page.usage({ session: 'main', tree: true });
    const stop = new AbortController();
    for await (const _ of page.follow('', stop.signal)) stop.abort();
    statements = prepare.mock.calls.map(([sql]) => sql);
  } finally {
    prepare.mockRestore();
  }
  using db = rawDb(path);
  expect(statements.length).toBeGreaterThan(30);
  const scans = statements.flatMap((sql) =>
    growing(db, sql)
      // Roots, shared names and all totals are about every session: each has a row.
      .filter((step) => !/^SCAN (?:t|p|tape)\b/.test(step))
      .map((step) => `${step}: ${sql}`),
  );
  expect(scans).toEqual([]);
});

test('what changes concern an import is found in what was written since, which alone is sorted', () => {
  using dir = tempDir();
  const path = dir.file('tape.db');
  const statements = statementsOf(() => {
    using store = openStore(path);
    const before = store.homeHead();
    store.sessions.open('main');
    store.entries.append('main', [user('x'), user('y')]);
    store.entries.redact('main', [2], 'private');
    const { id } = store.imports.stage('staged');
    const behind = store.changesBehind(before, 'import/forgotten');
    const main = store.sessions.find('main')?.id;
    expect(behind).toMatchObject({ isErased: true, isNamed: false, sessions: [{ id: main, from: 1 }] });
    expect(store.erasedBetween(before.entry, behind.head.entry)).toMatchObject([{ session: main }]);
    store.imports.publish([id]);
    const after = store.changesBehind(behind.head, 'import/forgotten');
    expect(after).toMatchObject({ isErased: false, sessions: [{ id, from: 1 }], head: store.homeHead() });
  });
  using db = rawDb(path);
  const hot = statements.filter((sql) => / AS hidden|e\.id <= /.test(sql));
  expect(hot.length).toBe(2);
  const scans = hot.flatMap((sql) => growing(db, sql)).filter((step) => step.startsWith('SCAN'));
  expect(scans).toEqual([]);
});

describe('no statement reads a whole table', () => {
  test.each(Object.entries(acts))('%s', (_, act) => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    const statements = statementsOf(() => {
      using store = openStore(path);
      store.sessions.open('main');
      store.entries.append('main', [user('x'), anchor('A')]);
      act(store);
      act(store);
    });
    using db = rawDb(path);
    // Inserting a tape plans a search for rows that refer to it already, which no run without a violation does.
    db.exec('PRAGMA foreign_keys = OFF');
    const hot = [...new Set(statements)].filter((sql) =>
      /\b(?:entry|tape|lineage|open_calls|touch)\b/.test(sql),
    );
    expect(hot.length).toBeGreaterThan(2);
    for (const sql of hot) expect(growing(db, sql), sql).toEqual([]);
  });

  test('the triggers of every insert and update do not either', () => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    openStore(path).close();
    using db = rawDb(path);
    const triggers = db.all<{ sql: string }>(
      `SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name IN
        ('entry_insert', 'tape_insert', 'tape_update', 'lineage_insert')`,
    );
    expect(triggers.length).toBe(4);
    for (const { sql } of triggers) {
      const when = /\sWHEN\s([\s\S]*?)\sBEGIN\s/.exec(sql)?.[1] ?? '';
      const condition = when.replace(/\b(NEW|OLD)\.(\w+)/g, '@$1_$2');
      expect(condition).toMatch(/@NEW_/);
      expect(growing(db, `SELECT ${condition}`), sql).toEqual([]);
    }
  });
});

/** How many bytes an act adds to the write-ahead log, on the average of some repetitions. */
function walGrowth(path: string, act: () => void): number {
  const size = () => statSync(`${path}-wal`).size;
  const before = size();
  const times = 8;
  for (let i = 0; i < times; i += 1) act();
  return (size() - before) / times;
}

test('a fork and an append write as much at 20,000 entries as at 100', () => {
  using dir = tempDir();
  const grown = (entries: number) => {
    const path = dir.file(`${entries}.db`);
    using store = openStore(path);
    store.sessions.open('main');
    const batch = Array.from({ length: 100 }, (_, i) => user(`message ${i} ${'x'.repeat(200)}`));
    for (let n = 0; n < entries; n += 100) store.entries.append('main', batch);
    // An empty log: what is measured is not lost in frames that a checkpoint lets be written over.
    using db = rawDb(path);
    db.all('PRAGMA wal_checkpoint(TRUNCATE)');
    store.entries.append('main', [user('warm')]);
    return {
      fork: walGrowth(path, () => store.lineage.fork('main', { intention: { nextSteps: 'Go.' } })),
      append: walGrowth(path, () => store.entries.append('main', [user('x'.repeat(200))])),
    };
  };
  const [short, long] = [grown(100), grown(20_000)];
  expect(short.fork).toBeGreaterThan(0);
  expect(short.append).toBeGreaterThan(0);
  // A deeper index adds a page now and then, and no more.
  const page = 4096;
  expect(long.fork - short.fork).toBeLessThanOrEqual(4 * page);
  expect(long.append - short.append).toBeLessThanOrEqual(2 * page);
});

test('an index of redactions is not made where it takes more to make than it saves', () => {
  using dir = tempDir();
  using store = openStore(dir.file('tape.db'));
  store.sessions.open('other');
  store.entries.append(
    'other',
    Array.from({ length: 11_000 }, () => user('x')),
  );
  const sessions = ['one', 'two', 'three'].map((name) => {
    store.sessions.open(name);
    const { from, to } = store.entries.append(
      name,
      Array.from({ length: 101 }, () => user('y')),
    );
    return { name, seqs: Array.from({ length: to - from + 1 }, (_, i) => from + i) };
  });
  const exec = vi.spyOn(Database.prototype, 'exec');
  const indexes = () => exec.mock.calls.filter(([sql]) => sql.startsWith('CREATE INDEX')).length;
  try {
    for (const { name, seqs } of sessions.slice(1))
      store.entries.redact(name, seqs, 'a key', { wipe: false });
    store.sessions.purge('one', 'private');
    expect(indexes()).toBe(0);
    store.sessions.purge('other', 'private');
    expect(indexes()).toBe(1);
  } finally {
    exec.mockRestore();
  }
  expect([...store.verify()]).toEqual([]);
});

test('where many entries are redacted, the redaction of each is found by its position', () => {
  using dir = tempDir();
  using store = openStore(dir.file('tape.db'));
  store.sessions.open('main');
  const drafts = Array.from({ length: 101 }, (_, i) => user(`${i}`));
  const { from } = store.entries.append('main', drafts);
  const exec = vi.spyOn(Database.prototype, 'exec');
  let index: string | undefined;
  const statements = statementsOf(() => {
    store.entries.redact(
      'main',
      drafts.map((_, i) => from + i),
      'a key',
    );
    index = exec.mock.calls.map(([sql]) => sql).find((sql) => sql.startsWith('CREATE INDEX'));
  });
  exec.mockRestore();
  const before = statements.find((sql) => /^SELECT seq FROM entry .* ref = \+?@seq/.test(sql));
  const byTrigger = `SELECT EXISTS (SELECT 1 FROM entry r WHERE r.tape_id = @id AND r.mark = 'redaction' AND r.ref = @seq)`;
  using db = rawDb(dir.file('tape.db'));
  db.exec(`BEGIN; ${index}`);
  for (const sql of [before ?? '', byTrigger])
    expect(planOf(db, sql).at(-1)).toContain('INDEX entry_redacted (tape_id=? AND mark=? AND ref=?)');
  db.exec('ROLLBACK');
});
