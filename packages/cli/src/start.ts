/**
 * The process of the command: its input, output and ends. `bin/tape.js` starts it, from one bundle of all packages.
 */
import { needsPackages } from './command-line/configured.ts';
import { reportEarlyExit } from './early-exit.ts';
import { type Io, nodeIo } from './io.ts';
import { main } from './main.ts';
import { consoleOn, maskedIo } from './masked-io.ts';
import { secretsInWords } from './server-home.ts';

/**
 * Runs a command line in this process, and sets its exit code.
 * @param packages called with the command lines that load a configuration, or what talks to a server: these import the
 *   installed packages, and sessions, tools and errors of one process must come from one copy of them
 */
export async function start(
  argv: readonly string[],
  packages?: () => Promise<{ readonly start: typeof start }>,
): Promise<void> {
  const own = nodeIo();
  const io = maskedIo(own);
  // Every user of the machine sees the words of a process.
  if (secretsInWords(argv).length > 0) process.title = 'tape';
  if (packages !== undefined && (await needsPackages(argv, io))) {
    const unbundled = await packages();
    return await unbundled.start(argv);
  }
  printsToStatus(io);
  const done = reportEarlyExit(argv);
  process.exitCode = await main(argv, io);
  done();
  own.flushed(end);
}

/**
 * Ends the process at once where nothing is left to do: its last turn would collect garbage. What a tool left open, a timer
 * or a connection, does not keep it from ending.
 */
function end(): void {
  if (process.getActiveResourcesInfo().length === 0) process.exit();
  setTimeout(() => process.exit(), 500).unref();
}

/** Stdout is for answers: what a configuration and its tools print goes where status goes. */
function printsToStatus(io: Io): void {
  let console: Console | undefined;
  Object.defineProperty(globalThis, 'console', {
    configurable: true,
    get: () => (console ??= consoleOn(io)),
    set: (value: Console) => {
      console = value;
    },
  });
}
