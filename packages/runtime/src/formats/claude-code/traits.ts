import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { exact } from '../../plan/exact.ts';
import { text } from '../../plan/text.ts';
import { hasOwnTurn, isGiven, isQueued, systemTurnsIn } from './attachments.ts';
import { blocksOf, isBlank } from './blocks.ts';

/** What is asked of each record more than once: it is kept, so that the content of a record need not be. */
export interface Traits {
  readonly type: string;
  readonly isSidechain: boolean;
  /** Whether it restarts the conversation after a compaction. */
  readonly isBoundary: boolean;
  /** Whether it contains the summary of a compaction. */
  readonly isSummary: boolean;
  /** Whether it is a prompt that waited while the model worked. */
  readonly isQueued: boolean;
  /** Whether it is no message, and the model got something of it. */
  readonly isGiven: boolean;
  /** Whether the model got it as a turn of the system, if its requests have those. */
  readonly isOfSystem: boolean;
  /** Whether it is a prompt that waited, which the model got before those. */
  readonly hasOwnTurn: boolean;
  /** Of a snapshot: whether the requests from it on have turns of the system. */
  readonly systemTurns: boolean | undefined;
  /** Whether the user did not type it. */
  readonly isMeta: boolean;
  /** Whether it says where its prompt is from. What writes that begins another file at a `/clear`. */
  readonly hasPromptSource: boolean;
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
}

/** The calls whose results a record has, each at the place of its block, and the empty text for any other block. */
export type Results = readonly string[];

/** Pure. */
function traitsOf(raw: JsonObject): Traits {
  const type = text(raw.type) ?? '';
  const blocks = blocksOf(raw);
  const said = blocks.filter((block) => !isBlank(block));
  const isResult = (block: JsonObject) => block.type === 'tool_result';
  return {
    type,
    isSidechain: raw.isSidechain === true,
    isBoundary: type === 'system' && raw.subtype === 'compact_boundary' && !isOfEnd(raw),
    isSummary: type === 'user' && raw.isCompactSummary === true && !isOfEnd(raw),
    isQueued: isQueued(raw),
    isGiven: isGiven(raw),
    isOfSystem: raw.renderedRole === 'system',
    hasOwnTurn: hasOwnTurn(raw),
    systemTurns: systemTurnsIn(raw),
    isMeta: raw.isMeta === true,
    hasPromptSource: typeof raw.promptSource === 'string',
    isApiError: raw.isApiErrorMessage === true,
    hasContent: said.length > 0,
    hasWords: said.some((block) => !isResult(block)),
    hasResults: blocks.some(isResult),
    isOnlyResults: blocks.every(isResult),
  };
}

/**
 * Whether a record is of a summary of the end of a conversation ("Summarize from here"): what is before it stays, and is anchored
 * to the record that says so. The model gets the summary as a prompt behind that.
 */
function isOfEnd({ uuid, compactMetadata, summarizeMetadata }: JsonObject): boolean {
  if (isObject(summarizeMetadata)) return summarizeMetadata.direction === 'from';
  const { preservedSegment } = isObject(compactMetadata) ? compactMetadata : {};
  return isObject(preservedSegment) && uuid !== undefined && preservedSegment.anchorUuid === uuid;
}

/** The results of a user record; undefined where it has none. `calls`: ids that are in memory already. Pure. */
export function resultsOf(raw: JsonObject, calls: ReadonlyMap<string, string>): Results | undefined {
  if (raw.type !== 'user') return undefined;
  const results = blocksOf(raw).map((block) => {
    const call = block.type === 'tool_result' ? text(block.tool_use_id) : undefined;
    return call === undefined ? '' : (calls.get(call) ?? call);
  });
  return results.some((call) => call !== '') ? results : undefined;
}

/** The ids of the calls of an assistant record; undefined where it has none. Pure. */
export function callsOf(raw: JsonObject): readonly string[] | undefined {
  if (raw.type !== 'assistant') return undefined;
  const calls = blocksOf(raw).flatMap(({ id }) => text(id) ?? []);
  return calls.length === 0 ? undefined : exact(calls);
}

/** What the records of one message have in common. Pure. */
export function messageId(raw: JsonObject): string | undefined {
  const id = isObject(raw.message) ? text(raw.message.id) : undefined;
  return id === undefined ? undefined : `${id} ${text(raw.requestId) ?? ''}`;
}

/** Gives records that have the same traits one object for them: there are few. */
export class TraitPool {
  readonly #known = new Map<string, Map<number, Traits>>();

  of(raw: JsonObject): Traits {
    const traits = traitsOf(raw);
    const ofType = this.#known.get(traits.type) ?? new Map<number, Traits>();
    this.#known.set(traits.type, ofType);
    const mark = markOf(traits);
    const known = ofType.get(mark);
    if (known !== undefined) return known;
    ofType.set(mark, traits);
    return traits;
  }
}

/** Traits as a number with a digit for each that is true, false or undefined. Makes no object, since each record has them. */
function markOf(traits: Traits): number {
  let mark = 0;
  for (const name in traits) {
    const trait = traits[name as keyof Traits];
    if (typeof trait !== 'string') mark = mark * 3 + (trait === undefined ? 2 : Number(trait));
  }
  return mark;
}
