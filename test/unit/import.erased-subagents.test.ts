import { parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { openStore } from '../support/store.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

type Raw = { readonly [field: string]: unknown };

const linesOf = (records: readonly Raw[]) => parseJsonLines([Buffer.from(jsonl(records))]).records;
const at = (second: number) => ({
  timestamp: new Date(Date.UTC(2026, 2, 12, 9, 0, second, 7)).toISOString(),
});
const inside = (second: number) => ({ isSidechain: true, agentId: 'x1', ...at(second) });

const main: readonly Raw[] = [
  person({ uuid: 'u1' }, 'ask', at(1)),
  model({ uuid: 'k1', parent: 'u1' }, [calls('t1', 'Task')], at(2)),
  person({ uuid: 'r1', parent: 'k1' }, [returns('t1', 'well')], {
    toolUseResult: { agentId: 'x1' },
    ...at(7),
  }),
  model({ uuid: 'a1', parent: 'r1' }, [says('so')], at(8)),
];
const agent: readonly Raw[] = [
  person({ uuid: 'y1' }, 'look for an aardvark', inside(3)),
  model({ uuid: 'z1', parent: 'y1' }, [calls('q1', 'Read', { path: 'okapi' })], inside(4)),
  person({ uuid: 's1', parent: 'z1' }, [returns('q1', 'a zebra')], inside(5)),
  model({ uuid: 'z2', parent: 's1' }, [says('a quagga')], inside(6)),
];
const erased = ['aardvark', 'okapi', 'zebra', 'quagga'];

const family = (records: readonly Raw[], own: readonly Raw[]) =>
  planClaudeCode({
    ...{ name: 'file', lines: linesOf(records) },
    agents: [{ id: 'x1', lines: linesOf(own), meta: { toolUseId: 't1', description: 'Find it' } }],
  });

/** The records as another session has them: under the same ids or others, which may name those of their source. */
const copied = (records: readonly Raw[], { prefix, isNamed }: { prefix: string; isNamed: boolean }) =>
  records.map((one) => ({
    ...{ ...one, sessionId: 's-2', uuid: `${prefix}${one.uuid}` },
    parentUuid: one.parentUuid === null ? null : `${prefix}${one.parentUuid}`,
    ...(isNamed && { forkedFrom: { sessionId: 's-1', messageUuid: one.uuid } }),
  }));

/** The entries of a home that have a text, in deleted sessions, too, but for the reports of subagents. */
const said = (store: SqliteTapeStore, text: string): readonly string[] =>
  store.sessions
    .list({ all: true })
    .flatMap(({ id }) => [...store.entries.read(id, { own: true })])
    .filter(({ payload, meta }) => meta.source !== 'merge' && JSON.stringify(payload).includes(text))
    .map(({ session, seq }) => `${session}@${seq}`);

/** Imports the family, and erases all that its subagent said. */
function erasedIn(store: SqliteTapeStore): void {
  reconcile(store, family(main, agent));
  const seqs = [...store.entries.read('agent-x1', { own: true })].flatMap(({ seq, payload }) =>
    erased.some((text) => JSON.stringify(payload).includes(text)) ? seq : [],
  );
  store.entries.redact('agent-x1', seqs, 'private');
  for (const text of erased) expect([text, said(store, text)]).toEqual([text, []]);
}

test.each([
  ['the same ids', { prefix: '', isNamed: false }],
  ['the same ids, and names its source', { prefix: '', isNamed: true }],
  ['other ids', { prefix: 'c-', isNamed: false }],
  ['other ids, and names its source', { prefix: 'c-', isNamed: true }],
])('what was erased of a subagent does not come back with a copy of its session that has %s', (_, how) => {
  using store = openStore();
  erasedIn(store);
  const later = model({ uuid: 'z3', parent: `${how.prefix}z2` }, [says('later')], inside(9));
  const plan = family(copied(main, how), [...copied(agent, how), { ...later, sessionId: 's-2' }]);
  reconcile(store, plan);
  for (const text of erased) expect([text, said(store, text)]).toEqual([text, []]);
  expect(said(store, 'later')).toHaveLength(1);
  const heads = () => store.sessions.list({ all: true }).map(({ session, head }) => [session, head]);
  const before = heads();
  reconcile(store, plan);
  expect(heads()).toEqual(before);
  expect([...store.verify()]).toEqual([]);
});

test.each([
  ['the same ids', ''],
  ['other ids', 'c-'],
])(
  'the prompt of a subagent that was erased stays so where a copy with %s has nothing else of it',
  (_, prefix) => {
    using store = openStore();
    erasedIn(store);
    const how = { prefix, isNamed: false };
    // Another one was started at once.
    const beside = copied(
      [person({ uuid: 'w1' }, 'look for a wombat', { ...inside(3), agentId: 'x2' })],
      how,
    );
    const plan = planClaudeCode({
      ...{ name: 'file', lines: linesOf(copied(main.slice(0, 2), how)) },
      agents: [
        { id: 'x1', lines: linesOf(copied(agent.slice(0, 1), how)), meta: { toolUseId: 't1' } },
        { id: 'x2', lines: linesOf(beside), meta: { toolUseId: 't1' } },
      ],
    });
    reconcile(store, plan);
    expect([said(store, 'aardvark'), said(store, 'wombat')]).toEqual([[], [expect.any(String)]]);
  },
);

test('what was erased in a session that was deleted since does not come back with a copy', () => {
  using store = openStore();
  erasedIn(store);
  for (const session of ['agent-x1', 's-1']) store.sessions.update(session, { lifecycle: 'destroyed' });
  reconcile(
    store,
    family(copied(main, { prefix: 'c-', isNamed: false }), copied(agent, { prefix: '', isNamed: false })),
  );
  for (const text of erased) expect([text, said(store, text)]).toEqual([text, []]);
});
