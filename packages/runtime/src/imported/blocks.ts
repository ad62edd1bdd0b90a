import { isDeepStrictEqual } from 'node:util';
import type { Draft } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/**
 * Whether a message begins with all blocks of another one, as an answer does of which a part had come, or a compaction has the
 * summary that the other one lacks. Pure.
 */
export function begins(part: Pick<Draft, 'payload'>, whole: Pick<Draft, 'payload'>): boolean {
  if (isCompaction(part)) return !hasSummary(part) && hasSummary(whole);
  const [begun, blocks] = [blocksOf(part), blocksOf(whole)];
  return begun.length > 0 && begun.every((block, i) => isDeepStrictEqual(block, blocks[i]));
}

/** The content of a message; empty where that was erased. */
export function blocksOf({ payload }: Pick<Draft, 'payload'>): readonly unknown[] {
  const content = isObject(payload) ? payload.content : undefined;
  return Array.isArray(content) ? content : [];
}

function isCompaction({ payload }: Pick<Draft, 'payload'>): boolean {
  return isObject(payload) && isObject(payload.state);
}

function hasSummary({ payload }: Pick<Draft, 'payload'>): boolean {
  return isObject(payload) && isObject(payload.state) && typeof payload.state.summary === 'string';
}
