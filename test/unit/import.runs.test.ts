import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { parseJsonLines, planClaudeCode, reconcile, SourceTable } from '@tapedeck/runtime/import';
import type { HomeStore } from '@tapedeck/tape';
import { treeParentOf } from '@tapedeck/tape/internal';
import { wrapStore } from '@tapedeck/tape/store';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { importFiles } from '../support/import-files.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

/*
 * One run of Claude Code writes several sessions: behind a `/clear`, a `/resume` or a `/branch`. Each answer names in
 * `session_id` the session with which the run began, as 2.1.240 and 2.1.330 write it.
 */

type Raw = Readonly<Record<string, unknown>>;

/** A prompt and its answer in a session, as a run wrote them that began with another session, or with none. */
const turn = (session: string, n: number, run: string | undefined, after?: number): readonly Raw[] =>
  [
    person(
      { uuid: `${session}-u${n}`, parent: after === undefined ? null : `${session}-a${after}` },
      `ask ${n}`,
    ),
    {
      ...model({ uuid: `${session}-a${n}`, parent: `${session}-u${n}`, id: `${session}-m${n}` }, [
        says(`did ${n}`),
      ]),
      ...(run !== undefined && { session_id: run }),
    },
  ].map((one, i) => ({
    ...{ ...one, sessionId: session },
    timestamp: `2026-03-01T10:00:${String(n * 2 + i).padStart(2, '0')}.000Z`,
  }));

const begun = turn('s-run', 5, 's-run');

function take(store: HomeStore, records: readonly Raw[]): void {
  const { records: lines } = parseJsonLines([Buffer.from(jsonl(records))]);
  reconcile(store, planClaudeCode({ name: 'file', lines }));
}

/** Where sessions are in the tree, whichever file was imported first. */
function placesOf(...files: readonly (readonly Raw[])[]): readonly unknown[] {
  const [some, others] = [files, files.toReversed()].map((order) => {
    const store = openStore();
    for (const records of [...order, ...order]) take(store, records);
    expect([...store.verify()]).toEqual([]);
    const placed = store.sessions.list().map((info) => {
      const { link } = store.sessions.find(info.id) ?? {};
      return [info.session, treeParentOf(info).parent, link?.type === 'clear' && link.derived];
    });
    return placed.toSorted();
  });
  expect(some).toEqual(others);
  return some ?? [];
}

test('a session that is resumed in the run of another one is no copy of that', () => {
  const resumed = [...turn('s-old', 1, undefined), ...turn('s-old', 6, 's-run', 1)];
  expect(placesOf(resumed, begun)).toEqual([
    ['s-old', undefined, false],
    ['s-run', undefined, false],
  ]);
  const own = [...turn('s-old', 1, 's-old'), ...turn('s-old', 6, 's-run', 1)];
  expect(placesOf(own, begun)).toEqual(placesOf(resumed, begun));
});

test.each([
  ['forkedFrom', { forkedFrom: { sessionId: 's-old' } }],
  ['requestSessionId', { requestSessionId: 's-old' }],
])('a copy is one of the session that %s names, and not of that with which the run began', (_, named) => {
  const old = [...turn('s-old', 1, undefined), ...turn('s-old', 6, 's-run', 1)];
  const copied = old.map((one) => ({ ...one, ...named, sessionId: 's-copy' }));
  const [asked, answered] = turn('s-copy', 7, 's-run');
  const copy = [...copied, { ...asked, parentUuid: 's-old-a6' }, { ...answered }];
  expect(placesOf(old, copy, begun)).toEqual([
    ['s-copy', 's-old', false],
    ['s-old', undefined, false],
    ['s-run', undefined, false],
  ]);
});

const cleared = (first: Raw): readonly Raw[] => {
  const [asked = {}, answered = {}] = turn('s-new', 8, 's-run');
  return [{ ...asked, ...first }, answered];
};

test.each([
  [
    'a /clear',
    {
      message: {
        role: 'user',
        content: '<command-name>/clear</command-name>\n            <command-message>clear</command-message>',
      },
    },
  ],
  ['a plan', { planContent: '# Plan' }],
])('what begins behind %s is under the session with which its run began, by a link', (_, first) => {
  expect(placesOf(cleared(first), begun)).toEqual([
    ['s-new', 's-run', true],
    ['s-run', undefined, false],
  ]);
});

