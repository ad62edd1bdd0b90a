import { setTimeout as sleep } from 'node:timers/promises';
import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import type { Owner } from '@tapedeck/tape/store';
import { commandLine } from '../escape.ts';
import { exit } from '../exit.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const abort: Verb = defineVerb({
  command: 'abort <name>',
  group: 'Run',
  summary: 'Stop the run of a session, in this or another process',
  detail:
    'Aborts the model call and the running tools, and waits until the run has ended. Output received before the abort stays on ' +
    'the tape; messages in the inbox stay there. When only children of the session run, stops those.',
  examples: [
    ['tape abort main', 'Stop the run of main'],
    ['tape abort main --reason "wrong branch"', 'Record the reason with the run'],
  ],
  arguments: { name: 'Session' },
  options: {
    reason: { type: 'string', default: 'aborted', describe: 'Reason to record' },
    wait: {
      type: 'number',
      negatable: true,
      default: 10,
      describe: 'Seconds to wait for the run to end; --no-wait: do not wait',
    },
  },
  run: async ({ name, reason, wait }, context) =>
    await context.changing(async (store) => {
      const info = needSession(store, name);
      const { session } = info;
      const waitMs = typeof wait === 'number' ? wait * 1000 : 0;
      const running = runningIn(store, info);
      if (running.length === 0) {
        const { isInterrupted } = await import('@tapedeck/runtime/internal');
        const next = (await isInterrupted(store, info.id))
          ? context.inHome(
              ` (its last run was interrupted: give it up with: ${commandLine('recover', [session], ['--abort'])})`,
            )
          : '';
        const human = `No active run of ${session}: nothing to do${next}`;
        await context.answer({ json: { session, aborted: false }, quiet: session, human });
        return exit.done;
      }
      const requests = running.map((one) => ({
        ...one,
        item: store.inbox.post(one.info.id, { body: { type: 'abort', owner: one.owner.id, reason } }).id,
      }));
      const stops = await Promise.all(
        requests.map(async (one) => await stopOf(store, one, { waitMs, signal: context.io.signal })),
      );
      const children = stops.filter((stop) => stop.session !== session);
      await context.answer({
        json: {
          session,
          aborted: stops.some(({ aborted }) => aborted),
          ...(children.length > 0 && { children: children.map((child) => child.session) }),
        },
        quiet: session,
        human: context.inHome(stops.map(stopText).join('\n')),
      });
      return stops.every(({ over }) => over) ? exit.done : exit.accepted;
    }),
});

/** A session with an active run, and the process that runs it. */
interface Running {
  readonly info: SessionInfo;
  readonly owner: Owner;
}

/** The active run of a session; without one, the active runs of its children, which a delegation started. */
function runningIn(store: HomeStore, info: SessionInfo): readonly Running[] {
  const owner = ownerOf(store, info);
  if (owner !== undefined) return [{ info, owner }];
  return store.leases.list().flatMap(({ id, owner: its }) => {
    const child = store.sessions.find(id);
    return child?.parentId === info.id ? [{ info: child, owner: its }] : [];
  });
}

/** The result of a request to stop a run. */
interface Stop {
  readonly session: string;
  readonly pid: number | undefined;
  readonly over: boolean;
  readonly aborted: boolean;
}

async function stopOf(
  store: HomeStore,
  { info, owner, item }: Running & { readonly item: string },
  { waitMs, signal }: { waitMs: number; signal: AbortSignal },
): Promise<Stop> {
  const over = await isOver(store, info, { owner, item, waitMs, signal });
  return { session: info.session, pid: owner.pid, over, aborted: over && wasAborted(store, info) };
}

function stopText({ session, pid, over, aborted }: Stop): string {
  if (!over) return `Process ${pid} has the request to stop ${session}, and still runs it`;
  return aborted
    ? `Stopped ${session}; continue with: ${commandLine('run', [session])}`
    : `The run of ${session} ended before it was stopped`;
}

function ownerOf(store: HomeStore, { id }: SessionInfo): Owner | undefined {
  return store.leases.list().find((writing) => writing.id === id)?.owner;
}

/**
 * Waits until the owner is gone, or has removed the abort from the inbox, which it does once the run has
 * ended.
 */
async function isOver(
  store: HomeStore,
  info: SessionInfo,
  o: { owner: Owner; item: string; waitMs: number; signal: AbortSignal },
): Promise<boolean> {
  for (const deadline = performance.now() + o.waitMs; ; ) {
    if (ownerOf(store, info)?.id !== o.owner.id) return true;
    if (!store.inbox.list(info.id).some(({ id }) => id === o.item)) return true;
    if (performance.now() >= deadline) return false;
    await sleep(50, undefined, { signal: o.signal });
  }
}

/** Whether an aborted run was recorded after the head in `info`. */
function wasAborted(store: HomeStore, { id, head }: SessionInfo): boolean {
  for (const entry of store.entries.read(id, { from: head + 1, kind: 'event' }))
    if (entry.name === 'run/aborted') return true;
  return false;
}
