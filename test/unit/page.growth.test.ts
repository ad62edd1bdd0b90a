import { assistant, openTapeStore, type SqliteTapeStore, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { pageOn } from '../support/page.ts';

const usage = { input: 10, output: 5, reasoning: 0, cacheRead: 0, cacheWrite: 0 };

/** A store of some sessions, a third of them children, and one with a long tape. */
function storeOf(sessions: number, entries: number): SqliteTapeStore {
  const store = openTapeStore(':memory:', { redact: false });
  for (let n = 0; n < sessions; n += 1) {
    if (n % 3 === 2) store.lineage.fork(`s${n - 1}`, { name: `s${n}` });
    else store.sessions.open(`s${n}`);
    store.entries.append(`s${n}`, [user(`Question ${n}`)]);
  }
  store.sessions.open('long');
  for (let n = 0; n < entries; n += 500)
    store.entries.append(
      'long',
      Array.from({ length: 250 }, () => [user('Go on.'), assistant('Done.', { model: 'a/b', usage })]).flat(),
    );
  return store;
}

/** The least time of several runs of an act, in milliseconds: what else the machine does only adds to it. */
async function leastOf(act: () => Promise<unknown>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let n = 0; n < 12; n += 1) {
    const began = performance.now();
    await act();
    least = Math.min(least, performance.now() - began);
  }
  return least;
}

test('a part of a list or of a timeline costs the same in a home of any size', async () => {
  using few = storeOf(300, 1_000);
  using many = storeOf(10_000, 100_000);
  const [small, large] = [pageOn(few), pageOn(many)];
  const end = { session: 'long', from: 800, to: 999 };
  const far = { session: 'long', from: 99_000, to: 99_199 };
  const pairs = {
    sessions: [() => small.sessions({}), () => large.sessions({})],
    'a later part of them': [() => small.sessions({ offset: 50 }), () => large.sessions({ offset: 5_000 })],
    'a tree': [() => small.sessions({ tree: true }), () => large.sessions({ tree: true })],
    timeline: [() => small.timeline(end), () => large.timeline(far)],
    session: [() => small.session({ session: 'long' }), () => large.session({ session: 'long' })],
    family: [() => small.lineage({ session: 's1' }), () => large.lineage({ session: 's1' })],
  } as const;
  for (const [what, [one, other]] of Object.entries(pairs)) {
    const [less, more] = [await leastOf(one), await leastOf(other)];
    // A look at the number of all sessions is a part of it.
    expect(more, what).toBeLessThan(2 * less + 5);
  }
});

test('ten thousand sessions come in parts, each once', async () => {
  using store = storeOf(10_000, 500);
  const page = pageOn(store);
  for (const ask of [
    (offset: number) => page.sessions({ offset }),
    (offset: number) => page.sessions({ offset, tree: true }),
    (offset: number) => page.lineage({ offset, all: true }),
  ]) {
    const ids: string[] = [];
    for (let offset: number | undefined = 0; offset !== undefined; ) {
      const { rows, next }: Awaited<ReturnType<typeof ask>> = await ask(offset);
      ids.push(...rows.flatMap(({ id }) => id ?? []));
      offset = next;
    }
    expect(ids).toHaveLength(10_001);
    expect(new Set(ids).size).toBe(10_001);
  }
});
