import { mkdirSync, writeFileSync } from 'node:fs';
import { parseJsonLines, planClaudeCode, reconcile, SourceTable } from '@tapedeck/runtime/import';
import { assistant, type SessionInfo, type SqliteTapeStore, user, view } from '@tapedeck/tape';
import { treeParentOf } from '@tapedeck/tape/internal';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { importFiles } from '../support/import-files.ts';
import { acts, branching, copyingToday, filesOf, sessionsOf } from '../support/random-transcripts.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

type Raw = { readonly [field: string]: unknown };

const linesOf = (records: readonly Raw[]) =>
  records.length === 0 ? [] : parseJsonLines([Buffer.from(jsonl(records))]).records;

/** @param of the subagents, by their ids */
function take(
  store: SqliteTapeStore,
  records: readonly Raw[],
  of: ReadonlyMap<string, readonly Raw[]> = new Map(),
): void {
  const agents = [...of].map(([id, own]) => ({ id, lines: linesOf(own) }));
  reconcile(store, planClaudeCode({ name: 'file', lines: linesOf(records), agents }));
}

/** What readers find of a home: each session by its name, its place, its view and its title, and what all of them cost. */
function stateOf(store: SqliteTapeStore) {
  const sessions = store.sessions.list({ all: true, deleted: false, titles: true });
  return {
    sessions: new Map(
      sessions
        .toSorted((a, b) => (a.session < b.session ? -1 : 1))
        .map((info) => {
          const { messages } = view(store.views.entries(info.session));
          // What is left behind a prompt has that of what it left, or none where a copy under other ids came first.
          const title = /^s-\d+$/.test(info.session) ? info.title : undefined;
          return [info.session, { parent: treeParentOf(info).parent, title, messages }];
        }),
    ),
    output: store.sessions.calls().reduce((sum, { usage }) => sum + usage.output, 0),
  };
}

const heads = (store: SqliteTapeStore) =>
  store.sessions.list({ all: true }).map(({ session, head }) => [session, head]);

/** How many messages the sessions have of their own, but for those that only count tokens. */
const storedIn = (store: SqliteTapeStore) =>
  store.sessions
    .list({ all: true, deleted: false })
    .flatMap(({ id }) => [...store.entries.read(id, { own: true, kind: 'message' })])
    .filter(({ payload }) => !JSON.stringify(payload).includes('"content":[]')).length;

/** The versions of each file that are imported, in which order. */
function piecesOf(
  files: readonly (readonly Raw[])[],
  order: readonly number[],
  isMixed: boolean,
): (readonly Raw[])[] {
  const number = (i: number) => order[i % order.length] ?? 0;
  const pieces = files.map((file, i) => {
    const ends = Array.from({ length: number(i) % 4 }, (_, n) => 1 + (number(i + n + 1) % file.length));
    const cuts = new Set([...ends, file.length]);
    return [...cuts].sort((a, b) => a - b).map((end) => file.slice(0, end));
  });
  const rank = new Map(pieces.map((one, i) => [one, number(i + 3)]));
  pieces.sort((a, b) => (rank.get(a) ?? 0) - (rank.get(b) ?? 0));
  if (!isMixed) return pieces.flat();
  const mixed: (readonly Raw[])[] = [];
  for (let i = 0; pieces.some((one) => one.length > 0); i += 1) {
    const left = pieces.filter((one) => one.length > 0);
    mixed.push(...(left[number(i) % left.length]?.splice(0, 1) ?? []));
  }
  return mixed;
}

