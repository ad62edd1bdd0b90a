import { type SqliteTapeStore, user } from '@tapedeck/tape';
import { derivedNameMax, nameFault, nameMax, parseName } from '@tapedeck/tape/store';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyText } from '../support/arbitrary-json.ts';
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
  test.each(badNames.map((name) => [name.slice(0, 60), name] as const))(
    '%j is refused by every act',
    (_, name) => {
      using store = openStore();
      store.sessions.open('origin');
      for (const [act, give] of Object.entries(naming)) {
        const { code, message } = refusal(() => give(store, name));
        expect(code, act).toBe('TAPE_BAD_NAME');
        expect(message, act).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}]/u);
        expect(message.length).toBeLessThan(400);
      }
      expect(store.sessions.list({ all: true }).map((info) => info.name)).toEqual(['origin']);
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
        expect(store.sessions.open(name)).toMatchObject({ name, id, created: false });
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
    !/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(text);
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
          store.sessions.open(name);
        } catch (error) {
          // A name that reads as a point of a session that is there is taken, though it is one.
          expect(error).toMatchObject({ code: isName(name) ? 'TAPE_EXISTS' : 'TAPE_BAD_NAME' });
          return false;
        }
        expect(isName(name), JSON.stringify(name)).toBe(true);
        return true;
      });
      if (taken.length < 2) return;
      expect(store.sessions.find(one)?.id === store.sessions.find(other)?.id).toBe(one === other);
    }),
    { numRuns: sized(1_000, 5_000, 100_000) },
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
    { numRuns: sized(100, 300, 5_000) },
  );
  const names = store.sessions.list({ all: true }).map((info) => info.name);
  expect(new Set(names).size).toBe(names.length);
});
