import type { TapeStore } from '@tapedeck/tape';
import type { RunStatus } from '../stream/events.ts';
import { type ActiveSession, activeNow, dropDrafts, isSame, readActive, writeActive } from './active-file.ts';

/** Keeps `run/sessions.json` of a home up to date with the runs of this process. */
export interface ActiveWriter {
  /** Publishes the status of a session, or removes it when the status is neither `busy` nor `retrying`. */
  show(
    session: { readonly name: string; readonly id: string },
    at: { readonly owner: string | undefined; readonly status: RunStatus },
  ): void;
  /** Removes all sessions of this process. */
  close(): Promise<void>;
}

/** How long changes are collected before a write, in milliseconds. */
const gatherMs = 100;

/**
 * How often a process with runs checks the file, in milliseconds. Another writer that was slow may have replaced it
 * with an older text, and only this process knows the status of its runs.
 */
const checkMs = 1_000;

/**
 * Opens the writer and removes the drafts of dead processes. Each writer derives the file from the leases,
 * keeps the valid records of other processes, and checks the file after a write and while it has runs, so that
 * concurrent writers converge. A write error stops no run: the first one is passed to `onFailure`.
 */
export async function openActiveWriter(
  home: string,
  { store, onFailure }: { readonly store: TapeStore; readonly onFailure: (error: unknown) => void },
): Promise<ActiveWriter> {
  const own = new Map<string, { readonly owner: string; readonly status: RunStatus }>();
  let timer: NodeJS.Timeout | undefined;
  let checks: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();
  let hasFailed = false;
  const plan = () => {
    timer ??= setTimeout(
      () => {
        timer = undefined;
        void bringUpToDate();
      },
      gatherMs * (1 + Math.random()),
    ).unref();
  };
  const bringUpToDate = (): Promise<void> => {
    writing = writing.then(async () => {
      try {
        const shown = readActive(home);
        const leases = await store.leases.list();
        const known = leases.flatMap(({ session, id, owner }): ActiveSession[] => {
          const at = own.get(id);
          return at?.owner === owner.id ? [{ session, id, owner, status: at.status }] : [];
        });
        const now = activeNow(leases, [...known, ...shown]);
        if (isSame(now, shown)) return;
        await writeActive(home, now);
        plan();
      } catch (error) {
        if (!hasFailed) onFailure(error);
        hasFailed = true;
      }
    });
    return writing;
  };
  const stopChecks = () => {
    clearInterval(checks);
    checks = undefined;
  };
  // A draft that cannot be removed is harmless.
  await dropDrafts(home).catch(() => {});
  await bringUpToDate();
  return {
    show: ({ id }, { owner, status }) => {
      const isActive = status.state === 'busy' || status.state === 'retrying';
      if (isActive && owner !== undefined) own.set(id, { owner, status });
      else own.delete(id);
      if (own.size > 0) checks ??= setInterval(() => void bringUpToDate(), checkMs).unref();
      else stopChecks();
      plan();
    },
    close: async () => {
      own.clear();
      stopChecks();
      await bringUpToDate();
      clearTimeout(timer);
    },
  };
}