describe.each([
  ['turns and copies', ['turn', 'turn', 'turn', 'copy'], true],
  ['turns and copies whose records name few requests', ['turn', 'turn', 'turn', 'copy'], false],
  ['turns, copies and compactions', ['turn', 'turn', 'turn', 'copy', 'compact'], true],
  ['turns, copies, and compactions that keep some of them', ['turn', 'turn', 'turn', 'copy', 'keep'], true],
  ['turns, copies and prompts behind a /clear', ['turn', 'turn', 'turn', 'copy', 'clear'], true],
  [
    'turns, compactions that keep some of them, and what /branch makes of these',
    ['turn', 'copy', 'keep'],
    true,
    branching,
  ],
] as const)('files of %s', (_, what, requests, ways = undefined) => {
  test('end as the same sessions in the same tree, and cost the same, in any order and any pieces', () => {
    fc.assert(
      fc.property(
        acts(what),
        fc.array(fc.nat(1_000), { minLength: 6, maxLength: 12 }),
        fc.boolean(),
        (all, order, isMixed) => {
          const files = filesOf(all, { requests, ...(ways && { ways }) });
          const [once, store] = [openStore(), openStore()];
          for (const file of files) take(once, file);
          const pieces = piecesOf(files, order, isMixed);
          for (const piece of pieces) take(store, piece);
          expect(stateOf(store)).toEqual(stateOf(once));
          // A copy from a compaction on has a part of its own where it comes first, and so has what comes in pieces.
          const isWhole = all.every(({ what, how }) => what !== 'copy' || how < 32);
          if (ways !== undefined && isWhole && pieces.length === files.length)
            expect(storedIn(store)).toBe(storedIn(once));
          const before = heads(store);
          for (const file of files) take(store, file);
          expect(heads(store)).toEqual(before);
          expect([...store.verify()]).toEqual([]);
        },
      ),
      { numRuns: sized(5, 8, 3_000), ...sized({ seed: 1 }, { seed: 1 }, {}) },
    );
  });
});

/** What readers find of subagents: where each is, the call that started it, and whether it was merged. */
const agentsIn = (store: SqliteTapeStore) =>
  store.sessions
    .list({ all: true, deleted: false, kind: 'subagent' })
    .map((info) => [info.session, treeParentOf(info).parent, info.spawnCall, info.delivery])
    .toSorted();

test('files of sessions and of their subagents end as the same sessions, and cost the same, in any order and any pieces', () => {
  fc.assert(
    fc.property(
      acts(['turn', 'agent', 'agent', 'copy']),
      fc.array(fc.nat(1_000), { minLength: 6, maxLength: 12 }),
      fc.boolean(),
      (all, order, isWhole) => {
        const files = sessionsOf(all, { requests: true, ...(isWhole && { ways: copyingToday }) });
        const [once, store] = [openStore(), openStore()];
        for (const { records, agents } of files) take(once, records, agents);
        const whole = files.map(({ records }) => records);
        const rank = new Map(whole.map((one, i) => [one, order[i % order.length] ?? 0]));
        const pieces = isWhole
          ? whole.toSorted((a, b) => (rank.get(a) ?? 0) - (rank.get(b) ?? 0))
          : piecesOf(whole, order, true);
        // The file of a subagent comes with its session, or before that, or behind it.
        const moments = files.flatMap(({ session, agents }) =>
          [...agents].map(([id, own], i) => {
            const moment = (order[(i + Number(id.slice(1))) % order.length] ?? 0) % (pieces.length + 1);
            return { session, id, own, moment };
          }),
        );
        const known = new Map<string, { main: readonly Raw[]; agents: Map<string, readonly Raw[]> }>();
        const knownOf = (session: string) => {
          const one = known.get(session) ?? { main: [], agents: new Map() };
          known.set(session, one);
          return one;
        };
        for (const [i, piece] of [...pieces, undefined].entries()) {
          for (const { session, id, own } of moments.filter(({ moment }) => moment === i)) {
            const one = knownOf(session);
            one.agents.set(id, own);
            take(store, one.main, one.agents);
          }
          if (piece === undefined) break;
          const one = knownOf(String(piece[0]?.sessionId));
          one.main = piece;
          take(store, one.main, one.agents);
        }
        expect(stateOf(store)).toEqual(stateOf(once));
        expect(agentsIn(store)).toEqual(agentsIn(once));
        if (isWhole) expect(storedIn(store)).toBe(storedIn(once));
        const before = heads(store);
        for (const { records, agents } of files) take(store, records, agents);
        expect(heads(store)).toEqual(before);
        expect([...store.verify()]).toEqual([]);
      },
    ),
    { numRuns: sized(5, 8, 3_000), ...sized({ seed: 3 }, { seed: 3 }, {}) },
  );
});

