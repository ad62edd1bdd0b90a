import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';

/**
 * Runs a module's text in a process of its own, on the built packages, as users have them, and returns what it says
 * as JSON. It is plain JavaScript: taking types away would cost time and memory that are not to be measured.
 * `process.argv.slice(1)` are the arguments, and `gc()` collects the garbage.
 */
export async function inChild(script: string, ...args: readonly (string | number)[]): Promise<unknown> {
  const child = spawn(
    process.execPath,
    ['--expose-gc', '--input-type=module', '-e', script, ...args.map(String)],
    {
      cwd: import.meta.dirname,
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const said = await text(child.stdout);
  try {
    return JSON.parse(said);
  } catch (cause) {
    throw new Error(`the child said no JSON: ${said}`, { cause });
  }
}

/** As `inChild`, for a script that says one number. */
export async function numberOf(script: string, ...args: readonly (string | number)[]): Promise<number> {
  const said = await inChild(script, ...args);
  if (typeof said !== 'number') throw new Error(`the child said no number: ${JSON.stringify(said)}`);
  return said;
}
