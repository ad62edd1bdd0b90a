import type { SessionEvent } from '@tapedeck/runtime/watch';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { exit, NotFoundError } from './errors.ts';
import { failureLine } from './output/run.ts';
import { safe } from './output/safe.ts';
import type { Context } from './verb.ts';

/**
 * Follows the run that any process has under way, from its beginning, to its end; of a session that nobody runs, its last
 * run. It only reads: leaving it stops nothing (G66, G76).
 */
export async function attach(store: SqliteTapeStore, name: string, context: Context): Promise<number> {
  const { io, options, status } = context;
  const { eventsOf, lastRunStart, tail, watchChunks } = await import('@tapedeck/runtime/watch');
  const from = await lastRunStart(store, name);
  if (from === undefined)
    throw new NotFoundError(`cannot attach to '${name}': it has had no run`, { session: name });
  const { signal } = io;
  const events = eventsOf(watchChunks(tail(store, name, { from, untilIdle: true, signal })));
  const text: string[] = [];
  let last: SessionEvent | undefined;
  for await (const event of events) {
    if (options.jsonl === true) await io.out(`${JSON.stringify(event)}\n`);
    else if (event.type === 'content-chunk') {
      text.push(event.text);
      if (options.json !== true) await io.out(safe(event.text));
    } else if (event.type === 'iteration-completed' && options.json !== true && text.length > 0)
      await io.out(text.at(-1)?.endsWith('\n') === true ? '' : '\n');
    else if (event.type === 'tool-detected') status(`→ ${event.name}`);
    else if (event.type === 'tool-completed' && !event.success) status(failureLine(event));
    last = event;
  }
  if (signal.aborted) return exit.interrupted;
  const run = await outcome(store, name);
  if (options.json === true)
    await io.out(`${JSON.stringify({ session: name, text: text.join(''), finish: run })}\n`);
  if (run !== 'stop') status(`The run ended: ${run}`);
  return last?.type === 'session-cancelled' ? exit.interrupted : run === 'stop' ? exit.done : exit.failed;
}

/** How the last run of a session that nobody runs ended, as its tape tells. */
async function outcome(store: SqliteTapeStore, name: string): Promise<string> {
  const info = store.find(name);
  if (info !== undefined && info.settled !== info.head) {
    for (const entry of store.read(name, { from: info.settled + 1 }))
      if (entry.name === 'run/waiting') return 'waiting';
    return 'interrupted';
  }
  const [entry] = store.read(name, { last: 1 });
  return ends[entry?.name ?? ''] ?? 'stop';
}

const ends: Readonly<Record<string, string>> = {
  'run/error': 'error',
  'run/aborted': 'aborted',
  'run/halted': 'halted',
  'run/interrupted': 'interrupted',
};
