import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Status } from '@tapedeck/runtime';
import { statusesOf } from '@tapedeck/runtime';
import type { HomeStore } from '@tapedeck/tape';
import { Patience } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { jsonText } from '../escape.ts';
import { exit } from '../exit.ts';
import { hasTapesToRead } from '../home.ts';
import { otherRealms } from '../output/other-realms.ts';
import { printStatuses, statusJson } from '../output/status.ts';
import { printOtherNames, sayOtherNames } from '../session/other-names.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const status: Verb = defineVerb({
  command: 'status [name]',
  group: 'Look',
  paged: true,
  summary: 'Show active runs, inboxes and pending tool calls',
  detail:
    'Shows the state of each session: whether it runs, its phase and process, its lifecycle and task, the number of inbox items, and ' +
    'the pending tool calls. Without a name: all sessions of the realm (--base) that are not idle; says on stderr how many sessions others have, ' +
    'and what settings of config.yaml under the names of other agents, such as compaction.keep_recent_tokens, are here. --settings prints these alone.',
  examples: [
    ['tape status', 'Show all sessions that are not idle'],
    ['tape status main --watch', 'Print a line for each change, until Ctrl-C'],
    ['tape status --settings', 'Show what settings under the names of other agents are here'],
  ],
  arguments: { name: 'Session' },
  options: {
    all: { type: 'boolean', describe: 'Include idle sessions' },
    watch: { type: 'boolean', describe: 'Print a line for each change, until Ctrl-C' },
    settings: {
      type: 'boolean',
      describe:
        'Show only the settings of config.yaml under the names of other agents, and what they are here',
    },
  },
  run: async ({ name, all, watch, settings }, context) => {
    if (settings === true) {
      const other = [name !== undefined && 'a name', all === true && '--all', watch === true && '--watch'];
      const given = other.find((one) => one !== false);
      if (given !== undefined) throw new UsageError(`cannot use --settings with ${given}`);
      return await printOtherNames(context);
    }
    if (watch === true && context.options.json === true)
      throw new UsageError('cannot use --watch with --json: the output has no end', {
        hint: 'use --jsonl, which prints a line for each change',
      });
    if (name === undefined && watch !== true && !hasTapesToRead(context.home)) {
      await printStatuses([], context);
      context.status('No sessions');
      await sayOtherNames(context);
      return exit.done;
    }
    return await context.reading(async (store) => {
      const everything = name !== undefined || all === true;
      const look = await lookAt(store, { name, all: all === true }, context);
      if (name === undefined) {
        for (const line of otherRealms(store)) context.status(line);
        await sayOtherNames(context);
      }
      if (watch === true) return await printChanges(store, { look, all: everything }, context);
      const found = (await look()).filter((one) => everything || !isIdle(one));
      await printStatuses(found, context);
      if (found.length === 0) context.status('No active runs');
      return found.some(({ damage }) => damage !== undefined) ? exit.damaged : exit.done;
    });
  },
});

/** Reads the statuses of one session; or of those with something pending, of `also`, and with `all` of the others. */
type Look = (also?: ReadonlySet<string>) => Promise<readonly Status[]>;

/** The names of the sessions that lines of the lineage are about, from a line on. */
function namesIn(store: HomeStore, from: number): readonly string[] {
  return Array.from(store.lineage.read({ from }), ({ session_id }) => session_id);
}

async function lookAt(
  store: HomeStore,
  { name, all }: { readonly name: string | undefined; readonly all: boolean },
  { home }: Context,
): Promise<Look> {
  const one = name === undefined ? undefined : needSession(store, name).id;
  const listed = (also: ReadonlySet<string>) => {
    if (one !== undefined) return [needSession(store, one)];
    const found = store.sessions.list({ all: true, deleted: false, pending: !all });
    const known = new Set(found.map(({ session }) => session));
    const rest = all ? [] : [...also].filter((session) => !known.has(session));
    return [...found, ...rest.flatMap((session) => store.sessions.find(session) ?? [])];
  };
  return async (also = new Set()) => await statusesOf({ store, home: home.dir }, listed(also));
}

function isIdle({ state, queued, damage }: Status): boolean {
  return state === 'idle' && queued === 0 && damage === undefined;
}

/**
 * Prints the status of a session each time it changes. Without a name, skips sessions that are idle at first
 * until they change. Looks once a second even without a write, as the death of a process writes nothing.
 */
async function printChanges(
  store: HomeStore,
  { look, all }: { readonly look: Look; readonly all: boolean },
  context: Context,
): Promise<number> {
  const { signal } = context.io;
  const before = new Map<string, string>();
  // What is not idle is shown once more when it is, and so is what the lineage has a new line about.
  const busy = new Set<string>();
  let line = store.lineageHash()?.g ?? 0;
  let seen = '';
  const patience = new Patience();
  for (let turn = 0; !signal.aborted; turn += 1) {
    try {
      const stamp = `${store.changes()} ${shownAt(context)}`;
      const newest = store.lineageHash()?.g ?? 0;
      if (stamp !== seen || turn % pollsPerLook === 0)
        for (const one of await look(new Set([...busy, ...namesIn(store, line + 1)]))) {
          const text = jsonText(statusJson(one));
          const isNews = before.get(one.session) !== text;
          before.set(one.session, text);
          if (isIdle(one)) busy.delete(one.session);
          else busy.add(one.session);
          if (isNews && (turn > 0 || all || !isIdle(one))) await printStatuses([one], context);
        }
      seen = stamp;
      line = newest;
      patience.renew();
    } catch (error) {
      await patience.wait(error);
    }
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
