import type { Refusal } from '../../../src/page/data.ts';

/** What a server, or a file, did not answer. */
export class NotAnswered extends Error {
  override readonly name = 'NotAnswered';
  readonly code: string;
  readonly hint: string | undefined;

  constructor({ code, message, hint }: Refusal) {
    super(message);
    this.code = code;
    this.hint = hint;
  }
}
