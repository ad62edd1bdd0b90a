import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { findSecrets, hints, redactFault, redactorFor } from '@tapedeck/tape/internal';
import { expect, test } from 'vitest';
import { root } from '../support/imports.ts';
import { seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { ordinaryTexts, tokenShapes, toldSecrets } from '../support/token-shapes.ts';

function redactor(redact: Parameters<typeof redactorFor>[0] = true) {
  const made = redactorFor(redact);
  if (made === undefined) throw new Error('no redactor');
  return made;
}

/** What can stand around a secret. */
const around: readonly (readonly [before: string, after: string])[] = [
  ['', ''],
  ['it is ', ' of course'],
  ['"', '"'],
  ["TOKEN='", "'\n"],
  ['{"token":"', '"}'],
  ['→', '←'],
  ['token=', '&x=1'],
  ['(', ')'],
  ['\n', '\r\n'],
  ['\x1b[31m', '\x1b[0m'],
  ['\x1b[1;38;5;208m', '\x1b[0m'],
  ['\\u001b[31m', '\\u001b[0m'],
  ['"a\\n', '\\nb"'],
  ['"a\\\\n', '\\\\nb"'],
  ['{"a":"b\\t', '\\r\\n"}'],
  ['?token%3D', '%26x'],
  ['token\\u003d', '\\u0026x'],
  ['token\\x3d', '\\x26x'],
  ['token=3D', '\n'],
  ['GITHUB_TOKEN=', '\n'],
  ['令牌是', '这样'],
  ['é', ' é'],
];

/** Prefixes of a secret that are joined to it. */
const joined = ['MY_TOKEN_', 'api_key_', 'KEY_', 'x_', 'prod-', '__', 'a1_b2-'] as const;

test.each(tokenShapes)(
  'a secret of the form of %s is replaced as a whole, whatever stands around it',
  (name, secret) => {
    const { text } = redactor();
    for (const [before, after] of around)
      expect(text(before + secret + after)).toBe(`${before}[secret ${name}]${after}`);
  },
);

test.each(tokenShapes.filter(([name, secret]) => name !== 'privatekey' && /^[A-Za-z]/.test(secret)))(
  'a secret of the form of %s is replaced after a word and _ or -',
  (name, secret) => {
    for (const before of joined)
      expect(redactor().text(`${before}${secret}\n`)).toBe(`${before}[secret ${name}]\n`);
  },
);

test.each([
  ['cat -n', (line: string, n: number) => `${`${n}`.padStart(6)}\t${line}`],
  ['an arrow', (line: string, n: number) => `${`${n}`.padStart(5)}→${line}`],
  ['grep', (line: string) => `.ssh/id_rsa:${line}`],
  ['grep -n', (line: string, n: number) => `.ssh/id_rsa:${n}:${line}`],
  ['grep -A', (line: string, n: number) => `id_rsa${n === 1 ? ':' : '-'}${n}${n === 1 ? ':' : '-'}${line}`],
  ['a quote', (line: string) => `> ${line}`],
])('a private key whose lines have something before them is replaced: %s', (_, lineOf) => {
  for (const [, pem] of tokenShapes.filter(([name]) => name === 'privatekey'))
    for (const more of ['', 'Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n']) {
      const listing = pem
        .replace('-----\n', `-----\n${more}`)
        .split('\n')
        .map((line, i) => lineOf(line, i + 1))
        .join('\n');
      const body = pem.split('\n').slice(1, -1);
      const whole = `first\n${listing}\nlast`;
      for (const text of [whole, JSON.stringify({ whole }), JSON.stringify(JSON.stringify({ whole }))]) {
        const redacted = redactor().text(text);
        for (const line of body) expect(redacted).not.toContain(line.slice(0, 30));
        expect(redacted).toMatch(/first.*-----BEGIN.*\[secret privatekey\].*-----END.*last/s);
      }
      const cut = listing.split('\n').slice(0, -3).join('\n');
      expect(redactor().text(`${cut}\nlast`)).toMatch(/\[secret privatekey\]\nlast$/);
    }
});

test.each([
  ['JSON in JSON', (pem: string) => JSON.stringify(JSON.stringify({ pem }))],
  ['a page', (pem: string) => pem.replaceAll('\n', '<br>')],
])('a private key is replaced in %s', (_, textOf) => {
  for (const [, pem] of tokenShapes.filter(([kind]) => kind === 'privatekey')) {
    const redacted = redactor().text(textOf(pem));
    for (const line of pem.split('\n').slice(1, -1)) expect(redacted).not.toContain(line);
  }
});

test.each(toldSecrets)(
  'a secret that the text before it tells is replaced as a whole: %s',
  (name, textOf, secret) => {
    const { text } = redactor();
    expect(text(textOf(secret))).toBe(textOf(`[secret ${name}]`));
    expect(text(`first ${textOf(secret)}\nlast`)).not.toContain(secret.slice(8));
  },
);

test('a letter or digit before a token, and code that joins two pieces of one, hide it: precision comes first', () => {
  const [, token = ''] = tokenShapes.find(([name]) => name === 'github') ?? [];
  expect(redactor().text(`x${token}`)).toBe(`x${token}`);
  const pieces = `'${token.slice(0, 4)}' + '${token.slice(4)}'`;
  expect(redactor().text(pieces)).toBe(pieces);
  // What only looks like the beginning of one is no token.
  const names =
    'test_hf_model_name my-npm_package x_sk-ant-api key_AKIA_of_tests a_glpat-b use_ghp_token_here_please';
  expect(redactor().text(names)).toBe(names);
});

test('several secrets of one text are all replaced, also those of one kind', () => {
  const all = tokenShapes.map(([, secret]) => secret);
  const found = redactor().whole(all.join(' '));
  expect(found.count).toBe(all.length);
  for (const secret of all) expect(found.value).not.toContain(secret);
});

test('replacing again changes nothing', () => {
  const { text } = redactor();
  const once = text([...tokenShapes.map(([, s]) => s), ...toldSecrets.map(([, f, s]) => f(s))].join('\n'));
  expect(text(once)).toBe(once);
});

test('a private key that is cut off is replaced to its end', () => {
  const [, pem = ''] = tokenShapes.find(([, secret]) => secret.includes('RSA PRIVATE KEY')) ?? [];
  const cut = pem.slice(0, 150);
  const body = cut.split('\n')[1] ?? '';
  expect(redactor().text(`${cut}\n`)).not.toContain(body.slice(0, 30));
  expect(redactor().text(JSON.stringify(pem))).not.toContain(body.slice(0, 30));
});

test.each(ordinaryTexts)('what is no secret stays: %s', (text) => {
  expect(findSecrets(text)).toEqual([]);
});

test('sources, pages, hashes and pictures have no secret', () => {
  for (const file of [
    'test/contract/golden.test.ts',
    'docs/promises.md',
    'docs/format.md',
    'packages/tape/src/store/sqlite.ts',
    'docs/cli.md',
  ])
    expect({ file, found: findSecrets(readFileSync(join(root, file), 'utf8')) }).toEqual({ file, found: [] });
  let bytes = Buffer.alloc(0);
  for (let i = 0; bytes.length < sized(1_000_000, 1_000_000, 100_000_000); i += 1)
    bytes =
      i === 0
        ? Buffer.concat(
            Array.from({ length: 30_000 }, (_, j) => createHash('sha256').update(`${j}`).digest()),
          )
        : Buffer.concat([bytes, bytes]);
  for (const encoding of ['base64', 'base64url', 'hex'] as const)
    expect({ encoding, found: findSecrets(bytes.toString(encoding)) }).toEqual({ encoding, found: [] });
});

test('each rule of the package has a hint, or a reason to be left out', () => {
  const { rules } = createRequire(join(root, 'packages/tape/package.json'))(
    '@secretlint/secretlint-rule-preset-recommend',
  );
  const names = rules.map(({ meta }: { meta: { id: string } }) =>
    meta.id.replace('@secretlint/secretlint-rule-', ''),
  );
  expect(names.sort()).toEqual(Object.keys(hints).sort());
});

/** Texts that make a search begin again and again. */
const hostile: readonly string[] = [
  ...tokenShapes.map(([, secret]) => secret.slice(0, Math.floor(secret.length / 2))),
  ...tokenShapes.flatMap(([, secret]) => [
    secret.slice(0, 6),
    secret.slice(0, 12),
    `${secret.slice(0, 12)} `,
  ]),
  ...toldSecrets.flatMap(([, textOf]) => [textOf(''), textOf('a')]),
  'ghs_1_',
  'ghs_1_a.',
  'eyJ',
  'eyJ.',
  'eyJaaaaaaaaaaa.eyJaaaaaaaaaaa',
  'SG.a',
  'SG.a.',
  'authorization',
  'authorization ',
  'authorization: bearer ',
  'AKIA ghp_ a',
  'https://a:',
  'https://a:b@',
  'https://a:b/',
  'https://a:/b@a.',
  `https://${'a'.repeat(120)}:`,
  'https://',
  'mongodb://a:b',
  'secret_access_key ',
  'secret_access_key= ',
  '-----BEGIN PRIVATE KEY-----',
  '-----BEGIN PRIVATE KEY-----\n',
  '-----BEGIN PRIVATE KEY-----\na: b\n',
  '-----BEGIN ',
  '-----BEGIN A A A ',
  '_authToken=',
  '_authToken=\n',
  '\\',
  '\\n',
  '%25',
  '\x1b[',
  '\x1b[1;',
  'TOKEN_',
  'é',
  '     1\t-----BEGIN PRIVATE KEY-----\n',
  '> -----BEGIN PRIVATE KEY-----\n> a: b\n',
  `> -----BEGIN PRIVATE KEY-----\n> ${'a'.repeat(64)}\n`,
  'npm_https://',
  'a',
  ' ',
  '-',
  '_',
  '\n',
  '@://',
  '.',
  'x-oauth-basic@https://',
  'a_',
  'x-ghp_',
  ' x_AKIA',
];

test('the time grows with the length of the text, whatever the text is', () => {
  const [small, factor] = [sized(8_000, 10_000, 250_000), 4];
  const time = (text: string): number => {
    let least = Infinity;
    for (let i = 0; i < sized(2, 2, 4); i += 1) {
      const begun = process.cpuUsage();
      findSecrets(text);
      const { user, system } = process.cpuUsage(begun);
      least = Math.min(least, user + system);
    }
    return least / 1000;
  };
  findSecrets(tokenShapes.map(([, secret]) => secret).join(' '));
  const signs =
    'AKIA ghp_ x-oauth-basic@github.com SG. secretaccesskey authorization T3BlbkFJ -----BEGIN PRIVATE KEY----- ';
  for (const piece of new Set(hostile.filter((one) => one !== ''))) {
    const text = (length: number) => signs + piece.repeat(Math.ceil(length / piece.length)) + signs;
    // Small times are noise: a text that is too slow takes far more.
    const [short, long] = [time(text(small)), time(text(small * factor))];
    expect({ piece, ratio: long / Math.max(short, 4) }).toSatisfy(({ ratio }) => ratio < factor * 1.8);
  }
}, 120_000);

test.each([
  'xoxb-a-',
  'eyJ',
  'eyJaaaaaaaaaa.',
  'a',
  '-----BEGIN PRIVATE KEY-----\n',
  'authorization: ',
  'ghs_1_',
])('a long text of %j are searched to their end', (piece) => {
  const [, token = ''] = tokenShapes.find(([name]) => name === 'gitlab') ?? [];
  const text = `${piece.repeat(sized(1_000_000, 1_000_000, 4_000_000) / piece.length)} ${token}`;
  expect(findSecrets(text).at(-1)).toEqual({
    name: 'gitlab',
    from: text.length - token.length,
    to: text.length,
  });
});

test('further patterns are looked for within each line, and count as secrets', () => {
  const { text, whole } = redactor({ patterns: { intranet: 'itk_[0-9a-f]{16}', after: '(?<=id: )\\d{6}' } });
  expect(text('a itk_0123456789abcdef b')).toBe('a [secret intranet] b');
  expect(whole(['id: 123456', { itk_0123456789abcdef: 1 }])).toEqual({
    value: ['id: [secret after]', { '[secret intranet]': 1 }],
    count: 2,
  });
  // Wherever it is in a long line.
  for (const at of [0, 4090, 4096, 6000, 100_000])
    expect(text(`${'x'.repeat(at)} itk_0123456789abcdef`)).toBe(`${'x'.repeat(at)} [secret intranet]`);
});

test.each([
  ['yes', [], 'must be true, false, all'],
  [{ in: 'some' }, ['in'], 'must be results or all'],
  [{ rules: {} }, ['rules'], 'does not exist'],
  [{ patterns: { a: '(' } }, ['patterns', 'a'], 'must be a regular expression'],
  [{ patterns: { a: 'x*' } }, ['patterns', 'a'], 'must not match an empty text'],
  [{ patterns: { a: '(a+)+b' } }, ['patterns', 'a'], 'must not repeat a group'],
  [{ patterns: { 'a b': 'x' } }, ['patterns', 'a b'], 'must have a name'],
  [{ patterns: { a: 1 } }, ['patterns', 'a'], 'must be a text'],
  [{ patterns: [] }, ['patterns'], 'must be an object'],
])('a setting that cannot be used is refused: %j', (given, path, why) => {
  expect(redactFault(given)).toEqual({ path, why: expect.stringContaining(why) });
});

test.each([
  ['((a)+)+!', 'must not repeat a group'],
  ['(a|a)+!', 'must not repeat a group'],
  ['(a|aa)+!', 'must not repeat a group'],
  ['(?:a|aa){1,40}!', 'must not repeat a group'],
  ['(a?){30}a', 'must not repeat a group'],
  ['a*a*!', 'without a bound except at its end'],
  ['(?i:a+A+)!', 'without a bound except at its end'],
  ['(?:x|(a+))b', 'without a bound except at its end'],
  ['[a-z]{20,}\\b', 'without a bound except at its end'],
  ['.*x', 'without a bound except at its end'],
  [`${'a?'.repeat(30)}!`, '3221225470 steps'],
  [`${'a{0,4}'.repeat(6)}b`, '31249 steps'],
  [`${'(a|a)'.repeat(30)}!`, 'steps for each character'],
  ['a{1,500}a{1,500}!', 'steps for each character'],
  ['[a-z]{1,100}!', '200 steps for each character'],
  ['a{100}a{50,}', '150 steps for each character'],
  ['(?=(a+))\\1+!', 'lookahead'],
  ['(?<=a{2})b', 'lookahead'],
  ['(a)\\1', 'backreference'],
  ['(?<x>a)\\k<x>', 'backreference'],
  ['a{5000}', 'more than 4096 times'],
])('a pattern that could take time without end is refused: %s', (pattern, why) => {
  expect(redactFault({ patterns: { a: pattern } })).toEqual({
    path: ['patterns', 'a'],
    why: expect.stringContaining(why),
  });
});

/** Patterns that are accepted. */
const quick = [
  'itk_[0-9a-f]{32}',
  '(?<=id: )\\d{6}',
  '(?<![\\w-])corp-(?:dev|prod)-[A-Za-z0-9]{20,64}\\b',
  'x-[a-z]{1,20}:[0-9]{1,20};\\w+',
  'eyJ[\\w.-]{20,}',
  'itk_[\\w-]{20,300}',
  '(?:[0-9a-f]:){1,15}[0-9a-f]',
  'key=(.*)',
  '[A-Z]{1,20}[0-9]{1,20}[a-z]+',
  'a\\(b{1,20}\\)[)(|]c+',
  '[0-9a-f]{20,64}',
  '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}',
];

test.each(quick)('a pattern that takes little time is accepted: %s', (pattern) => {
  expect(redactFault({ patterns: { a: pattern } })).toBeUndefined();
  expect(redactor({ patterns: { a: pattern } }).text('x'.repeat(10_000))).toBe('x'.repeat(10_000));
});

/** A part of a pattern: characters, or parts that follow each other, or alternatives, how often, and then what. */
type Tree =
  | { readonly chars: string; readonly least: number; readonly most: number }
  | { readonly either: readonly (readonly Tree[])[] };

function sourceOf(parts: readonly Tree[]): string {
  return parts
    .map((part) => {
      if ('either' in part) return `(?:${part.either.map(sourceOf).join('|')})`;
      const { chars, least, most } = part;
      const times = most === Infinity ? `{${least},}` : `{${least},${most}}`;
      return `${chars.length === 1 ? chars : `[${chars}]`}${least === 1 && most === 1 ? '' : times}`;
    })
    .join('');
}

/** Searches as an engine does that goes back, and counts the characters that it compares. */
function stepsOf(parts: readonly Tree[], text: string, stop: number): number {
  let steps = 0;
  type Next = (at: number) => number | undefined;
  const all = (rest: readonly Tree[], at: number, next: Next): number | undefined => {
    const [part, ...more] = rest;
    if (part === undefined) return next(at);
    const then: Next = (to) => all(more, to, next);
    if ('either' in part) {
      for (const one of part.either) {
        const end = all(one, at, then);
        if (end !== undefined) return end;
      }
      return undefined;
    }
    let to = at;
    const isTaken = () => {
      steps += 1;
      return part.chars.includes(text.charAt(to));
    };
    while (to < text.length && to - at < part.most && isTaken()) to += 1;
    for (; to - at >= part.least && steps < stop; to -= 1) {
      const end = then(to);
      if (end !== undefined) return end;
    }
    return undefined;
  };
  for (let at = 0; at < text.length && steps < stop; ) {
    const end = all(parts, at, (to) => to);
    at = end === undefined || end === at ? at + 1 : end;
  }
  return steps;
}

test('no pattern that is accepted takes more steps than it may, whatever it is and the text is', () => {
  const random = seeded(20);
  const letters = ['a', 'b', 'ab', 'c', 'bc'] as const;
  const part = (depth: number): Tree => {
    if (depth > 0 && random.chance(20))
      return { either: Array.from({ length: 1 + random.below(3) }, () => parts(depth - 1)) };
    const least = random.below(4);
    const most = random.chance(10) ? Infinity : Math.max(1, least + random.of([0, 0, 0, 2, 4, 20, 60]));
    return random.chance(50)
      ? { chars: random.of(letters), least: 1, most: 1 }
      : { chars: random.of(letters), least, most };
  };
  const parts = (depth: number): Tree[] => Array.from({ length: 1 + random.below(5) }, () => part(depth));
  let [accepted, refused] = [0, 0];
  for (let i = 0; i < sized(400, 600, 200_000); i += 1) {
    const tree = parts(2);
    const source = sourceOf(tree);
    if (new RegExp(source).test('')) continue;
    if (redactFault({ patterns: { a: source } }) !== undefined) {
      refused += 1;
      continue;
    }
    accepted += 1;
    const length = 600;
    for (const piece of ['a', 'b', 'ab', 'aab', 'abc', 'aaaaaaaaaab', 'ccab']) {
      const text = piece.repeat(length / piece.length);
      const steps = stepsOf(tree, text, 10_000_000);
      // A beginning that does not match, and what ends a repetition at the end, are compared beyond the limit.
      expect({ source, piece, each: steps / text.length }).toSatisfy(({ each }) => each <= 128 + 4);
    }
  }
  expect(Math.min(accepted, refused)).toBeGreaterThan(100);
});
