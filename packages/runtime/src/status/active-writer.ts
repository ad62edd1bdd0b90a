import type { TapeStore } from '@tapedeck/tape';
import type { RunStatus } from '../stream/events.ts';
import { type ActiveSession, activeNow, dropDrafts, isSame, readActive, writeActive } from './active-file.ts';

/** Keeps `run/sessions.json` of a home up to date with what this process runs (B14, D516). */
export interface ActiveWriter {
  /** What a session is at; with a state that needs no process, it is not shown any more. */
  show(
    session: { readonly name: string; readonly id: string },
    at: { readonly owner: string | undefined; readonly status: RunStatus },
  ): void;
  /** Shows nothing of this process any more. */
  close(): Promise<void>;
}

/** How long changes gather, in milliseconds: what is over sooner need not be seen by others. */
const gatherMs = 100;

/**
 * Opens it, and drops what processes that died have left there. Leases are the truth of who runs what; each writer
 * derives the file from them, keeps what others say of themselves, and looks again after it has written: two that
 * write at the same moment come to the same text. A file that cannot be written stops nothing: `onFailure` is told once.
 */
export async function openActiveWriter(
  home: string,
  { store, onFailure }: { readonly store: TapeStore; readonly onFailure: (error: unknown) => void },
): Promise<ActiveWriter> {
  const own = new Map<string, { readonly owner: string; readonly status: RunStatus }>();
  let timer: NodeJS.Timeout | undefined;
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
        const leases = await store.owners();
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
  // A draft that cannot be removed does no harm.
  await dropDrafts(home).catch(() => {});
  await bringUpToDate();
  return {
    show: ({ id }, { owner, status }) => {
      const isAtWork = status.state === 'busy' || status.state === 'retrying';
      if (isAtWork && owner !== undefined) own.set(id, { owner, status });
      else own.delete(id);
      plan();
    },
    close: async () => {
      own.clear();
      await bringUpToDate();
      clearTimeout(timer);
    },
  };
}
