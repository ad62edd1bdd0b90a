import { writeSync } from 'node:fs';
import { errorText, requestsJson } from './errors/print.ts';
import { exit } from './exit.ts';

/** Exit codes that Node.js gives to a process that was not done: an unsettled `await` at the end of its work. */
const unsettled = 13;

/**
 * Reports a process that ends before its command is done, as when a tool calls `process.exit(0)`: with an error, and
 * never with exit code 0. Returns a function to call when the command is done.
 */
export function reportEarlyExit(argv: readonly string[]): () => void {
  const report = (code: number) => {
    const error = {
      code: 'CLI_EXITED',
      message: 'the process ended before the command was done: a tool or the configuration ended it',
      data: { code },
    };
    writeSync(2, errorText(error, { asJson: requestsJson(argv) }));
    if (code === exit.done || code === unsettled) process.exitCode = exit.failed;
  };
  process.once('exit', report);
  return () => process.off('exit', report);
}
