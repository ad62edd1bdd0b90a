import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Text } from './peer.ts';
import { type Installed, type Place, result, runProcess } from './process.ts';
import { sum } from './program.ts';

/** How many writes were acknowledged, and how many of them had what is asked for. */
export interface Share {
  readonly acknowledged: number;
  readonly kept: number;
}

/** What a peer acknowledges: a fork, where its library does not append. */
function writeOf({ peer }: Installed): 'append' | 'fork' {
  return peer.cannot?.append === undefined ? 'append' : 'fork';
}

const synced = /(?:fsync|fdatasync|sync|syncfs|msync)(?:\(.*\)| resumed>.*\)) += 0$/;
const acknowledged = /write\(1, "\{/;

/**
 * Counts the writes between whose beginning and acknowledgement the process waited for the disk: a power loss keeps no
 * others. Returns a reason if the calls of processes cannot be followed here.
 */
export async function countSynced(
  installed: Installed,
  { home, session }: Place,
  texts: readonly Text[],
): Promise<Share | string> {
  const log = join(home, 'strace.log');
  const calls = 'trace=?fsync,?fdatasync,?sync,?syncfs,?msync,write';
  const task = { work: 'acknowledge', write: writeOf(installed), session, texts, killed: false } as const;
  let ended: Awaited<ReturnType<typeof runProcess>>;
  try {
    ended = await runProcess(installed, home, task, [
      'strace',
      '-f',
      '-qq',
      '-s',
      '8',
      '-o',
      log,
      '-e',
      calls,
    ]);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'there is no strace';
    throw error;
  }
  if (ended.said.length < 2) return `strace does not follow it: ${ended.stderr.trim().slice(0, 100)}`;
  let [kept, waited] = [0, false];
  // The first write may sync what begins a file, and not itself: it does not count.
  let first = true;
  for (const line of readFileSync(log, 'utf8').split('\n'))
    if (synced.test(line)) waited = true;
    else if (acknowledged.test(line)) {
      if (waited && !first) kept += 1;
      [waited, first] = [false, false];
    }
  return { acknowledged: ended.said.length - 1, kept };
}

/**
 * Kills a process straight after each acknowledgement, and counts the writes that another one then finds. This does
 * not show what a power loss does: the system still has what the process wrote.
 */
export async function countSurvivors(
  installed: Installed,
  { home, session }: Place,
  texts: readonly Text[],
): Promise<Share> {
  const write = writeOf(installed);
  let before = await result(installed, home, { work: 'all', session });
  let kept = 0;
  for (const text of texts) {
    const task = { work: 'acknowledge', write, session, texts: [text], killed: true } as const;
    const { signal, said, stderr } = await runProcess(installed, home, task);
    const to = said.at(-1)?.session;
    if (signal !== 'SIGKILL' || to === undefined) throw new Error(`it is not killed: ${stderr.slice(-200)}`);
    const found = await result(installed, home, { work: 'all', session: to });
    const more = sum(write === 'append' ? [text.text] : []);
    if (found.count === before.count + more.count && found.chars === before.chars + more.chars) kept += 1;
    if (write === 'append') before = found;
  }
  return { acknowledged: texts.length, kept };
}
