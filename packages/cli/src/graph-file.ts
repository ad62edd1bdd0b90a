import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { tailOf } from '@tapedeck/graph/journal';
import type { HomeStore } from '@tapedeck/tape';
import { firstLinePrev } from '@tapedeck/tape/store';
import { safe } from './escape.ts';
import { exit } from './exit.ts';
import type { Home } from './home.ts';
import type { Io } from './io.ts';

/** What a store has found and done to the graph file since it was opened. */
export type GraphFileState = HomeStore['graphFile'];

/** The fields of a JSON document about the graph file; none when it follows the database. */
export function graphFields({ lagging, blocked, aside }: GraphFileState): Readonly<Record<string, true>> {
  return {
    ...(lagging && { graph_lagging: true }),
    ...((blocked || aside.length > 0) && { graph_diverged: true }),
  };
}

/** The same as lines for people. */
export function graphLines({ lagging, blocked, aside }: GraphFileState): readonly string[] {
  const moved = aside.map(
    (path) =>
      `The graph file differed from the database. It is now '${basename(path)}'${lagging ? '' : ', and a new one was written'}. See: tape check`,
  );
  if (blocked)
    return [...moved, 'The graph file differs from the database, and cannot be set aside. See: tape check'];
  return lagging
    ? [...moved, 'The graph file cannot be written now: the next command that writes adds the missing lines']
    : moved;
}

/** How the graph file compares with the database that a command answered from. */
export interface FileStanding {
  readonly is: 'same' | 'behind' | 'differs';
  /** What to tell people, when it is not the same. */
  readonly text?: string;
}

/** How often and in what steps a file that lags is looked at again: another process may be writing it. */
const looks = { most: 5, afterMs: 20 };

/**
 * Compares the end of the graph file with the database: each line has the hash of the line before, so that a file
 * with the right last line has the right ones before it, unless they were changed.
 */
export async function compareTail(store: HomeStore, home: Home): Promise<FileStanding> {
  for (let look = 1; ; look += 1) {
    const found = tailStanding(store, home);
    if (found.is !== 'behind' || look === looks.most) return found;
    await sleep(looks.afterMs);
  }
}

function tailStanding(store: HomeStore, { graph }: Home): FileStanding {
  if (graph === undefined) return { is: 'same' };
  let tail: ReturnType<typeof tailOf>;
  try {
    // Before the database is read: what is in the file by then is in the database.
    tail = tailOf(graph);
  } catch (error) {
    return { is: 'behind', text: (error as Error).message };
  }
  const { g, hash } = tail;
  const right = g === 0 ? firstLinePrev : store.lineageHash(g)?.hash;
  if (right !== hash) return differing(`line ${Math.max(g, 1)}`);
  const newest = store.lineageHash()?.g ?? 0;
  if (g === newest) return { is: 'same' };
  const what = existsSync(graph) ? `The graph file ends at line ${g} of ${newest}` : 'There is no graph file';
  return { is: 'behind', text: `${what}: the next command that writes adds the missing lines` };
}

/** The standing of a file that differs, at a place of it. */
export function differing(place: string): FileStanding {
  const text = `The graph file differs from the database at ${place}; this answer is from the database. See: tape check`;
  return { is: 'differs', text };
}

/** The fields of a JSON document about the file; none when it is the same. */
export function standingFields({ is }: FileStanding): Readonly<Record<string, true>> {
  if (is === 'same') return {};
  return is === 'behind' ? { graph_lagging: true } : { graph_diverged: true };
}

/**
 * Reports how the graph file compares with the database that a command answered from, on one line of stderr, and
 * returns the exit code: a file that differs is damage, a file that is behind is not.
 */
export function reportStanding(
  { is, text }: FileStanding,
  { io, status }: { readonly io: Pick<Io, 'err'>; status(text: string): void },
): number {
  if (is === 'differs') io.err(`${safe(text ?? '')}\n`);
  else if (text !== undefined) status(text);
  return is === 'differs' ? exit.damaged : exit.done;
}
