import { openJournal } from '@tapedeck/graph';
import { parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import {
  assistant,
  type Draft,
  note,
  openTapeStore,
  result,
  toolCall,
  toolResult,
  user,
} from '@tapedeck/tape';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { adopt, bundleOf } from '../support/bundles.ts';
import { goldenTapes } from '../support/golden-tapes.ts';
import { History } from '../support/histories/history.ts';
import { anySteps } from '../support/histories/steps.ts';
import { Tally } from '../support/histories/tally.ts';
import { disagreements, skipsPython } from '../support/python.ts';
import { seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

const cut = (text: string, ...calls: ReturnType<typeof toolCall>[]) =>
  assistant([{ type: 'text', text }, ...calls], { partial: true });
const given = (toolCallId: string): Draft => toolResult({ toolCallId, toolName: 'read' }, 'A text.');

const counted = { usage: { input: 4, output: 0.2, cacheRead: 1 } };
/** Numbers whose sum is none, and names that every object has. */
const vast = JSON.parse('{"input":1e308,"output":-1e308,"constructor":1,"__proto__":2,"cacheRead":0.5}');
const touched = { read: ['a.ts', 'b.ts'], write: ['b.ts', `half \ud83d`] };
const closed: Draft = {
  kind: 'event',
  name: 'workspace/closed',
  payload: {
    base: 'a'.repeat(40),
    tree: 'b'.repeat(40),
    files: [
      { path: 'a.ts', change: 'changed', mode: '100644' },
      { path: 'new.ts', from: 'old.ts', change: 'renamed', mode: '100644' },
    ],
    patch: new Uint8Array([1, 2, 3]),
  },
};

const histories = sized(30, 40, 20_000);

describe.skipIf(skipsPython('the verifier in Python'))(
  'a program written from the specification alone',
  () => {
    test('finds no problem in histories that a provider once refused', () => {
      for (const { name, write } of goldenTapes) {
        using dir = tempDir();
        using store = openStore(dir.file('tape.db'), {
          journal: openJournal(dir.file('session_graph.jsonl')),
        });
        write(store);
        expect([...store.verify()], name).toEqual([]);
        expect(disagreements(dir.path, []), name).toEqual([]);
      }
    });

    test('finds no problem in random histories, also after redactions', { timeout: 600_000 }, () => {
      using dir = tempDir();
      using store = openStore(dir.file('tape.db'));
      const tally = new Tally();
      let n = 0;
      fc.assert(
        fc.property(anySteps, (steps) => {
          n += 1;
          const history = new History(store, `h${n}`, tally);
          history.play(steps);
          const random = seeded(steps.reduce((a, b) => a ^ b, n));
          for (const { name } of history.sessions) {
            const { base = 0, settled = 0 } = store.sessions.find(name) ?? {};
            const seq = base + 1 + random.below(settled - base);
            const [entry] = store.entries.read(name, { from: seq, to: seq });
            if (n % 3 === 0 && entry !== undefined && !['redaction', 'rewind'].includes(entry.kind))
              store.entries.redact(name, seq, 'private');
          }
        }),
        { numRuns: histories, seed: 20261123 },
      );
      expect([...store.verify()]).toEqual([]);
      expect(disagreements(dir.path, [])).toEqual([]);
    });

    test('finds the same text of each kind of merge', () => {
      using dir = tempDir();
      using store = openStore(dir.file('tape.db'));
      store.sessions.open('main');
      const half = '\ud83d';
      const long = 'x'.repeat(15_999);
      const kinds: readonly (readonly Draft[])[] = [
        [],
        [user('Well?')],
        [
          assistant('One.'),
          assistant([
            { type: 'text', text: `a ${half}` },
            { type: 'text', text: '\ude00 b' },
          ]),
        ],
        [assistant(`half ${half} of it`)],
        [assistant(' \n\ufeff'), note('run/error', { message: 'overloaded' })],
        [assistant('Partly.'), note('run/halted', { message: 'steps' })],
        [note('run/halted', { message: 'steps' }), assistant('And on.')],
        [result('The "text".'), assistant('Later.')],
        [result({ b: [1.5, -0, 1e21, null], 10: half, 2: { __proto__x: true }, value: {} })],
        [result(null)],
        [result(7), note('result/refused', { message: 'no number' }), note('x', {})],
        [cut('One, '), note('run/interrupted', {}), cut('two, '), assistant('three.')],
        [cut('One, '), assistant('One, and two.')],
        [cut('One, '), user('Go on.'), assistant('Two.')],
        [cut('One, ', toolCall('c', 'read', {})), given('c'), cut('two '), given('d'), assistant('three.')],
        [cut(`${half}`), assistant('\ude00')],
        [cut('One, '), assistant(''), assistant('two.')],
        [assistant(`${long}😀 and the rest`)],
        [assistant(`${long}${half}${half} and the rest`)],
        [assistant('One.', { usage: { input: 3, output: 0.1, reasoning: 0.2 } }), assistant('Two.', counted)],
        [assistant('One.', { usage: vast }), assistant('Two.', { usage: vast })],
        [
          toolResult({ toolCallId: 'c', toolName: 'read' }, 'A text.', { paths: touched }),
          closed,
          assistant('Done.'),
        ],
        [closed, given('c'), closed],
        [note('workspace/closed', { files: [] })],
      ];
      const children = kinds.map((drafts, n) => {
        const { session } = store.lineage.fork('main', {
          name: `kid${n}`,
          inherit: n % 2 === 0 ? 'all' : 'nothing',
        });
        for (const draft of drafts) store.entries.append(session, [draft]);
        return session;
      });
      for (const child of children) store.lineage.merge(child);
      // A second merge, of what followed a piece, and a third after a rewind.
      for (const child of children) {
        store.entries.append(child, [assistant('More, '), cut('and then ')]);
        store.lineage.merge(child);
        store.entries.append(child, [assistant('the end.')]);
        store.lineage.merge(child);
        store.entries.append(child, [assistant('Wrong.'), user('No.')]);
        store.history.rewind(child, (store.sessions.find(child)?.head ?? 0) - 2);
        store.lineage.merge(child);
      }
      for (const [n, text] of ['', half, 'given', `${long}😀 given`].entries()) {
        const { session } = store.lineage.fork('main', { name: `told${n}` });
        store.lineage.merge(session, { text, status: n % 2 === 0 ? 'halted' : 'failed' });
      }
      store.lineage.merge(store.lineage.fork('main', { name: 'away' }).session, { strategy: 'discard' });
      const marks = [...store.entries.read('main', { namePrefix: 'merge/' })];
      expect(marks.length).toBe(4 * kinds.length + 5);
      expect([...store.verify()]).toEqual([]);
      expect(disagreements(dir.path, [])).toEqual([]);
      // What was erased later is not compared.
      for (const child of children) {
        const { base = 0 } = store.sessions.find(child) ?? {};
        store.entries.redact(child, base + 2, 'private');
      }
      for (const [n, { seq }] of marks.entries())
        if (n % 3 === 0) store.entries.redact('main', seq + (n % 2), 'private');
      expect([...store.verify()]).toEqual([]);
      expect(disagreements(dir.path, [])).toEqual([]);
    });

    test('finds no problem in an import with a subagent, and in bundles of it with and without that', async () => {
      using dir = tempDir();
      using store = openStore(dir.file('tape.db'), { journal: openJournal(dir.file('session_graph.jsonl')) });
      const lines = (records: readonly object[]) => parseJsonLines([Buffer.from(jsonl(records))]).records;
      const inside = { isSidechain: true, agentId: 'x' };
      const plan = planClaudeCode({
        name: 's-1',
        lines: lines([
          person({ uuid: 'u1' }, 'look'),
          model({ uuid: 'a1', parent: 'u1' }, [calls('t1', 'Task')]),
          person({ uuid: 'r1', parent: 'a1' }, [returns('t1', 'well')]),
          model({ uuid: 'a2', parent: 'r1' }, [says('done')]),
        ]),
        agents: [
          {
            id: 'x',
            meta: { toolUseId: 't1' },
            lines: lines([model({ uuid: 'b1' }, [says('well')], inside)]),
          },
        ],
      });
      reconcile(store, plan);
      expect([...store.lineage.read({ types: ['merge'] })]).toMatchObject([{ received: expect.any(Number) }]);
      expect(disagreements(dir.path, [...store.verify()])).toEqual([]);
      for (const [ref, o] of [
        ['s-1', { scope: 'tree' }],
        ['s-1', {}],
        ['agent-x', {}],
      ] as const) {
        using other = tempDir();
        using there = openStore(other.file('tape.db'), {
          journal: openJournal(other.file('session_graph.jsonl')),
        });
        await adopt(there, bundleOf(store, ref, o));
        const problems = [...there.verify()].filter(({ code }) => code !== 'not-here');
        expect([ref, o, disagreements(other.path, problems)]).toEqual([ref, o, []]);
      }
    });

    test('finds the same times, aliases, calls and bytes', () => {
      using dir = tempDir();
      using store = openStore(dir.file('tape.db'));
      const imported = (timestamp: string) => user('Once.', { source: 'import', timestamp });
      for (const [n, time] of [
        '2026-11-23T10:00:00Z',
        '2036-02-29T23:59:59.9876+05:30',
        '1969-12-31T23:59:59.999Z',
        '2026-13-01T00:00:00Z',
        'yesterday',
      ].entries()) {
        store.sessions.open(`old${n}`);
        store.entries.append(`old${n}`, [imported(time)]);
      }
      store.sessions.open('a%C3%A9B%FF');
      store.sessions.update('a%C3%A9B%FF', { alias: { name: 'E%CC%81', reason: 'looks alike' } });
      store.entries.append('old0', [
        user([{ type: 'file', mediaType: 'a/b', data: new Uint8Array(9) }]),
        assistant([toolCall('c', 'read', {}), toolCall('c', 'read', {}), toolCall('é\u2028', 'read', {})]),
      ]);
      for (const id of ['c', 'other', 'é\u2028']) store.entries.append('old0', [given(id)]);
      store.entries.append('old0', [
        { ...given('c'), payload: { ...(given('c').payload as object), output: 'z'.repeat(400_000) } },
      ]);
      store.entries.append('old0', [assistant([toolCall('open', 'read', {})])]);
      expect([...store.verify()]).toEqual([]);
      expect(disagreements(dir.path, [])).toEqual([]);
    });

    test('refuses what is no tape database', () => {
      using dir = tempDir();
      expect(() => disagreements(dir.path, [])).toThrow('there is no tape database');
      openTapeStore(dir.file('tape.db')).close();
      expect(disagreements(dir.file('tape.db'), [])).toEqual([]);
    });
  },
);
