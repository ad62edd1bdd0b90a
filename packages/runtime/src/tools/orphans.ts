import { type Draft, type Json, type TapeStore, toolResult } from '@tapedeck/tape';
import { abortedWhy } from '@tapedeck/tape/internal';
import type { Hold } from '../lease/hold.ts';
import type { OpenCall } from '../stream/call.ts';
import { openBatch, openCallsOf } from './open-batch.ts';
import { type DeckTools, isRepeatable } from './traits.ts';

/**
 * Closes calls that a crash or an abort left open with the result "outcome unknown"; they do not run again.
 * Skips calls that wait for a user or client, calls in `keep`, and calls whose tool in `tools` is safe to
 * repeat. Returns the latter, to run again.
 */
export async function closeOrphans(
  store: TapeStore,
  session: string,
  {
    hold,
    tools = {},
    why,
    keep = [],
  }: { hold: Hold; tools?: DeckTools; why?: string; keep?: readonly string[] },
): Promise<readonly OpenCall[]> {
  const open = await openBatch(store, session);
  const repeatable = open.filter((call) => call.state === 'begun' && isRepeatable(tools, call));
  const orphans = open.filter(
    (call) =>
      (call.state === 'begun' || call.state === 'unbegun') &&
      !repeatable.includes(call) &&
      !keep.includes(call.toolCallId),
  );
  if (orphans.length > 0)
    await store.entries.append(
      session,
      orphans.map((call) => closed(call, why)),
      { lease: hold.lease },
    );
  return repeatable;
}

function closed(call: OpenCall, given?: string): Draft {
  if (call.state === 'unbegun') {
    const why = call.aborted ? abortedWhy : 'the answer with this call was cut off';
    const value = `Not run: ${why}.`;
    return toolResult(
      call,
      { type: 'error-text', value },
      { source: 'repair', paths: { read: [], write: [] } },
    );
  }
  const why = given ?? (call.aborted ? abortedWhy : 'aborted by host restart');
  return toolResult(call, { type: 'error-text', value: `Outcome unknown: ${why}.` }, { source: 'repair' });
}

/** Results for the calls of a partial answer. */
export function unbegunResults(partial: readonly Draft[], run: string): readonly Draft[] {
  const calls = partial.flatMap(({ kind, payload, meta }) =>
    openCallsOf([{ kind, payload: payload as Json, meta: meta ?? {} }]),
  );
  return calls.map((call) => closed(call)).map((draft) => ({ ...draft, meta: { run, ...draft.meta } }));
}

/** Results for waiting calls that new input supersedes: they will get no answer. */
export function superseded(calls: readonly OpenCall[]): readonly Draft[] {
  return calls.map((call) =>
    toolResult(
      call,
      { type: 'execution-denied', reason: 'superseded' },
      { source: 'repair', paths: { read: [], write: [] } },
    ),
  );
}
