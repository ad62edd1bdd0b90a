import type { Draft, Json } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { blobBytesMax, sha256 } from '@tapedeck/tape/store';
import type { Item, Output } from '../../plan/output.ts';
import { base64Of } from './blocks.ts';
import type { Block } from './content.ts';

/**
 * The output in a `tool_result` block. Texts become one text, an error text if the tool failed; with images
 * or documents they stay a list. A block of another type becomes its JSON text, so that nothing is lost.
 */
export function outputOf(block: Block): Output {
  const { content } = block;
  const type = block.is_error === true ? 'error-text' : 'text';
  if (typeof content === 'string') return { type, value: content };
  if (!Array.isArray(content)) return { type, value: content == null ? '' : JSON.stringify(content) };
  const items = content.map(item);
  const texts = items.flatMap((one) => (one.type === 'text' ? [one.text] : []));
  return texts.length < items.length ? { type: 'content', value: items } : { type, value: texts.join('\n') };
}

function item(block: Json): Item {
  if (!isObject(block)) return { type: 'text', text: JSON.stringify(block) };
  if (block.type === 'text' && typeof block.text === 'string') return { type: 'text', text: block.text };
  const file = block.type === 'image' || block.type === 'document' ? base64Of(block) : undefined;
  return file === undefined
    ? { type: 'text', text: JSON.stringify(block) }
    : { type: 'file', mediaType: file.mediaType, data: { type: 'data', data: file.data } };
}

/** An output that was too large for the transcript: Claude Code keeps it in a file beside it, and deletes it with it. */
export interface SavedOutput {
  /** The name of the file in `tool-results`. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** The file of a whole output of which the model got the beginning; undefined for an output that it got whole. */
export function savedAs({ value }: Output): string | undefined {
  if (typeof value !== 'string' || !value.startsWith('<persisted-output>')) return undefined;
  return /[/\\]tool-results[/\\]([^/\\\n]+)$/m.exec(value)?.[1];
}

/** A saved output as an entry, with its bytes. One that was written when it was not yet whole has another key later. */
export function savedDraft({ name, bytes }: SavedOutput): Draft {
  // Its size is in the meta, too, by which an import counts what it could not keep.
  const omitted = bytes.byteLength > blobBytesMax ? { omittedBytes: bytes.byteLength } : undefined;
  return {
    kind: 'x-claude-code',
    payload: { type: 'tool-result-file', file: name, ...(omitted ?? { content: bytes }) },
    meta: { source: 'import', ...omitted },
    key: `cc:tool-results:${name}:${sha256(bytes).slice(0, 12)}`,
  };
}
