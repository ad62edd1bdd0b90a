import { inHome } from '../home.ts';
import { commonOptions } from '../options/common.ts';
import type { Options } from '../options/declare.ts';
import { isAddress, shownAddress } from '../server-home.ts';
import { verbName } from '../verbs/index.ts';

const options: Options = commonOptions;

/**
 * The index of the verb in a command line: the first word that is neither an option nor the value of one. -1 without
 * a verb.
 */
export function verbAt(argv: readonly string[]): number {
  for (let i = 0; i < argv.length; i += 1) {
    const word = argv[i] ?? '';
    if (!word.startsWith('-')) return i;
    if (takesNext(word) && argv[i + 1]?.startsWith('-') === false) i += 1;
  }
  return -1;
}

/** Whether the next word is the value of an option that stands before the verb: also of an unknown option. */
function takesNext(option: string): boolean {
  if (/=|^--no-|^-[0hv]+$|^--(?:help|version)$/.test(option)) return false;
  return options[option.slice(2)]?.type !== 'boolean';
}

/** The words of a command line with its verb first, where it has one. */
export function verbFirst(argv: readonly string[]): readonly string[] {
  const at = verbAt(argv);
  return at < 1 ? argv : [argv[at] ?? '', ...argv.slice(0, at), ...argv.slice(at + 1)];
}

/** The name of the verb of a command line; undefined when there is no such verb. */
export function namedIn(argv: readonly string[]): string | undefined {
  return verbName(argv[verbAt(argv)] ?? '');
}

/** A hint whose commands name the home that the command line names, which may be one that could not be read. */
export function inHomeOf(argv: readonly string[], hint: string): string {
  const at = argv.findIndex((word) => /^--home(?:=|$)/.test(word));
  const home = argv[at]?.split('=').slice(1).join('=') || argv[at + 1];
  if (at === -1) return hint;
  const shown = home !== undefined && isAddress(home) ? shownAddress(home) : home;
  return inHome(hint, { home: shown, isVerb: (word) => verbName(word) !== undefined });
}

/** The help command for the verb of a command line, or for all verbs. */
export function helpFor(argv: readonly string[]): string {
  const name = namedIn(argv);
  return name === undefined ? 'tape --help' : `tape ${name} --help`;
}
