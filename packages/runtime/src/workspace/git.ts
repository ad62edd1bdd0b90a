import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { SessionError } from '../errors.ts';

/** Where git is run, and what for. */
export interface GitCall {
  readonly cwd: string;
  /** Beside what every call gets. */
  readonly env?: Readonly<Record<string, string>>;
  /** What cannot be done when git fails, as errors tell it: `open the worktree of 'fix'`. */
  readonly doing: string;
}

/** What git did. */
interface GitResult {
  readonly ok: boolean;
  readonly stdout: Buffer;
  /** What it said on stderr, in English. */
  readonly said: string;
  /** It printed more than was asked for, and was stopped. */
  readonly isCut: boolean;
}

/** Hold whatever the configuration of the user or the repository says: nothing of a repository is run, and nothing is left running. */
const settings = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.safecrlf=false',
  'add.ignoreErrors=false',
  'apply.whitespace=nowarn',
  'apply.ignoreWhitespace=no',
  'advice.addEmbeddedRepo=false',
  'submodule.recurse=false',
  'gc.auto=0',
].flatMap((setting) => ['-c', setting]);

/** Git as a program is to be met by: it speaks English, asks nobody, fetches nothing and signs as us. */
const manners: Readonly<Record<string, string>> = {
  LC_ALL: 'C',
  GIT_TERMINAL_PROMPT: '0',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_NO_LAZY_FETCH: '1',
  GIT_LFS_SKIP_SMUDGE: '1',
  GIT_AUTHOR_NAME: 'Tapedeck',
  GIT_AUTHOR_EMAIL: 'tapedeck@localhost',
  GIT_COMMITTER_NAME: 'Tapedeck',
  GIT_COMMITTER_EMAIL: 'tapedeck@localhost',
};

/** The most that git may print where nothing else is said. */
const printedMax = 256 * 1024 * 1024;

/**
 * Runs git, without a shell. `GIT_…` of the caller's environment means another repository and is left out.
 * @throws SESSION_NO_GIT when there is no git here, SESSION_WORKSPACE_FAILED when it was killed
 */
export async function tryGit(
  { cwd, env, doing }: GitCall,
  args: readonly string[],
  { bytesMax = printedMax }: { readonly bytesMax?: number } = {},
): Promise<GitResult> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('GIT_'));
  const options = {
    cwd,
    env: { ...Object.fromEntries(inherited), ...manners, ...env },
    encoding: 'buffer' as const,
    maxBuffer: bytesMax,
  };
  return await new Promise((resolve, reject) => {
    execFile('git', [...settings, ...args], options, (error, stdout, stderr) => {
      const result = { stdout, said: saidIn(stderr), isCut: false };
      if (error === null) return resolve({ ...result, ok: true });
      if (typeof error.code === 'number') return resolve({ ...result, ok: false });
      const code: unknown = error.code;
      if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return resolve({ ...result, ok: false, isCut: true });
      const isMissing = (code === 'ENOENT' || code === 'EACCES') && existsSync(cwd);
      reject(
        isMissing
          ? new SessionError('SESSION_NO_GIT', `cannot ${doing}: there is no git here`, { cause: error })
          : gitFailed(doing, error.message),
      );
    });
  });
}

/**
 * Runs git for what it prints.
 * @throws SESSION_NO_GIT, SESSION_WORKSPACE_FAILED
 */
export async function git(call: GitCall, ...args: readonly string[]): Promise<Buffer> {
  const { ok, stdout, said } = await tryGit(call, args);
  if (!ok) throw gitFailed(call.doing, said);
  return stdout;
}

/** The same for one line: a path, or the name of an object. */
export async function gitLine(call: GitCall, ...args: readonly string[]): Promise<string> {
  return lineOf(await git(call, ...args));
}

/** A printed line without its end; a path may hold line ends of its own. */
export function lineOf(stdout: Buffer): string {
  return stdout.toString('utf8').replace(/\n$/, '');
}

/** What git could not do, in its words. */
export function gitFailed(doing: string, said: string): SessionError {
  return new SessionError('SESSION_WORKSPACE_FAILED', `cannot ${doing}: git says '${said}'`);
}

/**
 * Does what git or the disk may fail at.
 * @throws SESSION_WORKSPACE_FAILED for a failure of the disk; others as they are
 */
export async function onDisk<T>(doing: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof Error) || (error as NodeJS.ErrnoException).syscall === undefined) throw error;
    throw new SessionError('SESSION_WORKSPACE_FAILED', `cannot ${doing}: ${error.message}`, { cause: error });
  }
}

/** The lines in which git tells of a failure, or all that it said. */
function saidIn(stderr: Buffer): string {
  const lines = stderr.toString('utf8').trim().split('\n');
  const told = lines.filter((line) => /^(?:fatal|error): /.test(line));
  return (told.length > 0 ? told : lines)
    .map((line) => line.replace(/^(?:fatal|error): /, ''))
    .join('; ')
    .slice(0, 1000);
}
