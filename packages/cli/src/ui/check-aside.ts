import { execFile } from 'node:child_process';
import { type HomeStore, TapeError } from '@tapedeck/tape';
import { type Checked, findingsMax } from '../page/page.ts';
import { Refused } from './refuse.ts';
import { worstFindings } from './worst-findings.ts';

/** The most that is checked in this process: it takes no longer than other answers. */
const most = { entries: 2_000, sessions: 200 };

/** The most that a check says, in bytes. */
const saidMax = 256 * 1024 * 1024;

/** Whether a check of a home, or of a session with those below it, is short. */
export function isShort(store: HomeStore, session: string | undefined): boolean {
  // A copy that was made to be read is not made once more.
  if (store.isCopy) return true;
  try {
    const { entries, sessions } = store.count(session);
    if (entries > most.entries || sessions > most.sessions) return false;
    return session === undefined || countBelow(store, session) <= most.sessions;
  } catch (error) {
    // What cannot be read is what a check finds.
    if (error instanceof TapeError && error.code === 'TAPE_CORRUPT') return true;
    throw error;
  }
}

/** How many sessions are below one, up to one more than is asked. */
function countBelow(store: HomeStore, session: string): number {
  return store
    .readSessions({ under: session, all: true })
    .take(most.sessions + 1)
    .reduce((sum) => sum + 1, 0);
}

/**
 * Ends a process as soon as the one that started it has ended, however it did: the pipe at its stdin is closed then. A thread
 * of its own waits for that: a check gives its own thread no time for anything else.
 */
const endsWithParent = `import { Worker } from 'node:worker_threads';
const wait = \`new (require('node:net').Socket)({ fd: 0 })
  .on('error', () => {}).on('close', () => process.kill(process.pid, 'SIGKILL')).resume()\`;
new Worker(wait, { eval: true }).unref();`;

/** Adds the home to the words of the process before it reads them: the commands that it prints name the home, as it was named. */
const namesHome = `process.argv.push('--home', process.env.TAPE_HOME);`;

/**
 * Checks as `tape check --json` does, in a process of its own: a check of much that is done here would keep all other answers
 * waiting. It ends with this one. The home is a variable of it: an address with a password is no word of a process.
 */
export async function checkAside(
  { home, session }: { readonly home: string; readonly session: string | undefined },
  signal: AbortSignal,
): Promise<Checked> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const own = `--import=data:text/javascript,${encodeURIComponent(`${endsWithParent}\n${namesHome}`)}`;
  const words = ['check', ...(session === undefined ? [] : [session]), '--json'];
  execFile(
    process.execPath,
    [own, process.argv[1] ?? '', ...words],
    {
      encoding: 'buffer',
      env: { ...process.env, TAPE_HOME: home },
      maxBuffer: saidMax,
      signal,
      killSignal: 'SIGKILL',
    },
    (error, stdout, stderr) => {
      // It ends with another code where something is found.
      if (stdout.length > 0) resolve(stdout);
      else if (signal.aborted) reject(ended);
      else reject(new Error(`the check failed: ${stderr}`, { cause: error }));
    },
  );
  return await worstFindings(await promise, findingsMax);
}

const ended = new Refused(503, { code: 'UI_ENDED', message: 'cannot check: tape ui ends' });
