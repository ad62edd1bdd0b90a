import { deepStrictEqual } from 'node:assert';
import { readLine } from '../../packages/cli/dist/command-line/full.js';
import type { Line } from '../../packages/cli/dist/command-line/line.js';
import { withLiteralWords } from '../../packages/cli/dist/command-line/literal-words.js';
import { plainLine } from '../../packages/cli/dist/command-line/plain.js';
import { verbFirst } from '../../packages/cli/dist/command-line/verb-in.js';

/**
 * Reads a command line with both parsers, and fails unless yargs reads what the parser of plain lines has read.
 * Returns whether that one has read it: it leaves a line to yargs where it doubts, also each that is refused.
 */
export async function assertParsersAgree(args: readonly string[]): Promise<boolean> {
  const argv = withLiteralWords(args);
  const plain = await plainLine(argv);
  if (plain === undefined) return false;
  const full = await readLine(verbFirst(argv), plain.verb);
  deepStrictEqual(read(plain), read(full), `of: tape ${args.join(' ')}`);
  return true;
}

function read({ verb, word, values }: Line): unknown {
  return { command: verb.command, word, values };
}
