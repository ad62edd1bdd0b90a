import { outputsToPrune, resolvePolicy } from '@tapedeck/runtime/internal';
import {
  assistant,
  compaction,
  type Draft,
  prune,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
  type View,
  view,
} from '@tapedeck/tape';
import { isObject, type PrunedOutput } from '@tapedeck/tape/internal';
import { describe, expect, test } from 'vitest';
import { entriesOf } from '../support/entries.ts';
import { atFullSize } from '../support/size.ts';
import { openStore } from '../support/store.ts';

const content = (i: number) => `content of ${i}: ${'line '.repeat(400)}`;
/** A call that reads a file, and its large output. */
const reading = (i: number, { name = 'read', path = `f${i}`, size = content(i) } = {}): Draft[] => [
  assistant([toolCall(`c${i}`, name, { path })]),
  toolResult({ toolCallId: `c${i}`, toolName: name }, size),
];
const thirty = [
  user('Read all'),
  ...Array.from({ length: 30 }, (_, i) => reading(i)).flat(),
  assistant('Read.'),
];
const chosen = (
  drafts: readonly Draft[],
  policy: Parameters<typeof resolvePolicy>[0] = 'reserve',
  enough?: number,
) => outputsToPrune(entriesOf(drafts), resolvePolicy(policy), enough === undefined ? {} : { enough });
const ids = (outputs: readonly PrunedOutput[]) => outputs.map(({ toolCallId }) => toolCallId);

/** The outputs that a view shows, by the ids of their calls; those of a call as they are. */
function outputs({ messages }: View): Record<string, string> {
  const results = messages.flatMap(({ content }) => content.filter(({ type }) => type === 'tool-result'));
  return Object.fromEntries(
    results.map(({ toolCallId, output }) => [
      String(toolCallId),
      isObject(output) ? String(output.value) : '',
    ]),
  );
}

describe('outputs to prune', () => {
  test.runIf(atFullSize)('are found among thirty thousand calls', () => {
    const drafts = Array.from({ length: 30_000 }, (_, i) =>
      reading(i, { name: 'list', size: 'x'.repeat(1_000) }),
    );
    expect(chosen([user('Go.'), ...drafts.flat(), assistant('Done.')])).toHaveLength(30_000);
  });

  test('are the oldest, until enough is saved; outputs of the files touched last stay', () => {
    expect(ids(chosen(thirty))).toEqual(Array.from({ length: 25 }, (_, i) => `c${i}`));
    const [first] = chosen(thirty);
    expect(ids(chosen(thirty, 'reserve', (first?.tokens ?? 0) * 3))).toEqual(['c0', 'c1', 'c2']);
    expect(ids(chosen(thirty, { prune: { keepFiles: 28 } }))).toEqual(['c0', 'c1']);
  });

  test('exclude the newest read of a file', () => {
    const drafts = [
      user('a'),
      ...reading(1, { path: 'a' }),
      ...reading(2, { path: 'b' }),
      ...reading(3, { path: 'a' }),
      assistant('b'),
    ];
    expect(ids(chosen(drafts, { prune: { keepFiles: 1 } }))).toEqual(['c1', 'c2']);
  });

  test('are matched to their own file when two reads in one answer share an id', () => {
    const twins = [
      assistant([toolCall('c', 'read', { path: 'a' }), toolCall('c', 'read', { path: 'b' })]),
      toolResult({ toolCallId: 'c', toolName: 'read' }, content(1)),
      toolResult({ toolCallId: 'c', toolName: 'read' }, content(2)),
    ];
    const drafts = [user('Go'), ...twins, assistant('Read.')];
    expect(chosen(drafts, { prune: { keepFiles: 2 } })).toEqual([]);
    expect(chosen(drafts, { prune: { keepFiles: 1 } }).map(({ seq }) => seq)).toEqual([3]);
  });

  test('exclude a protected tool, a small output, an output without a later answer, and a pruned one', () => {
    const policy = { prune: { keepFiles: 0, protect: ['notes'], minTokens: 300 } };
    const drafts = [
      user('a'),
      ...reading(1, { name: 'notes' }),
      ...reading(2, { size: 'short' }),
      ...reading(3),
      prune([{ seq: 7, toolCallId: 'c3', tokens: 500 }], { trigger: 'manual' }),
      ...reading(4),
      ...reading(5),
    ];
    expect(ids(chosen(drafts, policy))).toEqual(['c4']);
    expect(
      ids(chosen([user('a'), ...reading(1, { name: 'todo' }), assistant('b')], { prune: { keepFiles: 0 } })),
    ).toEqual([]);
  });
});

