import { type ImportPlan, parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import { isObject } from '@tapedeck/tape/internal';
import { wrapStore } from '@tapedeck/tape/store';
import { describe, expect, test } from 'vitest';
import { openStore } from '../support/store.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

type Raw = { readonly [field: string]: unknown };

const planned = (records: readonly Raw[]): ImportPlan =>
  planClaudeCode({ name: 's-1', lines: parseJsonLines([Buffer.from(jsonl(records))]).records });

const said = (uuid: string, parent: string | null, text: string): readonly Raw[] => [
  person({ uuid: `${uuid}-p`, parent }, text),
  model({ uuid, parent: `${uuid}-p` }, [says(`did ${text}`)]),
];

const called = (uuid: string, parent: string): readonly Raw[] => [
  model({ uuid, parent, id: uuid }, [calls(`t-${uuid}`)]),
  // A parallel call leaves a result beside the way.
  model({ uuid: `${uuid}-b`, parent: uuid, id: uuid }, [calls(`t-${uuid}-b`)]),
  person({ uuid: `${uuid}-c`, parent: `${uuid}-b` }, [returns(`t-${uuid}-b`)]),
  person({ uuid: `${uuid}-r`, parent: uuid }, [returns(`t-${uuid}`)]),
];

/** A prompt is typed anew at each turn. */
function beside(count: number): readonly Raw[] {
  const records = [...said('a0', null, 'plan')];
  for (let i = 1; i <= count; i += 1)
    records.push(...said(`b${i}`, `a${i - 1}`, `left ${i}`), ...said(`a${i}`, `a${i - 1}`, `go on ${i}`));
  return records;
}

/** The conversation is rewound farther and farther back: each branch is left from the next one. */
function nested(count: number): readonly Raw[] {
  const records = [...said('a0', null, 'plan')];
  for (let i = 1; i <= count; i += 1) records.push(...said(`a${i}`, `a${i - 1}`, `go on ${i}`));
  for (let i = count; i >= 1; i -= 1) records.push(...said(`b${i}`, `a${i - 1}`, `left ${i}`));
  return records;
}

/** A prompt is typed anew many times behind a long turn with calls. */
function behindCalls(count: number): readonly Raw[] {
  const records = [...said('a0', null, 'plan')];
  for (let i = 1; i <= count; i += 1) records.push(...called(`w${i}`, i === 1 ? 'a0' : `w${i - 1}-r`));
  records.push(model({ uuid: 'end', parent: `w${count}-r` }, [says('done')]));
  for (let i = 1; i <= count; i += 1) records.push(...said(`b${i}`, 'end', `again ${i}`));
  return records;
}

describe.each([
  ['beside each other', beside],
  ['of branches', nested],
  ['behind calls', behindCalls],
])('branches %s', (_, records) => {
  test('have what they begin with from the way that they leave, and read no more than their own records anew', () => {
    const { conversations } = planned(records(200));
    expect(conversations.length).toBeGreaterThanOrEqual(200);
    const byKey = new Map(conversations.map((one) => [one.key, one]));
    let anew = 0;
    for (const { spine, shared = 0, parent } of conversations) {
      const above = byKey.get(parent?.key ?? '')?.spine ?? [];
      expect(spine.slice(0, shared).every((draft, i) => draft === above[i])).toBe(true);
      anew += spine.length - shared;
    }
    expect(anew).toBeLessThanOrEqual(2 * records(200).length);
  });

  test('read as if each were the main one', () => {
    const all = records(8);
    for (const { spine } of planned(all).conversations) {
      const leafUuid = spine.at(-1)?.meta?.uuid;
      const [alone] = planned([...all, { type: 'last-prompt', leafUuid, sessionId: 's-1' }]).conversations;
      expect(alone?.spine).toEqual(spine);
    }
  });
});

test('a branch of a branch is not searched for the compactions and rewinds of all that it inherits', () => {
  let whole = 0;
  const store = wrapStore(openStore(), ({ method, args: [, query], act }) => {
    const { kind = '', from = 1 } = method === 'entries.read' && isObject(query) ? query : {};
    if (['anchor', 'rewind'].includes(String(kind)) && from === 1) whole += 1;
    return act();
  });
  reconcile(store, planned(nested(9)));
  expect(store.sessions.list()).toHaveLength(10);
  // Those of the main conversation, which inherits nothing.
  expect(whole).toBe(2);
});

test('a branch behind a compaction that kept something does not read what it inherits', () => {
  /** How many entries are read for each that is written, of a session that is compacted, and then rewound again and again. */
  const readIn = (count: number): number => {
    const compactMetadata = { preservedMessages: { anchorUuid: 'sum', uuids: ['a0-p', 'a0'] } };
    const boundary = { type: 'system', subtype: 'compact_boundary', uuid: 'cut', parentUuid: null };
    const all = beside(count);
    const records = [
      ...all.slice(0, 2),
      { ...boundary, logicalParentUuid: 'a0', sessionId: 's-1', compactMetadata },
      person({ uuid: 'sum', parent: 'cut' }, 'So far.', { isCompactSummary: true }),
      ...all.slice(2).map((one) => (one.parentUuid === 'a0' ? { ...one, parentUuid: 'sum' } : one)),
    ];
    let read = 0;
    function* counted(entries: Iterable<unknown>): Generator<unknown> {
      for (const entry of entries) {
        read += 1;
        yield entry;
      }
    }
    const store = wrapStore(openStore(), ({ method, act }) =>
      method === 'entries.read' ? counted(act() as Iterable<unknown>) : act(),
    );
    const plan = planned(records);
    expect(plan.conversations).toHaveLength(count + 1);
    expect(plan.conversations.at(-1)?.keeps.size).toBe(1);
    reconcile(store, plan);
    return read / records.length;
  };
  expect(readIn(40) / readIn(10)).toBeLessThan(1.5);
});
