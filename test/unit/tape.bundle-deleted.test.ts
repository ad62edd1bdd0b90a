import { assistant, type SqliteTapeStore, user, view } from '@tapedeck/tape';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { adopt, bundleOf } from '../support/bundles.ts';
import { countedIds } from '../support/ids.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';

/** A store whose ids are its own: those of two stores with counted ids would be equal. */
function storeOf(letter: string): SqliteTapeStore {
  return openStore(':memory:', { secrets: [], newId: countedIds(`01J${letter}`) });
}

/** A store with `main`, also called `talk`, its fork `kid`, and `fresh`, which inherits nothing. */
function family(): SqliteTapeStore {
  const store = storeOf('A');
  store.sessions.open('main');
  store.entries.append('main', [user('One'), assistant('Two')]);
  store.sessions.update('main', { alias: { name: 'talk', reason: 'a test' } });
  store.lineage.fork('main', { name: 'kid' });
  store.entries.append('kid', [user('Three')]);
  store.lineage.fork('main', { name: 'fresh', inherit: 'nothing' });
  store.entries.append('fresh', [user('Alone')]);
  return store;
}

const idOf = (store: SqliteTapeStore, ref: string) => store.sessions.find(ref)?.id ?? '';

function remove(store: SqliteTapeStore, ref: string): string {
  return store.sessions.update(ref, { lifecycle: 'destroyed' }).id;
}

function bringBack(store: SqliteTapeStore, id: string): void {
  store.sessions.update(id, { lifecycle: 'active' });
}

/** What a session is by its id, in a home: its lifecycle, whether its name finds it, and how many own entries have content. */
function standing(store: SqliteTapeStore, id: string): readonly unknown[] {
  const info = store.sessions.find(id);
  if (info === undefined) return ['unknown'];
  const own = [...store.entries.read(id, { own: true })].filter(({ payload }) => payload !== null);
  return [info.lifecycle, store.sessions.find(info.session)?.id === id, own.length];
}

function damage(store: SqliteTapeStore): string[] {
  return [...store.verify()].flatMap(({ code, message }) =>
    code === 'not-here' ? [] : [`${code}: ${message}`],
  );
}

function words(store: SqliteTapeStore, ref: string): string[] {
  return view(store.views.entries(ref)).messages.map(({ content }) => String(content[0]?.text));
}

async function code(act: Promise<unknown>): Promise<unknown> {
  return await act.then(
    () => 'none',
    (error: { code?: unknown }) => error.code,
  );
}

test.each(['session', 'lineage', 'tree'] as const)(
  'a fork of a deleted session travels with what it inherits (%s); the parent stays deleted, and can be brought back',
  async (scope) => {
    using here = family();
    const main = remove(here, 'main');
    using there = storeOf('B');
    const { sessions } = await adopt(there, bundleOf(here, 'kid', { scope }));
    expect(sessions.map(({ id, became }) => [id, became])).toEqual([
      [main, 'new'],
      [idOf(here, 'kid'), 'new'],
    ]);
    expect(words(there, 'kid')).toEqual(['One', 'Two', 'Three']);
    expect(standing(there, main).slice(0, 2)).toEqual(['destroyed', false]);
    expect([there.sessions.find('main'), there.sessions.find('talk')]).toEqual([undefined, undefined]);
    expect(damage(there)).toEqual([]);
    bringBack(there, main);
    expect([idOf(there, 'main'), idOf(there, 'talk')]).toEqual([main, main]);
    expect(damage(there)).toEqual([]);
  },
);

test('a deleted session travels by its id, beside another that has its names', async () => {
  using here = family();
  const main = remove(here, 'main');
  using there = storeOf('B');
  const other = there.sessions.open('main').id;
  there.sessions.update('main', { alias: { name: 'talk', reason: 'its own' } });
  for (const time of ['once', 'again']) {
    const { id, entries, lines, aliasesTaken } = await adopt(there, bundleOf(here, main));
    expect([time, id, entries, lines, aliasesTaken]).toEqual([
      time,
      main,
      ...(time === 'once' ? [3, 3] : [0, 0]),
      [],
    ]);
    expect([idOf(there, 'main'), idOf(there, 'talk')]).toEqual([other, other]);
    expect(standing(there, main)).toEqual(['destroyed', false, 3]);
    expect(damage(there)).toEqual([]);
  }
  expect(() => bringBack(there, main)).toThrow(expect.objectContaining({ code: 'TAPE_EXISTS' }));
  // All names come back, once they are free.
  remove(there, other);
  bringBack(there, main);
  expect([idOf(there, 'main'), idOf(there, 'talk')]).toEqual([main, main]);
  expect(damage(there)).toEqual([]);
});

