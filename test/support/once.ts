import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const variable = 'TAPEDECK_TEST_ONCE';

/** Makes a directory in which the workers of a run note what one of them does for all. */
export default function onceInRun(): () => void {
  const dir = mkdtempSync(join(tmpdir(), 'tapedeck-once-'));
  process.env[variable] = dir;
  return () => {
    delete process.env[variable];
    rmSync(dir, { recursive: true, force: true });
  };
}

/** Whether this call is the first of its name in the whole run, in whichever worker. */
export function isFirstInRun(name: string): boolean {
  const dir = process.env[variable];
  if (dir === undefined) throw new Error(`${variable} is not set: see globalSetup in vitest.config.ts`);
  try {
    mkdirSync(join(dir, encodeURIComponent(name).slice(0, 200)));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}
