import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * The memory that this process keeps, without garbage: other tests leave some, and when it is collected depends on the
 * machine.
 */
export function keptMemory(): NodeJS.MemoryUsage {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  // The first frees buffers in another thread; the second waits until it has.
  collect();
  collect();
  return process.memoryUsage();
}
