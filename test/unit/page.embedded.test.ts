import type { Embedded, PageData, TimelineItem } from '@tapedeck/cli/internal';
import { expect, test } from 'vitest';
import { embeddedData } from '../../packages/cli/ui/src/data/embedded.ts';

type SessionInfo = Awaited<ReturnType<PageData['session']>>;

const info = (session: string, more: Partial<SessionInfo>): SessionInfo => ({
  ...{ session, id: session, kind: 'session', state: 'active', tone: 'plain', about: '', base: 0, head: 0 },
  ...{ messages: 0, tokens: 0, children: 0, createdAt: '2026-01-01T00:00:00Z', depth: 0, floor: 0 },
  ...{ aliases: [], commands: [], waiting: [], anchors: [] },
  ...more,
});
const usage = { total: { key: '', steps: 0 }, models: [], sessions: [], days: [], command: '' } as never;

const rows = [
  info('main', { about: 'Plan the release', messages: 3, tokens: 900, children: 1 }),
  info('old', { state: 'archived', messages: 9 }),
  info('main.kid', {
    parent: 'main',
    kind: 'subagent',
    state: 'merged, failed',
    tone: 'bad',
    messages: 5,
    tokens: 10,
  }),
  info('main.kid.deep', {
    parent: 'main.kid',
    kind: 'subagent',
    state: 'running',
    tone: 'open',
    messages: 1,
  }),
];

const file: Embedded = {
  home: { title: 'main', version: '0', isLive: false, sessions: 4, at: '0.0' },
  sessions: rows,
  lineage: [],
  tapes: {},
  seen: {},
  trace: {},
  partings: [],
  usage: { '': { alone: usage, tree: usage } },
  graph: { '': 'tape graph main' },
  findings: { checkedAt: '', sessions: 4, entries: 9, total: 0, findings: [], command: '' },
};

const listed = async (query: Parameters<PageData['sessions']>[0]) => {
  const { rows: found, total } = await embeddedData(file).sessions(query);
  expect(total).toBe(found.length);
  return found.map(({ session, depth }) => `${' '.repeat(depth)}${session}`);
};

test('an exported file filters and sorts its sessions', async () => {
  expect(await listed({})).toEqual(['main', 'main.kid', 'main.kid.deep']);
  expect(await listed({ all: true, sort: 'messages' })).toEqual(['old', 'main.kid', 'main', 'main.kid.deep']);
  expect(await listed({ find: 'RELEASE' })).toEqual(['main']);
  expect(await listed({ state: 'open' })).toEqual(['main.kid.deep']);
  expect(await listed({ state: 'merged' })).toEqual(['main.kid']);
  expect(await listed({ state: 'failed' })).toEqual(['main.kid']);
  expect(await listed({ kind: 'subagent', sort: 'name' })).toEqual(['main.kid', 'main.kid.deep']);
  expect(await listed({ tree: true })).toEqual(['main', ' main.kid', '  main.kid.deep']);
  expect(await listed({ tree: true, state: 'open' })).toEqual(['main.kid.deep']);
  expect(await listed({ tree: true, find: 'deep' })).toEqual(['main.kid.deep']);
  expect(await listed({ tree: true, kind: 'subagent' })).toEqual(['main.kid', ' main.kid.deep']);
});

test('a name that every object has something of is no session of a file', async () => {
  const data = embeddedData(file);
  for (const session of ['constructor', '__proto__', 'toString'])
    await expect(data.session({ session })).rejects.toMatchObject({ code: 'NOT_IN_FILE' });
  await expect(data.usage({ session: 'valueOf' })).rejects.toMatchObject({ code: 'NOT_IN_FILE' });
  expect(data.follow).toBeUndefined();
});

test('the parts of two sessions are answered in either order', async () => {
  const side = (session: string) => ({
    session,
    at: 1,
    head: 2,
    entries: 1,
    messages: 1,
    tools: [],
    complete: true,
  });
  const parting = {
    ...{ a: side('x'), b: side('y'), command: 'tape diff x y' },
    files: [{ path: 'f', in: 'a' as const, wrote: true }],
    states: [{ key: 'k', a: '1' }],
  };
  const data = embeddedData({ ...file, partings: [parting] });
  expect(await data.parting({ a: 'x', b: 'y' })).toEqual(parting);
  expect(await data.parting({ a: 'y', b: 'x' })).toMatchObject({
    ...{ a: { session: 'y' }, b: { session: 'x' } },
    ...{ files: [{ path: 'f', in: 'b' }], states: [{ key: 'k', b: '1' }] },
  });
  await expect(data.parting({ a: 'x', b: 'z' })).rejects.toMatchObject({ code: 'NOT_IN_FILE' });
});

const item = (seq: number, owner: string, more: Partial<TimelineItem> = {}): TimelineItem => ({
  ...{ seq, owner, inherited: false, kind: 'message', parts: [], commands: [] },
  ...more,
});

test('a child in a file shows what it inherits, and hides what its own rewinds hide', async () => {
  const data = embeddedData({
    ...file,
    tapes: {
      main: {
        info: info('main', { head: 6 }),
        items: [1, 2, 3, 4, 5, 6].map((seq) =>
          item(seq, 'main', seq === 2 ? { hiddenBy: 3 } : seq === 4 ? { hiddenBy: 6 } : {}),
        ),
        hidden: [],
        gaps: [],
      },
      kid: {
        info: info('kid', { head: 7, base: 5, origin: 'main' }),
        items: [item(6, 'kid', { hiddenBy: 7 }), item(7, 'kid')],
        hidden: [
          [2, 2, 3],
          [5, 5, 7],
        ],
        gaps: [],
      },
    },
  });
  const shown = async (hidden: boolean) => {
    const { items, floor, head } = await data.timeline({ session: 'kid', from: 1, to: 200, hidden });
    expect({ floor, head }).toEqual({ floor: 0, head: 7 });
    return items.map(({ seq, owner, inherited, hiddenBy }) =>
      `${seq} ${owner} ${inherited} ${hiddenBy ?? ''}`.trim(),
    );
  };
  // The rewind at 6 of the parent came behind the fork.
  expect(await shown(false)).toEqual(['1 main true', '3 main true', '4 main true', '7 kid false']);
  expect(await shown(true)).toEqual([
    ...['1 main true', '2 main true 3', '3 main true', '4 main true', '5 main true 7'],
    ...['6 kid false 7', '7 kid false'],
  ]);
});
