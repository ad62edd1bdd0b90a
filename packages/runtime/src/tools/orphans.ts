import {
  assistant,
  type Draft,
  type Json,
  type JsonObject,
  note,
  type TapeStore,
  toolResult,
} from '@tapedeck/tape';
import { isUnstorable } from '../errors.ts';
import type { Hold } from '../lease/hold.ts';
import type { OpenCall } from '../stream/call.ts';
import { type Chunk, headOf } from '../stream/chunks.ts';
import { partialContent } from '../stream/partial.ts';
import { openBatch, openCallsOf } from './open-batch.ts';
import { type DeckTools, toolOf } from './traits.ts';

/**
 * Writes what live answers came to whose process died: the text and the calls that had arrived, as far as they were saved
 * (G4, G87, K38).
 */
export async function settleLeftovers(store: TapeStore, session: string, { lease }: Hold): Promise<void> {
  for (const run of await store.liveRuns(session)) {
    const chunks = (await store.chunks(session, run)).map(({ chunk }) => chunk as unknown as Chunk);
    const head = chunks.map(headOf).findLast((found) => found !== undefined);
    // An attempt that was made again left a head of its own: what came before the last one was no answer.
    const content = partialContent(
      chunks.slice(chunks.findLastIndex((chunk) => headOf(chunk) !== undefined) + 1),
    );
    const partial =
      content.length === 0
        ? []
        : [assistant(content, { run, ...(head as JsonObject | undefined), partial: true })];
    const end = note('run/interrupted', { run });
    try {
      await store.settle(run, [...partial, end], { lease });
    } catch (error) {
      if (!isUnstorable(error)) throw error;
      // More had arrived than an entry can hold: kept as it is, it would stop every run to come.
      await store.settle(run, [end], { lease });
    }
  }
}

/**
 * Gives the calls that a crash or an abort left open a recorded result: what they did is not known, and they are not run
 * again (G70, K23). Calls that wait for a person or a client are left alone, and so are those of `tools` that are safe to repeat: they
 * are returned, to be run. So are the calls left alone that `keep` names: what they wait for is still to come.
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
  const repeatable = open.filter(
    (call) => call.state === 'begun' && toolOf(tools, call.toolName)?.safeToRepeat === true,
  );
  const orphans = open.filter(
    (call) =>
      (call.state === 'begun' || call.state === 'unbegun') &&
      !repeatable.includes(call) &&
      !keep.includes(call.toolCallId),
  );
  if (orphans.length > 0)
    await store.append(
      session,
      orphans.map((call) => closed(call, why)),
      { lease: hold.lease },
    );
  return repeatable;
}

function closed(call: OpenCall, asked?: string): Draft {
  if (call.state === 'unbegun') {
    const why = call.aborted ? 'the run was aborted' : 'the answer that asked for it was broken off';
    const value = `Not run: ${why}.`;
    return toolResult(
      call,
      { type: 'error-text', value },
      { source: 'repair', paths: { read: [], write: [] } },
    );
  }
  const why = asked ?? (call.aborted ? 'the run was aborted' : 'aborted by host restart');
  return toolResult(call, { type: 'error-text', value: `Outcome unknown: ${why}.` }, { source: 'repair' });
}

/** The results of the calls of an answer that was broken off. */
export function unbegunResults(partial: readonly Draft[], run: string): readonly Draft[] {
  const calls = partial.flatMap(({ kind, payload, meta }) =>
    openCallsOf([{ kind, payload: payload as Json, meta: meta ?? {} }]),
  );
  return calls.map((call) => closed(call)).map((draft) => ({ ...draft, meta: { run, ...draft.meta } }));
}

/** What other input does to calls that wait for an answer: nobody is going to give it. */
export function superseded(calls: readonly OpenCall[]): readonly Draft[] {
  return calls.map((call) =>
    toolResult(
      call,
      { type: 'execution-denied', reason: 'superseded' },
      { source: 'repair', paths: { read: [], write: [] } },
    ),
  );
}
