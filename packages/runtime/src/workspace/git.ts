import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { SessionError } from '../errors.ts';

/** Where and why git runs. */
export interface GitCall {
  readonly cwd: string;
  /** Added to the environment of every call. */
  readonly env?: Readonly<Record<string, string>>;
  /** What fails if git fails, for error messages: `open the worktree of 'fix'`. */
  readonly doing: string;
}

/** The result of a git command. */
interface GitResult {
  readonly ok: boolean;
  readonly stdout: Buffer;
  /** Its stderr, in English. */
  readonly stderr: string;
  /** It exceeded the limit of its output and was stopped. */
  readonly isCut: boolean;
}

/**
 * Override the configuration of the user and the repository: git runs no program from a repository and leaves
 * none running.
 */
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

/** The environment of git: English output, no prompts, no fetching, and Tapedeck as the author. */
const environment: Readonly<Record<string, string>> = {
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

/** The default limit of git's output, in bytes. */
const printedMax = 256 * 1024 * 1024;

/**
 * Runs git without a shell. Drops the caller's `GIT_…` variables, which may point to another repository.
 * @throws SESSION_NO_GIT when git is not installed, SESSION_WORKSPACE_FAILED when it was killed
 */
export async function tryGit(
  { cwd, env, doing }: GitCall,
  args: readonly string[],
  { bytesMax = printedMax }: { readonly bytesMax?: number } = {},
): Promise<GitResult> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('GIT_'));
  const options = {
    cwd,
    env: { ...Object.fromEntries(inherited), ...environment, ...env },
    encoding: 'buffer' as const,
    maxBuffer: bytesMax,
  };
  return await new Promise((resolve, reject) => {
    execFile('git', [...settings, ...args], options, (error, stdout, stderr) => {
      const result = { stdout, stderr: errorLines(stderr), isCut: false };
      if (error === null) return resolve({ ...result, ok: true });
      if (typeof error.code === 'number') return resolve({ ...result, ok: false });
      const code: unknown = error.code;
      if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return resolve({ ...result, ok: false, isCut: true });
      const isMissing = (code === 'ENOENT' || code === 'EACCES') && existsSync(cwd);
      reject(
        isMissing
          ? new SessionError('SESSION_NO_GIT', `cannot ${doing}: git is not installed`, { cause: error })
          : gitFailed(doing, error.message),
      );
    });
  });
}

/**
 * Runs git and returns its output.
 * @throws SESSION_NO_GIT, SESSION_WORKSPACE_FAILED
 */
export async function git(call: GitCall, ...args: readonly string[]): Promise<Buffer> {
  const { ok, stdout, stderr } = await tryGit(call, args);
  if (!ok) throw gitFailed(call.doing, stderr);
  return stdout;
}

/** Runs git and returns its output as one line: a path, or an object name. */
export async function gitLine(call: GitCall, ...args: readonly string[]): Promise<string> {
  return lineOf(await git(call, ...args));
}

/** A printed line without its line end. A path may contain others. */
export function lineOf(stdout: Buffer): string {
  return stdout.toString('utf8').replace(/\n$/, '');
}

/** The error of a failed git command, with its stderr. */
export function gitFailed(doing: string, stderr: string): SessionError {
  return new SessionError('SESSION_WORKSPACE_FAILED', `cannot ${doing}: git says '${stderr}'`);
}

/**
 * Runs an act that uses the disk.
 * @throws SESSION_WORKSPACE_FAILED when the disk fails; other errors unchanged
 */
export async function onDisk<T>(doing: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof Error) || (error as NodeJS.ErrnoException).syscall === undefined) throw error;
    throw new SessionError('SESSION_WORKSPACE_FAILED', `cannot ${doing}: ${error.message}`, { cause: error });
  }
}

/** The lines that report the failure, or all of stderr. */
function errorLines(stderr: Buffer): string {
  const lines = stderr.toString('utf8').trim().split('\n');
  const errors = lines.filter((line) => /^(?:fatal|error): /.test(line));
  return (errors.length > 0 ? errors : lines)
    .map((line) => line.replace(/^(?:fatal|error): /, ''))
    .join('; ')
    .slice(0, 1000);
}
