/**
 * Files of lines: `open.ts` and `content.ts` open and unpack one, of which `descriptor.ts` keeps a few open at once, `lines.ts`
 * reads the lines behind what was read before, `digest.ts` and `state.ts` say what that was, and `kept.ts` keeps lines of which
 * a later version of the file has more. `line-file.ts` reads and writes such a file of a home. `json-lines.ts` and the files
 * below it read JSON, also of damaged lines, within `record-limit.ts` and `value-limit.ts`.
 * What cannot be read is an error of `errors.ts`. Imports no other room.
 */

export {
  archiveOf,
  type Compression,
  compressionIn,
  contentOf,
  type Packed,
  packedBytes,
} from './content.ts';
export { blockStart, ContentDigest, commonBytes, type Digest } from './digest.ts';
export { idsHave, numbersOf } from './id-numbers.ts';
export { KeptLines } from './kept.ts';
export { appendLines, linesIn, replaceLines } from './line-file.ts';
export { beginning, type LineBatch, LineReading, type ReadState } from './lines.ts';
export {
  cannotRead,
  type FileFacts,
  factsAt,
  isGone,
  kindOf,
  type OpenFile,
  openFile,
  reasonOf,
} from './open.ts';
export type { LineFault } from './parse.ts';
export { Spool } from './spool.ts';
export { stateBefore, stateOf } from './state.ts';
