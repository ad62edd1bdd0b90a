/**
 * What ends a word without a character that ends one: colours of a terminal, as they are or in a string of code, escapes
 * of JSON and of code, escapes of an address and of a mail, breaks of a page.
 */
const escapes =
  /(?:(?!\s)\p{Cc}|\\{1,8}(?:u001b|x1b|033|e))\[[0-9;:?]{0,32}[A-Za-z]|\\{1,8}(?:[nrt]|x[0-9a-f]{2}|u[0-9a-f]{4})|=3d|%(?:25){0,2}[0-9a-f]{2}|<br ?\/?>/giu;

/** A character that no token has. */
const foreign = /[^ -~\s]/g;

/** A break of a line, as one or as an escape. */
const lineBreak = /^\\+n$|^\\+u000a$|^%(?:25)*0a$|^<br/i;

/** The longest word before a secret that is joined to it. */
const wordMax = 1_024;

/** A word that is joined to a secret, as in `TOKEN_ghp_…`: `beginning` is that of the secret. */
const joinedTo = (beginning        )         =>
  new RegExp(`(?<![\\w-])[\\w-]{0,${wordMax}}?[_-](?=${beginning.source})`, 'g');

/**
 * A function from a text to the same text with blanks for what surrounds a secret without being one: each character is
 * where it was. First without escapes, and then also without the words that are joined to a secret, whose own beginning can
 * look like one. `beginning` is that of a secret. Only texts that differ from what was given, and from each other.
 */
export function blankedBy(beginning        )                                      {
  const joined = joinedTo(beginning);
  return (text) => {
    const plain = text
      .replace(escapes, (one) =>
        lineBreak.test(one) ? `${' '.repeat(one.length - 1)}\n` : ' '.repeat(one.length),
      )
      .replace(foreign, ' ');
    const apart = plain.replace(joined, (one) => ' '.repeat(one.length));
    return [...new Set([plain, apart])].filter((one) => one !== text);
  };
}
