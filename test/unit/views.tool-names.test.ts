import { legalToolName } from '@tapedeck/tape/internal';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyText } from '../support/arbitrary-json.ts';
import { sized } from '../support/size.ts';

const legal = /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/;
const anyName = fc.oneof(anyText, fc.stringMatching(/^[a-z_.:/ -]{0,70}$/), fc.stringMatching(legal));

describe('the name under which a provider is shown a tool', () => {
  test('is its own, if every provider accepts it', () => {
    for (const name of ['read', 'fs_read', '_', 'a-b', `a${'b'.repeat(63)}`, 'get_0123456789abcde'])
      expect(legalToolName(name)).toBe(name);
  });

  test('else begins readably and ends with a digest', () => {
    expect(legalToolName('echo<|channel|>commentary')).toMatch(/^echo_channel_commentary_[0-9a-f]{16}$/);
    expect(legalToolName('1st')).toMatch(/^_1st_[0-9a-f]{16}$/);
    expect(legalToolName('')).toMatch(/^__[0-9a-f]{16}$/);
    expect(legalToolName('x'.repeat(100))).toMatch(/^x{47}_[0-9a-f]{16}$/);
    expect(legalToolName('constructor')).toMatch(/^constructor_[0-9a-f]{16}$/);
    expect(legalToolName('__proto__')).toMatch(/^__proto___[0-9a-f]{16}$/);
  });

  test('is never that of another tool, not even of one that is named like it', () => {
    const shown = legalToolName('fs.read');
    expect(legalToolName(shown)).not.toBe(shown);
    expect(legalToolName('a\ud800')).not.toBe(legalToolName('a\ud801'));
  });

  test('is legal for every text, and differs for different texts', () => {
    fc.assert(
      fc.property(fc.uniqueArray(anyName, { maxLength: 30 }), (names) => {
        const shown = names.map(legalToolName);
        expect(shown.every((name) => legal.test(name))).toBe(true);
        expect(new Set([...shown, ...shown.map(legalToolName)]).size).toBeGreaterThanOrEqual(names.length);
        expect(new Set(shown).size).toBe(names.length);
      }),
      { numRuns: sized(100, 2_000, 100_000) },
    );
  });
});
