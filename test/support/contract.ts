import { contract, errorDocument } from '@tapedeck/cli/contract';
import { z } from 'zod';

/** The output of a command, and how it ended. */
interface Printed {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number | null;
}

/**
 * Compares what a command printed with `--json` or `--jsonl` with the contract of its verb: every document, line and
 * error.
 * @throws when a form of the verb does not allow it
 */
export function checkContract(argv: readonly string[], { stdout, stderr, code }: Printed): void {
  if (!argv.includes('--json') && !argv.includes('--jsonl')) return;
  for (const line of stderr.split('\n').filter((text) => text.startsWith('{"error":')))
    allow(argv, JSON.parse(line), [errorDocument]);
  const verb = verbOf(argv);
  if (verb === undefined || isForPeople(verb, argv)) return;
  const forms = contract[verb]?.json ?? [];
  // A process that a signal ended may have printed half a line.
  const cut = code === null || code > 128;
  for (const value of valuesOf(stdout, cut))
    allow(
      argv,
      value,
      forms.map(({ schema }) => schema),
    );
}

/** The verb of a command line; for an earlier name, the verb that replaces it. */
function verbOf(argv: readonly string[]): string | undefined {
  const isUndo = argv.includes('unrewind') || (argv.includes('compact') && argv.includes('--undo'));
  return isUndo ? 'undo' : argv.find((word) => Object.hasOwn(contract, word));
}

/** Whether the options ask for a text all the same. */
function isForPeople(verb: string, argv: readonly string[]): boolean {
  const isPicture = verb === 'graph' && argv.includes('--format') && !argv.includes('json');
  return isPicture || argv.includes('--quiet') || argv.includes('--help');
}

/** The documents of an output, which has one on each line. */
function valuesOf(stdout: string, cut: boolean): unknown[] {
  const whole = cut ? stdout.slice(0, stdout.lastIndexOf('\n') + 1) : stdout;
  return whole
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

function allow(argv: readonly string[], value: unknown, schemas: readonly z.ZodType[]): void {
  const faults: string[] = [];
  for (const schema of schemas) {
    const parsed = schema.safeParse(value);
    if (parsed.success) return;
    faults.push(z.prettifyError(parsed.error));
  }
  const text = JSON.stringify(value).slice(0, 2_000);
  throw new Error(
    `the contract does not allow what tape ${argv.join(' ')} printed: ${text}\n${faults.join('\nor\n')}`,
  );
}
