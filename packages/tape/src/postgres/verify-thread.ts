/** The thread of `verified.ts`: it opens the home for itself, and waits for each answer. */
import { parentPort, workerData } from 'node:worker_threads';
import { TapeError } from '../errors.ts';
import { openPostgresHome } from './home.ts';
import type { Said, VerifyData } from './verified.ts';

const { url, ref, progress, taken } = workerData as VerifyData;

/** How much may wait for who reads it. */
const waitingMax = 1_000;
let sent = 0;

function say(said: Said): void {
  for (let now = Atomics.load(taken, 0); sent - now >= waitingMax; now = Atomics.load(taken, 0))
    Atomics.wait(taken, 0, now);
  parentPort?.postMessage(said);
  sent += 1;
}

try {
  using store = await openPostgresHome(url, { access: 'read', secrets: [], redact: false });
  const options = progress ? { onProgress: say } : {};
  for (const problem of store.verify(ref, options)) say({ problem });
  say({ isOver: true });
} catch (error) {
  const { message } = error as Error;
  say({
    failed:
      error instanceof TapeError ? { code: error.code, message, data: error.data } : { message, data: {} },
  });
}
