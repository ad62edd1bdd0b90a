import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { derivedIn, SourceTable } from '@tapedeck/runtime/import';
import { type SqliteTapeStore, view } from '@tapedeck/tape';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { importFiles } from '../support/import-files.ts';
import { acts, filesOf } from '../support/random-transcripts.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

const dir = mkdtempSync(join(tmpdir(), 'older-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const id = '00000001-0000-4000-8000-000000000000';
const records = [
  person({ uuid: 'u1' }, 'plan it'),
  model({ uuid: 'a1', parent: 'u1' }, [says('a plan')]),
  person({ uuid: 'u2', parent: 'a1' }, 'do it'),
  model({ uuid: 'a2', parent: 'u2' }, [says('done')]),
  person({ uuid: 'u3', parent: 'a2' }, 'go on'),
  model({ uuid: 'a3', parent: 'u3' }, [says('went on')]),
].map((one, i) => ({ ...one, sessionId: id, timestamp: `2026-03-01T10:00:0${i}.000Z` }));

/** Two folders in which the file of one session is seen, and a home. */
function places() {
  const home = mkdtempSync(join(dir, 'home-'));
  const pathIn = (folder: string) => {
    mkdirSync(join(home, folder));
    return join(home, folder, `${id}.jsonl`);
  };
  const [newer, older] = [pathIn('newer'), pathIn('older')];
  const [store, table] = [openStore(), SourceTable.open(join(home, 'sources.jsonl'))];
  const read = async (path: string, how = table) => await importFiles(store, [path], { table: how });
  return { newer, older, store, table, read, other: SourceTable.open(join(home, 'other.jsonl')) };
}

/** The messages that readers see, by session. */
function textsOf(store: SqliteTapeStore) {
  const said = (session: string) =>
    [...store.views.entries(session)].filter(({ kind }) => kind === 'message').map(({ payload }) => payload);
  return store.sessions.list().map(({ session }) => [session, said(session)] as const);
}

test('an older copy takes back nothing that was concluded of what came later', async () => {
  const { newer, older, store, read } = places();
  const lost = records.map((one, i) => (i === 2 ? { ...one, parentUuid: 'lost' } : one));
  writeFileSync(newer, jsonl(lost));
  writeFileSync(older, jsonl([...lost.slice(0, 2), { type: 'tag', tag: 'begun', sessionId: id }]));
  await read(newer);
  const edges = derivedIn(store, id);
  expect(edges).toMatchObject([{ of: 'cc:u2', from: 'cc:a1', why: 'parent-missing' }]);
  await read(older);
  expect([...store.entries.read(id)].map(({ payload }) => payload)).toContainEqual(
    expect.objectContaining({ tag: 'begun' }),
  );
  expect(derivedIn(store, id)).toEqual(edges);
});

describe('a last answer that its file has in another way, and no longer,', () => {
  const other = (text: string) => [
    ...records.slice(0, 5),
    { ...records[5], message: { ...Object(records[5]).message, content: [says(text)] } },
  ];

  test.each(['redone', 'did'])('is a session beside the first: %s', async (text) => {
    const { newer, store, read } = places();
    writeFileSync(newer, jsonl(records));
    await read(newer);
    writeFileSync(newer, jsonl(other(text)));
    for (let i = 0; i < 2; i += 1) await read(newer);
    const said = textsOf(store).map(([session, texts]) => [
      session,
      texts.map((one) => JSON.stringify(one)).join(),
    ]);
    expect(Object.fromEntries(said)).toEqual({
      [id]: expect.stringContaining('went on'),
      [`${id}-2`]: expect.stringContaining(text),
    });
  });

  test('is a session beside the first where its first block had been cut out of the file', async () => {
    const { newer, store, read } = places();
    const blocks = ['went', 'on'].map((word, i) => ({
      ...model({ uuid: `b${i}`, parent: i === 0 ? 'u3' : 'b0', id: 'mb' }, [says(word)], {
        usage: { output_tokens: 5 },
      }),
      ...{ sessionId: id, timestamp: `2026-03-01T10:00:1${i}.000Z` },
    }));
    writeFileSync(newer, jsonl([...records.slice(0, 5), ...blocks.slice(1)]));
    await read(newer);
    writeFileSync(newer, jsonl([...records.slice(0, 5), ...blocks]));
    for (let i = 0; i < 2; i += 1) await read(newer);
    expect(textsOf(store)).toHaveLength(2);
    expect(JSON.stringify(textsOf(store))).toContain('went');
    expect(store.sessions.calls().reduce((sum, { usage }) => sum + usage.output, 0)).toBe(5);
  });

  test('is a part of the first one where it has some of its blocks alone', async () => {
    const { newer, older, store, read } = places();
    const blocks = ['went', 'on', 'and on'].map((word, i) => ({
      ...model({ uuid: `b${i}`, parent: i === 0 ? 'u3' : `b${i - 1}`, id: 'mb' }, [says(word)]),
      ...{ sessionId: id, timestamp: `2026-03-01T10:00:1${i}.000Z` },
    }));
    const whole = [...records.slice(0, 5), ...blocks];
    writeFileSync(newer, jsonl(whole));
    await read(newer);
    const before = textsOf(store);
    writeFileSync(older, jsonl([{ type: 'mode', sessionId: id, mode: 'normal' }, ...whole.slice(0, 7)]));
    await read(older);
    expect(textsOf(store)).toEqual(before);
  });
});

describe('an older file of a session hides nothing that a newer one brought', () => {
  test.each([
    ['its time alone changes', 2],
    ['it grows to a part of that', 4],
  ])('where %s', async (_, length) => {
    const { newer, older, store, read } = places();
    writeFileSync(older, jsonl(records.slice(0, 2)));
    await read(older);
    writeFileSync(newer, jsonl(records));
    await read(newer);
    const before = textsOf(store);
    writeFileSync(older, jsonl(records.slice(0, length)));
    utimesSync(older, 10, 10);
    await read(older);
    await read(newer);
    expect(textsOf(store)).toEqual(before);
    expect(before).toHaveLength(1);
  });

  test('where no table says what was read', async () => {
    const { newer, older, store, read, other } = places();
    writeFileSync(newer, jsonl(records));
    await read(newer);
    const before = textsOf(store);
    writeFileSync(older, jsonl(records.slice(0, 2)));
    const { done } = await read(older, other);
    expect(done.flatMap(({ brought }) => brought?.sessions ?? [])).toMatchObject([
      { added: 0, isBehind: true },
    ]);
    expect(textsOf(store)).toEqual(before);
  });

  test('and makes no session of a branch to whose end the user has returned since', async () => {
    const { newer, older, store, read, other } = places();
    const [u1 = {}, a1 = {}, u2 = {}, a2 = {}, u3 = {}, a3 = {}] = records;
    const begun = [u1, a1, u2, a2, { ...u3, parentUuid: 'a1' }, a3];
    const returned = [
      person({ uuid: 'u4', parent: 'a2' }, 'do more'),
      model({ uuid: 'a4', parent: 'u4' }, [says('did more')]),
    ].map((one) => ({ ...one, sessionId: id, timestamp: '2026-03-01T10:00:09.000Z' }));
    writeFileSync(older, jsonl(begun));
    writeFileSync(newer, jsonl([...begun, ...returned]));
    for (const path of [older, newer]) await read(path);
    const before = store.changes();
    const { done } = await read(older, other);
    expect(done.flatMap(({ brought }) => brought?.sessions ?? [])).toMatchObject([
      { added: 0, isBehind: true },
      { session: id, added: 0, isBehind: true },
    ]);
    expect(store.changes()).toBe(before);
    expect(store.sessions.list().map(({ session }) => session)).toEqual(
      expect.arrayContaining([id, `${id}-branch-u3`]),
    );
  });

  test('but what it has beyond what both begin with becomes a session beside it', async () => {
    const { newer, older, store, read } = places();
    writeFileSync(older, jsonl(records.slice(0, 2)));
    await read(older);
    writeFileSync(newer, jsonl(records));
    await read(newer);
    const [before = []] = textsOf(store);
    const elsewhere = { ...person({ uuid: 'x2', parent: 'a1' }, 'do else'), sessionId: id };
    writeFileSync(older, jsonl([...records.slice(0, 2), elsewhere]));
    await read(older);
    const [first, second] = textsOf(store).toSorted(([a], [b]) => (a < b ? -1 : 1));
    expect(first).toEqual(before);
    expect(second).toMatchObject([`${id}-2`, [{}, {}, { content: [{ text: 'do else' }] }]]);
  });
});

test('an older file that names no call of a subagent leaves it under the session that has its call', async () => {
  const { newer, older, store, read } = places();
  const at = (n: number) => ({ sessionId: id, timestamp: `2026-03-01T11:00:0${n}.000Z` });
  const asked = { ...person({ uuid: 'x1' }, 'look it up'), agentId: 'x', isSidechain: true };
  const agent = [
    asked,
    { ...model({ uuid: 'x2', parent: 'x1' }, [says('found')]), agentId: 'x', isSidechain: true },
  ];
  const returned = {
    ...person({ uuid: 'r4', parent: 'a4' }, [returns('t4')]),
    toolUseResult: { agentId: 'x' },
  };
  const cleared = [
    person({ uuid: 'u4' }, 'and now'),
    model({ uuid: 'a4', parent: 'u4' }, [calls('t4')]),
    returned,
    model({ uuid: 'a5', parent: 'r4' }, [says('so it is')]),
  ];
  const write = (path: string, all: readonly object[]) => {
    const folder = join(path.replace(/\.jsonl$/, ''), 'subagents');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'agent-x.jsonl'), jsonl(agent.map((one, i) => ({ ...one, ...at(i + 2) }))));
    writeFileSync(path, jsonl(all.map((one, i) => ({ ...one, ...at(i) }))));
  };
  write(newer, [...records.slice(0, 2), ...cleared]);
  await read(join(newer, '..'));
  const place = () => store.sessions.find('agent-x');
  const before = place();
  expect(before?.link?.parent ?? before?.parent).toBe(`${id}-clear-u4`);
  write(older, [...records.slice(0, 2), ...cleared.slice(0, 2)]);
  // So that is not as it was read, and nothing says of the older one that it is the beginning of that.
  utimesSync(newer, 20, 20);
  await read(join(older, '..'));
  expect(place()).toEqual(before);
});

