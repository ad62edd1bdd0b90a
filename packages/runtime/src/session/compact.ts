import { type Draft, type ForkRequest, processOwner, prune, view } from '@tapedeck/tape';
import { estimateTokens, select } from '@tapedeck/tape/internal';
import { type Compacted, compact, compactionTerms, notCompacted } from '../compaction/compact.ts';
import { NoSummary } from '../compaction/no-summary.ts';
import { resolvePolicy } from '../compaction/policy.ts';
import { outputsToPrune } from '../compaction/prune-outputs.ts';
import { limitsOf } from '../config/config.ts';
import type { DelegationParts } from '../delegation/parts.ts';
import { SessionError } from '../errors.ts';
import type { Fields } from '../fields.ts';
import { getActive } from '../lease/get-active.ts';
import { hold } from '../lease/hold.ts';
import { settleLeftovers } from '../lease/settle-leftovers.ts';
import { type LanguageModel, modelMeta } from '../model/model.ts';
import type { ModelSpec } from '../model/spec.ts';
import type { SessionEvent } from '../stream/events.ts';
import { modelFor, sessionModel } from '../terms/model-for.ts';

/** Options of `Session.compact`. */
export interface CompactOptions {
  /** Remove large tool outputs from the view instead of summarising; calls no model. Excludes `focus`. */
  readonly prune?: boolean;
  /** The topic that the summary concentrates on. At most 16,000 characters. */
  readonly focus?: string;
  /** The model that summarises, instead of the deck's. */
  readonly model?: ModelSpec;
  /** False: leave the messages that arrive meanwhile in the inbox. */
  readonly start?: boolean;
  readonly signal?: AbortSignal;
}

/** The fields of `CompactOptions`. */
export const compactFields: Fields<CompactOptions> = {
  prune: 'flag',
  focus: 'text',
  model: true,
  start: 'flag',
  signal: 'signal',
};

/** The receipt of a compaction. */
export interface Compaction extends Omit<Compacted, 'summarizer'> {
  readonly session: string;
  /** The name of the session that wrote the summary. */
  readonly summarizer?: string;
}

/** The longest focus, in characters. */
const focusMax = 16_000;

/**
 * Summarises or prunes a session on request. Returns undefined when the view has nothing to summarise or
 * prune.
 * @throws SESSION_BUSY while a process runs it; TAPE_ARCHIVED; SESSION_NO_MODEL; SESSION_BAD_INPUT for a
 *   focus with `prune` or of more than 16,000 characters; SESSION_COMPACTION_FAILED when the model gave no
 *   summary, or none smaller than the entries it would replace
 */
export async function compactSession(
  parts: DelegationParts,
  session: { readonly name: string; readonly id: string },
  {
    focus,
    prune: isPruning = false,
    model: spec,
    signal = new AbortController().signal,
  }: CompactOptions = {},
): Promise<Compaction | undefined> {
  if (isPruning && focus !== undefined)
    throw new SessionError(
      'SESSION_BAD_INPUT',
      `cannot prune '${session.name}': a focus applies to a summary only`,
      {
        data: { session: session.name },
      },
    );
  if (focus !== undefined && focus.length > focusMax)
    throw new SessionError(
      'SESSION_BAD_INPUT',
      `cannot summarise '${session.name}': the focus has ${focus.length} characters, at most ${focusMax} are allowed`,
      { data: { session: session.name } },
    );
  if (isPruning) return await pruneSession(parts, session);
  const { store, config, now, newId } = parts;
  const owner = processOwner(`compact:${newId()}`);
  const held = await hold(store, session.id, { owner, act: 'compact' });
  const worker = () => parts.worker({ session: session.name, id: session.id });
  try {
    await getActive(store, session.id, 'compact');
    await settleLeftovers(store, session.id, held);
    const { model, summarizer } = await modelsFor(parts, session, spec);
    worker().showAct(owner.id, { state: 'busy', phase: 'compacting', startedAt: now() });
    const context = {
      session: session.name,
      store,
      model,
      summarizer,
      compaction: compactionTerms(config, model, summarizer),
      signal: AbortSignal.any([signal, held.lost]),
      calling: parts.calling(modelMeta(summarizer).provider),
      // The session that writes the summary records its usage.
      spend: () => {},
      fork: async (request: ForkRequest) => await store.lineage.fork(session.id, request),
      append: async (drafts: readonly Draft[]) =>
        await store.entries.append(session.id, drafts, { lease: held.lease }),
      emitEvent: (event: SessionEvent) => worker().emitEvent(event),
      warned: new Set<string>(),
      cost: config.cost,
      now,
      limits: limitsOf(config),
    };
    const entries = await Array.fromAsync(store.views.entries(session.id));
    const made = await compact(context, entries, { trigger: 'manual', focus });
    return made === undefined ? undefined : { session: session.name, ...made };
  } catch (error) {
    throw error instanceof NoSummary ? notCompacted(session.name, error) : error;
  } finally {
    await held.release().finally(() => worker().showAct(owner.id));
  }
}

/** Removes large tool outputs from the view. */
async function pruneSession(
  { store, config, newId, worker }: DelegationParts,
  session: { readonly name: string; readonly id: string },
): Promise<Compaction | undefined> {
  const held = await hold(store, session.id, { owner: processOwner(`prune:${newId()}`), act: 'compact' });
  try {
    await getActive(store, session.id, 'compact');
    await settleLeftovers(store, session.id, held);
    const policy = resolvePolicy(config.compaction);
    const sizes = async () => {
      const entries = await Array.fromAsync(store.views.entries(session.id));
      return { entries, tokens: estimateTokens(view(entries).messages, policy.countTokens) };
    };
    const { entries, tokens: tokensBefore } = await sizes();
    const outputs = outputsToPrune(select(entries, 'last-boundary').entries, policy);
    const [first, last] = [outputs[0], outputs.at(-1)];
    if (first === undefined || last === undefined) return undefined;
    const { to: seq } = await store.entries.append(session.id, [prune(outputs, { trigger: 'manual' })], {
      lease: held.lease,
    });
    const tokens = outputs.reduce((sum, output) => sum + output.tokens, 0);
    worker({ session: session.name, id: session.id }).emitEvent({
      type: 'pruned',
      seq,
      outputs: outputs.length,
      tokens,
    });
    const { tokens: tokensAfter } = await sizes();
    return { session: session.name, seq, range: [first.seq, last.seq], tokensBefore, tokensAfter };
  } finally {
    await held.release();
  }
}

/** The model of the session and the model that summarises it; the same one unless a summarizer is named. */
async function modelsFor(
  parts: DelegationParts,
  session: { readonly name: string; readonly id: string },
  spec: ModelSpec | undefined,
): Promise<{ readonly model: LanguageModel; readonly summarizer: LanguageModel }> {
  const named = spec ?? parts.config.summarizer;
  const facts = await parts.worker({ session: session.name, id: session.id }).facts();
  const summarizer = named === undefined ? undefined : await sessionModel(parts, facts, named);
  try {
    const { model } = await modelFor(parts, facts, { options: {} });
    return { model, summarizer: summarizer ?? model };
  } catch (error) {
    // A session without a usable model can still be summarised by another one.
    if (summarizer === undefined || !(error instanceof SessionError)) throw error;
    return { model: summarizer, summarizer };
  }
}
