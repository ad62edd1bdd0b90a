import type { Json } from '@tapedeck/tape';
import fc from 'fast-check';

/** Characters that some reader, encoder or shell has once taken for something else. */
const awkward = [
  '\0',
  '\n',
  '\r',
  '\r\n',
  '\t',
  '\u001b',
  '\u007f',
  '\u0085',
  '\u00a0',
  '\u200b',
  '\u2028',
  '\u2029',
  '\u202e',
  '\ufeff',
  '\ufffe',
  '\uffff',
  '\ud800',
  '\udbff',
  '\udc00',
  '\udfff',
  '\u{10ffff}',
  '\u{1f9d1}\u200d\u{1f680}',
  'e\u0301',
  'é',
  'ß',
  'İ',
  '"',
  '\\',
  "'",
  '`',
  '$',
  '%',
  '--',
  '/*',
  ';',
  '<',
  '{',
  '}',
  '\\u2028',
];

/**
 * Any code point but surrogates. The unit `binary` of fast-check is the same, and first makes a table of all of them,
 * which takes a second of each process.
 */
export const anyCodePoint: fc.Arbitrary<string> = fc
  .nat(0x10ffff - 0x800)
  .map((n) => String.fromCodePoint(n < 0xd800 ? n : n + 0x800));

/** Any text: UTF-16 code units in any order, lone surrogates among them. */
export const anyText: fc.Arbitrary<string> = fc
  .array(
    fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...awkward) },
      { weight: 3, arbitrary: fc.string({ unit: 'grapheme', maxLength: 4 }) },
      { weight: 1, arbitrary: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)) },
      { weight: 1, arbitrary: fc.string({ unit: anyCodePoint, maxLength: 4 }) },
    ),
    { maxLength: 12 },
  )
  .map((pieces) => pieces.join(''));

const anyKey = fc.oneof(
  fc.constantFrom(
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'hasOwnProperty',
    'toJSON',
    'then',
    'length',
    '0',
    '-1',
    '',
  ),
  fc.constantFrom('type', 'data', 'image', 'hash', 'as', 'value', 'mediaType', 'role', 'content'),
  anyText,
);

const anyNumber = fc.oneof(
  fc.constantFrom(
    0,
    -0,
    1e21,
    1e-7,
    1e308,
    5e-324,
    2 ** 53 - 1,
    2 ** 53,
    2 ** 53 + 2,
    -(2 ** 53) - 2,
    0.1 + 0.2,
  ),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.integer(),
);

/** Any JSON value, with keys that an object has by nature. A key `__proto__` is an own one, as a parser makes it. */
export const anyJson: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.oneof(anyText, anyNumber, fc.constantFrom(null, true, false, 'blob', 'json', 'bytes')),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.array(fc.tuple(anyKey, tie('value')), { maxLength: 4 }).map((fields) => Object.fromEntries(fields)),
  ),
})).value;

/** An array in an array in an array …, to this depth. */
export function nested(levels: number): Json {
  let value: Json = 1;
  for (let level = 0; level < levels; level += 1) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}
