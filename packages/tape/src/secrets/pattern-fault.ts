import { windowChars } from './window.ts';

/** How many steps a match from one place takes at most: those of four repetitions without a bound, one after the other. */
const stepsMax = 4 * windowChars;

const tooMany =
  'must not match in too many ways: a repetition that can end at several places, since what follows it can be a part of it, multiplies the steps of what follows, and 16384 are the most';
const repeatsGroup =
  'must not repeat a group that has alternatives, groups or repetitions in it, since that takes time without end';
const looksAround = 'must not repeat something in a lookahead or lookbehind, nor repeat one of them';
const refersBack = 'must not have a backreference, an octal escape or \\c';
const tooOften = `must not repeat anything more than ${windowChars} times, except without a bound`;

class Refused extends Error {}

function refuse(why: string): never {
  throw new Refused(why);
}

/** A part of a pattern: what it costs, and what decides whether it can be repeated. */
interface Part {
  /** How many ways it has to match from a place: what follows is tried so often. */
  readonly ways: number;
  /** How many steps all of them take. */
  readonly steps: number;
  /** Has alternatives, groups, signs or repetitions. */
  readonly isCompound: boolean;
  /** The source of a part that is one character; undefined for any other. */
  readonly character?: string;
  /** The same, for one that is repeated. */
  readonly repeated?: string;
  /** The character that it begins with in any case. */
  readonly first?: string;
}

/**
 * Why a regular expression could take time that grows faster than a text; undefined for one that cannot. `source` is
 * one that the engine accepts. Pure.
 */
export function slowFault(source: string): string | undefined {
  try {
    return alternatives(source, { at: 0 }).steps > stepsMax ? tooMany : undefined;
  } catch (error) {
    if (error instanceof Refused) return error.message;
    throw error;
  }
}

interface Cursor {
  at: number;
}

/** Reads alternatives up to `)` or the end. */
function alternatives(source: string, cursor: Cursor): Part {
  let [ways, steps] = [0, 0];
  let isCompound = false;
  for (;;) {
    const sequence: Part[] = [];
    while (cursor.at < source.length && !'|)'.includes(source.charAt(cursor.at)))
      sequence.push(repetition(source, cursor));
    const each = sequence.map((part, i) => waysBefore(part, sequence[i + 1]));
    ways += each.reduce((product, one) => product * one, 1);
    steps += sequence.reduceRight((rest, part, i) => part.steps + (each[i] ?? 1) * rest, 0);
    isCompound ||= sequence.some((part) => part.isCompound || part.character === undefined);
    if (source.charAt(cursor.at) !== '|') return { ways, steps, isCompound };
    isCompound = true;
    steps += 1;
    cursor.at += 1;
  }
}

/** A repetition ends at one place only if what follows is a character that it cannot contain. */
function waysBefore(part: Part, next: Part | undefined): number {
  const [one, other] = [part.repeated, next?.first];
  return one !== undefined && other !== undefined && areApart(one, other) ? 1 : part.ways;
}

const quantifier = /(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/y;

/** Reads one part and how often it is repeated. */
function repetition(source: string, cursor: Cursor): Part {
  const begun = cursor.at;
  const isLook = /^\(\?<?[=!]/.test(source.slice(begun, begun + 4));
  const isGroup = source.charAt(begun) === '(';
  const part = isGroup ? group(source, cursor, isLook) : character(source, cursor);
  quantifier.lastIndex = cursor.at;
  const match = quantifier.exec(source);
  if (match === null) return part;
  cursor.at += match[0].length;
  if (isLook) refuse(looksAround);
  const sign = match[0].charAt(0);
  if (sign === '?')
    return { ways: part.ways + 1, steps: part.steps + 1, isCompound: true, ...repeatedOf(part, 0) };
  const [, least = '', comma = '', most = ''] = match;
  if (isGroup && part.isCompound) refuse(repeatsGroup);
  if (sign !== '{' || (comma !== '' && most === '')) {
    if (Number(least) > windowChars) refuse(tooOften);
    return {
      ways: windowChars,
      steps: windowChars,
      isCompound: true,
      ...repeatedOf(part, sign === '+' ? 1 : Number(least)),
    };
  }
  const highest = Number(comma === '' ? least : most);
  if (highest > windowChars) refuse(tooOften);
  const ways = highest - Number(least) + 1;
  return { ways, steps: highest, isCompound: true, ...repeatedOf(part, Number(least)) };
}

function repeatedOf({ character }: Part, least: number): Pick<Part, 'repeated' | 'first'> {
  if (character === undefined) return {};
  return { repeated: character, ...(least > 0 && { first: character }) };
}

/** Reads a group. One that looks around is tried once at a place. */
function group(source: string, cursor: Cursor, isLook: boolean): Part {
  const [start = '('] =
    /^\((?:\?(?:<?[=!]|<[^>]*>|[ims-]*:))?/.exec(source.slice(cursor.at, cursor.at + 200)) ?? [];
  const begun = cursor.at;
  cursor.at += start.length;
  const { ways, steps, isCompound } = alternatives(source, cursor);
  cursor.at += 1;
  if (isLook && hasRepetition(source.slice(begun + start.length, cursor.at - 1))) refuse(looksAround);
  return { ways: isLook ? 1 : ways, steps, isCompound };
}

/** Whether a source repeats something, outside of classes and escapes. */
function hasRepetition(source: string): boolean {
  const bare = source
    .replace(/\\./gs, 'a')
    .replace(/\[[^\]]*\]/g, 'a')
    .replace(/\(\?(?:<?[=!]|<[^>]*>|[ims-]*:)/g, '(');
  return /[*+?]|\{\d+,?\d*\}/.test(bare);
}

const escaped = /\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[\s\S])/y;
const characters = /\[(?:\\[\s\S]|[^\]\\])*\]/y;

/** Reads a character, a class of some, or a sign that matches none, such as `\b`. */
function character(source: string, cursor: Cursor): Part {
  const pattern = source.charAt(cursor.at) === '[' ? characters : escaped;
  pattern.lastIndex = cursor.at;
  const [text] = pattern.exec(source) ?? [source.charAt(cursor.at)];
  cursor.at += text.length;
  if (/^\\(?:[1-9kc]|0$)/.test(text) && (text !== '\\0' || /\d/.test(source.charAt(cursor.at))))
    refuse(refersBack);
  const isSign = /^(?:[$^]|\\[bB])$/.test(text);
  return { ways: 1, steps: 0, isCompound: false, ...(!isSign && { character: text, first: text }) };
}

/** Every character of the basic plane. */
const plane = (): string => Array.from({ length: 65_536 }, (_, code) => String.fromCharCode(code)).join('');

/** Whether no character matches both, whatever flags a group sets. */
function areApart(one: string, other: string): boolean {
  const all = plane();
  const chars = (source: string, flags: string): Set<string> => new Set(all.match(new RegExp(source, flags)));
  return ['g', 'gi', 'gs', 'gis'].every((flags) => chars(one, flags).isDisjointFrom(chars(other, flags)));
}
