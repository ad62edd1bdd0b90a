import { isObject } from '@tapedeck/tape/internal';

/** The most bytes of an answer: what a model can read at once. */
export const answerMax = 65_536;

/** How long texts may be, in characters, from the first try to the last. */
const lengths = [20_000, 4_000, 1_000, 200];

/** A value that has at most so many bytes as JSON, its longest texts cut; undefined when that does not suffice. Pure. */
export function fitted(value: unknown, max: number = answerMax): unknown {
  if (sizeOf(value) <= max) return value;
  for (const length of lengths) {
    const shorter = cut(value, length);
    if (sizeOf(shorter) <= max) return shorter;
  }
  return undefined;
}

/** The first of some values that fit together, each with its longest texts cut. There is at least one. Pure. */
export function fittedList(values: readonly unknown[], max: number = answerMax - 1_024): readonly unknown[] {
  const kept: unknown[] = [];
  let left = max;
  for (const value of values) {
    const item = fitted(value, max / 4) ?? { cut: `an entry of ${sizeOf(value)} bytes` };
    left -= sizeOf(item) + 1;
    if (left < 0 && kept.length > 0) break;
    kept.push(item);
  }
  return kept;
}

function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? '');
}

function cut(value: unknown, length: number): unknown {
  if (typeof value === 'string')
    return value.length <= length
      ? value
      : `${value.slice(0, length).toWellFormed()}… [${value.length - length} more characters]`;
  if (Array.isArray(value)) return value.map((one) => cut(one, length));
  if (isObject(value))
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, cut(one, length)]));
  return value;
}
