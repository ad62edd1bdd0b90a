import type { SessionInfo, TapeStore } from '@tapedeck/tape';
import { modelMeta } from '../model/model.ts';
import { modelAttributes, usageAttributes } from '../telemetry/chat.ts';
import { contextOf, lastRun, openCall, rememberRun, traceparentOf } from '../telemetry/runs.ts';
import { isTraced, traced } from '../telemetry/span.ts';
import type { RunModel } from '../terms/model-for.ts';
import type { RunRequest } from './request.ts';
import type { RunResult } from './run.ts';

interface TracedRun {
  readonly store: TapeStore;
  readonly info: SessionInfo;
  readonly request: RunRequest;
  readonly chosen: RunModel;
}

/**
 * Performs a run within its span: below the call that started the session, else below what called `run`. It is linked to
 * the run that it was forked from, and to one of its own that a process left unfinished.
 * @param act receives the span as a text for the tape, where the program is traced
 */
export async function tracedRun(
  { store, info, request, chosen }: TracedRun,
  act: (traceparent: string | undefined) => Promise<RunResult>,
): Promise<RunResult> {
  if (!isTraced()) return await act(undefined);
  const call = openCall(info.parentId, info.spawnCall);
  const before = await earlier(store, info);
  return await traced(
    () => ({
      name: 'invoke_agent',
      session: info.id,
      parent: call ?? request.caller ?? null,
      links: before === undefined ? [] : [before],
      attributes: {
        'gen_ai.operation.name': 'invoke_agent',
        ...modelAttributes(modelMeta(chosen.model)),
        'tapedeck.session': info.session,
        'tapedeck.run': request.run,
        ...(info.parentId !== undefined && { 'tapedeck.parent': info.parentId }),
      },
    }),
    async (span) => {
      if (span === undefined) return await act(undefined);
      using _ = rememberRun(info.id, span);
      const result = await act(traceparentOf(span.context));
      span.set({
        ...usageAttributes(result.usage),
        'tapedeck.steps': result.steps,
        'tapedeck.finish': result.finish,
      });
      if (result.finish === 'error') span.fail(result.error?.cause ?? result.error);
      return result;
    },
  );
}

/** Entries that are searched for the span of an earlier run. */
const searched = 200;

/** The run that an unfinished session was in, or for the first run of a fork the last of its parent. */
async function earlier(store: TapeStore, info: SessionInfo) {
  if (info.openRun === true) return await recorded(store, info, true);
  if (info.parentId === undefined || info.messageCount > 0) return undefined;
  return lastRun(info.parentId) ?? (await recorded(store, info, false));
}

async function recorded(store: TapeStore, { id }: SessionInfo, own: boolean) {
  const entries = await Array.fromAsync(store.entries.read(id, { own, last: searched }));
  const found = entries.findLast(
    ({ meta, elsewhere }) => elsewhere !== true && contextOf(meta.traceparent) !== undefined,
  );
  return contextOf(found?.meta.traceparent);
}
