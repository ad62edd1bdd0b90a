import type { Entry, HomeStore } from '@tapedeck/tape';
import { clientCalls, isObject } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { NotFoundError } from '../errors/kinds.ts';
import { jsonText, SafePieces, safe } from '../escape.ts';
import { exit } from '../exit.ts';
import { failureLine, waitingHint } from '../output/run.ts';

/**
 * Follows the active run of a session from its start to its end, in any process; without an active run, shows
 * the last one. Only reads, so Ctrl-C does not stop the run.
 * @throws NotFoundError when the session has had no run
 */
export async function attach(store: HomeStore, name: string, context: Context): Promise<number> {
  const { io, options, status } = context;
  const { eventsOf, tail, watchChunks } = await import('@tapedeck/runtime');
  const { lastRunStart, waitsOf } = await import('@tapedeck/runtime/internal');
  const from = await lastRunStart(store, name);
  if (from === undefined)
    throw new NotFoundError(`cannot attach to '${name}': it has had no run`, { session: name });
  const { signal } = io;
  const events = eventsOf(watchChunks(tail(store, name, { from, untilIdle: true, signal })));
  const answer = new SafePieces();
  let text = '';
  let isNew = true;
  for await (const event of events) {
    if (options.jsonl === true) await io.out(`${jsonText(event)}\n`);
    else if (event.type === 'content-chunk') {
      text = isNew ? event.text : text + event.text;
      isNew = false;
      if (options.json !== true) await io.out(answer.take(event.text));
    } else if (event.type === 'iteration-completed') {
      if (options.json !== true && !isNew && !text.endsWith('\n')) await io.out(`${answer.rest()}\n`);
      isNew = true;
    } else if (event.type === 'tool-detected') status(`→ ${event.name}`);
    else if (event.type === 'tool-completed' && !event.success) status(failureLine(event));
  }
  if (signal.aborted) return exit.interrupted;
  const { finish, message } = outcome(store, name, from);
  if (options.json === true) {
    const error = message === undefined ? {} : { error: { message } };
    await io.out(`${jsonText({ session: name, text, finish, ...error })}\n`);
  } else if (options.jsonl !== true && !isNew && !text.endsWith('\n')) await io.out(`${answer.rest()}\n`);
  if (finish !== 'stop')
    status(safe(`The run ended: ${finish}${message === undefined ? '' : `: ${message}`}`));
  if (finish === 'waiting') {
    const waiting = await waitsOf(store, name);
    status(`Hint: ${waitingHint(name, waiting)}`);
  }
  if (finish === 'aborted') return exit.interrupted;
  if (finish === 'waiting') return exit.accepted;
  return finish === 'stop' || finish === 'length' ? exit.done : exit.failed;
}

interface Outcome {
  /** The finish of the run, or `interrupted` when its process died. */
  readonly finish: string;
  readonly message?: string;
}

/** The outcome of the run from a position on, read from its entries; other entries may follow them. */
function outcome(store: HomeStore, name: string, from: number): Outcome {
  let found: Outcome = { finish: 'interrupted' };
  for (const entry of store.entries.read(name, { from })) found = outcomeOf(entry) ?? found;
  return store.live.read(name).length > 0 ? { finish: 'interrupted' } : found;
}

function outcomeOf({ kind, name = '', payload, meta }: Entry): Outcome | undefined {
  if (!isObject(payload)) return undefined;
  if (kind === 'event') {
    const finish = ends[name];
    const message = payload.message ?? payload.reason;
    return finish === undefined ? undefined : { finish, ...(typeof message === 'string' && { message }) };
  }
  if (meta.run === undefined || (kind !== 'message' && kind !== 'tool-result')) return undefined;
  const isAnswer = payload.role === 'assistant' && meta.partial !== true;
  if (!isAnswer || clientCalls(payload).length > 0) return { finish: 'interrupted' };
  const { finish } = meta;
  return { finish: finish === 'content-filter' ? 'filtered' : finish === 'length' ? 'length' : 'stop' };
}

const ends: Readonly<Record<string, string>> = {
  'run/error': 'error',
  'run/aborted': 'aborted',
  'run/halted': 'halted',
  'run/waiting': 'waiting',
  'run/begun': 'interrupted',
  'run/interrupted': 'interrupted',
};
