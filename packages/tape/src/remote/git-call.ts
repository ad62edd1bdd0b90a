import { once } from 'node:events';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { TapeError } from '../errors.ts';
import { endProgram, startProgram } from './program.ts';

/** How git ended. */
export interface GitEnd {
  readonly ok: boolean;
  readonly stdout: string;
  /** What it says of a failure, in English and on one line. */
  readonly why: string;
}

/** Where git works, and within which limits. */
export interface GitCall {
  /** The bare repository; undefined where it needs none. */
  readonly repository?: string | undefined;
  /** Default: `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly input?: string;
  /** The descriptor of a file for its output. */
  readonly into?: number;
  /** The most bytes of its output in memory. */
  readonly printedMax?: number;
  /** The most bytes of each file that it writes. */
  readonly fileMax?: number;
  /** How long it may be silent, in milliseconds. Without it, as long as it likes. */
  readonly idleMs?: number;
}

/**
 * Override the configuration of the user: git runs no hook, signs nothing, leaves nothing running, checks the form of what
 * it receives, and keeps files of a megabyte out of memory.
 */
const settings = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.bigFileThreshold=1m',
  'core.compression=0',
  'transfer.fsckObjects=true',
  'fetch.unpackLimit=1',
  'fetch.recurseSubmodules=false',
  'push.followTags=false',
  'push.gpgSign=false',
  'push.recurseSubmodules=no',
  'submodule.recurse=false',
  'maintenance.auto=false',
].flatMap((setting) => ['-c', setting]);

/** English output, no questions, no other transports than those of an address, and objects as they are. */
const environment: Readonly<Record<string, string>> = {
  LC_ALL: 'C',
  GIT_TERMINAL_PROMPT: '0',
  GIT_ALLOW_PROTOCOL: 'file:http:https:ssh',
  GIT_NO_LAZY_FETCH: '1',
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_DEFAULT_REF_FORMAT: 'files',
  GIT_AUTHOR_NAME: 'Tapedeck',
  GIT_AUTHOR_EMAIL: 'tapedeck@localhost',
  GIT_COMMITTER_NAME: 'Tapedeck',
  GIT_COMMITTER_EMAIL: 'tapedeck@localhost',
};

/** Variables that say how the user connects. Others, such as those of a hook, name another repository. */
const kept =
  /^GIT_(?:SSH|SSH_COMMAND|SSH_VARIANT|ASKPASS|SSL_\w+|PROXY_\w+|HTTP_\w+|EXEC_PATH|CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM))$/;

const defaultPrintedMax = 64 * 1024 * 1024;
/** How long what was printed may take to arrive after the end, in milliseconds. */
const drainMs = 1_000;
/** How much of what git says of a failure is kept, in characters. */
const whyMax = 1_000;

/**
 * Runs git without a shell.
 * @throws TAPE_REMOTE_FAILED when it is not installed
 */
export async function runGit(call: GitCall, args: readonly string[]): Promise<GitEnd> {
  const { repository, env = process.env, input, into, printedMax = defaultPrintedMax, idleMs } = call;
  const inherited = Object.entries(env).filter(([name]) => !name.startsWith('GIT_') || kept.test(name));
  const words = ['git', ...settings, ...(repository === undefined ? [] : ['--git-dir', repository]), ...args];
  const child = startProgram(limited(words, call), {
    // A repository of the working directory has no part in it.
    cwd: '/',
    env: { ...Object.fromEntries(inherited), ...environment },
    stdio: [input === undefined ? 'ignore' : 'pipe', into ?? 'pipe', 'pipe'],
  });
  const printed: Buffer[] = [];
  let [bytes, errors, why] = [0, '', ''];
  const end = (reason: string) => {
    why ||= reason;
    endProgram(child);
  };
  const idle = idleMs === undefined ? undefined : setTimeout(() => end(silent(idleMs)), idleMs);
  child.stdout?.on('data', (chunk: Buffer) => {
    idle?.refresh();
    bytes += chunk.length;
    if (bytes > printedMax) end(`it prints over ${printedMax} bytes`);
    else printed.push(chunk);
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    idle?.refresh();
    errors = `${errors}${chunk.toString('utf8')}`.slice(-16 * whyMax);
  });
  child.stdin?.on('error', () => {});
  child.stdin?.end(input);
  const closed = once(child, 'close').catch(() => {});
  try {
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    // What a program left behind may keep the pipes open.
    await Promise.race([closed, sleep(drainMs, undefined, { ref: false })]);
    // Where this process stood still that long, the pipes are read after the timer.
    await nextTurn();
    const stdout = Buffer.concat(printed).toString('utf8');
    if (code === 0 && why === '') return { ok: true, stdout, why };
    const how = signal === null ? `it ended with ${code}` : `it was ended by ${signal}`;
    return { ok: false, stdout, why: why || failureIn(errors) || how };
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? 'git is not installed' : `git cannot be run: ${message}`;
    throw new TapeError('TAPE_REMOTE_FAILED', `cannot use a git remote: ${why}`, { cause });
  } finally {
    clearTimeout(idle);
    for (const stream of [child.stdout, child.stderr]) stream?.destroy();
  }
}

function silent(ms: number): string {
  return `no answer for ${ms / 1000} seconds`;
}

/** The words of a call whose files have a limit: a shell sets it, in blocks of 512 bytes. Beyond it, writing fails. */
function limited(words: readonly string[], { fileMax }: GitCall): readonly string[] {
  if (fileMax === undefined) return words;
  return [
    '/bin/sh',
    '-c',
    'trap "" XFSZ && ulimit -f "$0" && exec "$@"',
    `${Math.ceil(fileMax / 512)}`,
    ...words,
  ];
}

/** What is no reason: what counts up, and what git says of every failure. */
const noise =
  /^(?:remote: )?(?:Enumerating|Counting|Compressing|Writing|Receiving|Resolving|Unpacking|Delta|Total|To|Please make sure|and the repository exists|hint:|warning:|error: failed to push some refs)\b/;

/** The first lines that say why. */
function failureIn(errors: string): string {
  return errors
    .split(/[\n\r]/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !noise.test(line))
    .map((line) => line.replace(/^(?:fatal|error): /, '').replace(/\.$/, ''))
    .slice(0, 5)
    .join('; ')
    .slice(0, whyMax);
}
