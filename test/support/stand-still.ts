import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';

/** How long this process stands still behind the end of the program, in milliseconds: longer than any of our timers runs. */
const stillMs = 1_300;

/**
 * Makes this process stand still while a program of its own prints its last and ends, and behind that, as on a machine with
 * too much to do: it learns of the end before it reads what was printed, and its timers run out between the two.
 * @param go has the program print and end
 */
export async function standStillAtTheEnd(pid: number, go: () => void): Promise<void> {
  const other = spawn('echo', ['x'], { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(other, 'close');
  other.stdout.once('data', () => {
    go();
    whileItRuns(pid);
    setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, stillMs));
  });
  await once(other, 'spawn');
  // The signal of its end comes together with what it printed, and is one for all programs that end until it is read.
  whileItRuns(other.pid ?? 0);
  await ended;
}

/** Waits without the event loop, and so without reading that a program has ended. */
function whileItRuns(pid: number): void {
  while (!execFileSync('ps', ['-o', 'stat=', '-p', `${pid}`], { encoding: 'utf8' }).startsWith('Z'));
}
