import type { Json, JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/** A content block of an Anthropic message. */
export type Block = JsonObject;

/**
 * Content of a message as blocks. A plain text counts as one text block; a value that is not an object becomes a block
 * without a type.
 */
export function blocksIn(content: Json | undefined): readonly Block[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  if (!Array.isArray(content)) return [];
  return content.map((block: Json): Block => (isObject(block) ? block : { content: block }));
}
