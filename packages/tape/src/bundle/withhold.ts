import { isUtf8 } from 'node:buffer';
import { parsed } from '../entry/parsed.ts';
import type { LineageLine } from '../lineage/line.ts';
import { type Mask, maskFor } from '../secrets/mask.ts';
import { type Redact, type Redactor, redactorFor } from '../secrets/redactor.ts';
import type { Secret } from '../secrets/secrets.ts';

/** Finds secrets in what would travel: known ones, and what has the form of one. */
export class Withholding {
  readonly #mask: Mask | undefined;
  readonly #redactor: Redactor | undefined;

  constructor(secrets: readonly Secret[], redact: Redact) {
    this.#mask = maskFor(secrets);
    this.#redactor = redactorFor(typeof redact === 'object' ? { ...redact, in: 'all' } : 'all');
  }

  /** Whether the content of an entry has a secret. A form that its JSON hides, as an escape does, is found in its values. */
  isIn({ payload, meta }: { readonly payload: string; readonly meta: string | null }): boolean {
    return this.#isInText(payload) || (meta !== null && this.#isInText(meta));
  }

  /** Whether bytes have a secret: those of a text, and known ones anywhere. */
  isInBytes(bytes: Uint8Array): boolean {
    if (this.#mask !== undefined && this.#mask.bytes(bytes) !== bytes) return true;
    return isUtf8(bytes) && (this.#redactor?.find(Buffer.from(bytes).toString()).length ?? 0) > 0;
  }

  /** A text without its secrets. */
  text(text: string): string {
    const masked = this.#mask?.text(text) ?? text;
    return this.#redactor?.text(masked) ?? masked;
  }

  /** A line of the lineage without the secrets in what people wrote there. */
  line(line: LineageLine): LineageLine {
    const { intention, reason } = line;
    return {
      ...line,
      ...(intention !== undefined && {
        intention: Object.fromEntries(
          Object.entries(intention).map(([field, text]) => [
            field,
            field === 'digest' ? text : this.text(text),
          ]),
        ) as unknown as NonNullable<LineageLine['intention']>,
      }),
      ...(reason !== undefined && { reason: this.text(reason) }),
    };
  }

  #isInText(json: string): boolean {
    if (this.#mask !== undefined && this.#mask.text(json) !== json) return true;
    if (this.#redactor !== undefined && this.#redactor.find(json).length > 0) return true;
    if (!json.includes('\\') && !mayTell.test(json) && !json.includes('"mediaType"')) return false;
    const value = parsed(json);
    return (
      (this.#mask !== undefined && this.#mask.value(value) !== value) ||
      (this.#redactor?.whole(value).count ?? 0) > 0
    );
  }
}

/** Names of fields that make a secret of their value. */
const mayTell = /access_?key|authorization|account_?key/i;

/** What finds these secrets, and what has the form of one. */
export function withholdingOf(secrets: readonly Secret[], redact: Redact): Withholding {
  return new Withholding(secrets, redact);
}
