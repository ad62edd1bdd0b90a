import {
  anchor,
  assistant,
  type Entry,
  handoff,
  note,
  parsePolicy,
  prune,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
  type ViewPolicy,
  view,
} from '@tapedeck/tape';
import { omit, policyText } from '@tapedeck/tape/internal';
import { describe, expect, test } from 'vitest';
import { openStore } from '../support/store.ts';

/** The texts that a session shows, in one line. */
function shown(store: SqliteTapeStore, policy: ViewPolicy, name = 'main'): string {
  return textsOf([...store.views.entries(name, { policy })], policy);
}

function textsOf(entries: readonly Entry[], policy: ViewPolicy): string {
  const { messages } = view(entries, { policy });
  return messages.flatMap(({ content }) => content.map((part) => part.text ?? part.type)).join(' ');
}

/** Which positions a session reads for a policy. */
function read(store: SqliteTapeStore, policy: ViewPolicy): number[] {
  return [...store.views.entries('main', { policy })].map(({ seq }) => seq);
}

const call = (id: string) => toolCall(id, 'read', {});
const result = (id: string) => toolResult({ toolCallId: id, toolName: 'read' }, `of ${id}`);

describe('a window', () => {
  test('is the last messages, and the entries between them', () => {
    using store = openStore();
    store.sessions.open('main');
    store.entries.append('main', [user('1'), assistant('2'), note('x', {}), user('3')]);
    store.entries.append('main', [assistant([call('c')]), result('c'), assistant('5')]);
    expect(shown(store, { window: 1 })).toBe('The conversation before this point is not shown. 5');
    expect(shown(store, { window: 2 })).toContain('tool-call tool-result');
    expect(shown(store, { window: 3 })).toBe('3 tool-call tool-result Go on. 5'.replace(' Go on.', ''));
    expect(shown(store, { window: 99 })).toBe('1 2 3 tool-call tool-result 5');
    expect(read(store, { window: 3 })).toEqual([5, 6, 7, 8]);
  });

  test('keeps the state that the view begins with, and reads nothing in between', () => {
    using store = openStore();
    store.sessions.open('main');
    store.entries.append('main', [user('old'), handoff('h', { summary: 'So far.' })]);
    store.entries.append(
      'main',
      Array.from({ length: 500 }, (_, i) => user(`${i}`)),
    );
    expect(shown(store, { window: 2 })).toMatch(/So far[\s\S]* 498 499$/);
    expect(read(store, { window: 2 })).toEqual([3, 502, 503]);
    expect(read(store, ['full', { window: 2 }])).toEqual([502, 503]);
    expect(read(store, [{ fromAnchor: 'h' }, { window: 1 }])).toEqual([3, 503]);
  });

  test('counts visible messages, and in a fork inherited ones', () => {
    using store = openStore();
    store.sessions.open('main');
    store.entries.append('main', [user('1'), user('2'), user('3')]);
    store.history.rewind('main', 2);
    store.entries.append('main', [user('4')]);
    expect(shown(store, ['full', { window: 2 }])).toBe('1 4');
    store.lineage.fork('main', { name: 'child', intention: { nextSteps: 'Look.' } });
    store.entries.append('child', [user('5')]);
    expect(shown(store, { window: 2 }, 'child')).toBe('4 Your task: Look. 5');
    expect(shown(store, { window: 1 }, 'child')).toBe('Your task: Look. 5');
  });

  test('of tokens contains what fits, the last message always, and counts what is left out', () => {
    using store = openStore();
    store.sessions.open('main');
    store.entries.append('main', [user('a'.repeat(400)), user('b'.repeat(400)), user('c'.repeat(400))]);
    const first = (tokens: number) => shown(store, { window: { tokens } }).slice(0, 1);
    expect([1, 100, 199, 200, 299, 300, 9_999].map(first)).toEqual(['c', 'c', 'c', 'b', 'b', 'a', 'a']);
    store.entries.append('main', [
      assistant([call('c')]),
      toolResult({ toolCallId: 'c', toolName: 'r' }, 'x'.repeat(4_000)),
    ]);
    expect(shown(store, { window: { tokens: 900 } })).not.toContain('c'.repeat(400));
    store.entries.append('main', [
      prune([{ seq: 6, toolCallId: 'c', tokens: 1_000 }], { trigger: 'manual' }),
    ]);
    expect(shown(store, { window: { tokens: 900 } })).toContain('a'.repeat(400));
    expect(read(store, { window: { tokens: 150 } })).toEqual([4, 5, 6, 7]);
  });

  test('does not count a message that is left out, unless the view is full', () => {
    using store = openStore();
    store.sessions.open('main');
    store.entries.append('main', [user('1'), user('2'), user('a'.repeat(400)), user('4'), omit([4])]);
    expect(shown(store, { window: 3 })).toBe('1 2 4');
    expect(shown(store, { window: { tokens: 3 } })).toBe('1 2 4');
    expect(shown(store, ['full', { window: 2 }])).toBe(`${'a'.repeat(400)} 4`);
    store.entries.append('main', [omit([2, 3])]);
    expect(shown(store, { window: 3 })).toBe('4');
    store.history.rewind('main', 6);
    expect(shown(store, { window: 3 })).toBe('1 2 4');
  });
});

