import { arch, platform } from 'node:process';
import { type Draft, type Entry, isObject, type JsonObject, note, select } from '@tapedeck/tape';
import { lineOf, tryGit } from '../workspace/git.ts';
import type { Environment } from './system-prompt.ts';

/** The event that keeps where a session works until its view begins anew. */
const pinned = 'instructions/environment';

/** What is known of where a session works without asking anybody. */
export interface Here {
  readonly workspace: string;
  readonly model: string | undefined;
}

/**
 * Where a session works: as it was told since its view began, so that what a provider has seen stays the same from turn to
 * turn, else as it is now. Another directory, machine or model is told of at once: it is no longer true that it works there.
 */
export async function environmentOf(
  entries: readonly Entry[],
  here: Here,
  now: number,
): Promise<{ readonly environment: Environment; readonly isPinned: boolean }> {
  const fixed = { platform: `${platform} ${arch}`, ...here };
  const told = pinsIn(entries).findLast(
    (pin) =>
      pin.platform === fixed.platform && pin.workspace === fixed.workspace && pin.model === fixed.model,
  );
  if (told !== undefined) return { environment: told, isPinned: true };
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

/** Keeps it from here on. */
export function pin(environment: Environment, run: string): Draft {
  return note(pinned, { ...environment } as JsonObject, { run });
}

/** What was told since the view began. Anybody may append events: what does not fit is none. Pure. */
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

/** As long as a path may be. */
const lineMax = 4_096;

/** The branch that is checked out in a directory; nothing where there is none, or no git. */
async function branchOf(directory: string): Promise<string | undefined> {
  const call = { cwd: directory, doing: 'tell the branch' };
  const asked = tryGit(call, ['symbolic-ref', '--quiet', '--short', 'HEAD'], { bytesMax: lineMax });
  const answer = await asked.catch(() => undefined);
  const branch = answer?.ok === true ? lineOf(answer.stdout) : '';
  return branch !== '' && isLine(branch) ? branch : undefined;
}

/** A time as the day that it is here. */
function dateOf(time: number): string {
  const at = new Date(time);
  const two = (n: number) => String(n).padStart(2, '0');
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}
