import { windowChars } from './window.js';

/** The most steps that a search may take for each character of a text. */
const stepsMax = 128;

const repeatsGroup =
  'must not repeat a group that has alternatives, groups or repetitions in it, since that takes time without end';
const looksAround = 'must not repeat something in a lookahead or lookbehind, nor repeat one of them';
const refersBack = 'must not have a backreference, an octal escape or \\c';
const tooOften = `must not repeat anything more than ${windowChars} times, except without a bound`;
const unbound =
  'must not repeat anything without a bound except at its end: give it a bound, such as {20,64}';

/** Why a pattern takes too many steps; they are those for one character. */
function tooMany(steps        )         {
  const count = steps > Number.MAX_SAFE_INTEGER ? 'too many' : Math.ceil(steps);
  return `can take ${count} steps for each character of a text, and ${stepsMax} are the most: what can match in several ways multiplies the steps of what follows. Use smaller bounds, a fixed beginning, or end it with what repeats`;
}

class Refused extends Error {}

function refuse(why        )        {
  throw new Refused(why);
}

/** A part of a pattern: what it costs, and what decides whether it can be repeated. */
                
                                                                                    
                        
                                         
                         
                                                                             
                              
                                                        
                               
                                                
                              
                            
                             
                                                                             
                              
                                            
                             
                                                       
                          
 

/**
 * Why a regular expression could take a time that is long for the length of a text; undefined for one that cannot.
 * `source` is one that the engine accepts. Pure.
 */
export function slowFault(source        )                     {
  try {
    const { stepsAtEnd, begins } = alternatives(source, { at: 0 });
    const steps = stepsAtEnd / begins;
    return steps > stepsMax ? tooMany(steps) : undefined;
  } catch (error) {
    if (error instanceof Refused) return error.message;
    throw error;
  }
}

                  
             
 

/** Alternatives, of whose matches at most one begins in this number of characters. */
                                     
                          
 

/** Reads alternatives up to `)` or the end. */
function alternatives(source        , cursor        )               {
  let [ways, steps, stepsAtEnd] = [0, 0, 0];
  let isCompound = false;
  let isUnbound = false;
  let begins                    ;
  for (;;) {
    const parts         = [];
    while (cursor.at < source.length && !'|)'.includes(source.charAt(cursor.at)))
      parts.push(repetition(source, cursor));
    const one = sequence(parts);
    ways += one.ways;
    steps += one.steps;
    stepsAtEnd += one.stepsAtEnd;
    isUnbound ||= one.isUnbound;
    isCompound ||= one.isCompound;
    begins = begins === undefined ? periodOf(fixedBeginning(parts)) : 1;
    if (source.charAt(cursor.at) !== '|') return { ways, steps, stepsAtEnd, isCompound, isUnbound, begins };
    isCompound = true;
    cursor.at += 1;
  }
}

/** Parts that follow each other: each way of one tries all that follow. */
function sequence(parts                 )       {
  const last = parts.at(-1);
  if (parts.slice(0, -1).some(({ isUnbound }) => isUnbound)) refuse(unbound);
  let ways = 1;
  let [steps, stepsAtEnd] = [0, 0];
  for (const [i, part] of [...parts.entries()].toReversed()) {
    const each = waysBefore(part, parts[i + 1]);
    // Where it cannot end, the first character of what follows says so.
    const tries = part.ways - each;
    ways *= each;
    steps = part.steps + each * steps + tries;
    stepsAtEnd = part === last ? part.stepsAtEnd : part.steps + each * stepsAtEnd + tries;
  }
  const isCompound = parts.some((part) => part.isCompound || part.character === undefined);
  return { ways, steps, stepsAtEnd, isCompound, isUnbound: last?.isUnbound === true };
}

/** A repetition ends at one place only if what follows is a character that it cannot contain. */
function waysBefore(part      , next                  )         {
  const [one, other] = [part.repeated, next?.first];
  return one !== undefined && other !== undefined && areApart(one, other) ? 1 : part.ways;
}