/** What a person does in a session beside the imports. The nth one has words of its own. */
const deeds: Readonly<{
  [deed: string]: (store: SqliteTapeStore, session: SessionInfo, n: number) => unknown;
}> = {
  append: (store, { id }, n) => store.entries.append(id, [user(`mine ${n}`), assistant(`answer ${n}`)]),
  fork: (store, { id, head }, n) => store.lineage.fork(id, { name: `fork-${n}`, cut: 1 + (n % head) }),
  rename: (store, { id }, n) => store.sessions.update(id, { name: `name-${n}` }),
  move: (store, { id }) => store.lineage.link(id, null, { type: 'moved' }),
  rewind: (store, { id, head }, n) => store.history.rewind(id, 1 + (n % head)),
  archive: (store, { id }) => store.sessions.update(id, { lifecycle: 'archived' }),
  delete: (store, { id }) => store.sessions.update(id, { lifecycle: 'destroyed' }),
};

/** Every text that a reader sees of any session. */
const textsOf = (store: SqliteTapeStore) =>
  new Set(
    store.sessions
      .list({ all: true, deleted: false })
      .flatMap(({ id }) => view(store.views.entries(id)).messages)
      .flatMap(({ content }) => content.map(({ text }) => text)),
  );

describe.each([
  ['adds, forks, names and moves', ['append', 'fork', 'rename', 'move']],
  ['also rewinds, archives and deletes', Object.keys(deeds)],
] as const)('a person who works on sessions while their sources grow, and %s,', (_, some) => {
  test('ends no import, and loses nothing', () => {
    const deed = fc.record({
      what: fc.constantFrom(...some),
      in: fc.nat(20),
      n: fc.nat(30),
      when: fc.nat(12),
    });
    fc.assert(
      fc.property(
        acts(['turn', 'turn', 'turn', 'copy', 'clear']),
        fc.array(fc.nat(1_000), { minLength: 6, maxLength: 12 }),
        fc.array(deed, { minLength: 1, maxLength: 4 }),
        (all, order, done) => {
          const files = filesOf(all, { requests: true });
          const [once, store] = [openStore(), openStore()];
          for (const file of files) take(once, file);
          const pieces = piecesOf(files, order, true);
          for (const [i, piece] of pieces.entries()) {
            take(store, piece);
            for (const [nth, one] of done.entries()) {
              const there = store.sessions.list({ all: true, deleted: false });
              const session = there[one.in % there.length];
              if (one.when % pieces.length === i && session !== undefined)
                deeds[one.what]?.(store, session, 100 * nth + one.n);
            }
          }
          for (const file of files) take(store, file);
          const before = heads(store);
          for (const file of files) take(store, file);
          expect(heads(store)).toEqual(before);
          expect([...store.verify()]).toEqual([]);
          if (done.some(({ what }) => ['rewind', 'archive', 'delete'].includes(what))) return;
          expect(stateOf(store).output).toBe(stateOf(once).output);
          const own = done.flatMap(({ what, n }, nth) =>
            what === 'append' ? [`mine ${100 * nth + n}`] : [],
          );
          const texts = textsOf(store);
          expect([...textsOf(once), ...own].filter((text) => !texts.has(text))).toEqual([]);
        },
      ),
      { numRuns: sized(5, 25, 3_000), ...sized({ seed: 1 }, { seed: 1 }, {}) },
    );
  });
});

/** A record whose parent is one of those before it, or a compaction behind it. */
interface Linked {
  readonly what: 'person' | 'model' | 'compaction';
  readonly parent: number;
  readonly link: number;
}

