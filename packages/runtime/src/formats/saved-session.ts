import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { ImportError } from '../lines/errors.ts';
import { lineBytesMax, parseLine, shown } from '../lines/json-line.ts';

/** Whether the beginning of a file is that of a saved session of NEXUS3, which is one JSON object. */
export function isSavedSession(head: Uint8Array): boolean {
  const begin = Buffer.from(head.buffer, head.byteOffset, Math.min(head.byteLength, 4096)).toString();
  return /^\s*\{\s*"(?:schema_version|agent_id|created_at|messages)"\s*:/.test(begin);
}

/**
 * Reads a file that is one JSON object with a list of messages.
 * @throws IMPORT_BAD_JSON with the line, IMPORT_UNKNOWN_FORMAT
 */
export function readSavedSession(chunks: Iterable<Uint8Array>, file: string): JsonObject {
  const kept: Uint8Array[] = [];
  let size = 0;
  for (const chunk of chunks) {
    kept.push(chunk);
    size += chunk.byteLength;
    if (size > lineBytesMax)
      throw new ImportError(
        'IMPORT_BAD_JSON',
        `cannot import ${shown(file)}: the saved session exceeds ${lineBytesMax} bytes`,
        { data: { file } },
      );
  }
  const [value, ...more] = valuesIn(Buffer.concat(kept), file);
  if (!isObject(value) || more.length > 0 || !Array.isArray(value.messages))
    throw new ImportError(
      'IMPORT_UNKNOWN_FORMAT',
      `cannot import ${shown(file)}: it is no saved session of NEXUS3, an object with a list of messages`,
      { data: { file } },
    );
  return value;
}

function valuesIn(bytes: Buffer, file: string): readonly unknown[] {
  try {
    const { values, cut } = parseLine({ line: 1, offset: 0, bytes, ended: true }, file);
    if (cut !== undefined) throw cut;
    return values;
  } catch (error) {
    if (!(error instanceof ImportError)) throw error;
    // The whole file was parsed as one line.
    const offset = Number(error.data.offset);
    const line = bytes.subarray(0, offset).filter((byte) => byte === 0x0a).length + 1;
    throw new ImportError(error.code, error.message.replace(': line 1,', `: line ${line},`), {
      data: { ...error.data, line },
      cause: error.cause,
    });
  }
}