/** The characters that every match begins with. */
function fixedBeginning(parts                 )         {
  let text = '';
  for (const { isEmpty, character } of parts) {
    if (isEmpty === true) continue;
    const [, literal] = /^\\?([^\w\s\\[.]|(?<!\\)[\w ])$/.exec(character ?? '') ?? [];
    if (literal === undefined) break;
    text += literal;
  }
  return text;
}

/** How many characters lie between two places at which a text begins, at least. */
function periodOf(text        )         {
  for (let period = 1; period < text.length; period += 1)
    if (text.startsWith(text.slice(period))) return period;
  return Math.max(1, text.length);
}

const quantifier = /(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/y;

/** Reads one part and how often it is repeated. */
function repetition(source        , cursor        )       {
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
  if (sign === '?') {
    const { ways, steps, stepsAtEnd, isUnbound } = part;
    const more = { ways: ways + 1, steps: steps + 1, stepsAtEnd: stepsAtEnd + 1 };
    return { ...more, isCompound: true, isUnbound, ...repeatedOf(part, 0) };
  }
  const [, least = '', comma = '', most = ''] = match;
  if (isGroup && part.isCompound) refuse(repeatsGroup);
  const isUnbound = sign !== '{' || (comma !== '' && most === '');
  const lowest = sign === '{' ? Number(least) : sign === '+' ? 1 : 0;
  const highest = isUnbound ? Math.max(lowest, windowChars) : Number(comma === '' ? least : most);
  if (highest > windowChars) refuse(tooOften);
  return {
    ways: highest - lowest + 1,
    steps: highest * part.steps,
    stepsAtEnd: Math.max(1, lowest * part.steps),
    isCompound: true,
    isUnbound,
    ...repeatedOf(part, lowest),
  };
}

function repeatedOf({ character }      , least        )                                   {
  if (character === undefined) return {};
  return { repeated: character, ...(least > 0 && { first: character }) };
}

/** Reads a group. One that looks around is tried once at a place. */
function group(source        , cursor        , isLook         )       {
  const [start = '('] =
    /^\((?:\?(?:<?[=!]|<[^>]*>|[ims-]*:))?/.exec(source.slice(cursor.at, cursor.at + 200)) ?? [];
  const begun = cursor.at;
  cursor.at += start.length;
  const { ways, steps, stepsAtEnd, isCompound, isUnbound } = alternatives(source, cursor);
  cursor.at += 1;
  if (!isLook) return { ways, steps, stepsAtEnd, isCompound, isUnbound };
  if (hasRepetition(source.slice(begun + start.length, cursor.at - 1))) refuse(looksAround);
  return { ways: 1, steps, stepsAtEnd: steps, isCompound, isUnbound: false, isEmpty: true };
}

/** Whether a source repeats something, outside of classes and escapes. */
function hasRepetition(source        )          {
  const bare = source
    .replace(/\\./gs, 'a')
    .replace(/\[[^\]]*\]/g, 'a')
    .replace(/\(\?(?:<?[=!]|<[^>]*>|[ims-]*:)/g, '(');
  return /[*+?]|\{\d+,?\d*\}/.test(bare);
}

const escaped = /\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[\s\S])/y;
const characters = /\[(?:\\[\s\S]|[^\]\\])*\]/y;

/** Reads a character, a class of some, or a sign that matches none, such as `\b`. */
function character(source        , cursor        )       {
  const pattern = source.charAt(cursor.at) === '[' ? characters : escaped;
  pattern.lastIndex = cursor.at;
  const [text] = pattern.exec(source) ?? [source.charAt(cursor.at)];
  cursor.at += text.length;
  if (/^\\(?:[1-9kc]|0$)/.test(text) && (text !== '\\0' || /\d/.test(source.charAt(cursor.at))))
    refuse(refersBack);
  const isSign = /^(?:[$^]|\\[bB])$/.test(text);
  const one = { ways: 1, steps: 1, stepsAtEnd: 1, isCompound: false, isUnbound: false };
  return isSign ? { ...one, isEmpty: true } : { ...one, character: text, first: text };
}

/** Every character of the basic plane, made when it is first asked for. */
let plane                    ;

/** Whether no character matches both, whatever flags a group sets. */
function areApart(one        , other        )          {
  plane ??= Array.from({ length: 65_536 }, (_, code) => String.fromCharCode(code)).join('');
  const all = plane;
  return ['', 'i', 's', 'is'].every((flags) => !new RegExp(`(?=${one})${other}`, flags).test(all));
}