/** A session that one run began at a minute, behind a `/clear`. */
const clearedAt = (session: string, minute: number): readonly Raw[] =>
  cleared({
    message: { role: 'user', content: '<command-name>/clear</command-name>' },
  }).map((one) => ({
    ...one,
    sessionId: session,
    uuid: `${session}-${String(one.uuid)}`,
    parentUuid: typeof one.parentUuid === 'string' ? `${session}-${one.parentUuid}` : null,
    timestamp: `2026-03-01T10:${minute}:00.000Z`,
  }));

const second = clearedAt('s-second', 20);
const third = clearedAt('s-third', 30);
const fourth = clearedAt('s-fourth', 40);

test('what a run clears more than once is a chain, in whichever order its sessions come', () => {
  const chain = [
    ['s-fourth', 's-third', true],
    ['s-run', undefined, false],
    ['s-second', 's-run', true],
    ['s-third', 's-second', true],
  ];
  expect(placesOf(begun, second, third, fourth)).toEqual(chain);
  expect(placesOf(third, begun, fourth, second)).toEqual(chain);
  expect(placesOf(second, fourth, begun, third)).toEqual(chain);
});

test('sessions that a run cleared are a chain without the one with which it began', () => {
  expect(placesOf(fourth, second, third)).toEqual([
    ['s-fourth', 's-third', true],
    ['s-second', undefined, false],
    ['s-third', 's-second', true],
  ]);
});

/** Some records a minute of the run: a prompt and its answer, which that run wrote behind the last record of a session. */
const said = (session: string, run: string, minute: number, after?: Raw): readonly Raw[] =>
  turn(session, minute, run).map((one, i) => ({
    ...one,
    ...(i === 0 && after !== undefined && { parentUuid: after.uuid }),
    timestamp: `2026-03-01T10:${minute}:0${i}.000Z`,
  }));

/** The records of a session, and what a run said behind them. */
const goingOn = (records: readonly Raw[], session: string, run: string, minute: number): readonly Raw[] => [
  ...records,
  ...said(session, run, minute, records.at(-1)),
];

/** The copy that `/branch` makes of some records, and what a run said behind it. */
const branchOf = (records: readonly Raw[], session: string, run: string, minute: number): readonly Raw[] =>
  goingOn(
    records.map((one) => ({ ...one, sessionId: session, forkedFrom: { sessionId: one.sessionId } })),
    ...([session, run, minute] as const),
  );

const old = turn('s-old', 1, 's-old');

/** Imports files in some orders, a part of each first, and says where the import puts sessions that a run cleared. */
function expectPlaces(
  files: readonly (readonly Raw[])[],
  under: Readonly<Record<string, string>>,
  numRuns: number,
): void {
  const stateOf = (store: HomeStore) => ({
    heads: store.sessions.list({ all: true }).map(({ session, head }) => [session, head]),
    edges: [...store.lineage.read()].length,
  });
  fc.assert(
    fc.property(
      fc.shuffledSubarray([...files], { minLength: files.length }),
      fc.array(fc.nat(1_000), { minLength: files.length, maxLength: files.length }),
      (order, cuts) => {
        using store = openStore();
        const parts = order.map((file, i) => file.slice(0, (cuts[i] ?? 0) % (file.length + 1)));
        for (const part of parts) if (part.length > 0) take(store, part);
        for (const file of order) take(store, file);
        const placed = Object.keys(under).map((name) => {
          const { parent, type, derived } = store.sessions.find(name)?.link ?? {};
          return [name, type === 'clear' && derived === true ? parent : type];
        });
        expect(Object.fromEntries(placed)).toEqual(under);
        const before = stateOf(store);
        for (const file of order) take(store, file);
        expect(stateOf(store)).toEqual(before);
        expect([...store.verify()]).toEqual([]);
      },
    ),
    { numRuns, seed: 1 },
  );
}

/** What one run writes while a person moves between sessions, and says something in each, and where each `/clear` was typed. */
function historyOf(acts: readonly { readonly move: string; readonly to: number }[]) {
  const files = new Map([
    ['s-old', old],
    ['s-run', begun],
  ]);
  const under: Record<string, string> = {};
  let now = 's-run';
  for (const [i, { move, to }] of acts.entries()) {
    const [from, minute, name] = [now, 20 + i, `s-${i}`];
    if (move === 'resume') now = [...files.keys()][to % files.size] ?? now;
    if (move === 'clear' || move === 'branch') now = name;
    const records = files.get(move === 'resume' ? now : from) ?? [];
    if (move === 'clear') {
      under[name] = from;
      files.set(name, clearedAt(name, minute));
    } else if (move === 'branch') files.set(name, branchOf(records, name, 's-run', minute));
    else files.set(now, goingOn(records, now, 's-run', minute));
  }
  return { files: [...files.values()], under };
}

