import type { Io } from './io.ts';

/** How long a command that was interrupted goes on waiting for a server that says nothing, in milliseconds. */
const silentMs = 1_000;

/**
 * What a command does while it waits for a server and its thread stands still: no listener of Ctrl-C is called then. So
 * they are taken off until the answer is there, and Ctrl-C ends the process, as it does without listeners. One that came
 * before ends it soon.
 */
export function onBlocked(io: Pick<Io, 'interrupted'>): (ms: number) => void {
  let held: readonly (() => void)[] = [];
  return (ms) => {
    if (ms === 0) {
      for (const listener of held) process.on('SIGINT', listener);
      held = [];
      return;
    }
    if (held.length === 0) held = takeOff();
    if (ms >= silentMs && io.interrupted) process.kill(process.pid, 'SIGINT');
  };
}

/** Ends the process as Ctrl-C does where nothing listens. */
export function endAsInterrupted(): void {
  takeOff();
  process.kill(process.pid, 'SIGINT');
}

function takeOff(): readonly (() => void)[] {
  // As they were added: those that listen once leave with their first call.
  const listeners = process.rawListeners('SIGINT') as (() => void)[];
  process.removeAllListeners('SIGINT');
  return listeners;
}
