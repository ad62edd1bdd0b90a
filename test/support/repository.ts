import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TempDir, tempDir } from './temp-dir.ts';

/** A git repository that goes away with the block: `using code = tempRepository({ 'a.txt': 'a\n' })`. */
export interface TempRepository extends Disposable {
  readonly path: string;
  /** Runs git in it, and returns what it prints. @throws with what it says when it fails */
  git(...args: readonly string[]): string;
  write(path: string, text: string | Uint8Array): void;
  read(path: string): string;
  commit(message: string): void;
  /** What git says has changed, one file a line, and the bytes of the index. */
  state(): { readonly status: string; readonly index: string };
}

const env = {
  PATH: process.env.PATH,
  HOME: '/nonexistent',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_SYSTEM: '/dev/null',
  GIT_AUTHOR_NAME: 'Test',
  GIT_AUTHOR_EMAIL: 'test@localhost',
  GIT_COMMITTER_NAME: 'Test',
  GIT_COMMITTER_EMAIL: 'test@localhost',
};

/** Runs git in a directory, without any user's configuration. @throws with its output when it fails */
export function gitIn(cwd: string, ...args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync('git', args, { cwd, env, encoding: 'utf8' });
  if (status !== 0) throw error ?? new Error(`git ${args.join(' ')}: ${stderr}`);
  return stdout;
}

/** Says so when there is no git, without which worktrees cannot be tested. */
export function skipsGit(what: string): boolean {
  if (spawnSync('git', ['--version']).status === 0) return false;
  console.warn(`skipped: ${what}; there is no git`);
  return true;
}

/** Makes a repository with these files in its first commit, at `name` in a directory of its own. */
export function tempRepository(files: Readonly<Record<string, string>>, name = 'code'): TempRepository {
  const dir: TempDir = tempDir();
  const path = join(realpathSync(dir.path), name);
  mkdirSync(path);
  const git = (...args: readonly string[]) => gitIn(path, ...args);
  const write = (file: string, text: string | Uint8Array) => {
    mkdirSync(dirname(join(path, file)), { recursive: true });
    writeFileSync(join(path, file), text);
  };
  const commit = (message: string) => {
    git('add', '--all');
    git('commit', '--quiet', '-m', message);
  };
  git('init', '--quiet', '--initial-branch=main');
  for (const [file, text] of Object.entries(files)) write(file, text);
  commit('first');
  return {
    path,
    git,
    write,
    read: (file) => readFileSync(join(path, file), 'utf8'),
    commit,
    // Looking must not change the index, which keeps what git knows of the files.
    state: () => ({
      index: readFileSync(join(path, '.git/index'), 'base64'),
      status: git('--no-optional-locks', 'status', '--porcelain', '--untracked-files=all'),
    }),
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  };
}
