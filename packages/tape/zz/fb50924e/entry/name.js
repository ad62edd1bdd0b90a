import { TapeError } from '../errors.js';

/** The longest session name that a caller can choose, in characters. */
export const nameMax = 180;
/** The longest name that is derived from another, such as a child's from its parent's. */
export const derivedNameMax = 200;

const namePattern = /^[A-Za-z0-9_!%](?:[A-Za-z0-9_!%.:@+-]*[A-Za-z0-9_!%])?$/;
const anchorPattern = /^[A-Za-z0-9_!%](?:[A-Za-z0-9_!%.:@+/-]*[A-Za-z0-9_!%])?$/;
const ulidPattern = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const reservedAnchors = /^(?:session|fork|merge|inbox)\/|^intention$/;

/** Returns whether a text is a ULID in capital letters, the form of every session id. */
export function isUlid(text        )          {
  return ulidPattern.test(text);
}

/** Returns whether a text is `worker:{ULID}`, which always names the session of that ULID. */
export function isWorkerName(text        )          {
  return text.startsWith('worker:') && isUlid(text.slice('worker:'.length));
}

/** Returns why a text cannot be a session name, or undefined when it can. */
export function nameFault(name        , max         = nameMax)                     {
  if (typeof name !== 'string') return 'it is not a text';
  if (name.length === 0) return 'it is empty';
  if (name.length > max) return `it has ${name.length} characters, more than ${max}`;
  if (!namePattern.test(name))
    return 'only A-Z a-z 0-9 . _ : @ + - ! % are allowed, and the ends must be one of A-Z a-z 0-9 _ ! %';
  if (name.includes('..') || name.includes('::')) return "it has '..' or '::'";
  return undefined;
}

/**
 * Checks a session name that a caller chose. Unsafe names are rejected, never rewritten.
 * @throws TAPE_BAD_NAME
 */
export function parseName(name        )         {
  const fault =
    nameFault(name) ??
    (isUlid(name) ? 'it has the form of a session id' : undefined) ??
    (isWorkerName(name) ? 'only the session of that id has it' : undefined);
  if (fault !== undefined)
    throw new TapeError('TAPE_BAD_NAME', `cannot use ${quote(String(name))} as a session name: ${fault}`);
  return name;
}

/**
 * Checks the base of tape names: a session name without `:`, which ends it in the name of a tape.
 * @throws TAPE_BAD_NAME
 */
export function parseBase(base        )         {
  const fault = baseFault(base);
  if (fault !== undefined)
    throw new TapeError(
      'TAPE_BAD_NAME',
      `cannot use ${quote(String(base))} as a base of tape names: ${fault}`,
    );
  return base;
}

/** Returns why a text cannot be a base of tape names; undefined for one that can. */
export function baseFault(base        )                     {
  return nameFault(base) ?? (base.includes(':') ? "it has ':'" : undefined);
}

/**
 * Checks an anchor name that a caller chose.
 * @throws TAPE_BAD_NAME
 */
export function parseAnchorName(name        )         {
  const fault =
    typeof name !== 'string'
      ? 'it is not a text'
      : name.length > derivedNameMax
        ? `it has ${name.length} characters, more than ${derivedNameMax}`
        : !anchorPattern.test(name) || name.includes('..') || name.includes('::')
          ? 'only A-Z a-z 0-9 . _ : @ + - ! % / are allowed, without ".." or "::", ending in a letter, a digit or one of _ ! %'
          : /^\d+$/.test(name)
            ? 'it reads as a position'
            : name === 'head'
              ? "'head' is the end of the tape"
              : reservedAnchors.test(name)
                ? 'names of this form are reserved'
                : undefined;
  if (fault !== undefined)
    throw new TapeError('TAPE_BAD_NAME', `cannot use ${quote(String(name))} as an anchor name: ${fault}`);
  return name;
}

/** Returns the tape name of a session: `tape:main`; from the second incarnation on `tape:main~2`. */
export function tapeName(realm        , name        , incarnation = 1)         {
  return incarnation === 1 ? `${realm}:${name}` : `${realm}:${name}~${incarnation}`;
}

/**
 * Returns the form in which names that look alike are equal: letters A-Z in lower case, escaped characters
 * outside ASCII decoded and in Unicode form NFC. Names with the same form are never made beside each other.
 */
export function nameKey(name        )         {
  const decoded = name.replace(/(?:%[89A-Fa-f][0-9A-Fa-f])+/g, (escaped) => {
    try {
      return decodeURIComponent(escaped);
    } catch {
      return escaped; // Not UTF-8: these escapes stand for no character.
    }
  });
  return decoded.normalize('NFC').replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** Quotes a text for a message: control characters escaped, at most 80 characters. */
export function quote(text        )         {
  const shown = text.length > 80 ? `${text.slice(0, 77).toWellFormed()}...` : text.toWellFormed();
  return `'${shown.replace(/\p{C}/gu, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`)}'`;
}

/**
 * Returns the candidates nearest to a mistyped name: at most three, nearest first.
 * @param within the number of edits that a candidate may be away. Default: what suits a long name, and a name is near
 *   that contains the other
 */
export function nearNames(
  wanted        ,
  candidates                  ,
  { within }                               = {},
)           {
  const limit = within ?? Math.max(2, Math.floor(wanted.length / 3));
  const contains = (name        ) => within === undefined && (name.includes(wanted) || wanted.includes(name));
  return [...new Set(candidates)]
    .map((name) => ({ name, far: contains(name) ? 1 : distance(wanted, name) }))
    .filter(({ far }) => far <= limit)
    .sort((a, b) => a.far - b.far || (a.name < b.name ? -1 : 1))
    .slice(0, 3)
    .map(({ name }) => name);
}

/** Edit distance of two texts; a swap of neighbours counts as one edit. */
function distance(a        , b        )         {
  const rows             = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1];
      let best = Math.min((rows[i - 1]?.[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1);
      best = Math.min(best, (rows[i - 1]?.[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        best = Math.min(best, (rows[i - 2]?.[j - 2] ?? 0) + 1);
      row.push(best);
    }
    rows.push(row);
  }
  return rows[a.length]?.[b.length] ?? 0;
}
