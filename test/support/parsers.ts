import { deepStrictEqual } from 'node:assert';
import { type Line, plainLine, readLine, verbFirst, withLiteralWords } from '@tapedeck/cli/internal';
import { sized } from './size.ts';

const compared = new Set<string>();

/**
 * As `assertParsersAgree`, of a line that a test runs. yargs takes longer than most verbs: this worker compares one line of
 * every fourth form, and in a soak each line.
 */
export async function assertRunLineAgrees(args: readonly string[]): Promise<void> {
  const form = JSON.stringify(sized(formOf(args), formOf(args), args));
  if (compared.has(form) || !sized(isFourth(form), isFourth(form), true)) return;
  compared.add(form);
  await assertParsersAgree(args);
}

/** Whether a form is one of every four, always the same ones. */
function isFourth(form: string): boolean {
  return Buffer.from(form).reduce((sum, byte) => sum + byte) % 4 === 0;
}

/** The form of a line: the names of its verb and options as they are, and a dash for each other word. */
function formOf(args: readonly string[]): string[] {
  const verb = args.findIndex((word) => !word.startsWith('-'));
  return args.map((word, i) => {
    if (i === verb || /^(?:true|false|help)$/.test(word)) return word;
    return /^-[^=]*=?/.exec(word)?.[0] ?? '-';
  });
}

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
