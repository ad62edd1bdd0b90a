import { openTapeStore, TapeError, user } from '@tapedeck/tape';
import { MaskedText, maskError, maskedStore, maskFor, secretsIn } from '@tapedeck/tape/internal';
import fc from 'fast-check';
import { expect, test } from 'vitest';

const secrets = [
  { name: 'API_KEY', value: 'sk-12345678' },
  { name: 'LONG_KEY', value: 'sk-12345678-and-more' },
  { name: 'ODD', value: 'a"b\\c/d+é&x' },
  { name: 'LINES', value: '-----BEGIN\nabc\n-----END' },
];

function mask() {
  const made = maskFor(secrets);
  if (made === undefined) throw new Error('no mask');
  return made;
}

test('without secrets there is no mask, and the store is not wrapped', () => {
  expect(maskFor([])).toBeUndefined();
  using plain = openTapeStore(':memory:', { secrets: [] });
  expect(maskedStore(plain, maskFor([]))).toBe(plain);
});

test('two fields whose names are one secret stay two', () => {
  const value = 'a"b\\c/d+é&x';
  expect(mask().value({ [value]: 1, [encodeURIComponent(value)]: 2 })).toEqual({
    '[secret ODD]': 1,
    '[secret ODD] 2': 2,
  });
});

test('a secret is replaced as it is, in JSON, in an address and in base64; the longer one of two first', () => {
  const { text } = mask();
  expect(text('It is sk-12345678.')).toBe('It is [secret API_KEY].');
  expect(text('sk-12345678-and-more')).toBe('[secret LONG_KEY]');
  for (const { name, value } of secrets) {
    expect(text(JSON.stringify({ value }))).toBe(`{"value":"[secret ${name}]"}`);
    expect(text(`http://host/?q=${encodeURIComponent(value)}&r`)).toBe(`http://host/?q=[secret ${name}]&r`);
    for (const before of ['', 'u:', 'me:', 'app:']) {
      const masked = text(`Basic ${btoa(before + Buffer.from(value).toString('latin1'))} `);
      expect(masked).toMatch(new RegExp(`^Basic \\w{0,6}\\[secret ${name}\\][\\w=]{0,4} $`));
    }
  }
  expect(text('sk-1234567 is another')).toBe('sk-1234567 is another');
});

test('base64 as a whole stays base64', () => {
  const { text } = mask();
  const file = btoa('The key is sk-12345678, and no other.');
  expect(atob(text(file))).toBe('The key is [secret API_KEY], and no other.');
  expect(text(`data:text/plain;base64,${file}`)).toMatch(/^data:text\/plain;base64,[A-Za-z0-9+/]+=*$/);
});

test('values keep their form: what has no secret is the same object, what has one is a copy', () => {
  const { value, bytes } = mask();
  const shared = { at: new Date(0), list: [1, null, 'x'], bytes: new Uint8Array([1, 2]) };
  expect(value(shared)).toBe(shared);
  const given = { shared, url: new URL('http://me:sk-12345678@host/'), 'sk-12345678': ['sk-12345678', 7] };
  const masked = value(given) as unknown as Record<string, unknown>;
  expect(masked).toEqual({
    shared,
    url: 'http://me:[secret API_KEY]@host/',
    '[secret API_KEY]': ['[secret API_KEY]', 7],
  });
  expect(masked.shared).toBe(shared);
  expect(given['sk-12345678'][0]).toBe('sk-12345678');
  expect(Buffer.from(bytes(Buffer.from('é sk-12345678 \0'))).toString()).toBe('é [secret API_KEY] \0');
  const circle: Record<string, unknown> = { text: 'x' };
  circle.circle = circle;
  expect(value(circle)).toBe(circle);
});

