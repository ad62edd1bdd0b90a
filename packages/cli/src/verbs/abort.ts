import { setTimeout as sleep } from 'node:timers/promises';
import type { Owner, SessionInfo, SqliteTapeStore } from '@tapedeck/tape';
import { exit } from '../errors.ts';
import { needSession } from '../place.ts';
import { defineVerb, type Verb } from '../verb.ts';

export const abort: Verb = defineVerb({
  command: 'abort <name>',
  group: 'Change direction',
  summary: 'Stop the run of a session, in whatever process it is',
  detail:
    'The model and the tools are told; what was said so far stays on the tape. It waits until the run has ended. Messages that ' +
    'wait in the inbox stay there.',
  examples: [
    ['tape abort main', 'Stop what main is doing'],
    ['tape abort main --reason "wrong branch"', 'Say why: it is kept with the run'],
  ],
  options: (y) =>
    y
      .positional('name', { type: 'string', demandOption: true, describe: 'Session' })
      .option('reason', { type: 'string', requiresArg: true, default: 'aborted', describe: 'Why' })
      .option('wait', {
        type: 'number',
        default: 10,
        describe: 'Seconds to wait for the end of the run; --no-wait for none',
      }),
  run: async ({ name, reason, wait }, context) =>
    await context.changing(async (store) => {
      const info = needSession(store, name);
      const { name: session } = info;
      const owner = ownerOf(store, info);
      if (owner === undefined) {
        const human = `Nobody is running ${session}: nothing to do`;
        await context.answer({ json: { session, aborted: false }, quiet: session, human });
        return exit.done;
      }
      const { id: item } = store.post(info.id, { body: { type: 'abort', owner: owner.id, reason } });
      const waitMs = typeof wait === 'number' ? wait * 1000 : 0;
      const over = await isOver(store, info, { owner, item, waitMs, signal: context.io.signal });
      const aborted = over && wasAborted(store, info);
      const human = !over
        ? `Asked process ${owner.pid} to stop its run of ${session}`
        : aborted
          ? `Stopped ${session}; go on with: tape run ${session}`
          : `The run of ${session} had ended by itself`;
      await context.answer({ json: { session, aborted }, quiet: session, human });
      return over ? exit.done : exit.accepted;
    }),
});

function ownerOf(store: SqliteTapeStore, { id }: SessionInfo): Owner | undefined {
  return store.owners().find((writing) => writing.id === id)?.owner;
}

/** Waits until the owner has taken the abort away, which it does when the run has ended, or has gone itself. */
async function isOver(
  store: SqliteTapeStore,
  info: SessionInfo,
  o: { owner: Owner; item: string; waitMs: number; signal: AbortSignal },
): Promise<boolean> {
  for (const deadline = performance.now() + o.waitMs; ; ) {
    if (ownerOf(store, info)?.id !== o.owner.id) return true;
    if (!store.inbox(info.id).some(({ id }) => id === o.item)) return true;
    if (performance.now() >= deadline) return false;
    await sleep(50, undefined, { signal: o.signal });
  }
}

/** Whether a run that was under way when the session stood at its head has been recorded as aborted. */
function wasAborted(store: SqliteTapeStore, { id, head }: SessionInfo): boolean {
  for (const entry of store.read(id, { from: head + 1, kind: 'event' }))
    if (entry.name === 'run/aborted') return true;
  return false;
}
