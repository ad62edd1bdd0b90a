import {
  type Entry,
  type Json,
  type JsonObject,
  type Seq,
  type SessionInfo,
  type TapeStore,
  type View,
  view,
} from '@tapedeck/tape';
import { assistantText, isObject } from '@tapedeck/tape/internal';
import { type MergeStrategy, sha256 } from '@tapedeck/tape/store';
import { transcriptOf, withoutMiddle } from '../compaction/transcript.ts';
import type { Shared } from '../config/shared.ts';
import { SessionError } from '../errors.ts';
import { callModel, modelMeta } from '../model/model.ts';
import type { ModelSpec } from '../model/spec.ts';
import { modelFor, sessionModel } from '../terms/model-for.ts';
import { factsOf, type SessionFacts } from '../terms/terms.ts';
import { schemaFault } from '../tools/schema.ts';
import { usageJson } from '../usage/usage.ts';

/** A custom merge strategy: returns the text of the merge message. */
export type MergeText = (child: {
  readonly session: string;
  readonly text: string;
  readonly value?: Json;
  readonly entries: () => AsyncIterable<Entry>;
}) => Json | Promise<Json>;

/** Positions on a child's tape, or inclusive ranges of them. */
type Picks = readonly (Seq | readonly [Seq, Seq])[];

/** How the text of a merge is written. Default: the child's result or last answer. */
export interface TextOptions {
  readonly strategy?: MergeStrategy | MergeText;
  /** For `pick`: positions on the child's tape, or inclusive ranges of them. */
  readonly pick?: Picks;
  /** For `summary`: the model that writes it. Default: the deck's summarizer, else the child's model. */
  readonly model?: ModelSpec;
  readonly signal?: AbortSignal;
}

/** The text of a merge and the usage of writing it. Empty when the text comes from the tape. */
export interface Written {
  readonly text?: string;
  readonly usage?: JsonObject;
  /** Manifest of the entries that the summarising model received. */
  readonly asked?: JsonObject;
}

/**
 * Writes the text of a merge, for the strategies that do not take it from the child's tape.
 * @throws SESSION_BAD_RESULT when the child has no structured result; SESSION_BAD_INPUT when `pick` selects
 *   no text; SESSION_MODEL_FAILED when the summary fails
 */
export async function writeText(parts: Shared, child: SessionFacts, options: TextOptions): Promise<Written> {
  const { info } = child;
  const { strategy } = options;
  if (typeof strategy === 'function') return await custom(parts, info, strategy);
  if (strategy === 'structured') return await structured(parts, child);
  if (strategy === 'pick') return await picked(parts, info, options.pick ?? []);
  if (strategy === 'summary') return await summary(parts, child, options);
  return {};
}

/**
 * Writes the text of a merge that needs no model.
 * @throws SESSION_BAD_RESULT, SESSION_BAD_INPUT as `writeText`
 */
export async function writeTextAlone(
  store: TapeStore,
  info: SessionInfo,
  { strategy, pick = [] }: { readonly strategy: 'structured' | 'pick'; readonly pick?: Picks },
): Promise<string | undefined> {
  const { text } =
    strategy === 'pick'
      ? await picked({ store }, info, pick)
      : await structured({ store }, await factsOf(store, info));
  return text;
}

async function custom({ store }: Shared, info: SessionInfo, act: MergeText): Promise<Written> {
  const { text, value } = await store.lineage.collect(info.id);
  const written = await act({
    session: info.session,
    text,
    ...(value !== undefined && { value }),
    entries: async function* () {
      yield* store.entries.read(info.id, { own: true });
    },
  });
  return { text: typeof written === 'string' ? written : JSON.stringify(written) };
}

async function structured(
  { store }: Pick<Shared, 'store'>,
  { info, origin }: SessionFacts,
): Promise<Written> {
  const { value } = await store.lineage.collect(info.id);
  const { output } = origin.terms;
  const fault =
    value === undefined
      ? 'it has recorded no result'
      : typeof value === 'string'
        ? 'its result is a string'
        : output === undefined
          ? undefined
          : await schemaFault(value, output);
  if (fault === undefined) return { text: JSON.stringify(value) };
  throw new SessionError('SESSION_BAD_RESULT', `cannot merge '${info.session}' as structured: ${fault}`, {
    data: { session: info.session },
  });
}

