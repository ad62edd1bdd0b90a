import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type CliOptions,
  type CliResult,
  type Running,
  startTape,
  tape,
  tapeHere,
  tapeProcess,
} from './cli.ts';
import { tapeInNode } from './tape-in-node.ts';
import { type TempDir, tempDir } from './temp-dir.ts';

const modules = fileURLToPath(new URL('../../node_modules', import.meta.url));

/** Installs the packages in a directory: modules are looked up from where the file that imports them is. */
export function installPackages(dir: string): void {
  symlinkSync(modules, join(dir, 'node_modules'));
}

/** A directory of a user's own, with installed packages, a tape home, and a place for the user's settings beside it. */
export interface Project extends Disposable {
  readonly path: string;
  /** The tape home: `.tape` in the project. */
  readonly home: string;
  /** Where trust is recorded. */
  readonly trustFile: string;
  /** The path of a file in the project. */
  file(name: string): string;
  /** Writes a file in the project and returns its path. */
  write(name: string, text: string | object): string;
  /** Runs `tape` in the project, or below it: on a push in this process, in full but for the first of each verb. */
  tape(args: readonly string[], options?: Omit<CliOptions, 'node'>): Promise<CliResult>;
  /** The same as a process of its own, whatever the size: for what depends on how a process ends. */
  process(args: readonly string[], options?: Omit<CliOptions, 'node'>): Promise<CliResult>;
  /** The same where Node.js itself loads configurations: on a push in one process for all, in full for most. */
  inNode(args: readonly string[], options?: Omit<CliOptions, 'node'>): Promise<CliResult>;
  /** The same in this process, which is quicker: for what loads no configuration. */
  here(args: readonly string[], options?: Omit<CliOptions, 'node'>): Promise<CliResult>;
  start(args: readonly string[], options?: CliOptions): Running;
}

export function project({ installed = true }: { installed?: boolean } = {}): Project {
  const dir: TempDir = tempDir();
  const path = dir.file('project');
  const settings = dir.file('settings');
  for (const made of [path, settings, join(path, '.tape')]) mkdirSync(made, { mode: 0o700 });
  if (installed) installPackages(path);
  const inside = ({ env, ...options }: CliOptions): CliOptions => ({
    cwd: path,
    ...options,
    env: { XDG_CONFIG_HOME: settings, HOME: dir.path, ...env },
  });
  const file = (name: string) => join(path, name);
  return {
    path,
    home: file('.tape'),
    trustFile: join(settings, 'tape', 'trust.json'),
    file,
    write: (name, text) => {
      writeFileSync(file(name), typeof text === 'string' ? text : JSON.stringify(text));
      return file(name);
    },
    tape: (args, options = {}) => tape(args, inside(options)),
    process: (args, options = {}) => tapeProcess(args, inside(options)),
    inNode: (args, options = {}) => tapeInNode(args, inside(options)),
    here: (args, options = {}) => tapeHere(args, inside(options)),
    start: (args, options = {}) => startTape(args, inside(options)),
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  };
}
