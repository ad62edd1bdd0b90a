import { isObject, select } from '@tapedeck/tape/internal';
import { compact, compactionTerms } from '../compaction/compact.ts';
import { NoSummary } from '../compaction/no-summary.ts';
import { isTooFull } from '../compaction/policy.ts';
import type { DeckConfig } from '../config/config.ts';
import { SessionError } from '../errors.ts';
import { type LanguageModel, modelMeta } from '../model/model.ts';
import { overheadOf, usedBy, viewFor } from '../turn/call-meta.ts';
import type { LoopContext } from '../turn/context.ts';
import type { RunRequest } from './request.ts';

/**
 * Compacts a session before it switches to a model whose window is too small for it. The deck's summarizer or
 * the previous model writes the summary. Does nothing when the session fits, or the model's window is
 * unknown.
 * @param before returns the previous model
 * @throws SESSION_MODEL_TOO_SMALL when the session still does not fit; it keeps the previous model then
 */
export async function fitModel(
  context: LoopContext,
  { config, before }: { readonly config: DeckConfig; readonly before: () => Promise<LanguageModel> },
): Promise<void> {
  const { store, session, model, compaction } = context;
  const { policy, window } = compaction;
  if (window === undefined) return;
  const entries = await Array.fromAsync(store.views.entries(session));
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
    // Write no summary that is still too large for the new model: it would only cost the previous one its
    // history.
    const fit = room - overheadOf(asking);
    if ((await compact(writing, entries, { trigger: 'model-switch', fit })) !== undefined) return;
  } catch (error) {
    // The run records the abort, after its message.
    if (context.signal.aborted) return;
    if (!(error instanceof NoSummary)) throw error;
    context.emitEvent({
      type: 'warning',
      message: `cannot summarise '${session}' for ${next.model}: ${error.message}`,
    });
  }
  if (used <= room) return;
  throw new SessionError(
    'SESSION_MODEL_TOO_SMALL',
    `cannot continue '${session}' on ${next.model}: it needs about ${used} tokens, and the model has room for ${Math.floor(room)}`,
    { data: { session, model: next.model, before: last.meta.model, used, room } },
  );
}

/** Removes the model from a request and its messages, so that the session does not keep an unusable model. */
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