function chained(all: readonly Linked[]): readonly Raw[] {
  const records: Raw[] = [];
  const compactions = all.flatMap(({ what }, i) => (what === 'compaction' ? [i] : []));
  for (const [i, { what, parent: nth, link }] of all.entries()) {
    const before = records.map(({ uuid }) => String(uuid));
    const later = compactions.filter((one) => one > i).map((one) => `c${one}`);
    const some = link < 7 ? before.at(-1) : before[nth % Math.max(1, before.length)];
    const isLater = link === 9 && what !== 'compaction' && later.length > 0;
    const parent = (isLater ? later[nth % later.length] : some) ?? null;
    const timestamp = new Date(Date.UTC(2026, 2, 1, 10, 0, i)).toISOString();
    if (what === 'person') records.push(person({ uuid: `u${i}`, parent }, `ask ${i}`, { timestamp }));
    else if (what === 'model')
      records.push({ ...model({ uuid: `a${i}`, parent }, [says(`did ${i}`)]), timestamp });
    else {
      const boundary = { type: 'system', subtype: 'compact_boundary', uuid: `c${i}`, parentUuid: null };
      const link = { logicalParentUuid: parent, compactMetadata: { trigger: 'manual' } };
      records.push({ ...boundary, ...link, sessionId: 's-1', timestamp });
      const summary = person({ uuid: `s${i}`, parent: `c${i}` }, `summary ${i}`, { isCompactSummary: true });
      records.push({ ...summary, timestamp });
    }
  }
  return records;
}

test('a file whose records follow any other, or a compaction behind them, ends the same in any pieces', () => {
  const what = fc.constantFrom<Linked['what'][]>('person', 'model', 'compaction', 'person');
  const linked = fc.record({ what, parent: fc.nat(20), link: fc.nat(9) });
  const cuts = fc.array(fc.nat(100), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(fc.array(linked, { minLength: 3, maxLength: 8 }), cuts, (all, at) => {
      const file = chained(all);
      const [once, store] = [openStore(), openStore()];
      take(once, file);
      const ends = new Set([...at.map((one) => 1 + (one % file.length)), file.length]);
      for (const end of [...ends].sort((a, b) => a - b)) take(store, file.slice(0, end));
      expect(stateOf(store)).toEqual(stateOf(once));
    }),
    { numRuns: sized(15, 25, 10_000), ...sized({ seed: 1 }, { seed: 1 }, {}) },
  );
});

test('a session that was resumed from a copy by name, which comes later with its source, is below that copy', () => {
  const at = (record: Raw, minute: number): Raw => ({
    ...record,
    timestamp: `2026-03-01T10:${String(minute).padStart(2, '0')}:00.000Z`,
  });
  const begun = (session: string, prefix = ''): readonly Raw[] =>
    [
      at(person({ uuid: `${prefix}u1` }, 'plan it'), 0),
      at(model({ uuid: `${prefix}a1`, parent: `${prefix}u1`, id: 'm1' }, [says('a plan')]), 1),
    ].map((one) => ({ ...one, sessionId: session }));
  const next = (session: string, prefix = ''): readonly Raw[] =>
    [
      at(person({ uuid: `${prefix}u2`, parent: `${prefix}a1` }, 'in the copy'), 2),
      at(model({ uuid: `${prefix}a2`, parent: `${prefix}u2`, id: 'm2' }, [says('copied')]), 3),
    ].map((one) => ({ ...one, sessionId: session }));
  const own = (session: string, parent: string, minute: number): readonly Raw[] =>
    [
      at(person({ uuid: `${session}-u`, parent }, `go on with ${session}`), minute),
      at(model({ uuid: `${session}-a`, parent: `${session}-u` }, [says(session)]), minute),
    ].map((one) => ({ ...one, sessionId: session }));
  // The source goes on last.
  const files = [
    [...begun('s-1'), ...own('s-1', 'a1', 9)],
    [...begun('s-2').map((one) => ({ ...one, session_id: 's-1' })), ...next('s-2')],
    [...begun('s-3', 'r-'), ...next('s-3', 'r-'), ...own('s-3', 'r-a2', 5)],
  ];
  for (const order of [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
  ]) {
    const store = openStore();
    for (const i of order) take(store, files[i] ?? []);
    const parents = ['s-1', 's-2', 's-3'].map((name) => treeParentOf(store.sessions.find(name) ?? {}).parent);
    expect([order, parents]).toEqual([order, [undefined, 's-1', 's-2']]);
  }
});

