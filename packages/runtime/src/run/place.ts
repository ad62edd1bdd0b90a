import { hostname } from 'node:os';
import type { Draft, JsonObject } from '@tapedeck/tape';
import type { Shared } from '../config/shared.ts';
import { gitHead } from '../workspace/head.ts';

/** Where a run works: `cwd`, `host`, and `git` with `head` and `branch` in a repository. */
export type RunPlace = JsonObject;

/**
 * Reads where a run works, when it begins: in its worktree, else in the directory of the deck.
 * @param workspace the directory of the session's worktree, if it has one
 */
export function placeOf({ cwd }: Pick<Shared, 'cwd'>, workspace: string | undefined): RunPlace {
  const { directory } = directoryFor({ cwd }, workspace);
  const git = directory === undefined ? undefined : gitHead(directory);
  return {
    ...(directory !== undefined && { cwd: directory }),
    host: hostname(),
    ...(git !== undefined && { git: { ...git } }),
  };
}

/** The directory that the relative paths of a session start from; absent when that of the process was deleted. */
export function directoryFor(
  { cwd }: Pick<Shared, 'cwd'>,
  workspace: string | undefined,
): { readonly directory?: string } {
  const directory = workspace ?? cwd ?? currentDirectory();
  return directory === undefined ? {} : { directory };
}

/** Undefined when the directory of the process was deleted. */
function currentDirectory(): string | undefined {
  try {
    return process.cwd();
  } catch {
    return undefined;
  }
}

/** Adds the place of a run to the first of the entries that it writes. */
export type Stamp = (drafts: readonly Draft[]) => readonly Draft[];

/**
 * Makes the stamp of one run: the first entries that pass get the place, and the span of the run, in their meta, on the first message if there is
 * one, else on the first entry. Later ones return unchanged.
 */
export function stampOf(place: RunPlace, traceparent?: string): Stamp {
  const facts = { place, ...(traceparent !== undefined && { traceparent }) };
  let isStamped = false;
  return (drafts) => {
    if (isStamped || drafts.length === 0) return drafts;
    isStamped = true;
    const message = drafts.findIndex(({ kind }) => kind === 'message');
    const target = message === -1 ? 0 : message;
    return drafts.map((draft, i) => (i === target ? { ...draft, meta: { ...draft.meta, ...facts } } : draft));
  };
}
