import { appendFileSync, writeFileSync } from 'node:fs';
import { parseJsonLines, planClaudeCode, reconcile, SourceTable } from '@tapedeck/runtime/import';
import type { HomeStore } from '@tapedeck/tape';
import { treeParentOf } from '@tapedeck/tape/internal';
import { describe, expect, test } from 'vitest';
import { importFiles } from '../support/import-files.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { jsonl, model, person, says } from '../support/transcript.ts';

/*
 * A program sends its prompts to Claude Code, and `/clear` between them: no record of what follows names what was before. The
 * file of the session that was left ends with the moment at which the `/clear` was taken from the queue, and with its sums.
 */

type Raw = Readonly<Record<string, unknown>>;

const at = (ms: number) => new Date(Date.UTC(2026, 2, 1, 10) + ms).toISOString();

/** What the queue says of something that waits, and is taken. */
const taken = (session: string, ms: number, content?: string): readonly Raw[] => [
  {
    type: 'queue-operation',
    operation: 'enqueue',
    timestamp: at(ms - 1),
    sessionId: session,
    ...(content && { content }),
  },
  { type: 'queue-operation', operation: 'dequeue', timestamp: at(ms), sessionId: session },
];

const sums = (session: string): Raw => ({ type: 'cost-state', sessionId: session, totalDuration: 1 });

interface Scene {
  /** When it began with a `/clear`, in milliseconds; without it, with a prompt alone. */
  readonly clearedAt?: number;
  /** When it was left by one. */
  readonly leftAt?: number;
  readonly cwd?: string;
  /** What was taken last. */
  readonly content?: string;
  readonly turns?: number;
}

/** The file of one session. */
function session(
  name: string,
  { clearedAt, leftAt, cwd = '/work', content, turns = 1 }: Scene,
): readonly Raw[] {
  const more = (ms: number) => ({ sessionId: name, cwd, timestamp: at(ms) });
  const command = '<command-name>/clear</command-name>\n            <command-message>clear</command-message>';
  const start = clearedAt ?? 0;
  const cleared = clearedAt === undefined ? [] : [person({ uuid: `${name}-c` }, command, more(clearedAt))];
  const said = Array.from({ length: turns }, (_, n) => {
    const parent = n > 0 ? `${name}-a${n - 1}` : clearedAt === undefined ? null : `${name}-c`;
    return [
      ...taken(name, start + 5),
      person({ uuid: `${name}-u${n}`, parent }, `ask ${name} ${n}`, more(start + 6)),
      model(
        { uuid: `${name}-a${n}`, parent: `${name}-u${n}`, id: `${name}-m${n}` },
        [says(`did ${name} ${n}`)],
        more(start + 7),
      ),
    ];
  }).flat();
  return [
    ...cleared,
    ...said,
    ...(leftAt === undefined ? [] : [...taken(name, leftAt, content), sums(name)]),
  ];
}

function take(store: HomeStore, records: readonly Raw[]): void {
  const { records: lines } = parseJsonLines([Buffer.from(jsonl(records))]);
  reconcile(store, planClaudeCode({ name: 'file', lines }));
}

/** What each session is under by a derived `clear`. */
const edgesOf = (store: HomeStore): Readonly<Record<string, string | undefined>> =>
  Object.fromEntries(
    store.sessions.list().map((info) => {
      const { link } = store.sessions.find(info.id) ?? {};
      const isClear = link?.type === 'clear' && link.derived === true;
      return [info.session, isClear ? treeParentOf(info).parent : undefined];
    }),
  );

/** The same after imports in several orders, each file twice, and a file in pieces at each of its lines. */
function edgesAfter(...files: readonly (readonly Raw[])[]): Readonly<Record<string, string | undefined>> {
  const orders = [files, files.toReversed(), [...files.slice(1), ...files.slice(0, 1)]];
  const inPieces = (records: readonly Raw[]) => records.map((_, i) => records.slice(0, i + 1));
  const all = [
    ...orders.map((order) => [...order, ...order]),
    files.flatMap(inPieces),
    files.toReversed().flatMap(inPieces),
  ];
  const results = all.map((imports) => {
    const store = openStore();
    for (const records of imports) take(store, records);
    expect([...store.verify()]).toEqual([]);
    return edgesOf(store);
  });
  for (const one of results) expect(one).toEqual(results[0]);
  return results[0] ?? {};
}

const one = session('s-one', { leftAt: 5_000, content: '/clear' });
const two = session('s-two', { clearedAt: 5_030, leftAt: 5_600 });
const three = session('s-three', { clearedAt: 5_620 });

