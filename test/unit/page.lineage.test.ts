import type { PageData } from '@tapedeck/cli/internal';
import { anchor, assistant, handoff, openTapeStore, type SqliteTapeStore, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { pageOn } from '../support/page.ts';

type Query = Parameters<PageData['lineage']>[0];

async function rowsOf(store: SqliteTapeStore, query: Query = {}) {
  const rows = [];
  let total: number | undefined;
  for (let offset: number | undefined = 0; offset !== undefined; ) {
    const part = await pageOn(store).lineage({ ...query, offset });
    expect(part.rows.length).toBeLessThanOrEqual(200);
    rows.push(...part.rows);
    total = part.total;
    offset = part.next;
  }
  return { rows, total };
}

const drawn = async (store: SqliteTapeStore, query?: Query) =>
  (await rowsOf(store, query)).rows.map(
    ({ depth, shape, label, session, seq, state }) =>
      `${'  '.repeat(depth)}${shape} ${label}${session === undefined ? '' : ` > ${session}${seq === undefined ? '' : `@${seq}`}`}${state === undefined ? '' : ` (${state})`}`,
  );

/** A store whose clock advances with each act. */
function store(): SqliteTapeStore {
  let now = Date.parse('2026-11-21T10:00:00Z');
  return openTapeStore(':memory:', { now: () => (now += 1_000) });
}

function family(): SqliteTapeStore {
  const made = store();
  made.sessions.open('main');
  made.entries.append('main', [user('Plan it.'), anchor('planned')]);
  made.lineage.fork('main', { name: 'tests' });
  made.entries.append('tests', [assistant('All pass.')]);
  made.lineage.merge('tests');
  made.entries.append('main', [handoff('review', { summary: 'Ready.' })]);
  made.lineage.fork('main', { name: 'idea' });
  made.entries.append('idea', [user('Shorter?')]);
  return made;
}

test('the family of a session has its forks, its merges, and what stands on its lane, newest first', async () => {
  using made = family();
  expect(await drawn(made, { session: 'main' })).toEqual([
    'session main active > main (active)',
    '  session idea [subagent] active, from main 1-6 > idea (active)',
    '  handoff review @6 > main@6',
    '  merge tests 4-5 @4 > main@4',
    '  session tests [subagent] merged 4-5 → main@4, from main 1-3 > tests (merged)',
    '  anchor planned @3 > main@3',
  ]);
});

test('a merge says which positions of the child it brought, and where', async () => {
  using made = family();
  const { rows } = await rowsOf(made, { session: 'main' });
  const merge = { child: 'tests', range: [4, 5], into: 'main', seq: 4, state: 'merged' };
  expect(rows.find(({ shape }) => shape === 'merge')?.merges).toEqual([merge]);
  expect(rows.find(({ session, shape }) => session === 'tests' && shape === 'session')?.merges).toEqual([
    merge,
  ]);
});

test('what is below a closed session is left out, and counted', async () => {
  using made = family();
  const id = made.sessions.find('main')?.id ?? '';
  const { rows } = await rowsOf(made, { session: 'main', closed: [id] });
  expect(rows.map(({ session, sessions, closed }) => [session, sessions, closed])).toEqual([
    ['main', 3, true],
  ]);
});

test('many children are folded, unless a reader wants all', async () => {
  using made = store();
  made.sessions.open('main');
  for (let n = 0; n < 250; n += 1) made.lineage.fork('main', { name: `c${n}` });
  const folded = await rowsOf(made);
  expect(folded.rows.map(({ shape, label, session }) => `${shape} ${label}: ${session}`)).toEqual([
    'session main active: main',
    ...[249, 248, 247].map((n) => `session c${n} [subagent] active, from main 1-1: c${n}`),
    'more and 247 more active children: main',
  ]);
  const opened = [made.sessions.find('main')?.id ?? ''];
  for (const query of [{ all: true }, { session: 'main' }, { opened }]) {
    const { rows } = await rowsOf(made, query);
    expect(new Set(rows.map(({ session }) => session)).size).toBe(251);
    expect(rows).toHaveLength(251);
  }
});

test('the newest trees come one after another, the one in which something was said last first', async () => {
  using made = store();
  for (let n = 0; n < 450; n += 1) made.sessions.open(`s${n}`);
  made.entries.append('s3', [user('Hello')]);
  const { rows } = await rowsOf(made);
  expect(rows.map(({ session }) => session)).toEqual([
    's3',
    ...Array.from({ length: 450 }, (_, n) => `s${449 - n}`).filter((name) => name !== 's3'),
  ]);
});

test('a deleted session is there for what was forked from it, without its name', async () => {
  using made = family();
  made.sessions.update('main', { lifecycle: 'destroyed' });
  made.sessions.open('alone');
  made.sessions.update('alone', { lifecycle: 'destroyed' });
  for (const query of [{}, { all: true }, { session: 'idea' }]) {
    const { rows } = await rowsOf(made, query);
    expect(rows.map(({ session }) => session)).toContain('idea');
    expect(JSON.stringify(rows)).not.toMatch(/main|alone/);
  }
});
