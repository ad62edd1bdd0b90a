import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { text } from '../text.ts';
import { isGiven, isQueued } from './attachments.ts';
import { blocksOf, isBlank } from './blocks.ts';

/** What is asked of each record more than once: it is kept, so that the content of a record need not be. */
export interface Traits {
  /** Whether it restarts the conversation after a compaction. */
  readonly isBoundary: boolean;
  /** Whether it contains the summary of a compaction. */
  readonly isSummary: boolean;
  /** Whether it is a prompt that waited while the model worked. */
  readonly isQueued: boolean;
  /** Whether it is no message, and the model got something of it. */
  readonly isGiven: boolean;
  /** Whether the user did not type it. */
  readonly isMeta: boolean;
  /** Whether it reports that a call of the provider failed. */
  readonly isApiError: boolean;
  /** Whether it has a block that is not empty. */
  readonly hasContent: boolean;
  /** Whether it has one that is no result. */
  readonly hasWords: boolean;
  /** Whether it has a result. */
  readonly hasResults: boolean;
  /** Whether it has results alone. */
  readonly isOnlyResults: boolean;
  /** What the records of one message have in common. */
  readonly message: string | undefined;
  /** The calls whose results it has, by the places of their blocks. */
  readonly results: ReadonlyMap<number, string> | undefined;
  /** The record to which it points as the end of the conversation, or of what it sums up. */
  readonly leaf: string | undefined;
}

/** Pure. */
function traitsOf(raw: JsonObject): Traits {
  const { type } = raw;
  const blocks = blocksOf(raw);
  const said = blocks.filter((block) => !isBlank(block));
  const results = new Map<number, string>();
  for (const [i, block] of type === 'user' ? blocks.entries() : []) {
    const call = block.type === 'tool_result' ? text(block.tool_use_id) : undefined;
    if (call !== undefined) results.set(i, call);
  }
  const isResult = (block: JsonObject) => block.type === 'tool_result';
  return {
    isBoundary: type === 'system' && raw.subtype === 'compact_boundary',
    isSummary: type === 'user' && raw.isCompactSummary === true,
    isQueued: isQueued(raw),
    isGiven: isGiven(raw),
    isMeta: raw.isMeta === true,
    isApiError: raw.isApiErrorMessage === true,
    hasContent: said.length > 0,
    hasWords: said.some((block) => !isResult(block)),
    hasResults: blocks.some(isResult),
    isOnlyResults: blocks.every(isResult),
    message: messageId(raw),
    results: results.size === 0 ? undefined : results,
    leaf: text(raw.leafUuid),
  };
}

function messageId(raw: JsonObject): string | undefined {
  const id = isObject(raw.message) ? text(raw.message.id) : undefined;
  return id === undefined ? undefined : `${id} ${text(raw.requestId) ?? ''}`;
}

/** Gives records that have the same traits one object for them: most have, and so have those of one message. */
export class TraitPool {
  readonly #known = new Map<string, Traits>();

  of(raw: JsonObject): Traits {
    const traits = traitsOf(raw);
    if (traits.results !== undefined) return traits;
    const mark = Object.values(traits).join();
    const known = this.#known.get(mark);
    if (known !== undefined) return known;
    // Records of a message follow each other.
    if (this.#known.size >= poolMax) this.#known.clear();
    this.#known.set(mark, traits);
    return traits;
  }
}

const poolMax = 1000;
