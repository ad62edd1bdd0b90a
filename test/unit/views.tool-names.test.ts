import { assistant, type JsonObject, toolCall, toolResult, user, view } from '@tapedeck/tape';
import { legalToolName } from '@tapedeck/tape/internal';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyText } from '../support/arbitrary-json.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';

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
      { numRuns: sized(100, 500, 100_000) },
    );
  });
});

test.each(['constructor', '__proto__', 'toString'])(
  'a view with a call of %s, for a provider of that name, is recorded and made again as any other',
  (name) => {
    using store = openStore();
    store.sessions.open('main');
    const call = { toolCallId: 'c', toolName: name };
    store.entries.append('main', [user('1'), assistant([toolCall('c', name, {})]), toolResult(call, '2')]);
    for (const provider of ['anthropic', `${name}.chat`]) {
      const shown = view(store.views.entries('main'), { target: { provider } }).manifest();
      store.entries.append('main', [assistant('3', { view: shown as unknown as JsonObject })]);
    }
    expect([...store.verify()]).toEqual([]);
  },
);
