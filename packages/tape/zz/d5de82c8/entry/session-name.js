import { TapeError } from '../errors.js';
import { sha256 } from './hash.js';
import { isUlid, isWorkerName, nameMax } from './name.js';

/** What a name keeps of an id: everything else is escaped. */
const kept = /^[a-z0-9_.:+-]$/;
const hashed = 64;

/**
 * Returns the session name of an id of another program, such as a channel's or a user's. Different ids have
 * different names, which differ by more than case; the same id has the same name everywhere.
 *
 * `a-z 0-9 _ . : + -` stand for themselves, and a capital letter is `!` and its small letter. Any other character is
 * `%XX` for each byte of its UTF-8. So is a `.` or `:` after another, a character of `. : + -` at an end, and the
 * first character of an id that would read as the ULID of a session. A name of over 180 characters is cut
 * between two characters of the id to at most 114, and `!-` and the SHA-256 of the id follow.
 * @throws TAPE_BAD_NAME for an empty id
 *
 * @example
 * ```ts
 * import { sessionName } from '@tapedeck/tape';
 *
 * console.log(sessionName('main'), sessionName('C1/naïve #x')); // main !c1%2Fna%C3%AFve%20%23x
 * ```
 */
export function sessionName(id        )         {
  if (typeof id !== 'string' || id === '')
    throw new TapeError('TAPE_BAD_NAME', 'cannot name a session after an id that is empty or no text');
  const characters = [...id];
  const readsAsUlid = isUlid(id) || isWorkerName(id);
  const pieces = characters.map((character, i) => {
    const isEnd = i === 0 || i === characters.length - 1;
    const isDoubled = /^[.:]$/.test(character) && characters[i - 1] === character;
    if ((isEnd && /^[.:+-]$/.test(character)) || isDoubled || (i === 0 && readsAsUlid))
      return escaped(character);
    if (kept.test(character)) return character;
    return /^[A-Z]$/.test(character) ? `!${character.toLowerCase()}` : escaped(character);
  });
  const name = pieces.join('');
  if (name.length <= nameMax) return name;
  let begin = '';
  for (const piece of pieces) {
    if (begin.length + piece.length > nameMax - hashed - 2) break;
    begin += piece;
  }
  return `${begin}!-${sha256(bytesOf(id))}`;
}

function escaped(character        )         {
  return [...bytesOf(character)]
    .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
    .join('');
}

/** UTF-8, in which half of a surrogate pair has three bytes too, so that no two texts have the same bytes. */
function bytesOf(text        )             {
  if (text.isWellFormed()) return Buffer.from(text);
  const bytes = [...text].map((character) => {
    const code = character.charCodeAt(0);
    return character.isWellFormed()
      ? Buffer.from(character)
      : Buffer.from([0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)]);
  });
  return Buffer.concat(bytes);
}