test('a file that caught up with the one of another machine, by its end in a branch, goes on in its session', async () => {
  // Two machines import into one home, and neither knows the files of the other.
  const { newer, older, store, read, other } = places();
  writeFileSync(newer, jsonl(records.slice(0, 4)));
  await read(newer, other);
  writeFileSync(older, jsonl(records.slice(0, 3)));
  await read(older);
  const again = { ...person({ uuid: 'u4', parent: 'a1' }, 'do else'), sessionId: id };
  writeFileSync(older, jsonl([...records.slice(0, 4), again]));
  await read(older);
  const texts = Object.fromEntries(
    textsOf(store).map(([name, said]) => [name, said.map((one) => JSON.stringify(one))]),
  );
  expect(Object.keys(texts).toSorted()).toEqual([id, `${id}-branch-u2`]);
  expect(texts[id]?.at(-1)).toContain('do else');
  expect(texts[`${id}-branch-u2`]?.at(-1)).toContain('done');
});

/** A record that has no id, as those that Claude Code writes beside a conversation. */
const titled = (title: string) => ({ type: 'custom-title', customTitle: title, sessionId: id });

/** The records beside the conversations of a store, also those that deleted sessions have. */
function besideIn(store: SqliteTapeStore) {
  return store.sessions
    .list({ all: true })
    .flatMap((one) => [...store.entries.read(one.id, { own: true, kind: 'x-claude-code' })])
    .map(({ payload }) => payload);
}