test.each<{ policy: unknown; says: RegExp }>([
  { policy: 'last', says: /unknown rule 'last'/ },
  { policy: ['full', 'last-boundary'], says: /last-boundary can only come first/ },
  { policy: [{ window: 2 }, 'full'], says: /full can only come first/ },
  { policy: ['full', { fromAnchor: 'a' }], says: /from-anchor:a can only come first/ },
  { policy: { window: 0 }, says: /whole number/ },
  { policy: { window: 1.5 }, says: /whole number/ },
  { policy: { window: Number.POSITIVE_INFINITY }, says: /whole number/ },
  { policy: { window: { tokens: -1 } }, says: /whole number/ },
  { policy: { window: null }, says: /whole number/ },
  { policy: { fromAnchor: {} }, says: /a name or a position/ },
  { policy: {}, says: /must name a window/ },
  { policy: { fromAnchor: 'plan', window: 2 }, says: /use a list for several rules/ },
  { policy: { fromAnchor: Number.NaN }, says: /a name or a position/ },
  { policy: { fromAnchor: -1 }, says: /a name or a position/ },
  { policy: { topic: 'billing' }, says: /must name a window or an anchor/ },
  { policy: null, says: /unknown rule 'null'/ },
  { policy: [{ window: 2 }, undefined], says: /unknown rule 'undefined'/ },
])('$policy is refused', ({ policy, says }) => {
  const act = () => view([], { policy: policy as ViewPolicy });
  expect(act).toThrow(expect.objectContaining({ code: 'TAPE_BAD_POLICY' }));
  expect(act).toThrow(says);
});

test.each([
  '',
  'window',
  'window:',
  'window:-1',
  'window:1.5',
  'window:0',
  'topic:billing',
  'full,topic:billing,window:20',
  'all',
  'full,full',
  'window:2,full',
])("'%s' is no policy", (text) => {
  expect(() => parsePolicy(text)).toThrow(expect.objectContaining({ code: 'TAPE_BAD_POLICY' }));
});

test.each([
  ['last-boundary', 'last-boundary'],
  ['full', 'full'],
  ['window:20', 'last-boundary,window:20'],
  ['from-anchor:@7,window:8000-tokens', 'from-anchor:@7,window:8000-tokens'],
  ['full,window:3', 'full,window:3'],
])('%s is read as %s', (text, canonical) => {
  expect(policyText(parsePolicy(text))).toBe(canonical);
  expect(policyText(parsePolicy(canonical))).toBe(canonical);
});

test('an unknown anchor is not taken for the beginning', () => {
  using store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [anchor('here'), user('1')]);
  for (const policy of [{ fromAnchor: 'there' }, { fromAnchor: 'here~1' }] as const) {
    expect(() => view(store.entries.read('main'), { policy })).toThrow(
      expect.objectContaining({ code: 'TAPE_NO_ANCHOR' }),
    );
    expect(() => shown(store, policy)).toThrow(expect.objectContaining({ code: 'TAPE_NO_ANCHOR' }));
  }
});

test('the anchor before the last of its name is valid too', () => {
  using store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [anchor('a', { n: 1 }), user('1'), anchor('a', { n: 2 }), user('2')]);
  expect(shown(store, { fromAnchor: 'a~1' })).toBe('{"n":1} 1 2');
  expect(shown(store, { fromAnchor: 'a' })).toBe('{"n":2} 2');
});
