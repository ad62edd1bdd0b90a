export { type Compression, compressionIn, contentOf } from './content.ts';
export { blockStart, ContentDigest, commonBytes, type Digest } from './digest.ts';
export { KeptLines } from './kept.ts';
export { beginning, errorOf, type LineBatch, LineReading, type ReadState } from './lines.ts';
export { cannotRead, type FileFacts, factsAt, kindOf, type OpenFile, openFile, reasonOf } from './open.ts';
export type { LineFault } from './parse.ts';
export { stateBefore, stateOf } from './state.ts';