const textOf = (record: unknown) => JSON.stringify(record);
const titlesBeside = (store: SqliteTapeStore) =>
  besideIn(store)
    .map(textOf)
    .filter((text) => text.includes('custom-title'))
    .toSorted();

/** What readers see of each session. */
const viewsOf = (store: SqliteTapeStore) =>
  store.sessions
    .list({ all: true, deleted: false })
    .map(({ id: own }) => textOf(view(store.views.entries(own)).messages));

describe('an older file of a session', () => {
  test.each([
    ['has a part of that', 5],
    ['has nothing of that', 3],
  ])(
    'gives none of its sessions a title that they had before a /clear in it, where it %s',
    async (_, end) => {
      const { newer, older, store, read, other } = places();
      const titled = (customTitle: string) => ({ type: 'custom-title', customTitle, sessionId: id });
      const [u1 = {}, a1 = {}, u2 = {}, a2 = {}] = records;
      const all = [u1, a1, titled('The plan'), { ...u2, parentUuid: null }, a2, titled('What is done')];
      writeFileSync(older, jsonl(all.slice(0, end - 1)));
      await read(older);
      writeFileSync(newer, jsonl(all));
      await read(newer);
      const titles = () => store.sessions.list({ titles: true }).map(({ title }) => title);
      expect(titles()).toEqual(['What is done', 'What is done']);
      const heads = () => store.sessions.list().map(({ head }) => head);
      const before = heads();
      writeFileSync(older, jsonl(all.slice(0, end)));
      for (const path of [older, newer, older]) await read(path, other);
      expect(titles()).toEqual(['What is done', 'What is done']);
      expect(heads()).toEqual(before);
    },
  );

  test('gives it no title that it had before', async () => {
    const { newer, older, store, read } = places();
    const begun = [...records.slice(0, 2), titled('The first title')];
    writeFileSync(newer, jsonl([...begun, ...records.slice(2), titled('The title by now')]));
    writeFileSync(older, jsonl(begun));
    for (const path of [newer, older]) await read(path);
    expect(store.sessions.find(id)?.title).toBe('The title by now');
  });

  test.each([
    ['behind its end', 0],
    ['in a line in which the newer one has another one', 1],
  ])('brings the records that it alone has, such as a title that it got since: %s', async (_, same) => {
    const { newer, older, store, read } = places();
    const begun = records.slice(0, 2);
    const here = same === 0 ? [...records, titled('Here')] : [...begun, titled('Here'), ...records.slice(2)];
    writeFileSync(newer, jsonl(here));
    writeFileSync(older, jsonl([...begun, titled('There')]));
    for (const path of [newer, older, newer]) await read(path);
    const again = store.changes();
    for (const path of [older, newer]) await read(path);
    expect(store.changes()).toBe(again);
    expect(store.sessions.list()).toMatchObject([{ session: id, title: 'There' }]);
    expect(besideIn(store)).toEqual([titled('Here'), titled('There')]);
    expect(textsOf(store)[0]?.[1]).toHaveLength(6);
  });

  test('takes no summary of a compaction away that had not come to it', async () => {
    const { newer, older, store, read } = places();
    const boundary = {
      ...{ type: 'system', subtype: 'compact_boundary', uuid: 'c1', parentUuid: null },
      ...{ logicalParentUuid: 'a1', sessionId: id, compactMetadata: { trigger: 'manual' } },
    };
    const summary = { ...person({ uuid: 's1', parent: 'c1' }, 'what was', { isCompactSummary: true }) };
    const begun = [...records.slice(0, 2), boundary];
    writeFileSync(newer, jsonl([...begun, { ...summary, sessionId: id }]));
    writeFileSync(older, jsonl([...begun, titled('There')]));
    for (const path of [newer, older]) await read(path);
    expect(store.sessions.list()).toHaveLength(1);
    expect([...store.views.entries(id)].find(({ mark }) => mark === 'boundary')?.payload).toEqual({
      state: { summary: 'what was' },
    });
  });
});

