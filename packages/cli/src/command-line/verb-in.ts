import { verbName } from '../verbs/index.ts';

/** The name of the first verb in a command line. */
export function namedIn(argv: readonly string[]): string | undefined {
  return argv.map(verbName).find((name) => name !== undefined);
}

/** The help command for the verb of a command line, or for all verbs. */
export function helpFor(argv: readonly string[]): string {
  const name = namedIn(argv);
  return name === undefined ? 'tape --help' : `tape ${name} --help`;
}
