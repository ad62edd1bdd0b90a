import {            placeholder } from './mask.js';

/**
 * A text that arrives in pieces, with its secrets replaced. Keeps back the end of the text while it can be the
 * beginning of a secret.
 */
export class MaskedText {
           #mask      ;
           #first                     ;
  #held = '';

  constructor(mask      ) {
    this.#mask = mask;
    this.#first = new Set(mask.forms.map(({ text }) => text.charAt(0)));
  }

  /** Returns what can be shown after this piece. */
  add(piece        )         {
    const { pattern, forms } = this.#mask;
    const text = this.#held + piece;
    let shown = '';
    for (let from = 0; ; ) {
      const open = this.#openFrom(text, from);
      pattern.lastIndex = from;
      const found = pattern.exec(text);
      if (found === null || found.index >= open) {
        this.#held = text.slice(open);
        return shown + text.slice(from, open);
      }
      const form = forms.find((one) => one.text === found[0]);
      shown += text.slice(from, found.index) + (form === undefined ? '' : placeholder(form.secret));
      from = found.index + found[0].length;
    }
  }

  /** Returns the rest of the text, at its end. */
  end()         {
    const rest = this.#held;
    this.#held = '';
    return this.#mask.text(rest);
  }

  /** Where the end of the text begins that can be the beginning of a secret; its length if none can. */
  #openFrom(text        , from        )         {
    const { forms } = this.#mask;
    const longest = forms[0]?.text.length ?? 0;
    for (let at = Math.max(from, text.length - longest + 1); at < text.length; at += 1) {
      if (!this.#first.has(text.charAt(at))) continue;
      const end = text.slice(at);
      if (forms.some((form) => form.text.length > end.length && form.text.startsWith(end))) return at;
    }
    return text.length;
  }
}