test('a branch that its user returned to ends, also where a copy was imported before its source', () => {
  const usage = { output_tokens: 10 };
  const begun = (session: string, prefix = ''): readonly Raw[] =>
    [
      person({ uuid: `${prefix}u1` }, 'plan it'),
      model({ uuid: `${prefix}a1`, parent: `${prefix}u1`, id: 'm1' }, [calls('t1')], { usage }),
      person({ uuid: `${prefix}r1`, parent: `${prefix}a1` }, [returns('t1')]),
      person({ uuid: `${prefix}u2`, parent: `${prefix}r1` }, 'do it'),
      model({ uuid: `${prefix}a2`, parent: `${prefix}u2`, id: 'm2' }, [calls('t2')], { usage }),
      person({ uuid: `${prefix}r2`, parent: `${prefix}a2` }, [returns('t2')]),
    ].map((one, i) => ({ ...one, sessionId: session, timestamp: `2026-03-01T10:00:0${i}.000Z` }));
  const next = (session: string, uuid: string, parent: string, second: number): Raw => ({
    ...person({ uuid, parent }, `ask ${uuid.slice(-1)}`),
    ...{ sessionId: session, timestamp: `2026-03-01T10:00:1${second}.000Z` },
  });
  const source = [
    ...begun('s-1'),
    next('s-1', 'u3', 'r1', 0),
    next('s-1', 'u4', 'r2', 1),
    next('s-1', 'u6', 'u4', 3),
  ];
  const copy = [...begun('s-2', 'c-'), next('s-2', 'c-u4', 'c-r2', 1), next('s-2', 'u5', 'c-u4', 2)];
  const store = openStore();
  for (const one of [copy, source.slice(0, 7), source]) take(store, one);
  expect([...stateOf(store).sessions.keys()]).toEqual(['s-1', 's-1-branch-u3', 's-2']);
});

test.each([
  ['the same ids', (id: string) => id],
  ['other ids', (id: string) => `c-${id}`],
])('a copy that begins at a compaction, with %s, is below its source, and counts once', (_, named) => {
  const usage = { output_tokens: 10 };
  const summary = { isCompactSummary: true };
  const begun: readonly Raw[] = [
    person({ uuid: 'u1' }, 'plan it'),
    model({ uuid: 'a1', parent: 'u1' }, [says('a plan')], { usage }),
    { ...person({ uuid: 'c1' }, ''), type: 'system', subtype: 'compact_boundary', logicalParentUuid: 'a1' },
    person({ uuid: 's1', parent: 'c1' }, 'what was planned', summary),
    person({ uuid: 'u2', parent: 's1' }, 'do it'),
    model({ uuid: 'a2', parent: 'u2' }, [says('done')], { usage }),
  ].map((one, i) => ({ ...one, sessionId: 's-1', timestamp: `2026-03-01T10:00:0${i}.000Z` }));
  const goOn = (session: string, parent: string, second: number): readonly Raw[] =>
    [
      person({ uuid: `${session}-u`, parent }, `go on with ${session}`),
      model({ uuid: `${session}-a`, parent: `${session}-u` }, [says(session)], { usage }),
    ].map((one) => ({ ...one, sessionId: session, timestamp: `2026-03-01T10:00:${second}.000Z` }));
  const renamed = (id: unknown) => (typeof id === 'string' ? named(id) : id);
  const copied = begun.slice(2).map((one) => ({
    ...{ ...one, sessionId: 's-2', uuid: renamed(one.uuid), parentUuid: renamed(one.parentUuid) },
    ...(one.logicalParentUuid !== undefined && { logicalParentUuid: renamed(one.logicalParentUuid) }),
  }));
  const files = [
    [...begun, ...goOn('s-1', 'a2', 10)],
    [...copied, ...goOn('s-2', named('a2'), 20)],
  ];
  for (const order of [
    [0, 1],
    [1, 0],
  ]) {
    const store = openStore();
    for (const i of order) take(store, files[i] ?? []);
    const { sessions, output } = stateOf(store);
    expect([order, sessions.get('s-1')?.parent, sessions.get('s-2')?.parent]).toEqual([
      order,
      undefined,
      's-1',
    ]);
    expect([order, output]).toEqual([order, 40]);
  }
});