test('a deletion travels to a home that has the session, and so does bringing it back', async () => {
  using here = family();
  using there = storeOf('B');
  await adopt(there, bundleOf(here, 'main', { scope: 'tree' }));
  const main = remove(here, 'main');
  const deleted = bundleOf(here, main);
  const { sessions, lines } = await adopt(there, deleted);
  expect([sessions.map(({ became }) => became), lines]).toEqual([['same'], 1]);
  expect(standing(there, main)).toEqual(['destroyed', false, 3]);
  expect(words(there, 'kid')).toEqual(['One', 'Two', 'Three']);
  // Brought back there, it is not deleted by the same bundle again.
  bringBack(there, main);
  expect((await adopt(there, deleted)).lines).toBe(0);
  expect(standing(there, main)).toEqual(['active', true, 3]);
  remove(there, main);
  bringBack(here, main);
  here.entries.append('main', [user('More')]);
  expect((await adopt(there, bundleOf(here, 'main'))).entries).toBe(1);
  expect(standing(there, main)).toEqual(['active', true, 4]);
  expect(idOf(there, 'talk')).toBe(main);
  expect([damage(here), damage(there)]).toEqual([[], []]);
});

test('a session that is to come back under a name that is taken here is refused as a whole', async () => {
  using here = family();
  using there = storeOf('B');
  await adopt(there, bundleOf(here, 'main'));
  const main = remove(here, 'main');
  await adopt(there, bundleOf(here, main));
  const other = there.sessions.open('talk').id;
  bringBack(here, main);
  here.entries.append('main', [user('More')]);
  expect(await code(adopt(there, bundleOf(here, 'main')))).toBe('TAPE_EXISTS');
  expect(standing(there, main)).toEqual(['destroyed', false, 3]);
  expect(damage(there)).toEqual([]);
  remove(there, other);
  await adopt(there, bundleOf(here, 'main'));
  expect(standing(there, main)).toEqual(['active', true, 4]);
  expect(damage(there)).toEqual([]);
});

test('a session that was deleted here grows by a bundle, and stays deleted', async () => {
  using here = family();
  using there = storeOf('B');
  await adopt(there, bundleOf(here, 'main'));
  const main = remove(here, 'main');
  there.entries.append('main', [user('From there')]);
  const { sessions } = await adopt(here, bundleOf(there, 'main'));
  expect(sessions.map(({ became, entries }) => [became, entries])).toEqual([['grown', 1]]);
  expect(standing(here, main)).toEqual(['destroyed', false, 4]);
  here.sessions.open('main');
  expect(damage(here)).toEqual([]);
  // A further name that it got there is one that it has when it is brought back.
  there.sessions.update('main', { alias: { name: 'later', reason: 'there' } });
  await adopt(here, bundleOf(there, 'main'));
  expect(here.sessions.find('later')).toBeUndefined();
  remove(here, 'main');
  bringBack(here, main);
  expect(words(here, 'later')).toEqual(['One', 'Two', 'From there']);
  expect([idOf(here, 'main'), idOf(here, 'talk')]).toEqual([main, main]);
  expect(damage(here)).toEqual([]);
});

test('a new session of the name of a deleted one travels, and both can be in one home', async () => {
  using here = family();
  using there = storeOf('B');
  await adopt(there, bundleOf(here, 'main'));
  const first = remove(here, 'main');
  const second = here.sessions.open('main').id;
  here.entries.append('main', [user('Anew')]);
  // The first is in use there until its deletion arrives.
  expect(await code(adopt(there, bundleOf(here, 'main')))).toBe('TAPE_EXISTS');
  await adopt(there, bundleOf(here, first));
  await adopt(there, bundleOf(here, 'main'));
  expect([idOf(there, 'main'), standing(there, first)[0]]).toEqual([second, 'destroyed']);
  expect(there.sessions.find(second)?.tape).toBe(here.sessions.find(second)?.tape);
  expect(damage(there)).toEqual([]);
  using third = storeOf('C');
  await adopt(third, bundleOf(here, 'main'));
  await adopt(third, bundleOf(here, first));
  expect([idOf(third, 'main'), standing(third, first)[0]]).toEqual([second, 'destroyed']);
  expect(damage(third)).toEqual([]);
});

test('a deleted session that is imported under another name has that when it is brought back', async () => {
  using here = family();
  const main = remove(here, 'main');
  using there = storeOf('B');
  there.sessions.open('main');
  const { session, id } = await adopt(there, bundleOf(here, main), { as: 'theirs' });
  expect([session, id, there.sessions.find('theirs')]).toEqual(['theirs', main, undefined]);
  bringBack(there, main);
  expect([idOf(there, 'theirs'), idOf(there, 'talk')]).toEqual([main, main]);
  expect(damage(there)).toEqual([]);
});

