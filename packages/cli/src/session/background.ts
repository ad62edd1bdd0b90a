import type { Deck, Run, Session } from '@tapedeck/runtime';
import type { Context } from '../context.ts';
import { type Ended, printRuns } from '../output/run.ts';

/**
 * Prints a run and those that follow, waits for the children that they have left at work in the background, which the end of
 * this process would stop, and prints the runs that their results start. Ctrl-C stops them.
 */
export async function printAll(
  first: Run,
  { deck, session }: { readonly deck: Deck; readonly session: Session },
  context: Context,
): Promise<readonly Ended[]> {
  const { io, status } = context;
  const ended = [...(await printRuns(first, context))];
  const over = new AbortController();
  const events = session.subscribe({ signal: AbortSignal.any([over.signal, io.signal]) });
  const idle = deck.idle().finally(() => over.abort());
  const patience = setTimeout(
    () => status(`Waiting for what ${session.name} has started in the background`),
    patienceMs,
  );
  for await (const event of events) {
    const run = event.type === 'run-started' ? session.attach() : undefined;
    if (run === undefined || ended.some((one) => one.run.id === run.id)) continue;
    ended.push(...(await printRuns(run, context)));
  }
  clearTimeout(patience);
  if (io.signal.aborted) return ended;
  await idle;
  await tellMerge(deck, { session, ended }, context);
  return ended;
}

/** How long nothing is said of the waiting, in milliseconds. */
const patienceMs = 300;

/** Says where what a child came to was merged: whoever answers its call did not ask for that. */
async function tellMerge(
  { store }: Deck,
  { session, ended }: { readonly session: Session; readonly ended: readonly Ended[] },
  { status }: Context,
): Promise<void> {
  const { deliver } = await session.info();
  const merged = deliver === undefined ? undefined : await store.merged(session.id);
  if (merged?.state === 'merged' && ended.some(({ result }) => merged.range[1] >= result.to))
    status(`Merged ${session.name} into ${merged.parent}@${merged.seq}`);
}
