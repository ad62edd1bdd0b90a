import { PassThrough, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { main } from '@tapedeck/cli';
import { bufferedIo, type Given } from './buffered-io.ts';
import type { CliResult } from './cli.ts';
import type { Step } from './pty.ts';

/** What a person does at a terminal in this process, who can press Ctrl-C while no line is edited. */
export type Act =
  | Exclude<Step, { readonly rows: number } | { readonly signal: string } | { readonly hangUp: true }>
  | { readonly interrupt: true }
  /** Waits for a text on stderr that was printed since a line was typed. */
  | { readonly told: string }
  | (() => unknown);

/** How long a text is waited for, in milliseconds. */
const patience = 50_000;

/**
 * Runs a command line in this process at a terminal where a person does these acts in turn, and leaves. `stdout` is all
 * that the terminal receives of it.
 * @throws Error when a text that an act waits for does not come, or the command does not end
 */
export async function typeHere(
  args: readonly string[],
  acts: readonly Act[],
  options: Omit<Given, 'isTerminal' | 'stdinIsTerminal' | 'terminal'> = {},
): Promise<CliResult> {
  const input = new PassThrough();
  const output = new Writable({
    decodeStrings: false,
    write: (text, _encoding, done) => {
      said.stdout += String(text);
      done();
    },
  });
  const terminal = {
    input,
    output: Object.assign(output, { columns: options.columns ?? 80 }),
    onKill: () => {},
  };
  const env = { NO_COLOR: '1', ...options.env };
  const given = { ...options, env, isTerminal: true, stdinIsTerminal: true, terminal };
  const { io, said, interrupt } = bufferedIo(given);
  let isOver = false;
  const done = main(args, io).finally(() => {
    isOver = true;
  });
  const until = async (what: string, isSo: () => boolean) => {
    for (const end = performance.now() + patience; !isSo(); await sleep(5))
      if (performance.now() > end || (isOver && !isSo()))
        throw new Error(`${what} did not come: ${said.stdout}\n${said.stderr}`);
  };
  let found = 0;
  let told = 0;
  for (const act of acts) {
    if (typeof act === 'function') await act();
    else if ('interrupt' in act) interrupt();
    else if ('told' in act) await until(act.told, () => said.stderr.includes(act.told, told));
    else if ('type' in act) {
      told = said.stderr.length;
      input.write(act.type);
    } else {
      const seen = () => stripVTControlCharacters(said.stdout);
      await until(act.until, () => seen().includes(act.until, found));
      found = seen().indexOf(act.until, found) + act.until.length;
    }
  }
  input.end();
  await until('the end', () => isOver);
  return { ...said, code: await done };
}