/** Where something lies behind the nth record of a file. */
const place = fc.nat(40);

test('a session that is seen in two folders shows what the newer file says, and has the records of both, in any pieces', async () => {
  await fc.assert(
    fc.asyncProperty(
      acts(['turn', 'compact', 'clear']),
      fc.record({ here: fc.array(place, { maxLength: 4 }), there: fc.nat(3), copied: place }),
      fc.array(fc.tuple(fc.boolean(), place), { maxLength: 6 }),
      async (all, { here, there, copied }, pieces) => {
        const said = filesOf(all, { requests: true })[0]?.map((one) => ({ ...one, sessionId: id })) ?? [];
        const file = said.flatMap((one, i) => [
          one,
          ...here.flatMap((at, n) => (at % said.length === i ? [titled(`Here ${n}`)] : [])),
        ]);
        const own = Array.from({ length: there }, (_, n) => titled(`There ${n}`));
        const copy = [...file.slice(0, 1 + (copied % file.length)), ...own];
        const { newer, older, store, read } = places();
        const lengths = new Map([newer, older].map((path) => [path, 1]));
        for (const [isNewer, more] of [...pieces, [true, 99], [false, 99]] as const) {
          const [path, records] = isNewer ? ([newer, file] as const) : ([older, copy] as const);
          const length = Math.min(records.length, (lengths.get(path) ?? 1) + more);
          lengths.set(path, length);
          writeFileSync(path, jsonl(records.slice(0, length)));
          await read(path);
        }
        const once = places();
        writeFileSync(once.newer, jsonl(file));
        await once.read(once.newer);
        const views = viewsOf(store);
        expect(viewsOf(once.store).filter((one) => !views.includes(one))).toEqual([]);
        expect(titlesBeside(store)).toEqual([...titlesBeside(once.store), ...own.map(textOf)].toSorted());
        expect([...store.verify()]).toEqual([]);
      },
    ),
    { numRuns: sized(4, 25, 2_000), ...sized({ seed: 1 }, { seed: 1 }, {}) },
  );
});

