import { anchor, openTapeStore, type SqliteTapeStore, TapeError, user } from '@tapedeck/tape';
import type { BundlePart } from '@tapedeck/tape/store';
import { expect, test } from 'vitest';
import { adopt, bundleOf, faceOf } from '../support/bundles.ts';
import { leavesOf, recordsOf, sealed, withLeaf } from '../support/hostile-bundle.ts';
import { fillForForgeries } from '../support/random-forgery.ts';
import { seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';

/** A home with a family, and another one that took all of it in. */
async function twoHomes(): Promise<readonly [SqliteTapeStore, SqliteTapeStore]> {
  const here = openStore(':memory:', { secrets: [] });
  fillForForgeries(here);
  const there = openTapeStore(':memory:', { secrets: [] });
  await adopt(
    there,
    partOf(
      here,
      here.bundles.heads().map(({ id }) => ({ session: id })),
    ),
  );
  return [here, there];
}

function partOf(
  store: SqliteTapeStore,
  parts: readonly BundlePart[],
  knows: (event: string) => boolean = () => false,
): string {
  return [...store.bundles.write(parts, { secrets: [], knows })].join('');
}

/** What one store lacks of another, as a part. */
function newsFor(there: SqliteTapeStore, here: SqliteTapeStore): string {
  const known = new Map(there.bundles.heads().map((one) => [one.id, one]));
  const events = new Set(there.bundles.heads().flatMap((one) => one.events));
  const parts = here.bundles
    .heads()
    .filter(
      ({ id, hash, events: own }) => known.get(id)?.hash !== hash || own.some((one) => !events.has(one)),
    )
    .map(({ id }) => ({ session: id, after: known.get(id)?.head }));
  return partOf(here, parts, (event) => events.has(event));
}

function stateOf(store: SqliteTapeStore): unknown {
  return [store.sessions.list({ all: true }), [...store.lineage.read()], store.count()];
}

async function refused(store: SqliteTapeStore, bundle: string): Promise<TapeError | undefined> {
  const before = stateOf(store);
  try {
    await adopt(store, bundle);
  } catch (error) {
    if (!(error instanceof TapeError)) throw error;
    expect(stateOf(store)).toEqual(before);
    return error;
  }
  expect([...store.verify()].filter(({ code }) => code !== 'not-here')).toEqual([]);
  return undefined;
}

test('all sessions of a home travel as one part, with the heads, names and lines that they have', async () => {
  const [here, there] = await twoHomes();
  for (const ref of ['main', 'child', 'grand', 'old']) expect(faceOf(there, ref)).toEqual(faceOf(here, ref));
  expect(there.bundles.heads()).toEqual(here.bundles.heads());
  expect(there.sessions.find('other')?.session).toBe('main');
  expect([...there.verify()]).toEqual([]);
});

test('a part has the new entries and lines alone, and a second import of it adds nothing', async () => {
  const [here, there] = await twoHomes();
  here.entries.append('main', [user('More.')]);
  here.lineage.fork('child', { name: 'late' });
  here.sessions.update('old', { lifecycle: 'active' });
  here.sessions.update('child', { alias: { name: 'second', reason: 'z' } });
  const news = newsFor(there, here);
  const records = recordsOf(news);
  expect(records[0]).toEqual({ bundle: 'tape.bundle', v: 2 });
  expect(records.filter((one) => 'e' in one)).toHaveLength(2);
  // That of the new fork; and of two sessions the new one, behind the last one that the other side has.
  expect(records.filter((one) => 'line' in one)).toHaveLength(5);
  const adopted = await adopt(there, news);
  expect([adopted.entries, adopted.lines]).toEqual([2, 3]);
  expect(there.bundles.heads()).toEqual(here.bundles.heads());
  for (const ref of ['main', 'second', 'late', 'old']) expect(faceOf(there, ref)).toEqual(faceOf(here, ref));
  expect([...there.verify()]).toEqual([]);
  const before = stateOf(there);
  expect(await adopt(there, news)).toMatchObject({ entries: 0, lines: 0 });
  expect(stateOf(there)).toEqual(before);
});

test('a line that is new changes what it changed, and not what was decided here meanwhile', async () => {
  const [here, there] = await twoHomes();
  there.sessions.update('child', { lifecycle: 'archived' });
  here.sessions.update('child', { alias: { name: 'second', reason: 'z' } });
  await adopt(there, newsFor(there, here));
  expect(there.sessions.find('second')).toMatchObject({ session: 'child', lifecycle: 'archived' });
});

test('what a part continues and is not here is refused, and so is another hash there', async () => {
  const [here, there] = await twoHomes();
  const [id = '', head = 0] = [here.sessions.find('main')?.id, here.sessions.find('main')?.head];
  here.entries.append('main', [user('One.')]);
  here.entries.append('main', [user('Two.')]);
  const second = partOf(here, [{ session: id, after: head + 1 }]);
  expect(await refused(there, second)).toMatchObject({
    code: 'TAPE_MISSING_BASE',
    message: expect.stringContaining(`it continues @${head + 1}, which is not here`),
    data: { session: 'main', file: 'a.tape', line: 2 },
  });
  using empty = openTapeStore(':memory:');
  expect((await refused(empty, second))?.code).toBe('TAPE_MISSING_BASE');
  // An ancestor that is not here.
  const child = here.sessions.find('child')?.id ?? '';
  expect((await refused(empty, partOf(here, [{ session: child }])))?.code).toBe('TAPE_MISSING_BASE');
  there.entries.append('main', [user('Other.')]);
  expect(await refused(there, second)).toMatchObject({ code: 'TAPE_DIVERGED', data: { seq: head + 1 } });
  // A head that lies before the end.
  const first = partOf(here, [{ session: id, after: head, to: head + 1 }]);
  const [, again] = await twoHomes();
  expect(await adopt(again, first)).toMatchObject({ entries: 1 });
  expect(await adopt(again, second)).toMatchObject({ entries: 1 });
  expect(again.sessions.find('main')?.headHash).toBe(here.sessions.find('main')?.headHash);
  expect(() => partOf(here, [{ session: id, after: 99 }])).toThrow(TapeError);
});

test('what can be taken is taken without the sessions that cannot, and without those that need these', async () => {
  const [here, there] = await twoHomes();
  const at = here.sessions.find('main')?.head ?? 0;
  here.entries.append('main', [user('Here.'), anchor('late')]);
  here.lineage.fork('main', { name: 'needs' });
  here.lineage.fork('main', { name: 'early', cut: at });
  here.entries.append('old', [user('Older.')]);
  here.sessions.open('new');
  there.entries.append('main', [user('There.')]);
  there.sessions.open('new');
  const news = newsFor(there, here);
  expect((await refused(there, news))?.code).toBe('TAPE_DIVERGED');
  const adopted = await adopt(there, news, { leaveOut: true });
  expect(adopted.leftOut.map(({ session, error }) => [session, error.code])).toEqual([
    ['main', 'TAPE_DIVERGED'],
    ['needs', 'TAPE_MISSING_BASE'],
    ['new', 'TAPE_EXISTS'],
  ]);
  expect(there.sessions.find('early')?.headHash).toBe(here.sessions.find('early')?.headHash);
  expect(there.sessions.find('old')?.headHash).toBe(here.sessions.find('old')?.headHash);
  expect(there.sessions.find('needs')).toBeUndefined();
  expect([...there.verify()]).toEqual([]);
});

test('a whole bundle is byte for byte as before, and one that says to be of another version is refused', async () => {
  const [here, there] = await twoHomes();
  const whole = bundleOf(here, 'main', { scope: 'tree' });
  expect(recordsOf(whole)[0]).toMatchObject({ v: 1, name: 'main', scope: 'tree' });
  expect(whole).not.toContain('after');
  const [first = {}, ...records] = recordsOf(partOf(here, [{ session: 'old' }]));
  for (const header of [
    { ...first, v: 1 },
    { ...first, v: 3 },
    { ...first, session: 'x' },
    { ...first, scope: 'tree' },
  ])
    expect((await refused(there, sealed([header, ...records])))?.code).toBe('TAPE_BAD_BUNDLE');
  await expect(adopt(there, partOf(here, [{ session: 'old' }]), { as: 'x' })).rejects.toMatchObject({
    code: 'TAPE_BAD_OPTION',
  });
});

test('positions that a part forges are refused at their line', async () => {
  const [here, there] = await twoHomes();
  here.entries.append('main', [user('More.')]);
  const records = recordsOf(newsFor(there, here));
  const tape = records[1]?.tape as Record<string, unknown>;
  const put = (fields: object) =>
    sealed([records[0] as object, { tape: { ...tape, ...fields } }, ...records.slice(2)]);
  const zeros = '0'.repeat(64);
  for (const fields of [
    { after: -1 },
    { after: 1.5 },
    { after: tape.head },
    { after: Number(tape.head) + 1 },
    { after: 0, after_hash: zeros },
    { after_hash: 'x' },
    { after: Number(tape.after) - 1 },
    { after: undefined },
  ])
    expect((await refused(there, put(fields)))?.code, JSON.stringify(fields)).toBe('TAPE_BAD_BUNDLE');
  expect((await refused(there, put({ after_hash: zeros })))?.code).toBe('TAPE_DIVERGED');
  const last = records.at(-1)?.e as unknown[];
  const gap = records.with(-1, { e: last.with(0, Number(tape.head) + 1) });
  expect((await refused(there, sealed(gap)))?.code).toBe('TAPE_BAD_BUNDLE');
  const wrong = records.with(-1, { e: last.with(7, zeros) });
  expect((await refused(there, sealed(wrong)))?.code).toBe('TAPE_BAD_BUNDLE');
  expect(await refused(there, sealed(records))).toBeUndefined();
});

test('a part in which any value is another one is refused, or harmless', {
  timeout: sized(60_000, 900_000, 3_600_000),
}, async () => {
  const [here, there] = await twoHomes();
  here.entries.append('main', [user('More.')]);
  here.lineage.fork('child', { name: 'late' });
  const records = recordsOf(newsFor(there, here));
  const random = seeded(Number(process.env.TAPEDECK_SEED ?? 20261126));
  const values = [
    null,
    0,
    1,
    -1,
    1.5,
    99,
    '',
    'x',
    [],
    {},
    true,
    '__proto__',
    'a'.repeat(64),
    here.bundles.heads()[0]?.id,
  ];
  const empty = () => openTapeStore(':memory:', { secrets: [] });
  for (let n = 0; n < sized(60, 150, 50_000); n += 1) {
    const at = random.below(records.length);
    const record = records[at] as object;
    const changed = withLeaf(record, 1 + random.below(leavesOf(record)), values[random.below(values.length)]);
    using home = random.below(4) === 0 ? empty() : undefined;
    const error = await refused(home ?? there, sealed(records.with(at, changed as Record<string, unknown>)));
    if (error !== undefined)
      expect(['TAPE_BAD_BUNDLE', 'TAPE_DIVERGED', 'TAPE_MISSING_BASE', 'TAPE_EXISTS']).toContain(error.code);
  }
});
