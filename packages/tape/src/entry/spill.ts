import { TapeError } from '../errors.ts';
import { type Blob, blobOf, type TextRef } from './blob.ts';
import { isObject, isTooDeep, jsonDepthMax, jsonText } from './json.ts';

/** A tool's output above so many bytes of JSON is kept beside its entry, which has a preview (M9). */
const spillBytes: number = 256 * 1024;

/** How much of an output kept elsewhere its entry shows, in characters. */
const previewChars = 16_384;

/**
 * Takes large texts and values out of a tool result's payload: readers of the tape then page through kilobytes,
 * whatever the tools gave. A result whose parts hold bytes keeps its shape; only its large texts are taken out.
 */
export function spillOutput(payload: unknown): { payload: unknown; blobs: readonly Blob[] } {
  if (!isObject(payload) || !isObject(payload.output)) return { payload, blobs: [] };
  const { type, value } = payload.output;
  const blobs: Blob[] = [];
  const spilled =
    type === 'content' && Array.isArray(value)
      ? value.map((part) =>
          isObject(part) && 'text' in part ? { ...part, text: spill(part.text, blobs) } : part,
        )
      : spill(value, blobs);
  if (blobs.length === 0) return { payload, blobs };
  return { payload: { ...payload, output: { ...payload.output, value: spilled } }, blobs };
}

function spill(value: unknown, blobs: Blob[]): unknown {
  if (value === undefined || (typeof value === 'string' && value.length * 6 <= spillBytes)) return value;
  const json = jsonText(value, 'a tool result');
  if (Buffer.byteLength(json) <= spillBytes || json.includes('{"type":"blob"')) return value;
  if (isTooDeep(json))
    throw new TapeError('TAPE_BAD_ENTRY', `cannot store a tool result: nested over ${jsonDepthMax} levels`);
  // A lone surrogate has no bytes of its own: such a text is kept as its JSON, where it is an escape.
  const plain = typeof value === 'string' && value.isWellFormed();
  const text = plain ? value : json;
  const blob = blobOf(Buffer.from(text));
  blobs.push(blob);
  return {
    type: 'blob',
    hash: blob.hash.toString('hex'),
    size: blob.bytes.byteLength,
    as: plain ? 'text' : 'value',
    preview: cutAt(text, previewChars),
  } satisfies TextRef;
}

/** The beginning of a text, without half a character at its end. */
function cutAt(text: string, length: number): string {
  const cut = text.slice(0, length);
  return cut.isWellFormed() ? cut : cut.slice(0, -1);
}

/** What a reader of a view sees in the place of an output that is kept elsewhere. */
export function previewText({ preview, size, as }: TextRef): string {
  const what = as === 'text' ? 'This output' : 'The JSON of this output';
  return `${preview}\n[… ${what} has ${size} bytes. Only its beginning is shown here.]`;
}