describe('a record without an id is on a tape though another one is in the same line', () => {
  const asked = (session: string, prompt: string) => [
    { ...person({ uuid: `u-${session}`, parent: 'a1' }, prompt), sessionId: session },
    {
      ...model({ uuid: `a-${session}`, parent: `u-${session}` }, [says(`did ${prompt}`)]),
      sessionId: session,
    },
  ];

  test('where a session went on in two folders', async () => {
    const { newer, older, store, read } = places();
    const [first, second] = records;
    writeFileSync(newer, jsonl([first, second, titled('Here'), ...asked(id, 'do it')]));
    const there = asked('x', 'do else').map((one) => ({ ...one, sessionId: id }));
    writeFileSync(older, jsonl([first, second, titled('There'), ...there]));
    for (const path of [newer, older, newer, older]) await read(path);
    expect(store.sessions.list()).toHaveLength(2);
    expect(besideIn(store)).toEqual(expect.arrayContaining([titled('Here'), titled('There')]));
    expect(besideIn(store)).toHaveLength(2);
  });

  test('where a fork has it before the place at which it was forked', async () => {
    const { newer, older, store, read } = places();
    const [first, second] = records;
    const fork = '00000002-0000-4000-8000-000000000000';
    const copied = [first, titled('There'), second].map((one) => ({
      ...{ ...one, sessionId: fork },
      ...(one !== undefined && 'uuid' in one && { forkedFrom: { sessionId: id, messageUuid: one.uuid } }),
    }));
    writeFileSync(newer, jsonl([first, titled('Here'), second, ...asked(id, 'do it')]));
    const other = older.replace(id, fork);
    writeFileSync(other, jsonl([...copied, ...asked(fork, 'do else')]));
    for (const path of [newer, other, newer, other]) await read(path);
    expect(store.sessions.find(fork)?.parent).toBe(id);
    const own = { ...titled('There'), sessionId: fork };
    expect(besideIn(store)).toEqual(expect.arrayContaining([titled('Here'), own]));
    expect(besideIn(store)).toHaveLength(2);
  });
});

test('a file that is seen shorter for a while goes on in its session, also where a call had no result', async () => {
  const open = [
    ...records.slice(0, 3),
    { ...model({ uuid: 'k1', parent: 'u2' }, [calls('t1')]), sessionId: id },
  ];
  const whole = [...open, { ...person({ uuid: 'r1', parent: 'k1' }, [returns('t1')]), sessionId: id }];
  const { newer, store, read } = places();
  for (const one of [open, open.slice(0, 1), whole]) {
    writeFileSync(newer, jsonl(one));
    await read(newer);
  }
  expect(store.sessions.list().map(({ session }) => session)).toEqual([id]);
  expect([...store.views.entries(id)].at(-1)).toMatchObject({ kind: 'tool-result', key: 'u:cc:r1:t1' });
});

