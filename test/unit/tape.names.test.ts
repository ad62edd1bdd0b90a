import { type SqliteTapeStore, sessionName, user } from '@tapedeck/tape';
import { derivedNameMax, nameFault, nameKey, nameMax, parseName, taskSlug } from '@tapedeck/tape/store';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { anyText } from '../support/arbitrary-json.ts';
import { countedIds } from '../support/ids.ts';
import { badNames, goodNames } from '../support/names.ts';
import { sized } from '../support/size.ts';
import { openStore, refusal } from '../support/store.ts';

/** Every act that gives a session a name. */
const naming: Readonly<Record<string, (store: SqliteTapeStore, name: string) => unknown>> = {
  session: (store, name) => store.sessions.open(name),
  fork: (store, name) => store.lineage.fork('origin', { name }),
  alias: (store, name) => store.sessions.update('origin', { alias: { name: name, reason: 'asked' } }),
  stage: (store, name) => store.imports.stage(name),
};

describe('a bad name', () => {
  const store = openStore();
  store.sessions.open('origin');
  afterAll(() => store.close());

  test.each(badNames.map((name) => [name.slice(0, 60), name] as const))(
    '%j is refused by every act',
    (_, name) => {
      for (const [act, give] of Object.entries(naming)) {
        const { code, message } = refusal(() => give(store, name));
        expect(code, act).toBe('TAPE_BAD_NAME');
        expect(message, act).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}]/u);
        expect(message.length).toBeLessThan(400);
      }
      expect(store.sessions.list({ all: true }).map((info) => info.session)).toEqual(['origin']);
      expect(store.sessions.find(name)).toBeUndefined();
      expect(refusal(() => store.entries.append(name, [user('x')])).code).toBe('TAPE_NO_SESSION');
    },
  );
});

describe('good names', () => {
  test('are distinct sessions, in every act, and return unchanged', () => {
    for (const act of ['session', 'fork'] as const) {
      using store = openStore();
      store.sessions.open('origin');
      for (const name of goodNames) naming[act]?.(store, name);
      const ids = new Map(goodNames.map((name) => [name, store.sessions.find(name)?.id]));
      expect(new Set(ids.values()).size).toBe(goodNames.length);
      for (const name of goodNames) store.entries.append(name, [user(`I am ${name}`)]);
      for (const [name, id] of ids) {
        expect(store.sessions.open(name)).toMatchObject({ session: name, id, created: false });
        const [entry] = store.entries.read(name, { last: 1 });
        expect(JSON.stringify(entry?.payload)).toContain(JSON.stringify(`I am ${name}`).slice(1, -1));
        expect(entry?.tape).toBe(`tape:${name}`);
      }
      expect([...store.verify()]).toEqual([]);
    }
  });

  test('may have as many characters as the limit, and no more', () => {
    for (const unit of ['x', ':a', '@b', '.c']) {
      const longest = `x${unit.repeat(nameMax)}`.slice(0, nameMax).replace(/\W$/, 'z');
      expect(parseName(longest)).toBe(longest);
      expect(nameFault(`${longest}z`)).toBeDefined();
      expect(nameFault(`${longest}z`, derivedNameMax)).toBeUndefined();
    }
  });
});

