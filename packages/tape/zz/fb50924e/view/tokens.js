                                                    
import { isObject } from '../entry/json.js';
import { recordedUsage, totalOf } from '../entry/usage.js';
import { policyText,                 } from './policy.js';
import { isPrune } from './pruned.js';
import { renderEntry,                    } from './render.js';

/** Counts the tokens of a text. */
                                                   

/**
 * Counts the tokens of a text: with `count` if given, else characters divided by four. The latter also when
 * `count` throws, as some tokenizers do at names of special tokens, or returns no valid number, so that any
 * text can be shown.
 */
export function textTokens(text        , count              )         {
  return counted(text, count) ?? Math.ceil(text.length / charsPerToken);
}

const charsPerToken = 4;

/** The result of `count`, if it is a valid number of tokens. */
function counted(text        , count                         )                     {
  try {
    const tokens = count?.(text);
    return tokens !== undefined && Number.isFinite(tokens) && tokens >= 0 ? tokens : undefined;
  } catch {
    return undefined;
  }
}

/** Counts the tokens of messages: of texts, and of the JSON of all other parts, each as `textTokens` does. */
export function estimateTokens(messages                          , count              )         {
  const counter = new TokenCounter(count);
  for (const message of messages) counter.take(message);
  return counter.tokens;
}

/** Adds up the tokens of messages, one at a time. */
export class TokenCounter {
           #count                         ;
  #tokens = 0;
  #characters = 0;

  constructor(count                         ) {
    this.#count = count;
  }

  take({ content }               )       {
    for (const part of content) {
      const text = typeof part.text === 'string' ? part.text : JSON.stringify(part);
      const tokens = counted(text, this.#count);
      if (tokens === undefined) this.#characters += text.length;
      else this.#tokens += tokens;
    }
  }

  get tokens()         {
    return this.#tokens + Math.ceil(this.#characters / charsPerToken);
  }
}

/** Counts the tokens that an entry adds to a view. `pruned`: former size of its output, if pruned. */
export function entryTokens(entry       , count              , pruned         )         {
  const rendered = renderEntry(entry, pruned);
  if (rendered === undefined) return 0;
  return estimateTokens(
    [rendered.type === 'message' ? rendered.message : { role: 'tool', content: [rendered.part] }],
    count,
  );
}

/**
 * Returns how much of a model's window a session uses: the usage that the provider reported for the last
 * step, plus an estimate of later entries. Returns undefined when no step reported usage for the current
 * prompt: a step before a boundary or a prune, one of a view with another start, or an inherited one had
 * another prompt.
 * @param entries the shown entries and the one whose state begins the view, in order of position
 */
export function usedSinceStep(
  entries                  ,
  {
    policy = 'last-boundary',
    count,
  }                                                                             = {},
)                     {
  const changed = entries.findLast((entry) => entry.mark === 'boundary' || isPrune(entry));
  const step = entries.findLast((entry) => !entry.inherited && isStep(entry));
  const usage = step === undefined ? undefined : recordedUsage(step.meta);
  if (step === undefined || usage === undefined) return undefined;
  const reported = totalOf(usage);
  if (reported === 0) return undefined;
  if (changed !== undefined && changed.seq > step.seq) return undefined;
  if (!isSameBeginning(step, { policy, from: entries[0]?.seq })) return undefined;
  return entries
    .filter(({ seq }) => seq > step.seq)
    .reduce((sum, entry) => sum + entryTokens(entry, count), reported);
}

/** Returns whether an entry is an answer with reported usage. */
function isStep(entry       )          {
  const { kind, payload, meta } = entry;
  return kind === 'message' && isObject(payload) && payload.role === 'assistant' && isObject(meta.usage);
}

/** Returns whether a step's view had this policy and start. A step without a manifest had `last-boundary`. */
function isSameBeginning(
  { meta: { view } }       ,
  { policy, from }                                                                 ,
)          {
  const now = policyText(policy);
  if (!isObject(view)) return now === 'last-boundary';
  const [first] = Array.isArray(view.in) ? view.in : [];
  return view.policy === now && Array.isArray(first) && first[0] === from;
}
