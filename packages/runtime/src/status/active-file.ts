import { randomBytes } from 'node:crypto';
import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { chmod, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Json, JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { Owner, SessionOwner } from '@tapedeck/tape/store';
import type { Phase, RunStatus } from '../stream/events.ts';

/** A running session and its status, as its process publishes them to other processes. */
export interface ActiveSession {
  readonly session: string;
  /** ULID of the session. */
  readonly id: string;
  /** The owner of its lease. */
  readonly owner: Owner;
  readonly status: RunStatus;
}

/** Whether a record belongs to this lease. Records of earlier leases are stale. */
export function isOf({ id, owner }: ActiveSession, lease: SessionOwner): boolean {
  return id === lease.id && owner.id === lease.owner.id && owner.pid === lease.owner.pid;
}

/**
 * The records of the file: for each lease the first of `known` that belongs to it, else the state `busy`.
 * Pure, so that all processes write the same text.
 */
export function activeNow(
  leases: readonly SessionOwner[],
  known: readonly ActiveSession[],
): readonly ActiveSession[] {
  return leases.map((lease) => {
    const { session, id, owner } = lease;
    const found = known.find((one) => isOf(one, lease));
    return { session, id, owner, status: found?.status ?? { state: 'busy' } };
  });
}

const fileOf = (home: string): string => join(home, 'run', 'sessions.json');

/** Reads the records of a home. The file is a projection: unreadable records are skipped. */
export function readActive(home: string): readonly ActiveSession[] {
  try {
    const value: Json = JSON.parse(textIn(fileOf(home)));
    const records = isObject(value) && value.v === 1 && Array.isArray(value.sessions) ? value.sessions : [];
    return records.flatMap(decode);
  } catch {
    return [];
  }
}

/** Reads regular files only: reading a pipe or a device might never end. */
function textIn(file: string): string {
  const fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    return fstatSync(fd).isFile() ? readFileSync(fd, 'utf8') : '';
  } finally {
    closeSync(fd);
  }
}

/** Whether the file would read the same. */
export function isSame(a: readonly ActiveSession[], b: readonly ActiveSession[]): boolean {
  return textOf(a) === textOf(b);
}

/** Replaces the file of a home atomically: readers see the old text or the new one, also after a crash. */
export async function writeActive(home: string, active: readonly ActiveSession[]): Promise<void> {
  const file = fileOf(home);
  const dir = dirname(file);
  // The umask may have removed bits from the mode.
  if ((await mkdir(dir, { recursive: true, mode: 0o700 })) !== undefined) await chmod(dir, 0o700);
  const draft = `${file}.${randomBytes(6).toString('hex')}.part`;
  try {
    await using handle = await open(draft, 'wx', 0o600);
    await handle.chmod(0o600);
    await handle.writeFile(textOf(active));
    await handle.sync();
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await using handle = await open(dir, 'r');
  await handle.sync();
}

/** The age in milliseconds after which a draft counts as abandoned. */
const draftMaxMs = 60_000;

/** Removes the drafts of processes that died while they replaced the file. */
export async function dropDrafts(home: string): Promise<void> {
  const dir = dirname(fileOf(home));
  for (const name of existsSync(dir) ? await readdir(dir) : []) {
    const path = join(dir, name);
    if (name.endsWith('.part') && Date.now() - (await stat(path)).mtimeMs > draftMaxMs) await rm(path);
  }
}

function textOf(active: readonly ActiveSession[]): string {
  return `${JSON.stringify({ v: 1, sessions: active.map(encode) }, undefined, 1)}\n`;
}

function encode({ session, id, owner, status }: ActiveSession): JsonObject {
  const { state, phase, run, startedAt, servers, attempt, message } = status;
  return {
    session,
    id,
    owner: owner.id,
    ...(owner.pid !== undefined && { pid: owner.pid }),
    ...(owner.pidStart !== undefined && { pid_start: owner.pidStart }),
    ...(owner.bootId !== undefined && { boot_id: owner.bootId }),
    ...(owner.host !== undefined && { host: owner.host }),
    ...(run !== undefined && { run }),
    state,
    ...(phase !== undefined && { phase }),
    ...(startedAt !== undefined && { started_at: new Date(startedAt).toISOString() }),
    ...(servers !== undefined && { servers }),
    ...(attempt !== undefined && { attempt }),
    ...(message !== undefined && { message }),
  };
}

const states: ReadonlySet<unknown> = new Set(['busy', 'retrying']);
const phases: ReadonlySet<unknown> = new Set(['processing', 'streaming', 'compacting', 'completing']);

function decode(record: Json): readonly ActiveSession[] {
  if (!isObject(record) || !states.has(record.state)) return [];
  const { session, id, owner, pid, pid_start, boot_id, host } = record;
  const { run, started_at, servers, attempt, message } = record;
  if (typeof session !== 'string' || typeof id !== 'string' || typeof owner !== 'string') return [];
  const at = typeof started_at === 'string' ? Date.parse(started_at) : Number.NaN;
  return [
    {
      session,
      id,
      owner: {
        id: owner,
        ...(typeof pid === 'number' && { pid }),
        ...(typeof pid_start === 'string' && { pidStart: pid_start }),
        ...(typeof boot_id === 'string' && { bootId: boot_id }),
        ...(typeof host === 'string' && { host }),
      },
      status: {
        state: record.state as RunStatus['state'],
        ...(phases.has(record.phase) && { phase: record.phase as Phase }),
        ...(typeof run === 'string' && { run }),
        ...(Number.isFinite(at) && { startedAt: at }),
        ...(Array.isArray(servers) && { servers: servers.filter((name) => typeof name === 'string') }),
        ...(typeof attempt === 'number' && { attempt }),
        ...(typeof message === 'string' && { message }),
      },
    },
  ];
}