describe('what a run clears in a session to which it came is under that', () => {
  const branch = branchOf(begun, 's-branch', 's-run', 15);
  const visited = goingOn(old, 's-old', 's-run', 15);
  test.each([
    ['by /branch', { files: [begun, branch, second], under: { 's-second': 's-branch' } }],
    ['by /resume', { files: [begun, visited, second], under: { 's-second': 's-old' } }],
    [
      'by /resume, once it had cleared',
      {
        files: [begun, second, goingOn(old, 's-old', 's-run', 25), third, fourth],
        under: { 's-second': 's-run', 's-third': 's-old', 's-fourth': 's-third' },
      },
    ],
    [
      'and not where it was back in its own one',
      { files: [goingOn(begun, 's-run', 's-run', 17), visited, second], under: { 's-second': 's-run' } },
    ],
    [
      'also where that is one that it cleared',
      {
        files: [begun, goingOn(second, 's-second', 's-run', 35), third, visited, fourth],
        under: { 's-second': 's-old', 's-third': 's-second', 's-fourth': 's-second' },
      },
    ],
    [
      'also where that is the one with which it began, and it came to no other one',
      {
        files: [goingOn(begun, 's-run', 's-run', 25), second, third],
        under: { 's-second': 's-run', 's-third': 's-run' },
      },
    ],
    [
      'by two branches',
      {
        files: [
          begun,
          branch,
          second,
          branchOf(branch, 's-other', 's-run', 25),
          third,
          goingOn(branch, 's-branch', 's-run', 35),
          fourth,
        ],
        under: { 's-second': 's-branch', 's-third': 's-other', 's-fourth': 's-branch' },
      },
    ],
    [
      'by /resume, of one that another run began behind a /clear',
      {
        files: [
          begun,
          goingOn(second, 's-second', 's-old', 25),
          old,
          third.map((one) => ({ ...one, ...(one.session_id !== undefined && { session_id: 's-old' }) })),
        ],
        under: { 's-second': 's-run', 's-third': 's-second' },
      },
    ],
    [
      'whatever was said there later',
      {
        files: [begun, goingOn(visited, 's-old', 's-old', 50), second, third],
        under: { 's-second': 's-old', 's-third': 's-second' },
      },
    ],
  ] as const)('%s', (_, { files, under }) => {
    expectPlaces(files, under, sized(15, 30, 150));
  });

  test('whatever a person does', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({ move: fc.constantFrom('say', 'clear', 'branch', 'resume'), to: fc.nat(1_000) }),
          {
            minLength: 3,
            maxLength: 14,
          },
        ),
        (acts) => {
          const { files, under } = historyOf(acts);
          expectPlaces(files, under, 2);
        },
      ),
      { numRuns: sized(8, 20, 300), seed: 1 },
    );
  });
});

describe('a large file that grows, of which an import reads the end alone,', () => {
  /** A session of many turns, to which a run came already, or did not. */
  const long = (...visits: readonly (readonly [run: string, minute: number])[]): readonly Raw[] => {
    const early: readonly Raw[] = Array.from({ length: 30 }, (_, i) =>
      turn('s-old', i, 's-old', i === 0 ? undefined : i - 1).map((one) => ({
        ...one,
        filler: 'x'.repeat(6_000),
      })),
    ).flat();
    return visits.reduce<readonly Raw[]>(
      (records, [run, minute]) => goingOn(records, 's-old', run, minute),
      early,
    );
  };
  test.each([
    ['has a run that came to it since', long(), long(['s-run', 45]), long(['s-run', 45], ['s-run', 47])],
    [
      'has what a run said there since',
      long(['s-run', 43]),
      long(['s-run', 43], ['s-run', 45]),
      long(['s-run', 43], ['s-run', 45], ['s-run', 47]),
    ],
  ])('%s', async (_, ...versions) => {
    using dir = tempDir();
    const [store, table] = [openStore(), SourceTable.open(dir.file('sources.jsonl'))];
    const grow = async (name: string, records: readonly Raw[]) => {
      const file = dir.file(`${name}.jsonl`);
      const had = existsSync(file) ? readFileSync(file, 'utf8') : '';
      appendFileSync(file, jsonl(records).slice(had.length));
      return await importFiles(store, [file], { table });
    };
    const above = () => store.sessions.find('s-last')?.link?.parent;
    const [before, visited, later] = versions;
    await grow('s-run', goingOn(begun, 's-run', 's-run', 44));
    await grow('s-old', before);
    await grow('s-last', clearedAt('s-last', 50));
    expect(above()).toBe('s-run');
    await grow('s-old', visited);
    expect(above()).toBe('s-old');
    await grow('s-run', goingOn(goingOn(begun, 's-run', 's-run', 44), 's-run', 's-run', 46));
    expect(above()).toBe('s-run');
    const heads = () => store.sessions.list().map(({ session, head }) => [session, head]);
    const known = heads();
    const { done } = await grow('s-old', visited);
    expect([done.length, heads()]).toEqual([1, known]);
    await grow('s-old', later);
    expect(above()).toBe('s-old');
  });
});

