import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { basename } from 'node:path';
import type { Writable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { withoutLinks } from './terminal/link.ts';
import { textWidth } from './terminal/width.ts';

/** The terminal that a pager is started on. */
export interface Screen {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly columns: number;
  readonly rows: number;
  /** Prints what fits the screen. */
  print(text: string): Promise<void>;
  /** Prints a line of status. */
  warn(text: string): void;
}

/**
 * The output of one command: kept until it is longer than the screen, and then shown by the pager of the user
 * (`TAPE_PAGER`, else `PAGER`, else `less -FRX`). `cat` or an empty text means no pager.
 */
export class Pager {
  readonly #screen: Screen;
  #kept = '';
  #rows = 0;
  #shown: Shown | undefined;

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  /** Rejects with EPIPE once the user has left the pager. */
  async write(text: string): Promise<void> {
    if (this.#shown !== undefined) {
      await this.#shown.write(text);
      return;
    }
    this.#kept += text;
    this.#rows += rowsOf(text, this.#screen.columns);
    // The prompt of the shell needs a row, too.
    if (this.#rows < this.#screen.rows) return;
    const kept = this.#kept;
    this.#kept = '';
    this.#shown = await start(this.#screen);
    await this.#shown.write(kept);
  }

  /** Prints what fits the screen, or waits until the user leaves the pager. */
  async end(): Promise<void> {
    if (this.#shown === undefined) await this.#screen.print(this.#kept);
    else await this.#shown.end();
    this.#kept = '';
  }
}

interface Shown {
  write(text: string): Promise<void>;
  end(): Promise<void>;
}

function rowsOf(text: string, columns: number): number {
  const lines = text.split('\n').slice(0, -1);
  return lines.reduce(
    (sum, line) => sum + Math.max(1, Math.ceil(textWidth(stripVTControlCharacters(line)) / columns)),
    0,
  );
}

function notStarted(command: string): string {
  return `Warning: the pager '${command}' does not start: printed without it (TAPE_PAGER=cat for none)`;
}

/** The first version of less that passes links on to the terminal. */
const lessWithLinks = 566;

/** Whether a pager passes links on. Of others than less that is not known: they might show the addresses as text. */
function passesLinks(command: string): boolean {
  const [program = ''] = command.trim().split(/\s+/);
  if (basename(program) !== 'less') return false;
  const { stdout = '' } = spawnSync(program, ['--version'], { encoding: 'utf8', stdio: 'pipe' });
  return Number(/^less (\d+)/.exec(stdout ?? '')?.[1] ?? 0) >= lessWithLinks;
}

/** A command whose words mean the same without a shell. */
const plainCommand = /^[\w\s./+=:,@%-]+$/;

/** What a pipe holds, and more: a pager that took that much has started. */
const earlyMax = 256 * 1024;

/** Starts the pager of the user; where that does not start, output goes to the screen, after a warning. */
async function start(screen: Screen): Promise<Shown> {
  const { env, print, warn } = screen;
  const command = env.TAPE_PAGER ?? env.PAGER;
  const direct = { write: print, end: async () => {} };
  if (command !== undefined && /^\s*(?:cat)?\s*$/.test(command)) return direct;
  const [program = '', ...args] = command?.trim().split(/\s+/) ?? ['less', '-FRX'];
  // A shell would print a warning of its own.
  const needsShell = command !== undefined && (!plainCommand.test(command) || program.includes('='));
  const child = spawn(needsShell ? command : program, needsShell ? [] : args, {
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { LESS: 'FRX', LV: '-c', ...env },
    shell: needsShell,
  });
  try {
    await once(child, 'spawn');
  } catch {
    // A machine without less is no mistake of the user.
    if (command !== undefined) warn(notStarted(command));
    return direct;
  }
  // Ctrl-C is the pager's: a process that ended before it would leave it without a terminal.
  process.on('SIGINT', () => {});
  const closed = once(child, 'close');
  const stdin = child.stdin as Writable;
  let failure: Error | undefined;
  stdin.on('error', (error) => {
    failure = error;
  });
  const left = Object.assign(new Error('the user has left the pager'), { code: 'EPIPE' });
  let early: string | undefined = '';
  let without = false;
  /** Prints what the pager has not taken, when a shell has answered that it cannot find or run it. */
  const wentWithout = async (): Promise<boolean> => {
    if (without || early === undefined || (child.exitCode !== 127 && child.exitCode !== 126)) return without;
    without = true;
    warn(notStarted(command ?? program));
    await print(early);
    return true;
  };
  let passes: boolean | undefined;
  const shownText = (text: string) => {
    const plain = withoutLinks(text);
    if (plain === text) return text;
    passes ??= passesLinks(command ?? 'less');
    return passes ? text : plain;
  };
  return {
    write: async (text) => {
      if (without) return await print(text);
      early = early === undefined || early.length + text.length > earlyMax ? undefined : early + text;
      if (failure === undefined && child.exitCode === null && !stdin.write(shownText(text)))
        await Promise.race([once(stdin, 'drain').catch(() => {}), closed]);
      if (failure === undefined && child.exitCode === null) return;
      await closed;
      if (!(await wentWithout())) throw failure ?? left;
    },
    end: async () => {
      stdin.end();
      await closed;
      await wentWithout();
    },
  };
}
