import { wholeJson } from '@tapedeck/cli/internal';
import {
  anchor,
  assistant,
  openTapeStore,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
} from '@tapedeck/tape';
import { beforeAll, expect, test } from 'vitest';
import { pageOn, sourceOn, unchecked } from '../support/page.ts';
import { sized } from '../support/size.ts';

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

/** How much a large home has. */
const small = { sessions: 2_500, entries: 25_000 };
const size = sized(small, small, { sessions: 10_000, entries: 100_000 });

/** It takes seconds to write, and the tests only read it. */
let many: SqliteTapeStore;
beforeAll(() => {
  many = storeOf(size.sessions, size.entries);
  return () => many.close();
});

/** The time of the processor that this thread has had, in milliseconds: what other processes do counts little. */
function spent(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** The least that each of two acts takes in several runs, in turn: what else the machine does only adds to it. */
async function leastOf(acts: readonly [() => Promise<unknown>, () => Promise<unknown>]) {
  const least: [number, number] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let n = 0; n < sized(6, 6, 12); n += 1)
    for (const i of [0, 1] as const) {
      const before = spent();
      await acts[i]();
      least[i] = Math.min(least[i], spent() - before);
    }
  return least;
}

test('a part of a list or of a timeline costs the same in a home of any size', async () => {
  using few = storeOf(300, 1_000);
  const [small, large] = [pageOn(few), pageOn(many)];
  const end = { session: 'long', from: 800, to: 999 };
  const far = { session: 'long', from: size.entries - 1_000, to: size.entries - 801 };
  const pairs = {
    sessions: [() => small.sessions({}), () => large.sessions({})],
    'a later part of them': [
      () => small.sessions({ offset: 50 }),
      () => large.sessions({ offset: size.sessions / 2 }),
    ],
    'a tree': [() => small.sessions({ tree: true }), () => large.sessions({ tree: true })],
    timeline: [() => small.timeline(end), () => large.timeline(far)],
    session: [() => small.session({ session: 'long' }), () => large.session({ session: 'long' })],
    family: [() => small.lineage({ session: 's1' }), () => large.lineage({ session: 's1' })],
  } as const;
  for (const [what, acts] of Object.entries(pairs)) {
    const [less, more] = await leastOf(acts);
    // A look at the number of all sessions is a part of it. What grows with the home would cost ten times as much.
    expect(more, what).toBeLessThan(2 * less + 10);
  }
});

test('thousands of sessions come in parts, each once', async () => {
  const page = pageOn(many);
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
    expect(ids).toHaveLength(size.sessions + 1);
    expect(new Set(ids).size).toBe(size.sessions + 1);
  }
});

/** A family whose children are merged, with anchors, calls and results between. */
function familyOf(children: number): SqliteTapeStore {
  const store = openTapeStore(':memory:', { redact: false });
  store.sessions.open('main');
  store.entries.append('main', [user('Begin')]);
  for (let n = 0; n < children; n += 1) {
    // Most come one after the other, without a message of the parent between them.
    if (n % 40 === 0) {
      store.entries.append('main', [assistant([toolCall(`c${n}`, 'read', { n })])]);
      store.entries.append('main', [toolResult({ toolCallId: `c${n}`, toolName: 'read' }, 'So.')]);
    }
    if (n % 10 === 0) store.entries.append('main', [anchor(`step-${n}`, { n })]);
    const name = `child-${n}`;
    store.lineage.fork('main', { name });
    store.entries.append(name, [user('Go.'), assistant('Done.')]);
    store.lineage.merge(name);
  }
  return store;
}

/** How many entries an export reads for each row that it writes, and how often it looks for a session. */
async function costOf(store: SqliteTapeStore): Promise<{ readonly reads: number; readonly finds: number }> {
  let [reads, finds] = [0, 0];
  const entries: SqliteTapeStore['entries'] = {
    ...store.entries,
    *read(ref, query) {
      for (const entry of store.entries.read(ref, query)) {
        reads += 1;
        yield entry;
      }
    },
  };
  const sessions: SqliteTapeStore['sessions'] = {
    ...store.sessions,
    find: (ref) => {
      finds += 1;
      return store.sessions.find(ref);
    },
  };
  const counted = new Proxy(store, {
    get(target, key) {
      if (key === 'entries') return entries;
      if (key === 'sessions') return sessions;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const clean = <T>(value: T): T => value;
  const pieces = wholeJson(sourceOn(counted), { session: 'main', scope: 'tree', check: unchecked, clean });
  for (;;) {
    const { done, value } = await pieces.next();
    if (done === true) return { reads: reads / value.items, finds: finds / value.items };
  }
}

test('what an export reads grows with what it writes, however many sessions there are', async () => {
  using few = familyOf(120);
  using many = familyOf(480);
  const [less, more] = [await costOf(few), await costOf(many)];
  expect(more.reads).toBeLessThan(1.3 * less.reads);
  expect(more.finds).toBeLessThan(1.3 * less.finds);
});

test('what an export holds at a time does not grow with the length of a session', async () => {
  const largest = async (turns: number) => {
    using store = openTapeStore(':memory:');
    store.sessions.open('main');
    for (let n = 0; n < turns; n += 1)
      store.entries.append('main', [user(`Question ${n}`), assistant(`Answer ${n} `.repeat(20))]);
    const pieces = wholeJson(sourceOn(store), {
      ...{ session: 'main', scope: 'tree', check: unchecked, clean: (value) => value },
    });
    let [most, all] = [0, 0];
    for await (const piece of pieces) {
      most = Math.max(most, piece.length);
      all += piece.length;
    }
    return { most, all };
  };
  const [few, many] = [await largest(50), await largest(400)];
  expect(many.all).toBeGreaterThan(6 * few.all);
  expect(many.most).toBeLessThan(1.1 * few.most);
});

test('an export says how many of the entries are written, up to all of them', async () => {
  using store = familyOf(20);
  const far: number[] = [];
  const pieces = wholeJson(sourceOn(store), {
    ...{ session: 'main', scope: 'tree', check: unchecked, clean: (value) => value },
    onProgress: ({ done, total }) => far.push(done / (total ?? 0)),
  });
  for await (const _ of pieces);
  expect(far).toEqual(far.toSorted((a, b) => a - b));
  expect(far[0]).toBeLessThan(0.1);
  expect(far.at(-1)).toBeGreaterThan(0.9);
  expect(far.at(-1)).toBeLessThanOrEqual(1);
});

test('more entries than a file can have are refused before any is read', async () => {
  using store = familyOf(1);
  const find: SqliteTapeStore['sessions']['find'] = (ref) => {
    const info = store.sessions.find(ref);
    return info && { ...info, head: 500_001 };
  };
  const large = new Proxy(store, {
    get: (target, key) =>
      key === 'sessions' ? { ...store.sessions, find } : Reflect.get(target, key, target),
  });
  const pieces = wholeJson(sourceOn(large), {
    session: 'main',
    scope: 'session',
    check: unchecked,
    clean: (value) => value,
  });
  await expect(pieces.next()).rejects.toMatchObject({
    code: 'CLI_TOO_LARGE',
    message: 'cannot export main as one page: 500001 entries are more than 500000',
    data: { session: 'main', entries: 500_001 },
  });
});