test('a text is a name exactly when the format says so', () => {
  // Implemented anew from the page on the format.
  const ends = /^[A-Za-z0-9_!%]$/;
  const inside = /^[A-Za-z0-9._:@+\-!%]*$/;
  const isName = (text: string) =>
    text.length >= 1 &&
    text.length <= 180 &&
    inside.test(text) &&
    !text.endsWith('\n') &&
    ends.test(text.charAt(0)) &&
    ends.test(text.charAt(text.length - 1)) &&
    !text.includes('..') &&
    !text.includes('::') &&
    !/^(?:worker:)?[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(text);
  const alphabet = fc.constantFrom(...'abzAZ09._:@+-!% /\\~\n\0é'.split(''));
  const near = fc.oneof(
    fc.array(alphabet, { maxLength: 8 }).map((units) => units.join('')),
    fc.constantFrom(...goodNames, ...badNames.filter((name) => name.length < 300)),
    fc
      .array(fc.constantFrom(...'0123456789ABCDEFGHJKMNPQRSTVWXYZ'.split('')), {
        minLength: 25,
        maxLength: 27,
      })
      .map((units) => units.join('')),
    anyText,
  );
  using store = openStore();
  store.sessions.open('origin');
  fc.assert(
    fc.property(near, near, (one, other) => {
      const taken = [one, other].filter((name) => {
        try {
          const { session: found } = store.sessions.open(name);
          // A reference to a session opens that one.
          if (found !== name) {
            expect(name).toBe(`${found}~1`);
            return false;
          }
        } catch (error) {
          // A name is taken where it reads as a point of a session, or as another name.
          expect(error).toMatchObject({ code: isName(name) ? 'TAPE_EXISTS' : 'TAPE_BAD_NAME' });
          return false;
        }
        expect(isName(name), JSON.stringify(name)).toBe(true);
        return true;
      });
      if (taken.length < 2) return;
      expect(store.sessions.find(one)?.id === store.sessions.find(other)?.id).toBe(one === other);
    }),
    { numRuns: sized(300, 600, 100_000) },
  );
});

test('children of different parents or keys have different names, however long these are', () => {
  const name = fc.oneof(
    fc.constantFrom('a', 'b', 'a-fork-00000000', 'x'.repeat(nameMax)),
    fc.stringMatching(/^[a-z]{1,6}$/),
  );
  using store = openStore();
  fc.assert(
    fc.property(
      name,
      anyText.filter((key) => key.isWellFormed() && key !== ''),
      (parent, key) => {
        store.sessions.open(parent);
        const child = store.lineage.fork(parent, { key });
        expect(nameFault(child.session, derivedNameMax)).toBeUndefined();
        expect(store.lineage.fork(parent, { key }).session).toBe(child.session);
        expect(store.sessions.find(child.session)?.parent).toBe(parent);
        const other = store.lineage.fork(parent, { key: `${key}.` });
        expect(other.session).not.toBe(child.session);
      },
    ),
    { numRuns: sized(40, 40, 5_000) },
  );
  const names = store.sessions.list({ all: true }).map((info) => info.session);
  expect(new Set(names).size).toBe(names.length);
});

describe('the name of an id', () => {
  const hostile = fc.string({
    unit: fc.constantFrom(...'aAbB09.:@!%#/ -+_'.split(''), 'é', 'e\u0301', '\ud800', '\udc00', '😀'),
    maxLength: 90,
  });
  const id = fc.oneof(anyText, hostile).filter((text) => text !== '');

  test('is a session name, and that of no other id, however names are compared', () => {
    const idOf = new Map<string, string>();
    fc.assert(
      fc.property(id, (text) => {
        const name = sessionName(text);
        expect(parseName(name)).toBe(name);
        // Also on a file system, or for a person, that knows no case.
        const before = idOf.get(name.toLowerCase());
        expect(before ?? text).toBe(text);
        idOf.set(name.toLowerCase(), text);
      }),
      { numRuns: sized(500, 1_000, 200_000) },
    );
  });

  test('is refused for no id', () => {
    expect(refusal(() => sessionName('')).code).toBe('TAPE_BAD_NAME');
  });
});

describe('a name that looks like another', () => {
  test.each([
    ['Main', 'main'],
    ['dm:Bob@Example.com', 'dm:bob@example.com'],
    [sessionName('naïve'), sessionName('nai\u0308ve')],
    ['%c3%a9', '%C3%A9'],
  ])('%s and %s are not made beside each other, by any act', (one, other) => {
    for (const [act, give] of Object.entries(naming)) {
      using store = openStore();
      store.sessions.open('origin');
      store.sessions.open(one);
      const error = refusal(() => give(store, other));
      expect([act, error.code, error.data.session]).toEqual([act, 'TAPE_EXISTS', one]);
      expect(error.message).toContain('only by case or Unicode form');
      // Nor beside an alias.
      using aliased = openStore();
      aliased.sessions.open('origin');
      aliased.sessions.open('known');
      aliased.sessions.update('known', { alias: { name: one, reason: 'known' } });
      expect(refusal(() => give(aliased, other)).code, act).toBe('TAPE_EXISTS');
      expect(aliased.sessions.list().map(({ session: name }) => name)).toEqual(['known', 'origin']);
    }
  });

  test('is one in its realm only', () => {
    expect(nameKey('Main')).toBe(nameKey('main'));
    expect(nameKey('É')).not.toBe(nameKey('é'));
  });
});

describe('worker:{ULID}', () => {
  test('names the session of that ULID, in every act, and no session is made under it', () => {
    using store = openStore();
    const { id } = store.sessions.open('main');
    const worker = `worker:${id}`;
    expect(store.sessions.open(worker)).toMatchObject({ session: 'main', created: false });
    expect(store.sessions.find(worker)?.session).toBe('main');
    const child = store.lineage.fork(worker);
    expect(child).toMatchObject({ parent: 'main' });
    expect(store.sessions.find(`worker:${child.id}`)?.session).toBe(child.session);
    const none = 'worker:01JD0000000000000000000099';
    for (const [act, give] of Object.entries(naming)) {
      if (act === 'session') store.sessions.open('origin');
      expect(refusal(() => give(store, none)).code, act).toBe('TAPE_BAD_NAME');
    }
    expect(store.sessions.find(none)).toBeUndefined();
    // The session of this one exists.
    const { message } = refusal(() => store.lineage.fork('main', { name: worker }));
    expect(message).toBe(`cannot use '${worker}' as a session name: only the session of that id has it`);
  });
});

describe('the name of a child', () => {
  const forks = (secrets: readonly string[] = []) => {
    const store = openStore(':memory:', { secrets: secrets.map((value) => ({ name: 'SOME_KEY', value })) });
    store.sessions.open('main');
    return store;
  };

  test('is the same in every home, whatever else these hold, for the same parent and key or number', () => {
    using one = forks();
    using other = openStore(':memory:', { newId: countedIds('01JE') });
    for (const name of ['a', 'b', 'main']) other.sessions.open(name);
    other.entries.append('main', [user('More was said here.')]);
    other.lineage.fork('main', { key: 'first' });
    for (const request of [{ key: 'k' }, {}, { intention: { nextSteps: 'Check the docs' } }, {}])
      expect(other.lineage.fork('main', request).session).toBe(one.lineage.fork('main', request).session);
  });

  test('has the words of its task, which do not identify it', () => {
    using store = forks();
    const task = (nextSteps: string) => store.lineage.fork('main', { intention: { nextSteps } }).session;
    expect(task('Check the docs, all of them!')).toMatch(/^main-check-the-docs-all-of-[0-9a-f]{8}$/);
    expect(task('…')).toMatch(/^main-fork-[0-9a-f]{8}$/);
    expect(store.lineage.fork('main').session).toMatch(/^main-fork-[0-9a-f]{8}$/);
    fc.assert(
      fc.property(anyText, (text) => {
        expect(taskSlug(text)).toMatch(/^(?:[a-z0-9](?:[a-z0-9-]{0,22}[a-z0-9])?)?$/);
      }),
    );
  });

  test('has no words of a task that contains a secret', () => {
    using store = forks(['sk-12345678']);
    const nextSteps = 'Call it with sk-12345678';
    const { session } = store.lineage.fork('main', { intention: { nextSteps } });
    expect(session).toMatch(/^main-fork-[0-9a-f]{8}$/);
    const again = store.lineage.fork('main', { key: 'k', intention: { nextSteps: 'Call' } });
    expect(store.sessions.list({ parent: 'main', key: 'k' }).map(({ session: name }) => name)).toEqual([
      again.session,
    ]);
  });

  test('has more digits where the shorter one is the name of another session, and a repeat finds it by its key', () => {
    using plain = forks();
    const { session } = plain.lineage.fork('main', { key: 'k' });
    using store = forks();
    store.sessions.open(session);
    const child = store.lineage.fork('main', { key: 'k' });
    expect(child.session).toMatch(new RegExp(`^${session}[0-9a-f]{4}$`));
    expect(store.lineage.fork('main', { key: 'k' })).toMatchObject({
      session: child.session,
      repeated: true,
    });
  });
});

test('opening an alias or an id opens its session', () => {
  using store = openStore();
  const { id } = store.sessions.open('main');
  store.sessions.update('main', { alias: { name: 'release', reason: 'the project' } });
  for (const name of ['release', id, 'main'])
    expect(store.sessions.open(name)).toMatchObject({ session: 'main', created: false });
});
