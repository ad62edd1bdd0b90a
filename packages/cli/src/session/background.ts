import type { Deck, Run, RunResult, Session } from '@tapedeck/runtime';
import type { Context } from '../context.ts';
import { commandLine } from '../escape.ts';
import {
  type Face,
  type PrintedRun,
  printRuns,
  statusFace,
  statusLines,
  waitingHint,
  waitingLine,
} from '../output/run.ts';

/**
 * Prints a run and the runs that follow it, waits for its background children, which would end with this
 * process, and prints the runs that their results start. Ctrl-C aborts them.
 */
export async function printAll(
  first: Run,
  {
    deck,
    session,
    face,
  }: { readonly deck: Deck; readonly session: Session; readonly face?: Face | undefined },
  context: Context,
): Promise<readonly PrintedRun[]> {
  const { io, status } = context;
  const shown = oncePerEnd(face ?? statusFace(context));
  const ended = [...(await printRuns(first, context, shown))];
  const over = new AbortController();
  const events = session.subscribe({ signal: AbortSignal.any([over.signal, io.signal]) });
  const turns = reportTurns(deck, session, { status, signal: AbortSignal.any([over.signal, io.signal]) });
  const idle = deck.idle().finally(() => over.abort());
  const patience = setTimeout(() => void reportChildren(deck, session, context), patienceMs);
  for await (const event of events) {
    // A child can end between two runs.
    if (event.type === 'child-progress' && event.state === 'ended') await shown.event(event);
    const run = event.type === 'run-started' ? session.attach() : undefined;
    if (run === undefined || ended.some((one) => one.run.id === run.id)) continue;
    ended.push(...(await printRuns(run, context, shown)));
  }
  clearTimeout(patience);
  if (io.signal.aborted) return ended;
  await idle;
  await turns;
  await reportDelivery(deck, { session, ended }, context);
  return ended;
}

/** Reports that children still run: the sessions above can run, too. */
async function reportChildren({ store }: Deck, { id, name }: Session, { status }: Context): Promise<void> {
  const { runningChildren } = await import('@tapedeck/runtime/internal');
  // A store that was closed meanwhile has nothing to wait for.
  const children = await runningChildren(store, id).catch(() => []);
  if (children.length > 0) status(`Waiting for the background children of ${name}`);
}

/** A face that shows each end of a child once: both a run and its session have those that come during the run. */
function oncePerEnd(face: Face): Face {
  const ends = new Set<string>();
  return {
    ...face,
    event: async (event) => {
      if (event.type === 'child-progress' && event.state === 'ended') {
        const end = JSON.stringify(event);
        if (ends.has(end)) return;
        ends.add(end);
      }
      await face.event(event);
    },
  };
}

/**
 * A face for a session whose call goes on after its children have ended: they had started before, and the ends of those
 * that are `known` have lines already.
 */
function withoutKnown(face: Face, known: ReadonlySet<string>): Face {
  return oncePerEnd({
    ...face,
    event: async (event) => {
      const isKnown =
        event.type === 'child-progress' &&
        (event.state === 'started' || (event.state === 'ended' && known.has(event.session)));
      if (!isKnown) await face.event(event);
    },
  });
}

/**
 * Follows the runs of sessions below, with the lines of their status, and prints the runs of the session above with which
 * it goes on then.
 */
export async function printAbove(
  below: readonly Following[],
  { deck, above, face }: { readonly deck: Deck; readonly above: Session; readonly face?: Face | undefined },
  context: Context,
): Promise<readonly PrintedRun[]> {
  const { io } = context;
  const shown = withoutKnown(face ?? statusFace(context), new Set(below.map(({ name }) => name)));
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, io.signal]);
  const events = above.subscribe({ signal });
  const ended: PrintedRun[] = [];
  for (const { run: first, name } of below)
    for (let run: Run | undefined = first; run !== undefined; run = run.following)
      ended.push({ run, result: await followRun(run, name, context) });
  const idle = deck.idle().finally(() => over.abort());
  for await (const event of events) {
    const run = event.type === 'run-started' ? above.attach() : undefined;
    if (run === undefined || ended.some((one) => one.run.id === run.id)) continue;
    ended.push(...(await printRuns(run, context, shown)));
  }
  if (!io.signal.aborted) await idle;
  return ended;
}