test('a copy that repeats what a compaction kept, and names no source, is below its source in each order', () => {
  const at = (record: Raw, second: number): Raw => ({
    ...record,
    timestamp: `2026-03-01T10:00:${String(second).padStart(2, '0')}.000Z`,
  });
  const usage = { output_tokens: 10 };
  const answer = model({ uuid: 'a1', parent: 'u1' }, [says('a plan')], { usage });
  const boundary = {
    ...{
      ...person({ uuid: 'c1' }, ''),
      type: 'system',
      subtype: 'compact_boundary',
      logicalParentUuid: 'a1',
    },
    compactMetadata: { preservedSegment: { headUuid: 'a1', anchorUuid: 's1', tailUuid: 'a1' } },
  };
  const compacted: readonly Raw[] = [
    at(boundary, 2),
    at(person({ uuid: 's1', parent: 'c1' }, 'what was planned', { isCompactSummary: true }), 2),
  ];
  const next = at(person({ uuid: 'u2', parent: 's1' }, 'do it'), 3);
  const source = [at(person({ uuid: 'u1' }, 'plan it'), 0), at(answer, 1), ...compacted, next];
  const repeated = { ...answer, parentUuid: 's1', message: { ...(answer.message as Raw), usage: {} } };
  const own = at(person({ uuid: 'u3', parent: 'u2' }, 'in the copy'), 4);
  const copy = [...compacted, at(repeated, 1), { ...next, parentUuid: 'a1' }, own].map((one) => ({
    ...one,
    sessionId: 's-2',
  }));
  const states = [
    [source, copy],
    [copy, source],
    [copy, source.slice(0, 3), source],
  ].map((order) => {
    const store = openStore();
    for (const file of order) take(store, file);
    return stateOf(store);
  });
  expect(states[0]?.sessions.get('s-2')).toMatchObject({ parent: 's-1', title: 'in the copy' });
  for (const state of states.slice(1)) expect(state).toEqual(states[0]);
});

test('an older copy of a file that ends within an answer takes nothing of that back', () => {
  const answer = (uuid: string, parent: string) => model({ uuid, parent, id: 'm1' }, [says(uuid)]);
  const file = [
    person({ uuid: 'u1' }, 'plan it'),
    answer('a1', 'u1'),
    answer('a2', 'a1'),
    answer('a3', 'a2'),
  ];
  const store = openStore();
  for (const end of [2, 4]) take(store, file.slice(0, end));
  const before = heads(store);
  for (const end of [3, 2, 4]) take(store, file.slice(0, end));
  expect(heads(store)).toEqual(before);
});

test('a file in another folder that was behind goes on in its session once it is ahead', async () => {
  using dir = tempDir();
  const name = '00000001-0000-4000-8000-000000000000';
  const turn = (n: number, parent: string | undefined): readonly Raw[] =>
    [
      person({ uuid: `u${n}`, ...(parent !== undefined && { parent }) }, `ask ${n}`),
      model({ uuid: `a${n}`, parent: `u${n}` }, [says(`did ${n}`)]),
    ].map((one) => ({ ...one, sessionId: name }));
  const file = [...turn(1, undefined), ...turn(2, 'a1'), ...turn(3, 'a1')];
  const write = (folder: string, end: number) => {
    mkdirSync(dir.file(folder), { recursive: true });
    writeFileSync(dir.file(`${folder}/${name}.jsonl`), jsonl(file.slice(0, end)));
  };
  const table = SourceTable.open(dir.file('sources.jsonl'));
  const store = openStore();
  for (const [folder, end] of [
    ['a', 4],
    ['b', 2],
    ['b', 6],
    ['a', 5],
    ['a', 6],
  ] as const) {
    write(folder, end);
    await importFiles(store, [dir.file(folder)], { table });
  }
  expect([...stateOf(store).sessions.keys()]).toEqual([name, `${name}-branch-u2`]);
  expect(JSON.stringify(stateOf(store).sessions.get(name)?.messages)).toContain('did 3');
});

