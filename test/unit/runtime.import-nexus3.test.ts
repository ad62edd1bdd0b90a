import { readTranscript, reconcile } from '@tapedeck/runtime/import';
import { view } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { openStore } from '../support/store.ts';
import { invalidities } from '../support/valid-messages.ts';

const call = { id: 'c1', name: 'look', arguments: { at: 1 } };
const messages = [
  { role: 'user', content: 'Look.' },
  { role: 'assistant', content: '', tool_calls: [call, { id: 'c2', name: 'look' }] },
  { role: 'tool', content: 'seen', tool_call_id: 'c1' },
  { role: 'tool', content: 'nobody asked', tool_call_id: 'c9' },
  { role: 'system', content: 'Obey.' },
  { role: 'user', content: 'Go on.' },
];
const saved = {
  schema_version: 1,
  agent_id: 'ann',
  messages,
  permission_level: 'yolo',
  session_allowances: {},
};

const planned = (value: unknown, format: 'auto' | 'nexus3' = 'auto') =>
  readTranscript('saved.json', { format, chunks: [Buffer.from(JSON.stringify(value, undefined, 2))] });

const read = (value: unknown, format: 'auto' | 'nexus3' = 'auto') => {
  const plan = planned(value, format);
  return { ...plan, drafts: plan.conversations[0]?.spine ?? [], counts: [...plan.counts.values()][0] };
};

