import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SourceTable } from '@tapedeck/runtime/import';
import { type SqliteTapeStore, view } from '@tapedeck/tape';
import { treeParentOf } from '@tapedeck/tape/internal';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { importFiles } from '../support/import-files.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { memoryDir } from '../support/temp-dir.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

/**
 * One session of Claude Code whose file was copied, and went on in two ways: one of them goes on from what the other one left when
 * a prompt was typed anew.
 */

type Raw = { readonly [field: string]: unknown };

/** A file of a way, with those of its subagents. */
interface Way {
  readonly records: readonly Raw[];
  readonly agents?: ReadonlyMap<string, readonly Raw[]>;
}

/** Writes the file of each way in a folder of its own. */
function written(ways: readonly Way[]) {
  const dir = memoryDir();
  const paths = ways.map(({ records, agents = new Map<string, readonly Raw[]>() }, i) => {
    const folder = dir.file(String(i));
    mkdirSync(join(folder, 's-1', 'subagents'), { recursive: true });
    writeFileSync(join(folder, 's-1.jsonl'), jsonl(records));
    for (const [id, own] of agents)
      writeFileSync(join(folder, 's-1', 'subagents', `agent-${id}.jsonl`), jsonl(own));
    return folder;
  });
  let tables = 0;
  /** Reads all of them whole, as where the table of sources was lost. */
  const read = async (store: SqliteTapeStore, order: readonly number[]) => {
    tables += 1;
    const table = SourceTable.open(dir.file(`sources-${tables}.jsonl`));
    for (const i of order) {
      const { done } = await importFiles(store, [paths[i] ?? ''], { table });
      expect(done.filter(({ error }) => error !== undefined)).toEqual([]);
    }
  };
  return { read, [Symbol.dispose]: () => dir[Symbol.dispose]() };
}

const textsOf = (store: SqliteTapeStore, session: string) =>
  view(store.views.entries(session)).messages.flatMap(({ content }) =>
    content.map((part) => part.text ?? `${part.type} ${part.toolCallId}`),
  );

/** What readers see of each session, and its parent and title. */
const sessionsOf = (store: SqliteTapeStore) =>
  new Map(
    store.sessions
      .list({ all: true, deleted: false, titles: true })
      .map((info) => [
        info.session,
        { texts: textsOf(store, info.session), parent: treeParentOf(info).parent, title: info.title },
      ]),
  );

const viewsOf = (store: SqliteTapeStore) =>
  [...sessionsOf(store).values()].map(({ texts }) => texts.join(' / ')).toSorted();

/** Those that are not the beginning of another one. */
const longest = (views: readonly string[]) =>
  views.filter((one) => !views.some((other) => other.startsWith(`${one} / `)));

const outputOf = (store: SqliteTapeStore) =>
  store.sessions.calls().reduce((sum, { usage }) => sum + usage.output, 0);

/** The home behind a first reading in an order. Two further ones write nothing. */
async function settled(ways: readonly Way[], order: readonly number[]): Promise<SqliteTapeStore> {
  using files = written(ways);
  const { read } = files;
  const store = openStore();
  await read(store, order);
  const [before, changes] = [sessionsOf(store), store.changes()];
  for (let i = 0; i < 2; i += 1) await read(store, order);
  expect(sessionsOf(store)).toEqual(before);
  expect(store.changes()).toBe(changes);
  expect([...store.verify()]).toEqual([]);
  return store;
}

const orders = [
  [0, 1],
  [1, 0],
];

const ask = (uuid: string, parent: string | null, more: Raw = {}): Raw =>
  person({ uuid, parent }, `ask ${uuid}`, more);
const answer = (uuid: string, parent: string): Raw =>
  model({ uuid, parent }, [says(`did ${uuid}`)], { usage: { output_tokens: 5 } });
const begun = [ask('u1', null), answer('a1', 'u1'), ask('u2', 'a1'), answer('a2', 'u2')];
const left = { records: [...begun, ask('x1', 'a1'), answer('x2', 'x1')] };
const went = { records: [...begun, ask('y1', 'a2'), answer('y2', 'y1')] };

describe.each(orders)('a session that went on in two ways, read in the order %i, %i,', (...order) => {
  test('keeps the branch that one of them left and the other one went on from, below the one that left it', async () => {
    const store = await settled([left, went], order);
    expect(viewsOf(store)).toEqual([
      'ask u1 / did a1 / ask u2 / did a2',
      'ask u1 / did a1 / ask u2 / did a2 / ask y1 / did y2',
      'ask u1 / did a1 / ask x1 / did x2',
    ]);
    const sessions = sessionsOf(store);
    const { parent = '' } = sessions.get('s-1-branch-u2') ?? {};
    expect(sessions.get(parent)?.texts.at(-1)).toBe('did x2');
    expect(outputOf(store)).toBe(4 * 5);
  });

  test('leaves a branch of both where it is', async () => {
    const branched = [...begun, ask('u3', 'a2'), ask('u4', 'a2')];
    const store = await settled(
      [{ records: [...branched, ask('x1', 'a1')] }, { records: [...branched, ask('y1', 'u4')] }],
      order,
    );
    const sessions = sessionsOf(store);
    expect(sessions.get('s-1-branch-u3')?.texts.at(-1)).toBe('ask u3');
    expect([...sessions.values()].map(({ texts }) => texts.at(-1)).toSorted()).toEqual(
      ['ask u3', 'ask u4', 'ask x1', 'ask y1'].toSorted(),
    );
  });

  test('leaves a subagent of both where its result came', async () => {
    const inside = { isSidechain: true, agentId: 'g1' };
    const called = [
      ...begun,
      ask('u3', 'a2'),
      model({ uuid: 'a3', parent: 'u3' }, [calls('t1', 'Task')]),
      person({ uuid: 'r3', parent: 'a3' }, [returns('t1')], {
        toolUseResult: { status: 'completed', agentId: 'g1' },
      }),
    ];
    const agents = new Map([
      [
        'g1',
        [person({ uuid: 'gu' }, 'look', inside), model({ uuid: 'ga', parent: 'gu' }, [says('seen')], inside)],
      ],
    ]);
    const store = await settled(
      [
        { records: [...called, ask('x1', 'a1')], agents },
        { records: [...called, ask('y1', 'r3')], agents },
      ],
      order,
    );
    const { parent = '' } = sessionsOf(store).get('agent-g1') ?? {};
    expect(textsOf(store, parent)).toContain('tool-result t1');
  });

  test('keeps the title that the one read last brought, where both are in the same line', async () => {
    const titled = (customTitle: string) => ({
      records: [...begun, { type: 'custom-title', customTitle, sessionId: 's-1' }],
    });
    const store = await settled([titled('one'), titled('other')], order);
    expect(sessionsOf(store).get('s-1')?.title).toBe(['one', 'other'][order[1] ?? 0]);
  });
});

