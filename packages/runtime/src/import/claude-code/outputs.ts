import type { Json } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { Item, Output } from '../output.ts';
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