test('a purged parent travels empty with a fork that inherits nothing, and nothing brings it back', async () => {
  using here = family();
  expect(() => here.sessions.purge('main', 'a test')).toThrow(
    expect.objectContaining({ code: 'TAPE_CONFLICT' }),
  );
  const kid = idOf(here, 'kid');
  here.sessions.purge('kid', 'a test');
  const { id: main } = here.sessions.purge('main', 'a test');
  for (const scope of ['session', 'lineage', 'tree'] as const) {
    const bundle = bundleOf(here, scope === 'tree' ? main : 'fresh', { scope });
    expect(bundle).not.toMatch(/One|Two|Three/);
    using there = storeOf('B');
    const other = there.sessions.open('main').id;
    await adopt(there, bundle);
    expect(words(there, 'fresh')).toEqual(['Alone']);
    expect(standing(there, main)).toEqual(['purged', false, expect.any(Number)]);
    if (scope === 'tree') expect(standing(there, kid)[0]).toBe('purged');
    expect(() => bringBack(there, main)).toThrow(expect.objectContaining({ code: 'TAPE_ARCHIVED' }));
    expect(idOf(there, 'main')).toBe(other);
    expect(damage(there)).toEqual([]);
    expect((await adopt(there, bundle)).lines).toBe(0);
  }
});

test('a purge elsewhere deletes here and erases nothing; what was erased here does not come back', async () => {
  using here = family();
  using there = storeOf('B');
  const whole = bundleOf(here, 'main', { scope: 'tree' });
  await adopt(there, whole);
  here.sessions.purge('kid', 'a test');
  const { id: main } = here.sessions.purge('main', 'a test');
  const { redactedElsewhere } = await adopt(there, bundleOf(here, main, { scope: 'tree' }));
  expect(redactedElsewhere.length).toBeGreaterThan(2);
  expect(standing(there, main).slice(0, 2)).toEqual(['destroyed', false]);
  expect(damage(there)).toEqual([]);
  bringBack(there, main);
  expect(words(there, 'main')).toEqual(['One', 'Two']);
  expect(damage(there)).toEqual([]);
  // The home that purged it takes nothing of it back.
  const { filled } = await adopt(here, bundleOf(there, 'main', { scope: 'tree' }));
  expect([filled, standing(here, main)]).toEqual([0, ['purged', false, expect.any(Number)]]);
  expect(
    [...here.entries.read(main, { own: true })].some(({ payload }) =>
      JSON.stringify(payload).includes('One'),
    ),
  ).toBe(false);
  await adopt(here, whole);
  expect([damage(here), damage(there)]).toEqual([[], []]);
});

const acts = [
  'append',
  'fork',
  'fresh',
  'delete',
  'undo',
  'purge',
  'alias',
  'open',
  'send',
  'send',
  'send',
] as const;

/** Does an act in a home with one of its sessions, or sends that to the other home. Refusals count as nothing. */
async function step(
  homes: readonly [SqliteTapeStore, SqliteTapeStore],
  { act, home, of, name }: { act: (typeof acts)[number]; home: 0 | 1; of: number; name: string },
): Promise<void> {
  const [store, other] = home === 0 ? homes : [homes[1], homes[0]];
  const all = store.sessions.list({ all: true });
  const one = all[of % Math.max(1, all.length)];
  try {
    if (act === 'open' || one === undefined) store.sessions.open(name);
    else if (act === 'append') store.entries.append(one.id, [user(name)]);
    else if (act === 'fork') store.lineage.fork(one.id, { name });
    else if (act === 'fresh') store.lineage.fork(one.id, { name, inherit: 'nothing' });
    else if (act === 'delete') remove(store, one.id);
    else if (act === 'undo') bringBack(store, one.id);
    else if (act === 'purge') store.sessions.purge(one.id, 'a test');
    else if (act === 'alias') store.sessions.update(one.id, { alias: { name, reason: '' } });
    else {
      const bundle = bundleOf(store, one.id, { scope: of % 2 === 0 ? 'tree' : 'lineage' });
      await adopt(other, bundle);
      const { entries, lines, filled } = await adopt(other, bundle);
      expect([entries, lines, filled]).toEqual([0, 0, 0]);
    }
  } catch (error) {
    const { code } = error as { code?: string };
    if (!/^TAPE_(?:EXISTS|DIVERGED|ARCHIVED|CONFLICT|BAD_STATUS)$/.test(String(code))) throw error;
  }
}

test('whatever is deleted, purged, brought back and sent, both homes verify, and a bundle adds nothing twice', async () => {
  const move = fc.record({
    act: fc.constantFrom(...acts),
    home: fc.constantFrom(0 as const, 1 as const),
    of: fc.nat(9),
    name: fc.constantFrom('main', 'talk', 'kid'),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(move, { minLength: 4, maxLength: sized(24, 40, 60) }), async (moves) => {
      using here = storeOf('A');
      using there = storeOf('B');
      for (const one of moves) await step([here, there], one);
      expect([damage(here), damage(there)]).toEqual([[], []]);
    }),
    { numRuns: sized(5, 10, 5_000) },
  );
}, 600_000);
