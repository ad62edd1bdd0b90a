import { once } from 'node:events';
import type { Json } from '@tapedeck/tape';
import { entryBytesMax } from '@tapedeck/tape/store';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyJson, nested } from '../support/arbitrary-json.ts';
import { jsonLines, startTape } from '../support/cli.ts';
import { hashedPayloads } from '../support/format-hash.ts';
import { rawDb } from '../support/raw-db.ts';
import { sized } from '../support/size.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const raw = (value: Json): string => JSON.stringify(value);
const lineOf = (payload: string) => `{"kind":"x-any","payload":${payload}}`;

/** Integers that a double cannot distinguish from their neighbours are refused by name, below. */
const exactJson = anyJson.filter((value) => {
  const numbers: number[] = [];
  JSON.stringify(value, (_key, field: unknown) => {
    if (typeof field === 'number') numbers.push(field);
    return field;
  });
  return numbers.every((n) => Number.isSafeInteger(n) || !/^-?\d+$/.test(String(n)));
});

async function payloadsOf(home: TempHome, name: string): Promise<string[]> {
  const result = await home.here(['log', name, '--from', '2', '--jsonl']);
  return jsonLines<{ payload: Json }>(result).map(({ payload }) => raw(payload));
}

describe('JSON lines through append and log', () => {
  test('return unchanged, whatever they contain, and only LF ends a line', async () => {
    using home = tempHome();
    let sessions = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(exactJson, { minLength: 1, maxLength: 30 }), async (payloads) => {
        sessions += 1;
        const name = `s${sessions}`;
        const stdin = payloads.map((payload) => `${lineOf(raw(payload))}\r\n`).join('');
        const appended = await home.here(['append', name, '--quiet'], { stdin });
        expect(appended).toMatchObject({ code: 0, stdout: `${payloads.length + 1}\n` });
        expect(await payloadsOf(home, name)).toEqual(payloads.map(raw));
      }),
      { numRuns: sized(10, 10, 1_000) },
    );
    using db = rawDb(home.db);
    for (let n = 1; n <= sessions; n += 1)
      expect(await payloadsOf(home, `s${n}`)).toEqual(hashedPayloads(db, `s${n}`).slice(1));
    expect(await home.here(['verify'])).toMatchObject({ code: 0 });
  });

  test('return unchanged through pipes that split them anywhere', async () => {
    using home = tempHome();
    const payloads = fc.sample(exactJson, { numRuns: 60, seed: 7 });
    const bytes = Buffer.from(payloads.map((payload) => `${lineOf(raw(payload))}\n`).join(''));
    const running = startTape(['append', 'main', '--quiet'], { home: home.path });
    // A prime, so that every place of a character of several bytes is once the end of a chunk.
    for (let at = 0; at < bytes.length; at += 997) {
      if (running.child.stdin?.write(bytes.subarray(at, at + 997)) === false)
        await once(running.child.stdin, 'drain');
      await new Promise(setImmediate);
    }
    running.child.stdin?.end();
    expect(await running.done).toMatchObject({ code: 0, stdout: `${payloads.length + 1}\n` });
    const log = jsonLines<{ payload: Json }>(await home.tape(['log', 'main', '--from', '2', '--jsonl']));
    expect(log.map(({ payload }) => raw(payload))).toEqual(payloads.map(raw));
  });
});

/** A text, and what is stored of it; undefined: refused, with the line. */
const texts: [given: string, stored: string | undefined][] = [
  ['9007199254740991', '9007199254740991'],
  ['-9007199254740991', '-9007199254740991'],
  ['9007199254740992', undefined],
  ['9007199254740993', undefined],
  ['-9007199254740993', undefined],
  ['123456789012345678901234567890', undefined],
  ['1e400', undefined],
  ['-1e400', undefined],
  ['1e308', '1e+308'],
  ['1e21', '1e+21'],
  ['1e-400', '0'],
  ['-0', '0'],
  ['0.1', '0.1'],
  ['NaN', undefined],
  ['Infinity', undefined],
  ['01', undefined],
  ['0x10', undefined],
  ['undefined', undefined],
  ["'a'", undefined],
  ['"\\ud800"', '"\\ud800"'],
  ['"\\udc00\\ud800"', '"\\udc00\\ud800"'],
  ['"\\ud83d\\ude00"', '"😀"'],
  ['"\\u0000"', '"\\u0000"'],
  ['"\u2028\u2029\u0085\ufeff\ufffe\uffff"', '"\u2028\u2029\u0085\ufeff\ufffe\uffff"'],
  ['"\t"', undefined],
  ['"\0"', undefined],
  ['\ufeff"a"', undefined],
  ['{"__proto__":1,"a":{"__proto__":{"b":2}}}', '{"__proto__":1,"a":{"__proto__":{"b":2}}}'],
  [
    '{"constructor":{"prototype":{"x":1}},"toString":null}',
    '{"constructor":{"prototype":{"x":1}},"toString":null}',
  ],
  ['{"toJSON":1,"then":2,"":3}', '{"toJSON":1,"then":2,"":3}'],
  ['[1,]', undefined],
  ['{"a":1}}', undefined],
  [raw(nested(63)), raw(nested(63))],
  [raw(nested(64)), undefined],
  ['['.repeat(200_000), undefined],
];

test.each(texts.map(([given, stored]) => [given.slice(0, 40), given, stored] as const))(
  'the text %j is kept, or its line is named and nothing is stored',
  async (_, given, stored) => {
    using home = tempHome();
    const stdin = `${lineOf('1')}\n${lineOf(given)}\n`;
    const { code, stderr } = await home.here(['append', 'main', '--json'], { stdin });
    if (stored === undefined) {
      expect(code).toBe(2);
      expect(JSON.parse(stderr)).toMatchObject({ error: { data: { line: 2 } } });
      expect(await home.here(['sessions', '--quiet'])).toMatchObject({ stdout: '' });
      return;
    }
    expect({ code, stderr: stderr.replace(/^Created.*\n/, '') }).toEqual({ code: 0, stderr: '' });
    expect(await payloadsOf(home, 'main')).toEqual(['1', stored]);
    using db = rawDb(home.db);
    expect(hashedPayloads(db, 'main').slice(1)).toEqual(['1', stored]);
  },
);

test('a line of exactly the size limit is kept, and one byte more is refused', async () => {
  using home = tempHome();
  const text = 'x'.repeat(entryBytesMax - lineOf('""').length);
  const over = await home.here(['append', 'main', '--json'], { stdin: `${lineOf(`"${text}x"`)}\n` });
  expect(over.code).toBe(2);
  const fits = await home.here(['append', 'main'], { stdin: `${lineOf(`"${text}"`)}\n` });
  expect(fits.code).toBe(0);
  const [payload] = await payloadsOf(home, 'main');
  expect(payload === `"${text}"`).toBe(true);
});