test('a subagent that two calls started is a child of the first one, in one piece and in several', () => {
  const inside = { isSidechain: true, agentId: 'x1' };
  const call = (n: number, parent?: string): readonly Raw[] => [
    person({ uuid: `u${n}`, ...(parent !== undefined && { parent }) }, `ask ${n}`),
    model({ uuid: `a${n}`, parent: `u${n}` }, [calls(`t${n}`, 'Task')]),
    person({ uuid: `r${n}`, parent: `a${n}` }, [returns(`t${n}`)], {
      toolUseResult: { status: 'completed', agentId: 'x1' },
    }),
  ];
  const file = [...call(1), ...call(2, 'r1')];
  const own = [
    person({ uuid: 'x1' }, 'look', inside),
    model({ uuid: 'x2', parent: 'x1' }, [says('seen')], inside),
    person({ uuid: 'x3', parent: 'x2' }, 'look again', inside),
    model({ uuid: 'x4', parent: 'x3' }, [says('seen again')], inside),
  ];
  for (const pieces of [[6], [3, 6]]) {
    const store = openStore();
    for (const end of pieces) {
      const agents = [{ id: 'x1', lines: linesOf(own.slice(0, end === 3 ? 2 : 4)) }];
      reconcile(store, planClaudeCode({ name: 'file', lines: linesOf(file.slice(0, end)), agents }));
    }
    expect([pieces, store.sessions.find('agent-x1')?.spawnCall]).toEqual([pieces, 't1']);
  }
});

test('an older copy of a session, which lacks the call of a subagent, leaves that where it is', () => {
  const inside = { isSidechain: true, agentId: 'x1' };
  const file = [
    person({ uuid: 'u1' }, 'plan it'),
    model({ uuid: 'a1', parent: 'u1' }, [says('a plan')]),
    person({ uuid: 'u2', parent: 'a1' }, 'look around'),
    model({ uuid: 'a2', parent: 'u2' }, [calls('t1', 'Task')]),
    person({ uuid: 'r1', parent: 'a2' }, [returns('t1')], {
      toolUseResult: { status: 'completed', agentId: 'x1' },
    }),
    person({ uuid: 'u3', parent: 'a1' }, 'do it'),
    model({ uuid: 'a3', parent: 'u3' }, [says('done')]),
  ];
  const own = [
    person({ uuid: 'x1' }, 'look', inside),
    model({ uuid: 'x2', parent: 'x1' }, [says('seen')], inside),
  ];
  const store = openStore();
  for (const end of [file.length, 2, file.length]) {
    const agents = [{ id: 'x1', lines: linesOf(own) }];
    reconcile(store, planClaudeCode({ name: 'file', lines: linesOf(file.slice(0, end)), agents }));
    const info = store.sessions.find('agent-x1') ?? {};
    expect([end, treeParentOf(info).parent]).toEqual([end, 's-1-branch-u2']);
    expect(store.sessions.find('agent-x1')?.link?.derived).toBeUndefined();
  }
});

test('an answer counts once that copies with other ids have behind the compaction with which they begin', () => {
  const answer = (uuid: string, parent: string) =>
    model({ uuid, parent }, [says(uuid)], { usage: { output_tokens: 10 } });
  const boundary = { ...person({ uuid: 'c1' }, ''), type: 'system', subtype: 'compact_boundary' };
  const source: readonly Raw[] = [
    person({ uuid: 'u1' }, 'plan it'),
    answer('a1', 'u1'),
    { ...boundary, logicalParentUuid: 'a1' },
    person({ uuid: 's1', parent: 'c1' }, 'what was planned', { isCompactSummary: true }),
    person({ uuid: 'u2', parent: 's1' }, 'do it'),
    answer('a2', 'u2'),
    person({ uuid: 'u3', parent: 'a2' }, 'do more'),
    answer('a3', 'u3'),
  ].map((one, i) => ({ ...one, timestamp: `2026-03-01T10:00:0${i}.000Z` }));
  const copied = (session: string, to: number, second: number): readonly Raw[] => {
    const named = (id: unknown) => (typeof id === 'string' ? `${session}.${id}` : id);
    const records = source.slice(2, to).map((one) => ({
      ...{ ...one, sessionId: session, uuid: named(one.uuid), parentUuid: named(one.parentUuid) },
      ...(one.logicalParentUuid !== undefined && { logicalParentUuid: named(one.logicalParentUuid) }),
    }));
    const [last] = records.slice(-1);
    const own = person({ uuid: `${session}-u`, parent: String(last?.uuid) }, `go on with ${session}`);
    const timestamp = `2026-03-01T10:00:${second}.000Z`;
    return [...records, { ...own, sessionId: session, timestamp }];
  };
  const store = openStore();
  for (const file of [source, copied('s-2', 6, 10), copied('s-3', 8, 11)]) take(store, file);
  expect(stateOf(store).output).toBe(30);
});

