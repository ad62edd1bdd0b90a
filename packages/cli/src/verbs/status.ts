import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Status } from '@tapedeck/runtime/status';
import type { SqliteTapeStore } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { exit } from '../exit.ts';
import { printStatuses, statusJson } from '../output/status.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const status: Verb = defineVerb({
  command: 'status [name]',
  group: 'Look',
  summary: 'Show what sessions are at, and what they wait for',
  detail:
    'Whether a session is at work, in which phase and in which process; where it is in its life, and how its task stands; what ' +
    'waits in its inbox, and which tool calls wait for somebody. Without a name: all sessions that are not idle.',
  examples: [
    ['tape status', 'What is going on'],
    ['tape status main --watch', 'A line for every change, until Ctrl-C'],
  ],
  options: (y) =>
    y
      .positional('name', { type: 'string', describe: 'Session' })
      .option('all', { type: 'boolean', describe: 'Idle ones, too' })
      .option('watch', { type: 'boolean', describe: 'Print a line for every change, until Ctrl-C' }),
  run: async ({ name, all, watch }, context) => {
    if (watch === true && context.options.json === true)
      throw new UsageError('cannot watch with --json: it has no end', {
        hint: 'use --jsonl: a line for every change',
      });
    if (name === undefined && watch !== true && !existsSync(context.home.db)) {
      await printStatuses([], context);
      context.status('No sessions');
      return exit.done;
    }
    return await context.reading(async (store) => {
      const everything = name !== undefined || all === true;
      const look = await lookAt(store, name, context);
      if (watch === true) return await printChanges(store, { look, all: everything }, context);
      const found = (await look()).filter((one) => everything || !isIdle(one));
      await printStatuses(found, context);
      if (found.length === 0) context.status('Nothing is going on');
      return exit.done;
    });
  },
});

type Look = () => Promise<readonly Status[]>;

async function lookAt(store: SqliteTapeStore, name: string | undefined, { home }: Context): Promise<Look> {
  const { statusesOf } = await import('@tapedeck/runtime/status');
  const one = name === undefined ? undefined : needSession(store, name).id;
  return async () =>
    await statusesOf(
      { store, home: home.dir },
      one === undefined ? store.sessions({ all: true }) : [needSession(store, one)],
    );
}

function isIdle({ state, queued }: Status): boolean {
  return state === 'idle' && queued === 0;
}

/**
 * Prints a session's status when it is another one than before; of all sessions, those that are idle to begin with when they
 * change. What is not written anywhere, that a process died, is looked for every second.
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
        const text = JSON.stringify(statusJson(one));
        const isNews = before.get(one.session) !== text;
        before.set(one.session, text);
        if (isNews && (turn > 0 || all || !isIdle(one))) await printStatuses([one], context);
      }
    seen = stamp;
    await sleep(pollMs, undefined, { signal }).catch(() => {});
  }
  return exit.interrupted;
}

/** When processes last showed what they run. */
function shownAt({ home }: Context): number {
  return statSync(join(home.dir, 'run', 'sessions.json'), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

const pollMs = 100;
const pollsPerLook = 10;
