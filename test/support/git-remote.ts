import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Packs } from '@tapedeck/tape/remotes';
import { packsAt } from './remotes.ts';
import { gitIn } from './repository.ts';
import { type TempDir, tempDir } from './temp-dir.ts';

/** Packs of git repositories, each with a state of its own, in a directory that goes away with the block. */
export interface GitPlace extends Disposable {
  readonly dir: TempDir;
  /** A bare repository: its path. */
  bare(name: string, ...options: readonly string[]): string;
  /** The packs of a URL, as another home has them that never saw it. */
  open(url: string, limits?: { readonly idleMs?: number; readonly bytesMax?: number }): Promise<Packs>;
  /** A file with a text, or with as many random bytes. */
  content(of: string | number): string;
  /** The content of a pack, read by another home. */
  contentOf(url: string, number: number): Promise<string>;
  /** An executable script for `sh`, under a name of its own or a given path. */
  script(text: string, at?: string): string;
}

export function gitPlace(): GitPlace {
  const dir = tempDir();
  let made = 0;
  const next = (name: string) => {
    made += 1;
    return dir.file(`${name}-${made}`);
  };
  const open: GitPlace['open'] = (url, limits) => packsAt(url, { state: next('state'), ...limits });
  return {
    dir,
    open,
    bare: (name, ...options) => {
      gitIn(dir.path, 'init', '--quiet', '--bare', ...options, name);
      return dir.file(name);
    },
    content: (of) => {
      const file = next('content');
      writeFileSync(file, typeof of === 'string' ? of : randomBytes(of));
      return file;
    },
    contentOf: async (url, number) => {
      const packs = await open(url);
      const found = (await packs.list()).find((pack) => pack.number === number);
      if (found === undefined) throw new Error(`there is no pack ${number}`);
      const into = next('read');
      await packs.read(found, into);
      return readFileSync(into, 'utf8');
    },
    script: (text, at = next('script')) => {
      mkdirSync(dirname(at), { recursive: true });
      writeFileSync(at, `#!/bin/sh\n${text}\n`);
      chmodSync(at, 0o755);
      return at;
    },
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  };
}

/** What lies in a tree: the mode, and the content of a file, or the name of another object. */
export type Planted = readonly [name: string, mode: string, of: string];

/** Makes the packs of a repository a commit with these entries, as no push does. Returns the commit. */
export function plant(repository: string, entries: readonly Planted[]): string {
  const put = (type: string, input: string | Buffer) =>
    execFileSync('git', ['hash-object', '-w', '--literally', '-t', type, '--stdin'], {
      cwd: repository,
      input,
      encoding: 'utf8',
    }).trim();
  const records = entries.map(([name, mode, of]) => {
    const isFile = mode.startsWith('10') || mode === '120000';
    const object = isFile ? put('blob', of) : of;
    return Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(object, 'hex')]);
  });
  const who = 'Test <test@localhost> 1795255200 +0000';
  const tree = put('tree', Buffer.concat(records));
  const commit = put('commit', `tree ${tree}\nauthor ${who}\ncommitter ${who}\n\nPlanted\n`);
  gitIn(repository, 'update-ref', 'refs/tapedeck/packs', commit);
  return commit;
}

/** The bytes of all files below a directory. */
export function bytesBelow(path: string): number {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}
