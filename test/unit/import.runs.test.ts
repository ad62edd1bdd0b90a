import { parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { treeParentOf } from '@tapedeck/tape/internal';
import { expect, test } from 'vitest';
import { openStore } from '../support/store.ts';
import { jsonl, model, person, says } from '../support/transcript.ts';

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

function take(store: SqliteTapeStore, records: readonly Raw[]): void {
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