test('what a run cleared where it came to a session stays where a person has moved it', () => {
  const store = openStore();
  for (const records of [begun, second]) take(store, records);
  store.lineage.link('s-second', 's-run');
  take(store, branchOf(begun, 's-branch', 's-run', 15));
  expect(store.sessions.find('s-second')?.link?.parent).toBe('s-run');
});

test('what a run cleared in a session that was deleted is under the one in which it said something before', () => {
  const files = [begun, branchOf(begun, 's-branch', 's-run', 15), second];
  const store = openStore();
  for (const records of files) take(store, records);
  expect(store.sessions.find('s-second')?.link?.parent).toBe('s-branch');
  store.sessions.purge('s-branch', 'not needed');
  for (const records of [...files, ...files]) take(store, records);
  expect(store.sessions.find('s-second')?.link?.parent).toBe('s-run');
  expect([...store.verify()]).toEqual([]);
});

test('a session that a person has moved stays there, and what its run cleared behind it stays under it', () => {
  const store = openStore();
  for (const records of [begun, second, fourth]) take(store, records);
  store.sessions.open('mine');
  store.lineage.link('s-second', 'mine');
  for (const records of [third, second, begun, fourth]) take(store, records);
  const above = (name: string) => store.sessions.find(name)?.link?.parent;
  expect(['s-second', 's-third', 's-fourth'].map(above)).toEqual(['mine', 's-second', 's-third']);
  // What was behind one that was deleted follows the one before that.
  store.sessions.update('s-third', { lifecycle: 'destroyed' });
  take(store, fourth);
  expect(above('s-fourth')).toBe('s-second');
});

test('what goes on beside a session that a person continued takes no place among those that its run cleared', () => {
  const store = openStore();
  for (const records of [begun, second]) take(store, records);
  store.entries.append('s-second', [{ kind: 'message', payload: { role: 'user', content: 'mine' } }]);
  const grown = { ...turn('s-second', 9, 's-run')[0], parentUuid: 's-second-s-new-a8' };
  take(store, [...second, { ...grown, timestamp: '2026-03-01T10:25:00.000Z' }]);
  take(store, third);
  const names = store.sessions.list().map(({ session }) => session);
  expect(names.toSorted()).toEqual(['s-run', 's-second', 's-second-2', 's-third']);
  expect(store.sessions.find('s-third')?.link?.parent).toBe('s-second');
});

test('the report of a subagent, which stands behind all that was said, hides nothing that was said in its session later', () => {
  const at = (minute: number) => ({ sessionId: 's-run', timestamp: `2026-03-01T10:${minute}:00.000Z` });
  const called = model({ uuid: 'c1', parent: String(begun.at(-1)?.uuid) }, [calls('t1', 'Task')], at(11));
  const result = person({ uuid: 'r1', parent: 'c1' }, [returns('t1', 'is well')], {
    ...{ ...at(12), toolUseResult: { status: 'completed', agentId: 'x1' } },
  });
  const cameBack = goingOn([...begun, called, result], 's-run', 's-run', 25);
  const inside = { ...at(11), isSidechain: true, agentId: 'x1' };
  const agent = [model({ uuid: 'sa1' }, [says('is well')], inside)];
  const linesOf = (records: readonly Raw[]) => parseJsonLines([Buffer.from(jsonl(records))]).records;
  const lines = linesOf(goingOn(cameBack, 's-run', 's-run', 45));
  const store = openStore();
  reconcile(store, planClaudeCode({ name: 'file', lines, agents: [{ id: 'x1', lines: linesOf(agent) }] }));
  for (const records of [second, third]) take(store, records);
  expect(store.sessions.find('agent-x1')?.delivery).toBe('merged');
  expect(['s-second', 's-third'].map((name) => store.sessions.find(name)?.link?.parent)).toEqual([
    's-run',
    's-run',
  ]);
});

