import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

/** The program of the command. */
export const tape: string = fileURLToPath(new URL('../../packages/cli/bin/tape.js', import.meta.url));

/** Written on a stream of its own at the end of a process: the processor time that it took since its start. */
const usage = `data:text/javascript,process.on('exit',()=>{const{user,system}=process.cpuUsage();process.getBuiltinModule('node:fs').writeSync(3,String(user+system))})`;

/**
 * Returns a function that makes measurements of processes of Node.js with a home: each runs one, with these arguments,
 * and resolves with the processor time from its start to its end, in microseconds.
 */
export function processesOf(home: string): (...args: readonly string[]) => () => Promise<number> {
  const env = { PATH: process.env.PATH, HOME: home, TAPE_HOME: home, TAPE_TRUST_HOME: '1' };
  return (...args) =>
    async () => {
      const child = spawn(process.execPath, ['--import', usage, ...args], {
        env,
        cwd: import.meta.dirname,
        stdio: ['pipe', 'ignore', 'inherit', 'pipe'],
      });
      // A verb that reads no input can end before it is written.
      child.stdin?.on('error', () => {});
      child.stdin?.end('{"role":"user","content":"Hello"}\n');
      const spent = text(child.stdio[3] as NodeJS.ReadableStream);
      const [code] = (await once(child, 'close')) as [number | null];
      if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}`);
      return Number(await spent);
    };
}
