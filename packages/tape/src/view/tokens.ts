import type { Entry, Seq } from '../entry/entry.ts';
import { isObject } from '../entry/json.ts';
import { recordedUsage, totalOf } from '../entry/usage.ts';
import { policyText, type ViewPolicy } from './policy.ts';
import { isPrune } from './pruned.ts';
import { renderEntry, type StoredMessage } from './render.ts';

/** Counts the tokens of a text. */
export type CountTokens = (text: string) => number;

/**
 * How many tokens a text takes: by the count that is given, else characters divided by four. The latter also of a text that the count
 * throws at, as some do at names of special tokens, or for which it gives nothing that counts: whatever a text says, it can be shown.
 */
export function textTokens(text: string, count?: CountTokens): number {
  return counted(text, count) ?? Math.ceil(text.length / charsPerToken);
}

const charsPerToken = 4;

/** What a count gives for a text, if that can be a number of tokens. */
function counted(text: string, count: CountTokens | undefined): number | undefined {
  try {
    const tokens = count?.(text);
    return tokens !== undefined && Number.isFinite(tokens) && tokens >= 0 ? tokens : undefined;
  } catch {
    return undefined;
  }
}

/** How many tokens messages take: by the count that is given, else characters of texts and of the JSON of all else, divided by four (J18). */
export function estimateTokens(messages: readonly StoredMessage[], count?: CountTokens): number {
  const counter = new TokenCounter(count);
  for (const message of messages) counter.take(message);
  return counter.tokens;
}

/** Estimates the tokens of messages that come one after the other. */
export class TokenCounter {
  readonly #count: CountTokens | undefined;
  #tokens = 0;
  #characters = 0;

  constructor(count: CountTokens | undefined) {
    this.#count = count;
  }

  take({ content }: StoredMessage): void {
    for (const part of content) {
      const text = typeof part.text === 'string' ? part.text : JSON.stringify(part);
      const tokens = counted(text, this.#count);
      if (tokens === undefined) this.#characters += text.length;
      else this.#tokens += tokens;
    }
  }

  get tokens(): number {
    return this.#tokens + Math.ceil(this.#characters / charsPerToken);
  }
}

/** How many tokens an entry adds to a view. `pruned`: how large its output was, which is left out. */
export function entryTokens(entry: Entry, count?: CountTokens, pruned?: number): number {
  const rendered = renderEntry(entry, pruned);
  if (rendered === undefined) return 0;
  return estimateTokens(
    [rendered.type === 'message' ? rendered.message : { role: 'tool', content: [rendered.part] }],
    count,
  );
}

/**
 * How much of a model's window a session takes: what its provider said of the last step, and an estimate of what came
 * after it (K24). Nothing where no step has told of what is shown now: what came before a boundary or a pruning, what began
 * elsewhere, or what a fork inherited in part, was another prompt.
 * @param entries what the view shows and what begins it, in order of position
 */
export function usedSinceStep(
  entries: readonly Entry[],
  {
    policy = 'last-boundary',
    count,
  }: { readonly policy?: ViewPolicy; readonly count?: CountTokens | undefined } = {},
): number | undefined {
  const changed = entries.findLast((entry) => entry.mark === 'boundary' || isPrune(entry));
  const step = entries.findLast((entry) => !entry.inherited && isStep(entry));
  const usage = step === undefined ? undefined : recordedUsage(step.meta);
  if (step === undefined || usage === undefined) return undefined;
  const said = totalOf(usage);
  if (said === 0) return undefined;
  if (changed !== undefined && changed.seq > step.seq) return undefined;
  if (!isSameBeginning(step, { policy, from: entries[0]?.seq })) return undefined;
  return entries
    .filter(({ seq }) => seq > step.seq)
    .reduce((sum, entry) => sum + entryTokens(entry, count), said);
}

/** An answer whose provider told what it took. */
function isStep(entry: Entry): boolean {
  const { kind, payload, meta } = entry;
  return kind === 'message' && isObject(payload) && payload.role === 'assistant' && isObject(meta.usage);
}

/** Whether an answer was given to what a view of a policy begins with; one that does not tell was given to what follows the last boundary. */
function isSameBeginning(
  { meta: { view } }: Entry,
  { policy, from }: { readonly policy: ViewPolicy; readonly from: Seq | undefined },
): boolean {
  const now = policyText(policy);
  if (!isObject(view)) return now === 'last-boundary';
  const [first] = Array.isArray(view.in) ? view.in : [];
  return view.policy === now && Array.isArray(first) && first[0] === from;
}
