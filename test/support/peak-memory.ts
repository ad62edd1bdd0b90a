import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

/** A module to require in a process: at its end it writes the greatest memory that it had, in KB, to its fd 3. */
export const peakHook: string = fileURLToPath(new URL('./say-peak.cjs', import.meta.url));

/** The built command, as users run it. */
const bin = fileURLToPath(new URL('../../packages/cli/bin/tape.js', import.meta.url));

/** Whether the system tells what memory a process had at most. */
export const hasPeak: boolean = process.platform === 'linux';

/**
 * Runs a command line on a home, without keeping its output, and returns the greatest memory that the process had, in MB,
 * and the length of its output.
 */
export async function peakMemory(
  home: string,
  args: readonly string[],
): Promise<{ readonly peak: number; readonly bytes: number }> {
  const child = spawn(process.execPath, ['--require', peakHook, bin, ...args], {
    env: { PATH: process.env.PATH, HOME: home, TAPE_HOME: home, TAPE_TRUST_HOME: '1' },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  let bytes = 0;
  child.stdout?.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  const said = text(child.stdio[3] as NodeJS.ReadableStream);
  const errors = text(child.stdio[2] as NodeJS.ReadableStream);
  const [code] = await once(child, 'close');
  if (code !== 0)
    throw new Error(`tape ${args.join(' ')} ended with ${code}: ${(await errors).slice(0, 500)}`);
  return { peak: Number(await said) / 1024, bytes };
}
