import { quote } from '@tapedeck/tape/internal';
import { isUlid } from '@tapedeck/tape/store';
import { SessionError } from '../errors.ts';

/** What a session key says. */
export type SessionKey =
  /** A person or another entity that is known, on every channel. */
  | { readonly kind: 'dm'; readonly entity: string }
  /** A sender of whom nothing more is known. */
  | { readonly kind: 'dm'; readonly channel: string; readonly sender: string }
  /** A group or a channel of a platform, or one thread in it. */
  | { readonly kind: 'group'; readonly channel: string; readonly peer: string; readonly thread?: string }
  /** A child, by its ULID. */
  | { readonly kind: 'worker'; readonly id: string }
  /** What no person started, such as `heartbeat`. */
  | { readonly kind: 'system'; readonly purpose: string };

/** The longest key, in characters. */
const keyMax = 1000;

/** The forms of keys, for error messages. */
const forms =
  'the forms are dm:ENTITY, dm:CHANNEL:SENDER, group:CHANNEL:PEER, group:CHANNEL:PEER:thread:ID, worker:ULID and system:PURPOSE';

/**
 * Prints a session key. `parseSessionKey` reads it back. In each of its parts `A-Z a-z 0-9 _ . @ + -` stand for
 * themselves, and any other character is `%XX` for each byte of its UTF-8, so that a `:` always separates parts. So is a
 * `.` after another, and one of `. @ + -` at the end.
 * @throws SESSION_BAD_INPUT for a part that is empty, or no well-formed text, and for more than 1,000 characters
 *
 * @example
 * ```ts
 * import { sessionKey } from '@tapedeck/runtime';
 *
 * console.log(sessionKey({ kind: 'dm', channel: 'imessage', sender: '+1555' })); // dm:imessage:+1555
 * console.log(sessionKey({ kind: 'group', channel: 'teams', peer: '19:a b' })); // group:teams:19%3Aa%20b
 * ```
 */
export function sessionKey(key: SessionKey): string {
  const text = printed(key);
  if (text.length > keyMax) throw badKey(text, `it has ${text.length} characters, more than ${keyMax}`);
  return text;
}

function printed(key: SessionKey): string {
  switch (key.kind) {
    case 'dm':
      return 'entity' in key
        ? joined(['dm', part('entity', key.entity)])
        : joined(['dm', part('channel', key.channel), part('sender', key.sender)]);
    case 'group': {
      const thread = key.thread === undefined ? [] : ['thread', part('thread', key.thread)];
      return joined(['group', part('channel', key.channel), part('peer', key.peer), ...thread]);
    }
    case 'worker':
      if (typeof key.id !== 'string' || !isUlid(key.id)) throw badPart('id', 'is no ULID');
      return joined(['worker', key.id]);
    case 'system':
      return joined(['system', part('purpose', key.purpose)]);
    default:
      throw badPart('kind', 'must be dm, group, worker or system');
  }
}

function joined(parts: readonly string[]): string {
  return parts.join(':');
}

function part(name: string, value: unknown): string {
  const fault = partFault(value);
  if (fault !== undefined) throw badPart(name, fault);
  return escapedPart(String(value));
}

/** Why a value cannot be a part of a key; undefined for one that can. */
export function partFault(value: unknown): string | undefined {
  if (typeof value !== 'string') return 'is no text';
  if (value === '') return 'is empty';
  // Before its characters are looked at one by one.
  if (value.length > keyMax) return `has ${value.length} characters, more than ${keyMax}`;
  return value.isWellFormed() ? undefined : 'is no well-formed text';
}

/** The form of a text in a key. Different texts have different forms. */
export function escapedPart(text: string): string {
  return text
    .replace(/[^A-Za-z0-9_.@+-]/gu, percent)
    .replace(/(?<=\.)\./g, percent)
    .replace(/[.@+-]$/, percent);
}

function percent(character: string): string {
  return [...Buffer.from(character)]
    .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
    .join('');
}

/**
 * Parses a session key. It reads only what `sessionKey` prints, so that each key has one text.
 * @throws SESSION_BAD_INPUT
 *
 * @example
 * ```ts
 * import { parseSessionKey } from '@tapedeck/runtime';
 *
 * console.log(parseSessionKey('dm:entity_mom')); // { kind: 'dm', entity: 'entity_mom' }
 * ```
 */
export function parseSessionKey(text: string): SessionKey {
  if (typeof text !== 'string') throw badKey(String(text), 'it is not a text');
  if (text.length > keyMax) throw badKey(text, `it has ${text.length} characters, more than ${keyMax}`);
  const [kind, ...parts] = text.split(':');
  const texts = parts.map((one) => unescapedPart(text, one));
  const [first = '', second = '', third, fourth = ''] = texts;
  const count = texts.length;
  if (kind === 'dm' && count === 1) return { kind, entity: first };
  if (kind === 'dm' && count === 2) return { kind, channel: first, sender: second };
  if (kind === 'group' && count === 2) return { kind, channel: first, peer: second };
  if (kind === 'group' && count === 4 && third === 'thread' && parts[2] === 'thread')
    return { kind, channel: first, peer: second, thread: fourth };
  if (kind === 'worker' && count === 1 && isUlid(first)) return { kind, id: first };
  if (kind === 'system' && count === 1) return { kind, purpose: first };
  throw badKey(text, forms);
}

function unescapedPart(key: string, form: string): string {
  if (form === '') throw badKey(key, `a part of it is empty; ${forms}`);
  let text: string;
  try {
    text = decodeURIComponent(form);
  } catch {
    throw badKey(key, `${quote(form)} has a % that begins no character`);
  }
  const written = escapedPart(text.toWellFormed());
  if (written === form) return text;
  throw badKey(key, `write ${quote(form)} in it as ${quote(written)}`);
}

function badKey(key: string, why: string): SessionError {
  return new SessionError('SESSION_BAD_INPUT', `cannot use ${quote(key)} as a session key: ${why}`, {
    data: { key: key.slice(0, keyMax) },
  });
}

function badPart(name: string, why: string): SessionError {
  return new SessionError('SESSION_BAD_INPUT', `cannot make a session key: ${name} ${why}`, {
    data: { field: name },
  });
}
