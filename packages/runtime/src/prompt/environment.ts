import { arch, platform } from 'node:process';
import { type Draft, type Entry, type JsonObject, note } from '@tapedeck/tape';
import { isObject, select } from '@tapedeck/tape/internal';
import { lineOf, tryGit } from '../workspace/git.ts';
import type { Environment } from './system-prompt.ts';

/** The event that fixes the environment until the next view. */
const pinned = 'instructions/environment';

/** The facts about the environment that need no I/O. */
export interface Here {
  readonly workspace: string;
  readonly model: string | undefined;
}

/**
 * The environment of a session. If the current view has pinned one, and directory, platform and model are
 * still the same, returns that, so that the provider sees the same prompt in every turn. Otherwise reads the
 * present one.
 */
export async function environmentOf(
  entries: readonly Entry[],
  here: Here,
  now: number,
): Promise<{ readonly environment: Environment; readonly isPinned: boolean }> {
  const fixed = { platform: `${platform} ${arch}`, ...here };
  const known = pinsIn(entries).findLast(
    (pin) =>
      pin.platform === fixed.platform && pin.workspace === fixed.workspace && pin.model === fixed.model,
  );
  if (known !== undefined) return { environment: known, isPinned: true };
  const branch = await branchOf(here.workspace);
  const environment = {
    platform: fixed.platform,
    workspace: fixed.workspace,
    ...(branch !== undefined && { branch }),
    date: dateOf(now),
    ...(fixed.model !== undefined && { model: fixed.model }),
  };
  return { environment, isPinned: false };
}

/** The event that pins an environment. */
export function pin(environment: Environment, run: string): Draft {
  return note(pinned, { ...environment } as JsonObject, { run });
}

/**
 * The environments pinned since the view began. Anyone can append events, so malformed ones are ignored.
 * Pure.
 */
function pinsIn(entries: readonly Entry[]): readonly Environment[] {
  const { start, entries: shown } = select(entries, 'last-boundary');
  const from = start?.mark === 'boundary' ? start.seq : 0;
  return shown
    .filter(({ kind, name, seq }) => kind === 'event' && name === pinned && seq > from)
    .flatMap(({ payload }) => environmentIn(payload) ?? []);
}

function environmentIn(payload: unknown): Environment | undefined {
  if (!isObject(payload)) return undefined;
  const { platform, workspace, branch, date, model } = payload;
  if (!isLine(platform) || !isLine(workspace) || !isLine(date)) return undefined;
  if (!/^\d{4}-\d\d-\d\d$/.test(date)) return undefined;
  if ((branch !== undefined && !isLine(branch)) || (model !== undefined && !isLine(model))) return undefined;
  return {
    platform,
    workspace,
    ...(branch !== undefined && { branch }),
    date,
    ...(model !== undefined && { model }),
  };
}

function isLine(value: unknown): value is string {
  return typeof value === 'string' && value.length <= lineMax && !/\p{Cc}/u.test(value);
}

/** The length of the longest path. */
const lineMax = 4_096;

/** The branch that is checked out in a directory; undefined without a branch or without git. */
async function branchOf(directory: string): Promise<string | undefined> {
  const call = { cwd: directory, doing: 'read the branch' };
  const pending = tryGit(call, ['symbolic-ref', '--quiet', '--short', 'HEAD'], { bytesMax: lineMax });
  const answer = await pending.catch(() => undefined);
  const branch = answer?.ok === true ? lineOf(answer.stdout) : '';
  return branch !== '' && isLine(branch) ? branch : undefined;
}

/** The local date of a time, as `YYYY-MM-DD`. */
function dateOf(time: number): string {
  const at = new Date(time);
  const two = (n: number) => String(n).padStart(2, '0');
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}