test('a saved session is one conversation: each call has a result, and what no model gets is beside it', () => {
  const { session, format, counts } = read(saved);
  expect([session, format]).toEqual(['ann', 'nexus3']);
  expect(counts).toMatchObject({ records: 6, messages: 3, offPath: 2, repaired: 1 });
  const store = openStore();
  reconcile(store, planned(saved));
  const shown = view(store.views.entries('ann')).messages;
  expect(invalidities(shown)).toEqual([]);
  expect(shown.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user']);
  expect(JSON.stringify(shown)).not.toContain('Obey.');
  expect(JSON.stringify(shown)).toContain('interrupted');
});

test('the keys of a file that has grown stay, and those of one that was compacted do not', () => {
  const keys = (list: readonly unknown[]) =>
    read({ ...saved, messages: list })
      .drafts.map(({ key }) => key)
      .filter((key) => key?.startsWith('nx:'));
  const before = keys(messages);
  const more = keys([...messages, { role: 'assistant', content: 'Done.' }]);
  expect(more.slice(0, before.length)).toEqual(before);
  expect(keys([{ role: 'user', content: 'A summary.' }, ...messages.slice(1)])[0]).not.toBe(before[0]);
});

test.each([
  ['no list', { schema_version: 1, agent_id: 'ann', messages: {} }, 'IMPORT_UNKNOWN_FORMAT'],
  ['a list alone', [1], 'IMPORT_UNKNOWN_FORMAT'],
])('a file with %s is refused', (_, value, code) => {
  expect(() => read(value, 'nexus3')).toThrow(expect.objectContaining({ code }));
});

test('the error names the line of bad JSON, and 200,000 levels are refused', () => {
  const of = (text: string) => () => readTranscript('saved.json', { chunks: [Buffer.from(text)] });
  expect(of('{"agent_id":\n"ann",\n"messages" []}\n')).toThrow(
    expect.objectContaining({ code: 'IMPORT_BAD_JSON', data: expect.objectContaining({ line: 3 }) }),
  );
  expect(of(`{"agent_id":${'['.repeat(200_000)}`)).toThrow(
    expect.objectContaining({ code: 'IMPORT_BAD_JSON' }),
  );
  const odd = [{ role: 'user' }, null, 7, { role: 'assistant', content: null, tool_calls: [null, 'x'] }];
  expect(read({ ...saved, messages: odd }).counts).toMatchObject({ messages: 1, offPath: 3 });
});

test('a value in the place of a text, and an id that a message has twice, make a session that verifies', () => {
  const odd = { toString: 1, valueOf: 1 };
  const twice = { id: 'c', name: 'look' };
  const odds = {
    ...saved,
    messages: [
      { role: 'assistant', content: odd, tool_calls: [{ id: odd, name: odd }, twice, twice] },
      { role: 'tool', content: odd, tool_call_id: odd },
      { role: 'tool', content: 'seen', tool_call_id: 'c' },
    ],
  };
  const { drafts, counts } = read(odds);
  expect(counts).toMatchObject({ messages: 1, offPath: 0, repaired: 1 });
  const store = openStore();
  const [done] = reconcile(store, planned(odds));
  // The first entry says that the session begins.
  expect(store.sessions.find('ann')).toMatchObject({ settled: Number(done?.added) + 1 });
  expect(drafts.filter(({ kind }) => kind === 'tool-result').length).toBe(3);
});

test('a session.jsonl with values in the place of texts is read', () => {
  const odd = { toString: 1, valueOf: 1 };
  const record = { recordType: 'message', schemaVersion: 1, seq: 1 };
  const lines = [
    { ...record, role: 'user', content: [{ type: 'text', text: odd }] },
    { ...record, role: 'assistant', content: [{ type: 'toolCall', id: odd, name: odd }] },
    { ...record, role: 'toolResult', toolCallId: odd, content: [{ type: 'text', text: odd }] },
    { ...record, recordType: 'compaction', firstKeptSeq: odd, summary: odd },
  ];
  const text = lines.map((line) => JSON.stringify(line)).join('\n');
  const { conversations, counts } = readTranscript('s/session.jsonl', { chunks: [Buffer.from(text)] });
  expect(conversations[0]?.spine.map(({ kind }) => kind)).toEqual([
    'message',
    'message',
    'tool-result',
    'anchor',
  ]);
  expect([...counts.values()]).toMatchObject([{ messages: 2, repaired: 0, compactions: 1 }]);
});

test('a file that was edited, shortened or goes on in another way is a fork where it differs, and rewinds nothing', () => {
  const store = openStore();
  const said = (...texts: readonly string[]) => {
    const list = texts.map((content, i) => ({ role: i % 2 === 0 ? 'user' : 'assistant', content }));
    return reconcile(store, planned({ ...saved, messages: list }))[0]?.session;
  };
  const texts = (session: string) =>
    view(store.views.entries(session)).messages.map(({ content }) => content[0]?.text);
  expect(said('a', 'b', 'c', 'd')).toBe('ann');
  expect(said('a', 'B', 'c', 'd', 'e')).toBe('ann-2');
  expect(store.sessions.find('ann-2')).toMatchObject({ parent: 'ann', kind: 'session' });
  expect(said('a', 'B')).toBe('ann-2');
  expect(said('a', 'B', 'x')).toBe('ann-3');
  expect(said('a', 'b', 'c', 'd', 'on')).toBe('ann');
  expect(said('a', 'B', 'x', 'y')).toBe('ann-3');
  expect(['ann', 'ann-2', 'ann-3'].map(texts)).toEqual([
    ['a', 'b', 'c', 'd', 'on'],
    ['a', 'B', 'c', 'd', 'e'],
    ['a', 'B', 'x', 'y'],
  ]);
  for (const { id } of store.sessions.list())
    expect([...store.entries.read(id, { own: true, kind: 'rewind' })]).toEqual([]);
  // A result that comes late replaces the one that said that there was none.
  const calling = [messages[0], { ...messages[1], tool_calls: [call] }];
  for (const list of [
    calling,
    [...calling, messages[2]],
    [...calling, messages[2], { role: 'user', content: 'Go.' }],
  ])
    expect(reconcile(store, planned({ ...saved, agent_id: 'bob', messages: list }))).toMatchObject([
      { session: 'bob' },
    ]);
  expect(texts('bob')).toHaveLength(4);
});