test('what was imported as it began, before the command that says so, is behind the /clear all the same', () => {
  const caveat = '<local-command-caveat>Caveat: they ran local commands.</local-command-caveat>';
  const [asked, answered] = second;
  const begins = {
    ...asked,
    ...{ uuid: 's-second-c', session_id: 's-run', isMeta: true, message: { role: 'user', content: caveat } },
  };
  const whole = [begins, { ...asked, parentUuid: 's-second-c' }, { ...answered }];
  const expected = [
    ['s-run', undefined, false],
    ['s-second', 's-run', true],
  ];
  expect(placesOf(begun, whole)).toEqual(expected);
  expect(placesOf(begun, whole.slice(0, 1), whole)).toEqual(expected);
  expect(placesOf(whole.slice(0, 1), begun, whole)).toEqual(expected);
});

describe.each([
  ['names no run', {}],
  ['keeps what its source said of the run', { session_id: 's-run' }],
])('a copy of a cleared session, which names no source and %s,', (_, more) => {
  test('is below that, and that below what its run cleared, in whichever order they come', () => {
    const copied = second.map(({ session_id: _, ...one }) => ({ ...one, ...more, sessionId: 's-copy' }));
    const [asked, answered] = turn('s-copy', 9, undefined);
    const last = second.at(-1)?.uuid;
    const copy = [...copied, { ...asked, parentUuid: last }, { ...answered }];
    const expected = [
      ['s-copy', 's-second', false],
      ['s-run', undefined, false],
      ['s-second', 's-run', true],
      ['s-third', 's-second', true],
    ];
    expect(placesOf(begun, second, copy, third)).toEqual(expected);
    expect(placesOf(begun, copy, second, third)).toEqual(expected);
    expect(placesOf(third, copy, begun, second)).toEqual(expected);
    expect(placesOf(copy, third, second, begun)).toEqual(expected);
    // That with which the run began has a copy, too.
    const other = [...begun, ...turn('s-other', 10, undefined, 5)].map((one) => ({
      ...one,
      sessionId: 's-other',
    }));
    const all = [...expected, ['s-other', 's-run', false]].toSorted();
    expect(placesOf(begun, second, other, copy, third)).toEqual(all);
    expect(placesOf(other, copy, third, begun, second)).toEqual(all);
  });
});

test('a cleared session is in its run also where a copy that names no source went on before it', () => {
  // Both go on behind what they have in common, and the copy does so first.
  const later = (session: string, n: number, minute: number, last = second.at(-1)) =>
    turn(session, n, undefined).map((one, i) => ({
      ...one,
      ...(i === 0 && { parentUuid: last?.uuid }),
      timestamp: `2026-03-01T10:${minute}:0${i}.000Z`,
    }));
  const copied = (session: string) =>
    second.map(({ session_id: _, ...one }) => ({ ...one, sessionId: session }));
  const source = [...second, ...later('s-second', 11, 40)];
  const first = [...copied('s-first'), ...later('s-first', 12, 30)];
  const named = [...source, ...later('s-named', 13, 50, source.at(-1))].map(
    ({ session_id: _, ...one }: Raw) => ({
      ...one,
      ...{ sessionId: 's-named', forkedFrom: { sessionId: 's-second' } },
    }),
  );
  for (const files of [
    [begun, source, first, named],
    [begun, first, source, named],
    [named, begun, source, first],
  ]) {
    const store = openStore();
    for (const records of files) take(store, records);
    expect(store.sessions.find('s-second')?.link).toMatchObject({
      parent: 's-run',
      type: 'clear',
      derived: true,
    });
  }
});

test('an import of one session of a run looks once at each of the others that the run began', () => {
  const looksAmong = (count: number): number => {
    let looks = 0;
    const store = wrapStore(openStore(), ({ method, act }) => {
      if (method === 'sessions.find') looks += 1;
      return act();
    });
    const cleared = (i: number) =>
      turn(`s-${i}`, i, 's-run').map((one) => ({
        ...one,
        ...(one.type === 'user' && { planContent: 'plan' }),
      }));
    for (let i = 0; i < count; i += 1) take(store, cleared(i));
    looks = 0;
    take(store, [...cleared(count - 1), ...turn(`s-${count - 1}`, count, undefined, count - 1)]);
    expect(store.sessions.list().filter(({ link }) => link?.type === 'clear')).toHaveLength(count - 1);
    return looks;
  };
  expect((looksAmong(20) - looksAmong(10)) / 10).toBeLessThan(1.5);
});
