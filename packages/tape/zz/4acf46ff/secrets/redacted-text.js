import { isHint } from './patterns.js';
                                              

/** How much of what was shown is read again with what follows: a name of a field tells what its value is. */
const contextChars = 256;
/** A longer word is no token: its beginning is shown. */
const heldMax = 16_384;
/** The end of such a word, which can be the beginning of a token, stays back. */
const keptMax = 12_288;
/** A private key, whose lines have white space between them, without its end; or the beginning of its first line. */
const openKey =
  /^-----BEGIN (?:[A-Z ]{0,40}-{0,4}|[A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?!.*-----END [A-Z ]{0,40}-----).*)$/s;

/**
 * A text that arrives in pieces, with what has the form of a secret replaced. Keeps back the last word, since what
 * follows can make a secret of it, and a private key until its end.
 */
export class RedactedText {
           #redactor          ;
  /** The end of what was shown, before it was replaced. */
  #before = '';
  #held = '';
  #count = 0;

  constructor(redactor          ) {
    this.#redactor = redactor;
  }

  /** How many secrets were replaced so far. */
  get count()         {
    return this.#count;
  }

  /** Returns what can be shown after this piece. */
  add(piece        )         {
    this.#held += piece;
    // A word that goes on is looked at when it is at its end.
    if (!/\s/.test(piece) && this.#held.length <= heldMax) return '';
    return this.#show(openFrom(this.#held));
  }

  /** Returns the rest of the text, at its end. */
  end()         {
    return this.#show(this.#held.length);
  }

  /** Shows the text up to a place, or up to the secret that goes on there. */
  #show(place        )         {
    if (place === 0) return '';
    const text = this.#before + this.#held;
    const from = this.#before.length;
    let end = from + place;
    let shown = '';
    let at = from;
    for (const found of this.#redactor.find(text)) {
      if (found.to <= from) continue;
      if (found.from >= end) break;
      // Up to the end of the text there is nothing more to wait for.
      if (found.to > end) {
        end = Math.max(found.from, at);
        break;
      }
      shown += `${text.slice(at, Math.max(found.from, at))}[secret ${found.name}]`;
      at = found.to;
      this.#count += 1;
    }
    shown += text.slice(at, end);
    this.#before = text.slice(Math.max(0, end - contextChars), end);
    this.#held = text.slice(end);
    return shown;
  }
}

/** Where the end of a text begins that can become a secret: a private key without its end, or the last word. */
function openFrom(text        )         {
  const key = text.lastIndexOf('-----BEGIN ');
  if (key !== -1 && text.length - key <= heldMax && openKey.test(text.slice(key))) return key;
  let word = text.length;
  while (word > 0 && text.length - word <= heldMax && !/\s/.test(text.charAt(word - 1))) word -= 1;
  return text.length - word <= heldMax ? word : text.length - keptMax;
}

/** A text that goes on later, without its end, if that looks like the beginning of a secret. */
export function withoutOpenEnd(text        )         {
  const from = openFrom(text);
  return isHint(text.slice(from)) ? `${text.slice(0, from)}[…]` : text;
}