/** A run of a session below, by its name. */
export interface Following {
  readonly run: Run;
  readonly name: string;
}

/** Follows a run with the lines of its status. */
async function followRun(run: Run, name: string, { io, status }: Context): Promise<RunResult> {
  const stop = () => run.abort('interrupted');
  io.signal.addEventListener('abort', stop);
  if (io.signal.aborted) stop();
  try {
    for await (const event of run) statusLines(event).forEach(status);
    const result = await run;
    status(`${name}@${result.to} ${result.finish}`);
    return result;
  } finally {
    io.signal.removeEventListener('abort', stop);
  }
}

/** What a session still waits for, with a hint; empty when it waits for nothing. */
export async function stillWaiting(
  { store }: Deck,
  { id, name }: Pick<Session, 'id' | 'name'>,
): Promise<readonly string[]> {
  const { waitsOf } = await import('@tapedeck/runtime/internal');
  const waiting = await waitsOf(store, id);
  if (waiting.length === 0) return [];
  const answerable = waiting.filter(({ for: what }) => what !== 'children');
  const hint =
    answerable.length > 0 ? waitingHint(name, waiting) : `go on with: ${commandLine('recover', [name])}`;
  return [...answerable.map(waitingLine), `${name} waits`, `Hint: ${hint}`];
}

/** Reports the runs of the sessions above that the result of a child starts in this process. */
async function reportTurns(
  deck: Deck,
  child: Session,
  given: Pick<Context, 'status'> & { readonly signal: AbortSignal },
): Promise<void> {
  const { deliver, parent = '', parentId } = await child.info();
  if ((deliver !== 'merge+turn' && deliver !== 'tool-result') || parentId === undefined) return;
  const { status, signal } = given;
  const session = await deck.session(parentId);
  const above = reportTurns(deck, session, given);
  for await (const event of session.subscribe({ signal })) {
    const run = event.type === 'run-started' ? session.attach() : undefined;
    if (run === undefined) continue;
    status(`Running ${parent} for the result of ${child.name}`);
    const { finish, error, to } = await run;
    status(`${parent}@${to} ${finish}${error === undefined ? '' : `: ${error.message}`}`);
  }
  await above;
}

/** Milliseconds before the status of the wait is printed. */
const patienceMs = 300;

/** Reports how the result of a child was delivered to its parent: the user did not request it in this command. */
export async function reportDelivery(
  deck: Deck,
  { session, ended }: { readonly session: Session; readonly ended: readonly PrintedRun[] },
  { status }: Context,
): Promise<void> {
  const { store } = deck;
  const { deliver, task, parent = '', parentId = '' } = await session.info();
  if (deliver === undefined) return;
  if (deliver === 'notify') {
    if (task !== undefined && task !== 'running')
      status(`Notified ${parent} of the end of ${session.name} (${task})`);
    return;
  }
  const merged = await store.lineage.previewMerge(session.id);
  if (
    merged.repeated &&
    merged.state === 'merged' &&
    ended.some(({ result }) => merged.range[1] >= result.to)
  ) {
    status(`Merged ${session.name} into ${merged.parent}@${merged.seq}`);
    return;
  }
  const isPosted = (await store.inbox.list(parentId)).some(
    ({ body }) => body.type === 'merge' && body.draft.child === session.id,
  );
  if (!isPosted) {
    if (ended.length === 0 || task === undefined || task === 'running' || merged.repeated) return;
    // The call of the parent that waits for this child and others takes its result.
    const left = await stillWaiting(deck, { id: parentId, name: parent });
    if (left.length > 0) left.forEach(status);
    else
      status(
        `Hint: the result of ${session.name} is not in ${parent}; merge it with: ${commandLine('merge', [session.name])}`,
      );
    return;
  }
  const owner = (await store.leases.list()).find(({ id }) => id === parentId)?.owner;
  const runner = owner?.pid === undefined ? 'another process' : `process ${owner.pid}`;
  status(
    `Posted the result of ${session.name} to the inbox of ${parent}: ${
      owner === undefined
        ? 'it is merged once the open calls have results'
        : `${runner} is running it, and merges it`
    }`,
  );
}
