import type { MaskedIo } from './masked-io.ts';
import { fittingLines } from './terminal/wrap.ts';

/**
 * Input and output of a verb whose text is read at a terminal: a line that is wider than it is broken between words.
 */
export function fittedIo(io: MaskedIo): MaskedIo {
  const out = async (text: string | Uint8Array) => {
    if (typeof text !== 'string') return await io.out(text);
    // The user may resize the terminal while a verb follows what happens.
    const { columns } = io;
    const lines = text.split('\n').flatMap((line) => fittingLines(line, columns));
    await io.out(lines.join('\n'));
  };
  return Object.assign(Object.create(io) as MaskedIo, { out });
}
