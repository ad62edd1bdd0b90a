import { TapeError } from '../errors.js';
import {            blobOf,              } from './blob.js';
import { isObject, isTooDeep, jsonDepthMax, jsonText } from './json.js';

/** A tool output with more bytes of JSON than this is stored as a blob, and its entry holds a preview. */
const spillBytes         = 256 * 1024;

/** The length of the preview, in characters. */
const previewChars = 16_384;

/**
 * Replaces large texts and values in a tool result's payload by references, so that readers page through
 * kilobytes whatever the tools return. A `content` output keeps its parts; only their large texts are
 * replaced.
 */
export function spillOutput(payload         )                                               {
  if (!isObject(payload) || !isObject(payload.output)) return { payload, blobs: [] };
  const { type, value } = payload.output;
  const blobs         = [];
  const spilled =
    type === 'content' && Array.isArray(value)
      ? value.map((part) =>
          isObject(part) && 'text' in part ? { ...part, text: spill(part.text, blobs) } : part,
        )
      : spill(value, blobs);
  if (blobs.length === 0) return { payload, blobs };
  return { payload: { ...payload, output: { ...payload.output, value: spilled } }, blobs };
}

function spill(value         , blobs        )          {
  if (value === undefined || (typeof value === 'string' && value.length * 6 <= spillBytes)) return value;
  const json = jsonText(value, 'a tool result');
  if (Buffer.byteLength(json) <= spillBytes || json.includes('{"type":"blob"')) return value;
  if (isTooDeep(json))
    throw new TapeError('TAPE_BAD_ENTRY', `cannot store a tool result: nested over ${jsonDepthMax} levels`);
  // A lone surrogate has no UTF-8 form: such a text is stored as JSON, where it is an escape.
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
  }                  ;
}

/** Returns the beginning of a text, without half a surrogate pair at its end. */
function cutAt(text        , length        )         {
  const cut = text.slice(0, length);
  return cut.isWellFormed() ? cut : cut.slice(0, -1);
}

/** The text that a view shows in place of a spilled output. */
export function previewText({ preview, size, as }         )         {
  const what = as === 'text' ? 'This output' : 'The JSON of this output';
  return `${preview}\n[… ${what} has ${size} bytes. Only its beginning is shown here.]`;
}