test('a text that arrives in pieces is masked as the whole text is', () => {
  const words = [...secrets.map(({ value }) => value), 'sk-', 'sk-1234', 's', ' and ', '-and-', 'a"b', '\n'];
  const texts = fc.array(fc.constantFrom(...words), { maxLength: 8 }).map((some) => some.join(''));
  fc.assert(
    fc.property(texts, fc.array(fc.nat({ max: 40 }), { maxLength: 20 }), (text, cuts) => {
      const at = [0, ...cuts.filter((cut) => cut < text.length).sort((a, b) => a - b), text.length];
      const masked = new MaskedText(mask());
      const pieces = at.slice(1).map((end, i) => masked.add(text.slice(at[i], end)));
      const shown = pieces.join('');
      expect(shown + masked.end()).toBe(mask().text(text));
      // What is shown before the end has no beginning of a secret at its end either.
      expect(secrets.some(({ value }) => shown.endsWith(value.slice(0, 5)))).toBe(false);
    }),
  );
});

test('an error keeps its class and loses the secrets of its message, stack, fields and causes', () => {
  const cause = Object.assign(new Error('cause sk-12345678'), { responseBody: 'body sk-12345678' });
  const error = new TapeError('TAPE_IO', 'no sk-12345678', { data: { key: 'sk-12345678' }, cause });
  expect(maskError(error, mask())).toBe(error);
  expect(error).toBeInstanceOf(TapeError);
  expect(error).toMatchObject({ message: 'no [secret API_KEY]', data: { key: '[secret API_KEY]' } });
  expect(cause.responseBody).toBe('body [secret API_KEY]');
  expect(`${error.stack} ${cause.message} ${cause.stack}`).not.toContain('sk-12345678');
});

test('an environment has the keys and tokens that its names say, and the passwords of addresses', () => {
  const env = {
    OPENAI_API_KEY: 'sk-12345678',
    SHORT_KEY: 'abc',
    PIN_TOKEN: '1234567890',
    GOOGLE_APPLICATION_CREDENTIALS: import.meta.filename,
    HOME: '/home/sk-12345678',
    PROXY: 'http://me:p%40ssw0rd-1@proxy:80',
    DB: 'postgres://postgres:postgres@localhost/db',
    PLAIN: 'http://localhost:8080/a@b',
  };
  expect(secretsIn(env)).toEqual([
    { name: 'OPENAI_API_KEY', value: 'sk-12345678' },
    { name: 'PROXY', value: 'p%40ssw0rd-1' },
    { name: 'PROXY', value: 'p@ssw0rd-1' },
    { name: 'DB', value: 'postgres:postgres@' },
  ]);
});

test.each([
  [{ API_KEY: 'sk-12345678\r\n' }, ['sk-12345678']],
  [{ API_KEY: '  sk-12345678 ' }, ['sk-12345678']],
  [{ API_KEY: '  sk-1 ' }, []],
  [{ REPO: 'https://ghp_abcdefghijklmnop@github.test/x' }, ['ghp_abcdefghijklmnop']],
  [
    { REPO: 'https://ghp_abcdefghijklmnop:x-oauth-basic@github.test/x' },
    ['x-oauth-basic', 'ghp_abcdefghijklmnop'],
  ],
  [{ REPO: 'ssh://git@github.test/x' }, []],
  [{ PAGE: 'https://github.test/abcdefghijklmnopqrstuvw@x' }, []],
])('the secrets in %j are %j', (env, expected) => {
  expect(secretsIn(env).map(({ value }) => value)).toEqual(expected);
});

test('a store writes no secret that it is given, and verifies', () => {
  using store = openTapeStore(':memory:', { secrets });
  store.sessions.open('main');
  const draft = { ...user('The key is sk-12345678.'), key: 'once' };
  const { to } = store.entries.append('main', [draft]);
  expect(store.entries.append('main', [draft])).toMatchObject({ added: 0, repeated: 1 });
  const [entry] = store.entries.read('main', { from: to });
  expect(entry?.payload).toMatchObject({ content: [{ text: 'The key is [secret API_KEY].' }] });
  expect([...store.verify()]).toEqual([]);
  expect(() => store.sessions.open('sk-12345678')).toThrow('[secret API_KEY]');
});