test.each([
  ['forkedFrom', (session: string): Raw => ({ forkedFrom: { sessionId: session } })],
  ['session_id', (session: string): Raw => ({ session_id: session })],
])(
  'a list shows of a copy, by %s, the first prompt that its source does not have, and when it said something last, in each order',
  (_, named) => {
    const say = (session: string, uuid: string, parent: string | undefined, second: number): readonly Raw[] =>
      [
        person({ uuid: `u${uuid}`, ...(parent !== undefined && { parent: `a${parent}` }) }, `ask ${uuid}`),
        model({ uuid: `a${uuid}`, parent: `u${uuid}` }, [says(`did ${uuid}`)]),
      ].map((one) => ({ ...one, sessionId: session, timestamp: `2026-03-01T10:00:${second}.000Z` }));
    const begun = [...say('s-1', '1', undefined, 10), ...say('s-1', '2', '1', 11)];
    const copied = (session: string) => begun.map((one) => ({ ...one, sessionId: session, ...named('s-1') }));
    const source = [...begun, ...say('s-1', '3', '2', 12)];
    const copy = [...copied('s-2'), ...say('s-2', '4', '2', 13)];
    const silent = copied('s-3');
    const orders: (readonly (readonly Raw[])[])[] = [
      [source, copy, silent],
      [copy, silent, source],
      [silent, source, copy],
      [source.slice(0, 2), copy, source, silent],
      [copy.slice(0, 2), source.slice(0, 4), copy, silent, source],
    ];
    for (const order of orders) {
      const store = openStore();
      for (const file of order) take(store, file);
      const titles = ['s-1', 's-2', 's-3'].map((name) => stateOf(store).sessions.get(name)?.title);
      expect(titles).toEqual(['ask 1', 'ask 4', 'ask 1']);
      const infos = store.sessions.list({ all: true }).toSorted((a, b) => (a.session < b.session ? -1 : 1));
      expect(infos.map(({ lastMessageAt = 0 }) => new Date(lastMessageAt).getUTCSeconds())).toEqual([
        12, 13, 11,
      ]);
      const before = heads(store);
      for (const file of order.slice(-3)) take(store, file);
      expect(heads(store)).toEqual(before);
    }
  },
);

test('a title that a source gives comes before the first prompt of a copy, whichever of them comes first', () => {
  const begun = [
    person({ uuid: 'u1' }, 'plan it'),
    model({ uuid: 'a1', parent: 'u1' }, [says('a plan')]),
  ] as const;
  const titled = { type: 'custom-title', customTitle: 'The plan', sessionId: 's-2' };
  const copied = begun.map((one) => ({ ...one, sessionId: 's-2', session_id: 's-1' }));
  const copy = [...copied, person({ uuid: 'u2', parent: 'a1' }, 'go on', { sessionId: 's-2' })];
  for (const order of [
    [begun, [...copy, titled]],
    [[...copy, titled], begun],
    [copy, begun, [...copy, titled], begun],
  ]) {
    const store = openStore();
    for (const file of order) take(store, file);
    expect(stateOf(store).sessions.get('s-2')?.title).toBe('The plan');
  }
});