async function picked({ store }: Pick<Shared, 'store'>, info: SessionInfo, picks: Picks): Promise<Written> {
  const texts: string[] = [];
  for (const pick of picks) {
    const [from, to] = typeof pick === 'number' ? [pick, pick] : pick;
    if (!(from <= to && from > info.base && to <= info.head))
      throw new SessionError(
        'SESSION_BAD_INPUT',
        `cannot pick ${from}-${to} of '${info.session}': its own entries are ${info.base + 1}-${info.head}`,
        { data: { session: info.session, from, to } },
      );
    for await (const entry of store.entries.read(info.id, { from, to })) {
      const text = quoteOf(entry);
      if (text !== undefined) texts.push(`${info.session}@${entry.seq} ${text}`);
    }
  }
  if (texts.length > 0) return { text: texts.join('\n\n') };
  throw new SessionError(
    'SESSION_BAD_INPUT',
    `cannot merge '${info.session}': the picked entries have no text`,
    {
      data: { session: info.session },
    },
  );
}

function quoteOf({ kind, payload }: Entry): string | undefined {
  if (!isObject(payload)) return undefined;
  if (kind === 'result') return `result: ${JSON.stringify(payload.value ?? payload)}`;
  if (kind === 'tool-result')
    return `${String(payload.toolName)}: ${JSON.stringify(isObject(payload.output) ? payload.output.value : payload.output)}`;
  if (kind !== 'message' || !Array.isArray(payload.content)) return undefined;
  const answer = assistantText(payload);
  if (answer !== '') return `assistant: ${answer}`;
  const texts = payload.content.flatMap((part) =>
    isObject(part) && part.type === 'text' ? [String(part.text)] : [],
  );
  return payload.role === 'user' && texts.length > 0 ? `user: ${texts.join('')}` : undefined;
}

const summaryInstructions =
  'You report on the work of a colleague. Summarise the transcript for the person who requested the work: the outcome, ' +
  'the names, paths and values that matter, and what remains open. Write only the report.';

/**
 * The longest transcript that a summary is written from, in characters. The middle of a longer one is cut.
 */
const summaryCharsMax = 200_000;

async function summary(
  parts: Shared,
  child: SessionFacts,
  { model: spec, signal }: TextOptions,
): Promise<Written> {
  const { store, config } = parts;
  const { info } = child;
  const given = spec ?? config.summarizer;
  const model =
    given === undefined
      ? (await modelFor(parts, child, { options: {} })).model
      : await sessionModel(parts, child, given);
  const shown = view(await Array.fromAsync(store.entries.read(info.id, { own: true })), { policy: 'full' });
  const prompt = withoutMiddle(transcriptOf(shown.messages), summaryCharsMax);
  try {
    const answer = await callModel({
      model,
      instructions: summaryInstructions,
      messages: [
        {
          role: 'user',
          content: prompt,
        },
      ],
      tools: {},
      signal: signal ?? new AbortController().signal,
      onChunk: () => {},
      // A merge has no events.
      onWarning: () => {},
    });
    if (answer.text.trim() === '') throw new Error('the model returned no text');
    if (answer.finish === 'content-filter') throw new Error('a content filter cut off the summary');
    const usage = { ...usageJson(answer.usage) };
    const from = `Summary of ${info.session}:${info.base + 1}-${info.head} by ${modelMeta(model).model}:`;
    return { text: `${from}\n${answer.text}`, usage, asked: summaryManifest(info, shown, prompt) };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new SessionError('SESSION_MODEL_FAILED', `cannot summarise '${info.session}': ${why}`, {
      data: { session: info.session },
      cause,
    });
  }
}

/** The manifest of a summarised child: all of its own entries, and none of the inherited ones. */
function summaryManifest(
  { session: name, floor, base }: SessionInfo,
  shown: View,
  prompt: string,
): JsonObject {
  const { out, ...manifest } = shown.manifest();
  const own = out.filter(([from]) => from > base);
  return {
    session: name,
    ...manifest,
    out: base > floor ? [[floor + 1, base, 'inherited'], ...own] : own,
    prompt: sha256(prompt),
  } as unknown as JsonObject;
}
