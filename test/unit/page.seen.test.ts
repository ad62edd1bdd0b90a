import { assistant, compaction, openTapeStore, type SqliteTapeStore, user, view } from '@tapedeck/tape';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { pageOn } from '../support/page.ts';
import { rawDb } from '../support/raw-db.ts';
import { memoryHome } from '../support/temp-home.ts';

/** Says something, and answers it with the manifest of what a model was given. */
function answer(store: SqliteTapeStore, session: string, said: string): number {
  store.entries.append(session, [user(said)]);
  const manifest = JSON.parse(JSON.stringify(view(store.views.entries(session)).manifest()));
  return store.entries.append(session, [assistant(`To ${said}`, { view: manifest, model: 'a/b' })]).to;
}

/** Two answers, a compaction, and an answer behind it. */
function answers(store: SqliteTapeStore): readonly number[] {
  store.sessions.open('main');
  const early = ['one', 'two'].map((said) => answer(store, 'main', said));
  const head = store.sessions.find('main')?.head ?? 0;
  store.entries.append('main', [compaction({ summary: 'All so far.', range: [1, head] })]);
  return [...early, answer(store, 'main', 'three')];
}

test('says what the model was given for an answer, and what changed since the one before', async () => {
  using store = openTapeStore(':memory:');
  const [one = 0, two = 0, three = 0] = answers(store);
  const page = pageOn(store);
  expect(await page.seen({ session: 'main', seq: one })).toMatchObject({
    recorded: true,
    same: true,
    ranges: [{ from: 1, to: 2, in: true, why: 'in view' }],
  });
  expect((await page.seen({ session: 'main', seq: one })).before).toBeUndefined();
  expect((await page.seen({ session: 'main', seq: two })).before).toMatchObject({
    seq: one,
    added: [[3, 4]],
    removed: [],
  });
  expect((await page.seen({ session: 'main', seq: three })).before).toMatchObject({
    seq: two,
    added: [[6, 7]],
    removed: [{ from: 1, to: 4, in: false, why: 'before compaction@6' }],
  });
});

test('where nothing was recorded it says what a view would be', async () => {
  using store = openTapeStore(':memory:');
  answers(store);
  const { recorded, same, ranges } = await pageOn(store).seen({ session: 'main', seq: 2 });
  expect({ recorded, same, shown: ranges.filter((range) => range.in) }).toEqual({
    recorded: false,
    same: undefined,
    shown: [{ from: 1, to: 2, in: true, why: 'in view' }],
  });
});

test('of what is no answer it says so, and which answers are nearest', async () => {
  using store = openTapeStore(':memory:');
  const [one = 0, two = 0] = answers(store);
  const page = pageOn(store);
  expect(await page.seen({ session: 'main', seq: one })).toMatchObject({ entry: 'answer' });
  expect((await page.seen({ session: 'main', seq: one })).nearest).toBeUndefined();
  expect(await page.seen({ session: 'main', seq: two - 1 })).toMatchObject({
    ...{ entry: 'other', recorded: false, nearest: [one, two] },
  });
  expect((await page.seen({ session: 'main', seq: 1 })).nearest).toEqual([one]);
});

test('of what cannot be read it says why, and which command says more', async () => {
  using home = memoryHome();
  let seqs: readonly number[] = [];
  {
    using store = home.open();
    seqs = answers(store);
  }
  const [one = 0, two = 0, three = 0] = seqs;
  {
    using db = rawDb(home.db);
    db.dropTriggers();
    db.run(`UPDATE entry SET payload = 'no JSON' WHERE seq = ${two}`);
  }
  using store = home.open();
  const page = pageOn(store);
  const damaged = await page.seen({ session: 'main', seq: two });
  expect(damaged).toMatchObject({ entry: 'damaged', recorded: false, ranges: [], nearest: [one, three] });
  expect(damaged.fault).toMatch(new RegExp(`main@${two}\\b.*JSON`));
  expect(damaged.commands).toEqual([{ what: 'Say what is wrong', line: 'tape check main' }]);
  // What was said before it, and what was recorded after it, is shown all the same.
  expect(await page.seen({ session: 'main', seq: one })).toMatchObject({ entry: 'answer', same: true });
  expect(await page.seen({ session: 'main', seq: three })).toMatchObject({ entry: 'answer', recorded: true });
});

test('says the same as tape view --explain', async () => {
  using home = memoryHome();
  let seqs: readonly number[] = [];
  {
    using store = home.open();
    seqs = answers(store);
  }
  using store = home.open();
  for (const seq of seqs) {
    const { asked } = JSON.parse((await home.here(['view', `main@${seq}`, '--explain', '--json'])).stdout);
    const { policy, tokens, digest, same, ranges } = await pageOn(store).seen({ session: 'main', seq });
    expect({ policy, tokens, digest, same }).toEqual({
      ...{ policy: asked.policy, tokens: asked.tokens, digest: asked.digest, same: asked.same },
    });
    expect(ranges.filter((range) => range.in).map(({ from, to }) => [from, to])).toEqual(asked.in);
    expect(ranges.filter((range) => !range.in).map(({ from, to, why }) => [from, to, why])).toEqual(
      asked.out,
    );
  }
});

test('what changed is the difference of the positions of two views', async () => {
  const ranges = fc
    .uniqueArray(fc.integer({ min: 1, max: 30 }), { maxLength: 20 })
    .map((seqs) => seqs.sort((a, b) => a - b).map((seq) => [seq, seq]));
  await fc.assert(
    fc.asyncProperty(ranges, ranges, async (was, is) => {
      using store = openTapeStore(':memory:');
      store.sessions.open('main');
      const said = (list: readonly (readonly number[])[]) =>
        assistant('x', {
          view: { policy: 'full', head: 30, in: list as number[][], out: [], tokens: 1, digest: '' },
        });
      store.entries.append('main', [said(was), said(is)]);
      const { before } = await pageOn(store).seen({ session: 'main', seq: 3 });
      const each = (list: readonly { readonly from: number; readonly to: number }[]) =>
        list.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, i) => from + i));
      const [a, b] = [new Set(was.map(([seq]) => seq)), new Set(is.map(([seq]) => seq))];
      const added = before?.added.map(([from, to]) => ({ from, to })) ?? [];
      expect(each(added)).toEqual([...b.difference(a)]);
      expect(each(before?.removed ?? [])).toEqual([...a.difference(b)]);
    }),
    { numRuns: 50 },
  );
});