describe('views after a pruning', () => {
  const withThirty = (): SqliteTapeStore => {
    const store = openStore();
    store.sessions.open('main');
    store.entries.append('main', thirty);
    return store;
  };
  const pruned = (store: SqliteTapeStore) => {
    const found = outputsToPrune([...store.views.entries('main')], resolvePolicy());
    return { found, seq: store.entries.append('main', [prune(found, { trigger: 'manual' })]).to };
  };

  test('show the size of a pruned output; calls, inputs and everything else stay unchanged', () => {
    using store = withThirty();
    const before = view(store.views.entries('main'));
    const entries = [...store.entries.read('main')];
    const { found } = pruned(store);
    const after = view(store.views.entries('main'));
    const shown = outputs(after);
    for (const { toolCallId, tokens } of found)
      expect(shown[toolCallId]).toBe(`<output pruned, ${tokens} tokens>`);
    for (let i = 25; i < 30; i += 1) expect(shown[`c${i}`]).toBe(content(i));
    const calls = ({ messages }: View) => messages.filter(({ role }) => role !== 'tool');
    expect(calls(after)).toEqual(calls(before));
    expect(after.tokens).toBeLessThan(before.tokens / 3);
    expect([...store.entries.read('main')].slice(0, entries.length)).toEqual(entries);
    expect(view(store.views.entries('main', { policy: 'full' }), { policy: 'full' }).digest).toBe(
      before.digest,
    );
    expect(after.explain().find(({ seq }) => seq === found[0]?.seq)?.why).toBe('in view, its output pruned');
  });

  test('show the outputs again after a rewind to before it; a fork sees what its parent saw', () => {
    using store = withThirty();
    const before = view(store.views.entries('main')).digest;
    const { seq } = pruned(store);
    const after = view(store.views.entries('main')).messages;
    store.lineage.fork('main', { name: 'child' });
    expect(view(store.views.entries('child')).messages).toEqual(after);
    store.history.rewind('main', seq - 1);
    expect(view(store.views.entries('main')).digest).toBe(before);
    expect(view(store.views.entries('child')).messages).toEqual(after);
    store.history.unrewind('main');
    expect(view(store.views.entries('main')).messages).toEqual(after);
  });

  test('omit the outputs from the kept tail of a summary too', () => {
    using store = withThirty();
    const { found } = pruned(store);
    const [keep] = found.slice(-1);
    store.entries.append('main', [
      compaction({ summary: 'S', range: [1, 40] }, { keepFrom: (keep?.seq ?? 0) - 1 }),
    ]);
    expect(outputs(view(store.views.entries('main')))[keep?.toolCallId ?? '']).toContain('<output pruned,');
  });

  test('keep a failure a failure, omit the preview of a large output, and ignore an output of no result', () => {
    using store = openStore();
    store.sessions.open('main');
    store.entries.append('main', [
      user('a'),
      assistant([toolCall('1', 'read', {}), toolCall('2', 'read', {})]),
      toolResult({ toolCallId: '1', toolName: 'read' }, { type: 'error-text', value: 'x'.repeat(2_000) }),
      toolResult({ toolCallId: '2', toolName: 'read' }, 'x'.repeat(200_000)),
    ]);
    const output = (seq: number, toolCallId: string) => ({ seq, toolCallId, tokens: 9 });
    store.entries.append('main', [
      prune([output(4, '1'), output(5, '2'), output(2, '3'), output(99, '4')], { trigger: 'manual' }),
    ]);
    store.entries.append('main', [
      { kind: 'event', name: 'context/pruned', payload: { outputs: [null, { seq: '4' }, 3] } },
    ]);
    const [, , results] = view(store.views.entries('main')).messages;
    expect(results?.content.map(({ output }) => output)).toEqual([
      { type: 'error-text', value: '<output pruned, 9 tokens>' },
      { type: 'text', value: '<output pruned, 9 tokens>' },
    ]);
  });
});
