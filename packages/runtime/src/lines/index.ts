export { type Compression, type ContentLimits, compressionIn, contentLimits, contentOf } from './content.ts';
export { ContentDigest, commonBytes, type Digest } from './digest.ts';
export {
  beginning,
  errorOf,
  type LineBatch,
  type LineOptions,
  LineReading,
  type ReadState,
} from './lines.ts';
export {
  type Change,
  cannotRead,
  type FileFacts,
  factsAt,
  kindOf,
  type OpenFile,
  openFile,
  reasonOf,
} from './open.ts';
export type { LineFault } from './parse.ts';
export { stateOf } from './state.ts';
export type { LinePlace } from './splitter.ts';