describe('a file that is the beginning of another one is not read into the tape', () => {
  /** The user goes on from a branch, which the newer file says alone. */
  const branched = [
    ...records.slice(0, 4),
    { ...person({ uuid: 'u5', parent: 'a1' }, 'do else'), sessionId: id },
    { ...model({ uuid: 'a5', parent: 'u5' }, [says('did else')]), sessionId: id },
    titled('The first title'),
  ];
  const returned = [...branched, ...records.slice(4), titled('The title by now')];

  test.each([
    ['plain', (path: string, text: string) => writeFileSync(path, text), ''],
    ['compressed', (path: string, text: string) => writeFileSync(`${path}.gz`, gzipSync(text)), '.gz'],
    ['cut in a line', (path: string, text: string) => writeFileSync(path, text.slice(0, -9)), ''],
  ])('where it is %s', async (_, write, end) => {
    const { newer, older, store, table, read } = places();
    writeFileSync(newer, jsonl(returned));
    write(older, jsonl(branched));
    await read(newer);
    const [changes, before] = [store.changes(), textsOf(store)];
    const { done } = await importFiles(store, [`${older}${end}`], { table });
    expect(done).toMatchObject([{ seen: 'version' }]);
    expect(done[0]?.brought).toBeUndefined();
    expect(store.changes()).toBe(changes);
    const again = await importFiles(store, [`${older}${end}`], { table });
    expect(again.done).toMatchObject([{ seen: 'unchanged' }]);
    // Where it goes on in another way, that comes beside it.
    const elsewhere = { ...person({ uuid: 'x1', parent: 'a5' }, 'go elsewhere'), sessionId: id };
    write(older, jsonl([...branched, elsewhere, titled('cut off')]));
    await read(`${older}${end}`);
    const texts = textsOf(store);
    expect(texts.find(([name]) => name === id)).toEqual(before.find(([name]) => name === id));
    expect(JSON.stringify(texts)).toContain('go elsewhere');
  });

  test('with the subagents that it had then', async () => {
    const { newer, older, store, table, read } = places();
    const agent = (path: string, n: number) => {
      const folder = join(path.replace('.jsonl', ''), 'subagents');
      mkdirSync(folder, { recursive: true });
      const said = records.map((one) => ({ ...one, isSidechain: true, agentId: 'a1b2' }));
      writeFileSync(join(folder, 'agent-a1b2.jsonl'), jsonl(said.slice(0, n)));
      writeFileSync(join(folder, 'agent-a1b2.meta.json'), JSON.stringify({ description: 'Look for it' }));
    };
    for (const [path, all, n] of [
      [newer, returned, 6],
      [older, branched, 3],
    ] as const) {
      writeFileSync(path, jsonl(all));
      agent(path, n);
    }
    await read(join(newer, '..'));
    const changes = store.changes();
    const { done } = await importFiles(store, [join(older, '..')], { table });
    expect(done.map(({ seen }) => seen)).toEqual(['version', 'version', 'copied']);
    expect(store.changes()).toBe(changes);
  });

  test('but where the newer file has changed since it was read, it may have something of its own', async () => {
    const { newer, older, store, read } = places();
    writeFileSync(newer, jsonl(records));
    await read(newer);
    const other = { ...person({ uuid: 'x1', parent: 'a1' }, 'do else'), sessionId: id };
    const text = jsonl([...records.slice(0, 2), other]);
    writeFileSync(newer, text.padEnd(jsonl(records).length + 1, '\n'));
    writeFileSync(older, text);
    await read(older);
    expect(JSON.stringify(textsOf(store))).toContain('do else');
  });
});

describe('a file that holds just what was read is not read into the tape again', () => {
  test.each<[string, (from: string, to: string) => void, string]>([
    ['moved', (from, to) => renameSync(from, to), 'moved'],
    ['copied', (from, to) => copyFileSync(from, to), 'copied'],
    ['compressed', (from, to) => writeFileSync(`${to}.gz`, gzipSync(readFileSync(from))), 'compressed'],
    ['touched', (from) => utimesSync(from, 10, 10), 'unchanged'],
  ])('when it was %s', async (_, act, seen) => {
    const { newer, older, store, table, read } = places();
    writeFileSync(newer, jsonl(records));
    await read(newer);
    const changes = store.changes();
    act(newer, older);
    const paths = [newer, older, `${older}.gz`].filter((one) => existsSync(one));
    const { done } = await importFiles(store, paths, { table });
    expect(done.at(-1)).toMatchObject({ seen });
    expect(done.every(({ brought }) => brought === undefined)).toBe(true);
    expect(store.changes()).toBe(changes);
    expect(table.all.map(({ path }) => path).toSorted()).toEqual(paths.toSorted());
    const again = await importFiles(store, paths, { table });
    expect(again.done.every((one) => one.seen === 'unchanged')).toBe(true);
    // What comes then follows what was read under the other path.
    const more = { ...person({ uuid: 'u4', parent: 'a3' }, 'and more'), sessionId: id };
    const [last = ''] = paths.slice(-1);
    const text = jsonl([...records, more]);
    writeFileSync(last, last.endsWith('.gz') ? gzipSync(text) : text);
    await read(last);
    const [[, texts = []] = []] = textsOf(store);
    expect(texts.at(-1)).toMatchObject({ content: [{ text: 'and more' }] });
    expect(textsOf(store)).toHaveLength(1);
  });
});
