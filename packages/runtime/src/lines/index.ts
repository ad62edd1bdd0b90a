export { type Compression, type ContentLimits, compressionIn, contentLimits, contentOf } from './content.ts';
export { commonBytes, ContentDigest, type Digest } from './digest.ts';
export { beginning, errorOf, type LineBatch, type LineOptions, LineReading, type ReadState } from './lines.ts';
export { cannotRead, type Change, factsAt, type FileFacts, kindOf, type OpenFile, openFile, reasonOf } from './open.ts';
export type { LineFault } from './parse.ts';
export type { LinePlace } from './splitter.ts';
