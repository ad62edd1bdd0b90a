import type { JsonObject, Part } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { exact } from '../../plan/exact.ts';
import { text } from '../../plan/text.ts';
import { assistantPart, blocksOf, isBlank, providerResultPart } from './blocks.ts';
import type { Block } from './content.ts';
import type { CodeRecord } from './records.ts';
import type { ModelTurn } from './turns.ts';

/** A tool call that the agent executes, not the provider. */
export interface Call {
  readonly toolCallId: string;
  readonly toolName: string;
  /** The record that contains it. */
  readonly record: CodeRecord;
}

/** The assistant message of one turn. */
export interface Message {
  readonly parts: readonly Part[];
  readonly isEmpty: boolean;
  readonly calls: readonly Call[];
  /** Whether the record says that the model had finished; most records do not. */
  readonly stopped: boolean;
  /** Records with a block that does not fit the message; they are kept verbatim beside it. */
  readonly rest: readonly CodeRecord[];
  /** Those of them with a call whose id was used before. */
  readonly reused: readonly CodeRecord[];
}

/** The ids of calls that were made before. */
interface Claimed {
  has(id: string): boolean;
  add(id: string): unknown;
}

/** A message, whose parts are made again each time if its records are not in memory. `claimed`: as for `messageOf`. */
export function messageIn(turn: ModelTurn, claimed: Claimed): Message {
  if (!turn.members.some(({ isAway }) => isAway)) return messageOf(turn, claimed);
  const own: string[] = [];
  const add = (id: string) => {
    own.push(id);
    claimed.add(id);
  };
  return new MessageAgain(turn, { ...messageOf(turn, { has: (id) => claimed.has(id), add }), own });
}

/** A message whose record is read again when a caller takes its parts. */
class MessageAgain implements Message {
  readonly calls: readonly Call[];
  readonly stopped: boolean;
  readonly rest: readonly CodeRecord[];
  readonly reused: readonly CodeRecord[];
  readonly isEmpty: boolean;
  readonly #members: ModelTurn['members'];
  /** The calls that it made and that the provider executed. */
  readonly #foreign: readonly string[];

  constructor(turn: ModelTurn, message: Message & { readonly own: readonly string[] }) {
    const ids = new Set(message.calls.map(({ toolCallId }) => toolCallId));
    this.calls = exact(message.calls);
    this.stopped = message.stopped;
    this.rest = exact(message.rest);
    this.reused = exact(message.reused);
    this.isEmpty = message.isEmpty;
    this.#members = turn.members;
    this.#foreign = exact(message.own.filter((id) => !ids.has(id)));
  }

  get parts(): readonly Part[] {
    const left = new Set([...this.calls.map(({ toolCallId }) => toolCallId), ...this.#foreign]);
    return messageOf({ members: this.#members }, { has: (id) => !left.has(id), add: (id) => left.delete(id) })
      .parts;
  }
}

/**
 * Builds a message from its records. `claimed` holds the ids of all earlier calls and receives those of this
 * message: a second call with the same id could never have a result.
 */
function messageOf({ members }: Pick<ModelTurn, 'members'>, claimed: Claimed): Message {
  const parts: Part[] = [];
  const calls: Call[] = [];
  const rest = new Set<CodeRecord>();
  const reused = new Set<CodeRecord>();
  const repeats = new Repeats();
  const names = new Map<string, string>();
  for (const record of members) {
    for (const block of blocksOf(record.raw)) {
      if (isBlank(block)) continue;
      // A copy of the message on another branch repeats its blocks.
      if (repeats.has(block, record)) continue;
      const part = assistantPart(block) ?? providerResultPart(block, names);
      const call = part?.type === 'tool-call' ? idAndName(block) : undefined;
      const isReused = call !== undefined && claimed.has(call.toolCallId);
      if (part === undefined || isReused) {
        rest.add(record);
        if (isReused) reused.add(record);
        continue;
      }
      parts.push(part);
      if (call === undefined) continue;
      claimed.add(call.toolCallId);
      if (part.providerExecuted === true) names.set(call.toolCallId, call.toolName);
      else calls.push({ toolCallId: call.toolCallId, toolName: call.toolName, record });
    }
  }
  const last = members.at(-1)?.raw.message;
  const stopped = isObject(last) && text(last.stop_reason) !== undefined;
  return { parts, isEmpty: parts.length === 0, calls, stopped, rest: [...rest], reused: [...reused] };
}

/** The blocks of a message, by what costs little to compare: the texts of those alone are compared that can be equal. */
class Repeats {
  readonly #alike = new Map<string, { readonly block: Block; readonly record: CodeRecord }>();
  /** For the mark of several blocks: by the text of each the first record with it. */
  readonly #texts = new Map<string, Map<string, CodeRecord>>();

  /** Whether a block is that of an earlier record, which repeats none of its own. */
  has(block: Block, record: CodeRecord): boolean {
    const { type, id, text: words, thinking } = block;
    const mark = `${type} ${id} ${String(words).length} ${String(thinking).length}`;
    const first = this.#alike.get(mark);
    if (first === undefined) {
      this.#alike.set(mark, { block, record });
      return false;
    }
    let texts = this.#texts.get(mark);
    if (texts === undefined) {
      texts = new Map([[JSON.stringify(first.block), first.record]]);
      this.#texts.set(mark, texts);
    }
    const own = JSON.stringify(block);
    const earlier = texts.get(own);
    if (earlier === undefined) texts.set(own, record);
    return earlier !== undefined && earlier !== record;
  }
}

/** The tokens of a message. */
export interface MessageUsage {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

/** The figures of tokens in the usage of a record, by the names that they have there. */
const figures = {
  input: 'input_tokens',
  output: 'output_tokens',
  cacheRead: 'cache_read_input_tokens',
  cacheWrite: 'cache_creation_input_tokens',
} as const;

/** Whether a usage has a figure that is no number of tokens, which counts as 0. Pure. */
export function hasBadFigure(usage: unknown): boolean {
  if (!isObject(usage)) return false;
  return Object.values(figures).some((name) => usage[name] != null && !isCount(usage[name]));
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** The usage of a message. Its records repeat the figures as they grow, so the maximum of each counts. */
export function usageOf(members: readonly CodeRecord[]): MessageUsage | undefined {
  const usages = members.flatMap(({ raw }) =>
    isObject(raw.message) && isObject(raw.message.usage) && !isMadeUp(raw.message) ? [raw.message.usage] : [],
  );
  if (usages.length === 0) return undefined;
  const most = (name: string): number =>
    usages.reduce((max, { [name]: tokens }) => (isCount(tokens) && tokens > max ? tokens : max), 0);
  return {
    input: most(figures.input),
    output: most(figures.output),
    cacheRead: most(figures.cacheRead),
    cacheWrite: most(figures.cacheWrite),
  };
}

/** Whether Claude Code wrote an answer itself, such as "No response requested.": no model was called for it. */
function isMadeUp({ model, usage }: JsonObject): boolean {
  const counts = isObject(usage) ? usage : {};
  return model === '<synthetic>' && Object.values(figures).every((name) => (counts[name] ?? 0) === 0);
}

function idAndName(block: Block): { toolCallId: string; toolName: string } | undefined {
  const [toolCallId, toolName] = [text(block.id), text(block.name)];
  return toolCallId === undefined || toolName === undefined ? undefined : { toolCallId, toolName };
}
