import { isObject, select } from '@tapedeck/tape';
import { compact, compactionTerms } from '../compaction/compact.ts';
import { NoSummary } from '../compaction/no-summary.ts';
import { isTooFull } from '../compaction/policy.ts';
import type { DeckConfig } from '../config/config.ts';
import { SessionError } from '../errors.ts';
import { type LanguageModel, modelMeta } from '../model/model.ts';
import { overheadOf, usedBy, viewFor } from '../turn/asked.ts';
import type { LoopContext } from '../turn/context.ts';
import type { RunRequest } from './request.ts';

/**
 * Before a session goes on with another model than its last step had: what is too much for that model is summarised first, by the
 * deck's summarizer, or the model that could take it all (G57). Nothing is done where it fits, or nobody tells the model's window.
 * @param before the model that the session had
 * @throws SESSION_MODEL_TOO_SMALL when it does not fit then either: the session stays with the model that it had
 */
export async function fitModel(
  context: LoopContext,
  { config, before }: { readonly config: DeckConfig; readonly before: () => Promise<LanguageModel> },
): Promise<void> {
  const { store, session, model, compaction } = context;
  const { policy, window } = compaction;
  if (window === undefined) return;
  const entries = await Array.fromAsync(store.viewEntries(session));
  const last = select(entries, 'last-boundary').entries.findLast(
    ({ kind, payload, meta }) =>
      kind === 'message' &&
      isObject(payload) &&
      payload.role === 'assistant' &&
      typeof meta.model === 'string',
  );
  const next = modelMeta(model);
  if (last === undefined || last.meta.model === next.model) return;
  const asking = { ...context, instructions: await context.instruct(entries) };
  const used = usedBy(asking, viewFor(context, entries));
  if (!isTooFull(policy, window, used)) return;
  const room = window.window - Math.min(window.maxOutput ?? 0, window.window / 2);
  const summarizer = context.summarizer ?? (await before().catch(() => model));
  const writing = { ...context, summarizer, compaction: compactionTerms(config, model, summarizer) };
  try {
    // A summary that is of no use to the next model would only take something from the one that there was.
    const fit = room - overheadOf(asking);
    if ((await compact(writing, entries, { trigger: 'model-switch', fit })) !== undefined) return;
  } catch (error) {
    // The run tells that it was aborted, with its message on the tape.
    if (context.signal.aborted) return;
    if (!(error instanceof NoSummary)) throw error;
    context.tell({
      type: 'warning',
      message: `'${session}' is not summarised for ${next.model}: ${error.message}`,
    });
  }
  if (used <= room) return;
  throw new SessionError(
    'SESSION_MODEL_TOO_SMALL',
    `cannot go on with '${session}' on ${next.model}: it takes about ${used} tokens, and the model has room for ${Math.floor(room)}`,
    { data: { session, model: next.model, before: last.meta.model, used, room } },
  );
}

/** A request whose messages name no model: those of one that cannot be used are not what the session goes on with. */
export function withoutModel(request: RunRequest): RunRequest {
  const { model: _, ...options } = request.options;
  const items = request.items?.map((item) => {
    if (item.body.type !== 'input') return item;
    const drafts = item.body.drafts.map(({ meta: { model: __, ...meta } = {}, ...draft }) => ({
      ...draft,
      meta,
    }));
    return { ...item, body: { ...item.body, drafts } };
  });
  return { ...request, options, ...(items !== undefined && { items }) };
}
