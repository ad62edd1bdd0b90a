import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Status } from '@tapedeck/runtime';
import { statusesOf } from '@tapedeck/runtime';
import type { SqliteTapeStore } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { jsonText } from '../escape.ts';
import { exit } from '../exit.ts';
import { doesExist } from '../home.ts';
import { otherRealms } from '../output/other-realms.ts';
import { printStatuses, statusJson } from '../output/status.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const status: Verb = defineVerb({
  command: 'status [name]',
  group: 'Look',
  summary: 'Show active runs, inboxes and pending tool calls',
  detail:
    'Shows the state of each session: whether it runs, its phase and process, its lifecycle and task, the number of inbox items, and ' +
    'the pending tool calls. Without a name: all sessions of the realm (--base) that are not idle; says on stderr how many sessions others have.',
  examples: [
    ['tape status', 'Show all sessions that are not idle'],
    ['tape status main --watch', 'Print a line for each change, until Ctrl-C'],
  ],
  arguments: { name: 'Session' },
  options: {
    all: { type: 'boolean', describe: 'Include idle sessions' },
    watch: { type: 'boolean', describe: 'Print a line for each change, until Ctrl-C' },
  },
  run: async ({ name, all, watch }, context) => {
    if (watch === true && context.options.json === true)
      throw new UsageError('cannot use --watch with --json: the output has no end', {
        hint: 'use --jsonl, which prints a line for each change',
      });
    if (name === undefined && watch !== true && !doesExist(context.home.db)) {
      await printStatuses([], context);
      context.status('No sessions');
      return exit.done;
    }
    return await context.reading(async (store) => {
      const everything = name !== undefined || all === true;
      const look = await lookAt(store, name, context);
      if (name === undefined) for (const line of otherRealms(store)) context.status(line);
      if (watch === true) return await printChanges(store, { look, all: everything }, context);
      const found = (await look()).filter((one) => everything || !isIdle(one));
      await printStatuses(found, context);
      if (found.length === 0) context.status('No active runs');
      return found.some(({ damage }) => damage !== undefined) ? exit.damaged : exit.done;
    });
  },
});

type Look = () => Promise<readonly Status[]>;

async function lookAt(store: SqliteTapeStore, name: string | undefined, { home }: Context): Promise<Look> {
  const one = name === undefined ? undefined : needSession(store, name).id;
  return async () =>
    await statusesOf(
      { store, home: home.dir },
      one === undefined ? store.sessions.list({ all: true }) : [needSession(store, one)],
    );
}

function isIdle({ state, queued, damage }: Status): boolean {
  return state === 'idle' && queued === 0 && damage === undefined;
}

/**
 * Prints the status of a session each time it changes. Without a name, skips sessions that are idle at first
 * until they change. Looks once a second even without a write, as the death of a process writes nothing.
 */
async function printChanges(
  store: SqliteTapeStore,
  { look, all }: { readonly look: Look; readonly all: boolean },
  context: Context,
): Promise<number> {
  const { signal } = context.io;
  const before = new Map<string, string>();
  let seen = '';
  for (let turn = 0; !signal.aborted; turn += 1) {
    const stamp = `${store.changes()} ${shownAt(context)}`;
    if (stamp !== seen || turn % pollsPerLook === 0)
      for (const one of await look()) {
        const text = jsonText(statusJson(one));
        const isNews = before.get(one.session) !== text;
        before.set(one.session, text);
        if (isNews && (turn > 0 || all || !isIdle(one))) await printStatuses([one], context);
      }
    seen = stamp;
    await sleep(pollMs, undefined, { signal }).catch(() => {});
  }
  return exit.interrupted;
}

/** Time of the last change to the list of active runs. */
function shownAt({ home }: Context): number {
  return statSync(join(home.dir, 'run', 'sessions.json'), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

const pollMs = 100;
const pollsPerLook = 10;