describe('a session that a program began behind a /clear', () => {
  test('is under the one that it left just before, by a link, in whichever order they come', () => {
    expect(edgesAfter(one, two, three)).toEqual({ 's-one': undefined, 's-two': 's-one', 's-three': 's-two' });
    const store = openStore();
    for (const records of [two, one]) take(store, records);
    expect(store.sessions.find('s-two')?.link).toMatchObject({
      ...{ type: 'clear', derived: true },
      evidence: 'it begins with a /clear, 30 ms after that session took one from its queue',
    });
  });

  test('is under it also where that was resumed since', () => {
    const resumed = [
      ...one,
      ...taken('s-one', 60_000),
      person({ uuid: 's-one-u9', parent: 's-one-a0' }, 'back', {
        sessionId: 's-one',
        cwd: '/work',
        timestamp: at(60_001),
      }),
    ];
    expect(edgesAfter(resumed, two)).toEqual({ 's-one': undefined, 's-two': 's-one' });
  });

  test('is under it also where the next message began to wait before that session had ended', () => {
    const waits = { type: 'queue-operation', operation: 'enqueue', sessionId: 's-one', timestamp: at(5_010) };
    const left = [...one.slice(0, -1), { ...waits, content: 'Go on' }, ...one.slice(-1)];
    expect(edgesAfter(left, two)).toEqual({ 's-one': undefined, 's-two': 's-one' });
  });

  test('says nothing yet behind the /clear, and is under it all the same', () => {
    expect(edgesAfter(one, two.slice(0, 1))).toEqual({ 's-one': undefined, 's-two': 's-one' });
  });

  test.each<[string, ...(readonly Raw[])[]]>([
    ['the file of that is not there', two],
    ['that was left in another directory', session('s-one', { leftAt: 5_000, cwd: '/other' }), two],
    ['that was left long before', session('s-one', { leftAt: 1_000 }), two],
    ['that was left later', session('s-one', { leftAt: 5_031 }), session('s-two', { clearedAt: 5_030 })],
    ['what that took last was a prompt', session('s-one', { leftAt: 5_000, content: 'Go on' }), two],
    ['that took something last, and did not end', one.slice(0, -1), two],
    ['two others were left just before', one, session('s-other', { leftAt: 5_010 }), two],
    [
      'two begin behind one that was left',
      one,
      session('s-two', { clearedAt: 5_030 }),
      session('s-other', { clearedAt: 5_040 }),
    ],
    [
      'two programs were in between each other',
      ...[one, session('s-other', { leftAt: 5_010 })],
      ...[session('s-two', { clearedAt: 5_030 }), session('s-third', { clearedAt: 5_040 })],
    ],
  ])('is under no other one where %s', (_, ...files) => {
    for (const parent of Object.values(edgesAfter(...files))) expect(parent).toBeUndefined();
  });

  test('is under its own where two programs clear one after the other in one directory, or at once in two', () => {
    const other = session('s-a', { leftAt: 5_300 });
    const its = session('s-b', { clearedAt: 5_400 });
    expect(edgesAfter(one, session('s-two', { clearedAt: 5_030 }), other, its)).toMatchObject({
      ...{ 's-two': 's-one', 's-b': 's-a' },
    });
    const elsewhere = [
      session('s-a', { leftAt: 5_001, cwd: '/b' }),
      session('s-b', { clearedAt: 5_031, cwd: '/b' }),
    ];
    expect(edgesAfter(one, two, ...elsewhere)).toMatchObject({ 's-two': 's-one', 's-b': 's-a' });
  });
});

test('a session that a person has moved from behind a /clear stays there', () => {
  const store = openStore();
  for (const records of [one, two]) take(store, records);
  store.lineage.link('s-two', null);
  for (const records of [one, two, three]) take(store, records);
  expect(store.sessions.find('s-two')?.link).toMatchObject({ type: 'moved' });
  expect(edgesOf(store)['s-three']).toBe('s-two');
});

test('a copy of a session behind a /clear is under that, and that under the one that was left', () => {
  const copied = session('s-two', { clearedAt: 5_030 }).map((record) => ({
    ...{ ...record, sessionId: 's-copy' },
    ...(record.type === 'assistant' && { requestSessionId: 's-two' }),
  }));
  expect(edgesAfter(one, session('s-two', { clearedAt: 5_030 }), copied)).toMatchObject({ 's-two': 's-one' });
});

test('a large session whose /clear comes when it has grown is the one before the next', async () => {
  using dir = tempDir();
  const store = openStore();
  const table = SourceTable.open(dir.file('sources.jsonl'));
  const [path, next] = [dir.file('s-one.jsonl'), dir.file('s-two.jsonl')];
  writeFileSync(next, jsonl(two));
  writeFileSync(path, jsonl(session('s-one', { turns: 1_000 })));
  for (const one of [next, path]) await importFiles(store, [one], { table });
  appendFileSync(path, jsonl(one.slice(-3)));
  expect(edgesOf(store)).toEqual({ 's-one': undefined, 's-two': undefined });
  await importFiles(store, [path], { table });
  expect(edgesOf(store)).toEqual({ 's-one': undefined, 's-two': 's-one' });
});
