import type { LivePage, TimelineItem } from '@tapedeck/cli/internal';
import { expect, test } from 'vitest';
import { safeLink, withCharacters } from '../../packages/cli/ui/src/parts/safe-link.ts';
import { Blocks } from '../../packages/cli/ui/src/reading/blocks.ts';
import { type FeedRow, feedRows, rowAt, rowInstead } from '../../packages/cli/ui/src/reading/feed-rows.ts';
import { findingsAt, placeKey } from '../../packages/cli/ui/src/reading/findings-at.ts';

type Timeline = Awaited<ReturnType<LivePage['timeline']>>;

function item(seq: number, more: Partial<TimelineItem> = {}): TimelineItem {
  return { seq, owner: 'main', inherited: false, kind: 'message', parts: [], commands: [], ...more };
}

/** A session with an item at each position, which answers no more than `most` of them at a time. */
function session(head: number, most = 200) {
  const asked: (readonly [number, number])[] = [];
  const ask = async (from: number, to: number): Promise<Timeline> => {
    asked.push([from, to]);
    const last = Math.min(to, head, from + most - 1);
    const items = Array.from({ length: last - from + 1 }, (_, i) => item(from + i));
    return { items, from, to: last, floor: 0, head };
  };
  let changes = 0;
  const blocks = new Blocks(ask, { floor: 0, head }, () => {
    changes += 1;
  });
  const settled = async () => {
    for (let before = -1; before !== changes; ) {
      before = changes;
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
  };
  return { blocks, asked, settled };
}

const rowsOf = (blocks: Blocks, base = 0) =>
  feedRows({ count: blocks.count, items: (block) => blocks.items(block) }, base);

test('of 100,000 entries those in view are loaded, and those far from it dropped', async () => {
  const { blocks, asked, settled } = session(100_000);
  expect(blocks.count).toBe(500);
  for (const block of [0, 1, 40, 250, 499]) {
    blocks.want(block, block + 1);
    await settled();
    expect(blocks.items(block)?.at(0)?.seq).toBe(block * 200 + 1);
    expect(blocks.loaded).toBeLessThanOrEqual(6);
  }
  expect(blocks.items(0)).toBeUndefined();
  expect(asked.length).toBeLessThanOrEqual(9);
  expect(rowsOf(blocks).length).toBeLessThan(500 + 6 * 200);
});

test('a block is loaded in as many answers as its positions take', async () => {
  const { blocks, asked, settled } = session(150, 60);
  blocks.want(0, 0);
  await settled();
  expect(blocks.items(0)?.map(({ seq }) => seq)).toEqual(Array.from({ length: 150 }, (_, i) => i + 1));
  expect(asked).toEqual([
    [1, 150],
    [61, 150],
    [121, 150],
  ]);
});

test('what is in view is loaded anew when the session becomes longer, and a refusal is kept until it is asked again', async () => {
  let isRefused = false;
  let head = 3;
  const ask = async (from: number, to: number): Promise<Timeline> => {
    if (isRefused) throw new Error('no');
    const items = [1, 2, 3, 4].filter((seq) => seq >= from && seq <= to).map((seq) => item(seq));
    return { items, from, to, floor: 0, head };
  };
  const blocks = new Blocks(ask, { floor: 0, head }, () => {});
  const wait = async () => await new Promise((resolve) => setTimeout(resolve, 0));
  blocks.want(0, 0);
  await wait();
  head = 4;
  blocks.again(4);
  expect(blocks.items(0)).toHaveLength(3);
  await wait();
  expect(blocks.items(0)).toHaveLength(4);
  isRefused = true;
  blocks.again();
  await wait();
  expect(blocks.error).toMatchObject({ message: 'no' });
  expect(blocks.items(0)).toHaveLength(4);
  isRefused = false;
  blocks.again();
  await wait();
  expect(blocks.error).toBeUndefined();
});

test('a position is found at its own item, in the result of a call, and in what a rewind hides', () => {
  const call = {
    ...{ type: 'call' as const, call: 'a', tool: 't', brief: 't()', input: '' },
    ...{ state: 'done' as const, output: '', outputSeq: 3 },
  };
  const items = [
    item(1),
    item(2, { parts: [call] }),
    item(2, { kind: 'forks' }),
    item(9, { kind: 'rewind', hides: { from: 4, to: 9, entries: 5, what: 'undo' } }),
    item(12),
  ];
  const rows = feedRows({ count: 1, items: () => items }, 2);
  expect(rows.map(({ type }) => type)).toEqual(['item', 'item', 'item', 'own', 'item', 'item']);
  const found = (seq: number) => {
    const at = rowAt(rows, seq);
    const row = rows[at?.index ?? -1];
    return [row?.type === 'item' ? row.item.seq : undefined, at?.isExact];
  };
  expect(found(2)).toEqual([2, true]);
  expect(found(3)).toEqual([2, true]);
  expect(found(6)).toEqual([9, false]);
  expect(found(11)).toEqual([9, false]);
  expect(found(12)).toEqual([12, true]);
  expect(new Set(rows.map(({ key }) => key)).size).toBe(rows.length);
});

test('a place stays where it is when rows around it are loaded or dropped', () => {
  const blocks = new Map([[1, Array.from({ length: 10 }, (_, i) => item(201 + i))]]);
  const rows = (): readonly FeedRow[] => feedRows({ count: 3, items: (block) => blocks.get(block) }, 0);
  const [placeholder, first] = rows();
  blocks.set(0, [item(1), item(2), item(3), item(4)]);
  const loaded = rows();
  expect(rowInstead(loaded, first as FeedRow, 0)).toEqual({ index: 4, isSame: true });
  expect(rowInstead(loaded, placeholder as FeedRow, 0)).toEqual({ index: 0, isSame: false });
  expect(rowInstead(loaded, placeholder as FeedRow, 0.9)).toEqual({ index: 2, isSame: false });
  blocks.delete(1);
  expect(rowInstead(rows(), first as FeedRow, 0)).toEqual({ index: 4, isSame: false });
});

test.each([
  ['https://example.com/a?b#c', 'https://example.com/a?b#c'],
  ['HTTP://EXAMPLE.com', 'http://example.com/'],
  ['mailto:a@example.com', 'mailto:a@example.com'],
  ['javascript:alert(1)', undefined],
  ['JaVaScRiPt:alert(1)', undefined],
  [' javascript:alert(1)', undefined],
  ['java\nscript:alert(1)', undefined],
  ['javascript&#58;alert(1)', undefined],
  ['data:text/html,<script>alert(1)</script>', undefined],
  ['vbscript:x', undefined],
  ['file:///etc/passwd', undefined],
  ['blob:https://example.com/1', undefined],
  ['//example.com', undefined],
  ['/relative', undefined],
  ['#/main', undefined],
  ['https://', undefined],
])('%j is a link to a page or a person, or none', (address, href) => {
  expect(safeLink(address)).toBe(href);
});

test('the usual names of characters are replaced once', () => {
  expect(withCharacters('a &amp; b &lt;i&gt; &#39;&quot; &amp;lt; &bogus;')).toBe(
    `a & b <i> '" &lt; &bogus;`,
  );
});

test('a finding stands at the item of its place, also that of a result, and where what has it is inherited', () => {
  const places = [
    ['main', 3],
    ['main', 4],
    ['main', 5],
    ['kid', 3],
    ['kid', 4],
    ['main'],
    ['main@6'],
  ] as const;
  const found = Map.groupBy(
    places.map(([session, seq]) => ({
      ...{ id: `${session}@${seq}`, code: 'c', weight: 'note' as const, section: 's', text: 't', session },
      ...(seq !== undefined && { seq }),
    })),
    ({ session, seq }) => placeKey(session, seq),
  );
  const at = (session: string, one: TimelineItem) => findingsAt(found, session, one).map(({ id }) => id);
  const call = {
    type: 'call' as const,
    call: 'c',
    tool: 'read',
    brief: '',
    input: '',
    state: 'done' as const,
  };
  expect(at('main', item(3))).toEqual(['main@3']);
  expect(at('main', item(3, { parts: [{ ...call, outputSeq: 4 }, call] }))).toEqual(['main@3', 'main@4']);
  expect(at('kid', item(3))).toEqual(['main@3', 'kid@3']);
  expect(at('main', item(3, { kind: 'forks' }))).toEqual([]);
  expect(at('main', item(6))).toEqual([]);
});
