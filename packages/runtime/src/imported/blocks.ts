import { isDeepStrictEqual } from 'node:util';
import type { Draft } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/** Whether a message begins with all blocks of another one, as an answer does of which a part had come. Pure. */
export function begins(part: Pick<Draft, 'payload'>, whole: Pick<Draft, 'payload'>): boolean {
  const [begun, blocks] = [blocksOf(part), blocksOf(whole)];
  return begun.length > 0 && begun.every((block, i) => isDeepStrictEqual(block, blocks[i]));
}

/** The content of a message; empty where that was erased. */
export function blocksOf({ payload }: Pick<Draft, 'payload'>): readonly unknown[] {
  const content = isObject(payload) ? payload.content : undefined;
  return Array.isArray(content) ? content : [];
}
