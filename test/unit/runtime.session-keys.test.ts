import { parseSessionKey, type SessionKey, sessionKey } from '@tapedeck/runtime';
import { nameFault } from '@tapedeck/tape/store';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sized } from '../support/size.ts';

const ulid = '01ARZ3NDEKTSV4RRFFQ69G5FAV';

test('keys of the common kinds read as they are written', () => {
  const keys: Readonly<Record<string, SessionKey>> = {
    'dm:entity_mom': { kind: 'dm', entity: 'entity_mom' },
    'dm:imessage:+15559876543': { kind: 'dm', channel: 'imessage', sender: '+15559876543' },
    'dm:gmail:mom@gmail.com': { kind: 'dm', channel: 'gmail', sender: 'mom@gmail.com' },
    'group:slack:C1': { kind: 'group', channel: 'slack', peer: 'C1' },
    'group:slack:C1:thread:9': { kind: 'group', channel: 'slack', peer: 'C1', thread: '9' },
    'group:thread:thread:thread:thread': {
      kind: 'group',
      channel: 'thread',
      peer: 'thread',
      thread: 'thread',
    },
    [`worker:${ulid}`]: { kind: 'worker', id: ulid },
    'system:heartbeat': { kind: 'system', purpose: 'heartbeat' },
  };
  for (const [text, key] of Object.entries(keys)) {
    expect(parseSessionKey(text), text).toEqual(key);
    expect(sessionKey(key), text).toBe(text);
  }
  expect(sessionKey({ kind: 'dm', channel: 'teams', sender: '19:a b..c.' })).toBe(
    'dm:teams:19%3Aa%20b.%2Ec%2E',
  );
});

const letters = [
  ...'%:@.+-/~!',
  '😀',
  'a',
  'A',
  ' ',
  '\u202e',
  '_',
  '\0',
  'é',
  'e\u0301',
  '\n',
  '3',
  '%3A',
  ':thread:',
  '..',
];
const part = fc.string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength: 6 });
const anyKey: fc.Arbitrary<SessionKey> = fc.oneof(
  fc.record({ kind: fc.constant('dm' as const), entity: part }),
  fc.record({ kind: fc.constant('dm' as const), channel: part, sender: part }),
  fc.record({ kind: fc.constant('group' as const), channel: part, peer: part }),
  fc.record({ kind: fc.constant('group' as const), channel: part, peer: part, thread: part }),
  fc.record({ kind: fc.constant('system' as const), purpose: part }),
);

test('parser and printer are inverses, and a key is a name', () => {
  fc.assert(
    fc.property(anyKey, (key) => {
      const text = sessionKey(key);
      expect(parseSessionKey(text)).toEqual(key);
      expect(nameFault(text, 1000)).toBeUndefined();
    }),
    { numRuns: sized(500, 3_000, 200_000) },
  );
  // What the parser reads, the printer writes.
  fc.assert(
    fc.property(fc.constantFrom('dm:', 'group:a:', 'system:'), part, (kind, rest) => {
      const key = parsed(kind + rest);
      if (key !== undefined) expect(sessionKey(key)).toBe(kind + rest);
    }),
    { numRuns: sized(500, 3_000, 200_000) },
  );
});

function parsed(text: string): SessionKey | undefined {
  try {
    return parseSessionKey(text);
  } catch {
    return undefined;
  }
}

test('what is no key is refused, with the reason', () => {
  const bad: Readonly<Record<string, RegExp>> = {
    '': /the forms are/,
    main: /the forms are/,
    'dm:': /a part of it is empty/,
    'dm::x': /a part of it is empty/,
    'dm:a:b:c': /the forms are/,
    'group:slack': /the forms are/,
    'group:slack:C1:topic:9': /the forms are/,
    'group:slack:C1:thread:': /a part of it is empty/,
    'worker:abc': /the forms are/,
    [`worker:${ulid.toLowerCase()}`]: /the forms are/,
    'system:a:b': /the forms are/,
    'dm:a b': /write 'a b' in it as 'a%20b'/,
    'dm:%41': /as 'A'/,
    'dm:%3a': /as '%3A'/,
    'dm:a.': /as 'a%2E'/,
    'dm:%': /begins no character/,
    'dm:%FF': /begins no character/,
    'DM:a': /the forms are/,
    'constructor:a': /the forms are/,
    'dm:\ud800': /as/,
  };
  for (const [text, why] of Object.entries(bad))
    expect(() => parseSessionKey(text), text).toThrow(
      expect.objectContaining({ code: 'SESSION_BAD_INPUT', message: expect.stringMatching(why) }),
    );
  const large = `dm:${'x'.repeat(1_000_000)}`;
  for (const act of [
    () => parseSessionKey(large),
    () => sessionKey({ kind: 'dm', entity: 'x'.repeat(1_000_000) }),
    () => sessionKey({ kind: 'dm', entity: 'é'.repeat(900) }),
  ])
    expect(act).toThrow(/more than 1000/);
  for (const key of [
    { kind: 'dm', entity: '' },
    { kind: 'dm', entity: '\ud800' },
    { kind: 'dm', channel: 'x' },
    { kind: 'worker', id: 'x' },
    { kind: 'toString' },
    { kind: 'dm', entity: 7 },
  ])
    expect(() => sessionKey(key as never), JSON.stringify(key)).toThrow(
      expect.objectContaining({ code: 'SESSION_BAD_INPUT' }),
    );
});
