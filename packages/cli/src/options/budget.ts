import type { Budget } from '@tapedeck/runtime';
import { UsageError } from '../errors/kinds.ts';

const limits: Readonly<Record<string, keyof Budget>> = {
  steps: 'steps',
  tokens: 'tokens',
  seconds: 'timeMs',
  cost: 'cost',
};

/** Limits that must be whole numbers. */
const counted: ReadonlySet<string> = new Set(['steps', 'tokens']);

/**
 * Parses a budget: `steps=5,tokens=10000,seconds=60,cost=1.5`.
 * @throws UsageError
 */
export function budgetOf(text: string, option: string): Budget {
  const refuse = (why: string) =>
    new UsageError(`cannot use ${option} ${JSON.stringify(text)}: ${why}`, {
      hint: `write it as ${option} steps=20,tokens=100000,seconds=600,cost=1.5`,
    });
  const budget: { -readonly [K in keyof Budget]: number } = {};
  for (const part of text.split(',')) {
    const [name = '', value = ''] = part.split('=', 2);
    const limit = Object.hasOwn(limits, name) ? limits[name] : undefined;
    if (limit === undefined)
      throw refuse(`no such limit '${name}'; the limits are ${Object.keys(limits).join(', ')}`);
    const number = /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : Number.NaN;
    if (!(number > 0)) throw refuse(`${name} must be a number above 0`);
    if (counted.has(name) && !Number.isSafeInteger(number)) throw refuse(`${name} must be a whole number`);
    budget[limit] = name === 'seconds' ? number * 1000 : number;
  }
  return budget;
}
