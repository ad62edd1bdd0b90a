import type { FileHandle } from 'node:fs/promises';
import type { DeckTool } from '../tools/traits.ts';
import { countArgument, defineBuiltin, pathArgument } from './define.ts';
import { asBuiltin, BuiltinError } from './errors.ts';
import type { BuiltinLimits } from './limits.ts';
import { openFile } from './open-file.ts';

interface ReadInput {
  readonly path: string;
  readonly offset?: number;
  readonly column?: number;
  readonly limit?: number;
}

/** Reads a part of a text file. */
export function readFileTool({ outputBytes }: Pick<BuiltinLimits, 'outputBytes'>): DeckTool {
  return defineBuiltin<ReadInput>({
    description: `Read a text file, or a part of it. Output is cut after ${outputBytes} bytes, with a note on how to read on.`,
    properties: {
      path: pathArgument('The file'),
      offset: countArgument('The first line to read (default 1)'),
      column: countArgument('The first byte of that line to read, for long lines (default 1)'),
      limit: countArgument('The number of lines to read (default: all that fit)'),
    },
    required: ['path'],
    paths: { read: ['path'], display: 'path' },
    safeToRepeat: true,
    execute: async ({ path, ...part }, { place, signal }) => {
      const act = `read '${path}'`;
      await using handle = await openFile(place, path, act);
      try {
        return await readPart(handle, { ...part, outputBytes, act, signal });
      } catch (error) {
        throw asBuiltin(error, act);
      }
    },
  });
}

interface Part extends Omit<ReadInput, 'path'> {
  readonly outputBytes: number;
  readonly act: string;
  readonly signal: AbortSignal;
}

const [lineFeed, chunkBytes] = [0x0a, 65_536];

/** Reads no more of the file than up to the end of the part, and keeps no more of it than the part. */
async function readPart(
  handle: FileHandle,
  { offset = 1, column = 1, limit = Number.POSITIVE_INFINITY, outputBytes, act, signal }: Part,
): Promise<string> {
  const chunk = Buffer.alloc(chunkBytes);
  const kept: Buffer[] = [];
  let [bytes, line, skip, left] = [0, 1, column - 1, limit];
  let [isCut, isFirst, lastByte] = [false, true, lineFeed];
  reading: for (;;) {
    signal.throwIfAborted();
    const { bytesRead } = await handle.read(chunk, 0, chunkBytes, null);
    if (bytesRead === 0) break;
    let rest = chunk.subarray(0, bytesRead);
    if (isFirst && rest.includes(0)) throw binary(act);
    isFirst = false;
    lastByte = rest[bytesRead - 1] ?? lineFeed;
    while (rest.length > 0) {
      const feed = rest.indexOf(lineFeed);
      const end = feed === -1 ? rest.length : feed + 1;
      if (line >= offset) {
        const from = line === offset ? Math.min(skip, end) : 0;
        if (line === offset) skip -= from;
        const room = outputBytes - bytes;
        const piece = rest.subarray(from, Math.min(end, from + room));
        kept.push(Buffer.from(piece));
        bytes += piece.length;
        if (from + piece.length < end) {
          isCut = true;
          break reading;
        }
        if (feed !== -1) left -= 1;
      }
      if (feed !== -1) line += 1;
      rest = rest.subarray(end);
      if (left <= 0) {
        isCut = rest.length > 0 || (await handle.read(chunk, 0, 1, null)).bytesRead > 0;
        break reading;
      }
    }
  }
  const whole = Buffer.concat(kept);
  if (whole.includes(0)) throw binary(act);
  if (whole.length === 0 && !isCut) {
    const lines = lastByte === lineFeed ? line - 1 : line;
    return lines === 0
      ? '[the file is empty]'
      : `[nothing there: the file has ${lines} ${lines === 1 ? 'line' : 'lines'}]`;
  }
  const shown = isCut ? whole.subarray(0, wholeCharacters(whole)) : whole;
  const text = decoded(shown, act);
  if (!isCut) return text;
  const { size } = await handle.stat();
  return `${text}${text.endsWith('\n') ? '' : '\n'}${cutNote(shown, { offset, column, size })}`;
}

/** Says what is shown, and with which arguments the next call reads on. */
function cutNote(
  shown: Buffer,
  { offset, column, size }: { readonly offset: number; readonly column: number; readonly size: number },
): string {
  const feeds = shown.reduce((count, byte) => (byte === lineFeed ? count + 1 : count), 0);
  const tail = shown.length - (shown.lastIndexOf(lineFeed) + 1);
  const next =
    feeds === 0
      ? { offset, column: column + shown.length }
      : { offset: offset + feeds, ...(tail > 0 && { column: tail + 1 }) };
  return `[cut: ${shown.length} of the ${size} bytes of the file are shown; read on with ${JSON.stringify(next)}]`;
}

/** How many bytes of a text are whole characters of UTF-8. */
function wholeCharacters(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(4, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

/** The text of bytes. A mark of the byte order stays. @throws TOOL_BINARY_FILE */
export function decoded(bytes: Uint8Array, act: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw binary(act, error);
  }
}

function binary(act: string, cause?: unknown): BuiltinError {
  return new BuiltinError('TOOL_BINARY_FILE', `cannot ${act}: it is no text in UTF-8`, { cause });
}