test('a branch to whose end its user returned goes, also where another copy went on elsewhere', async () => {
  const returned = { records: [...left.records, ask('u5', 'a2'), answer('a5', 'u5')] };
  const elsewhere = { records: [...begun, ask('y1', 'a2'), answer('y2', 'y1')] };
  using files = written([left, elsewhere, returned]);
  const { read } = files;
  const store = openStore();
  await read(store, [0, 1]);
  expect(sessionsOf(store).has('s-1-branch-u2')).toBe(true);
  await read(store, [2]);
  const before = store.changes();
  for (let i = 0; i < 2; i += 1) await read(store, [1, 2]);
  expect(store.changes()).toBe(before);
  expect(sessionsOf(store).has('s-1-branch-u2')).toBe(false);
  expect(viewsOf(store)).toContain('ask u1 / did a1 / ask u2 / did a2 / ask u5 / did a5');
});

/** A turn at the end of a file, or at an earlier record of it. */
const turn = fc.record({ at: fc.integer({ min: -4, max: 6 }), answers: fc.nat(2), isCall: fc.boolean() });
const turns = fc.array(turn, { minLength: 1, maxLength: 4 });
type Turn = typeof turn extends fc.Arbitrary<infer T> ? T : never;

function gone(from: readonly Raw[], all: readonly Turn[], way: string): readonly Raw[] {
  const records = [...from];
  const time = () => new Date(Date.UTC(2026, 2, 1, 10, way.codePointAt(0), records.length)).toISOString();
  const write = (record: Raw) => records.push({ ...record, timestamp: time() });
  // No prompt is typed behind a part of an answer, or a call without its result.
  const ends = () =>
    records.filter((one, i) => one.type === 'user' || records[i + 1]?.parentUuid !== one.uuid);
  for (const [n, { at, answers, isCall }] of all.entries()) {
    const id = `${way}${n}`;
    const heads = ends().map(({ uuid }) => String(uuid));
    const last = records.at(-1)?.uuid;
    const parent = at < 0 || last === undefined ? last : heads[at % heads.length];
    write(ask(`u${id}`, parent === undefined ? null : String(parent)));
    let head = `u${id}`;
    for (let i = 0; i < answers; i += 1) {
      const block = isCall && i === answers - 1 ? calls(`t${id}`) : says(`did ${id} ${i}`);
      const usage = { output_tokens: 10 * (i + 1) + n };
      write(model({ uuid: `a${id}x${i}`, parent: head, id: `m${id}` }, [block], { usage }));
      head = `a${id}x${i}`;
    }
    if (isCall && answers > 0) write(person({ uuid: `r${id}`, parent: head }, [returns(`t${id}`)]));
  }
  return records;
}

test('copies of a file that went on in two ways or three settle at once, in any order, with what each has, counted once', async () => {
  await fc.assert(
    fc.asyncProperty(
      turns,
      fc.array(turns, { minLength: 2, maxLength: 3 }),
      fc.boolean(),
      async (first, later, isReversed) => {
        const common = gone([], first, 'o');
        const ways = later.map((all, i) => ({ records: gone(common, all, 'xyz'[i] ?? '') }));
        const order = ways.map((_, i) => i);
        const store = await settled(ways, isReversed ? order.toReversed() : order);
        const other = openStore();
        using files = written(ways);
        await files.read(other, isReversed ? order : order.toReversed());
        // A branch from whose end a branch of the other copy goes on is a session of its own if it was read first.
        expect(longest(viewsOf(other))).toEqual(longest(viewsOf(store)));
        const views = viewsOf(store);
        for (const way of ways) {
          using alone = openStore();
          using file = written([way]);
          await file.read(alone, [0]);
          // The end of one can be the beginning of another one.
          for (const one of viewsOf(alone))
            expect(views.some((all) => all === one || all.startsWith(`${one} / `))).toBe(true);
        }
        const counted = new Map<unknown, number>();
        for (const { requestId, message } of ways.flatMap(({ records }) => records)) {
          const { usage } = message as { usage?: { output_tokens: number } };
          if (usage !== undefined)
            counted.set(requestId, Math.max(counted.get(requestId) ?? 0, usage.output_tokens));
        }
        expect(outputOf(store)).toBe([...counted.values()].reduce((sum, one) => sum + one, 0));
        for (const one of [store, other]) one.close();
      },
    ),
    { numRuns: sized(15, 60, 2_000), ...sized({ seed: 1 }, { seed: 1 }, {}) },
  );
});
