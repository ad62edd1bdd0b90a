import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { basename } from 'node:path';
import type { Writable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { UsageError } from './errors/kinds.ts';
import { withoutLinks } from './terminal/link.ts';
import { textWidth } from './terminal/width.ts';

/** The terminal that a pager is started on. */
export interface Screen {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly columns: number;
  readonly rows: number;
  /** Prints what fits the screen. */
  print(text: string): Promise<void>;
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

/** The first version of less that passes links on to the terminal. */
const lessWithLinks = 566;

/** Whether a pager passes links on. Of others than less that is not known: they might show the addresses as text. */
function passesLinks(command: string): boolean {
  const [program = ''] = command.trim().split(/\s+/);
  if (basename(program) !== 'less') return false;
  const { stdout = '' } = spawnSync(program, ['--version'], { encoding: 'utf8', stdio: 'pipe' });
  return Number(/^less (\d+)/.exec(stdout ?? '')?.[1] ?? 0) >= lessWithLinks;
}

/** Starts the pager; without one on the machine, output goes to the screen. */
async function start({ env, print }: Screen): Promise<Shown> {
  const command = env.TAPE_PAGER ?? env.PAGER;
  const direct = { write: print, end: async () => {} };
  if (command !== undefined && /^\s*(?:cat)?\s*$/.test(command)) return direct;
  const child = spawn(command ?? 'less', command === undefined ? ['-FRX'] : [], {
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { LESS: 'FRX', LV: '-c', ...env },
    shell: command !== undefined,
  });
  try {
    await once(child, 'spawn');
  } catch {
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
  const assertStarted = () => {
    // What a shell answers for a program that it cannot find or run.
    if (child.exitCode === 127 || child.exitCode === 126)
      throw new UsageError(`cannot show the output: the pager '${command}' does not start`, {
        hint: 'set TAPE_PAGER to another one, or to cat for none',
      });
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
      if (failure === undefined && child.exitCode === null && !stdin.write(shownText(text)))
        await Promise.race([once(stdin, 'drain').catch(() => {}), closed]);
      if (failure === undefined && child.exitCode === null) return;
      await closed;
      assertStarted();
      throw failure ?? left;
    },
    end: async () => {
      stdin.end();
      await closed;
      assertStarted();
    },
  };
}
