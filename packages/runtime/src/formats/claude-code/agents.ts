import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { JsonLine, RecordList } from '../../lines/json-lines.ts';
import { text } from '../../plan/text.ts';
import { isQueued } from './attachments.ts';
import { blocksOf, wordsOf } from './blocks.ts';
import { keyIn } from './records.ts';

/** The records of a subagent, and what says which call started it. */
export interface AgentSource {
  readonly id: string;
  readonly lines: RecordList;
  /** The id of the call. */
  readonly call?: string;
  /** How that call was concluded, where no record names it: it has the prompt of the subagent, or is the last one before that. */
  readonly concludedBy?: 'prompt' | 'place';
  /** The run of a workflow that started it. */
  readonly workflow?: string;
  /** What the tool wrote of it beside its records. */
  readonly meta?: JsonObject;
  /** Another one names it as its parent, and its records are not here. */
  readonly isMissing?: true;
}

/** A file with its subagents taken out of it. */
export interface Parted {
  readonly lines: RecordList;
  readonly agents: readonly AgentSource[];
}

/** Whether a message of a subagent is nested in a record. */
export function isNested({ type, data }: JsonObject): boolean {
  if (type !== 'progress' || !isObject(data)) return false;
  return data.type === 'agent_progress' && text(data.agentId) !== undefined && isObject(data.message);
}

/** A subagent whose records are taken out of the file of its session. */
type Parting = Pick<AgentSource, 'call' | 'concludedBy'> & { readonly lines: JsonLine[] };

/** The call that started a subagent, as its own files name it. Pure. */
export function namedCallOf({
  call,
  meta,
}: {
  readonly [field in 'call' | 'meta']?: AgentSource[field] | undefined;
}): string | undefined {
  return call ?? text(meta?.toolUseId);
}

/**
 * Takes the messages of subagents out of the progress records in which they are nested; what is left of such a record names
 * the message that was in it. Records of subagents that have a file of their own (`known`) stay as they are.
 */
export function withoutNested(lines: RecordList, known: ReadonlySet<string>): Parted {
  const agents = new Map<string, Parting>();
  const left = Array.from(lines, (line): JsonLine => {
    const { value } = line;
    const data = value.type === 'progress' && isObject(value.data) ? value.data : {};
    const id = data.type === 'agent_progress' ? text(data.agentId) : undefined;
    if (id === undefined || known.has(id) || !isObject(data.message)) return line;
    const call = text(value.parentToolUseID);
    const agent = agents.get(id) ?? { lines: [], ...(call !== undefined && { call }) };
    agents.set(id, agent);
    const { message, ...rest } = data;
    const uuid = text(message.uuid) ?? text(value.uuid);
    const parentUuid = agent.lines.at(-1)?.value.uuid ?? null;
    agent.lines.push({
      ...line,
      value: { ...message, ...(uuid !== undefined && { uuid }), parentUuid, isSidechain: true, agentId: id },
      around: aboutOf(value),
    });
    return {
      ...line,
      value: { ...value, data: { ...rest, ...(uuid !== undefined && { messageUuid: uuid }) } },
    };
  });
  // The same list where there are none: a copy would be in memory as long.
  if (agents.size === 0) return { lines, agents: [] };
  return { lines: left, agents: [...agents].map(([id, agent]) => ({ id, ...agent })) };
}

/** Where and by which version a nested message was written: the record around it says so, and it does not. */
function aboutOf({ cwd = null, gitBranch = null, version = null }: JsonObject): JsonObject {
  return { cwd, gitBranch, version };
}

/**
 * Takes the records of subagents out that older versions wrote between the others. Each root begins a subagent. The call that
 * started it is one without a result that has its prompt, since several may run at once, or else the last one before it.
 */
export function withoutSidechains(lines: RecordList): Parted {
  const isMixed = lines.values().some(({ value }) => value.isSidechain !== true && isSpoken(value));
  if (!isMixed) return { lines, agents: [] };
  const roots = new Map<string, string>();
  const agents = new Map<string, Parting>();
  /** The prompts of the calls that neither have a result nor started one of them. */
  const waiting = new Map<string, string>();
  let last: string | undefined;
  const left: JsonLine[] = [];
  for (const line of lines) {
    const { value } = line;
    if (value.isSidechain !== true) {
      left.push(line);
      for (const { type, id, name, input, tool_use_id: of } of isSpoken(value) ? blocksOf(value) : []) {
        if (type === 'tool_result') waiting.delete(String(of));
        const call = type === 'tool_use' && delegates.has(String(name)) ? text(id) : undefined;
        const prompt = isObject(input) ? text(input.prompt) : undefined;
        if (call !== undefined && prompt !== undefined) waiting.set(call, prompt);
        last = call ?? last;
      }
      continue;
    }
    const uuid = text(value.uuid);
    const id = text(value.agentId) ?? roots.get(text(value.parentUuid) ?? '') ?? uuid ?? `line-${line.line}`;
    if (uuid !== undefined) roots.set(uuid, id);
    const agent = agents.get(id);
    if (agent !== undefined) {
      agent.lines.push(line);
      continue;
    }
    const words = wordsOf(value);
    const [asked] = [...waiting].find(([, prompt]) => prompt === words) ?? [];
    if (asked !== undefined) waiting.delete(asked);
    const call = asked ?? last;
    const concludedBy = asked === undefined ? 'place' : 'prompt';
    agents.set(id, { lines: [line], concludedBy, ...(call !== undefined && { call }) });
  }
  if (agents.size === 0) return { lines, agents: [] };
  return { lines: left, agents: [...agents].map(([id, agent]) => ({ id, ...agent })) };
}

/** The tools that start a subagent. */
const delegates: ReadonlySet<string> = new Set(['Task', 'Agent']);

function isSpoken({ type }: JsonObject): boolean {
  return type === 'user' || type === 'assistant';
}

/** The record of its parent up to which a subagent knows what its parent knew; undefined for one that began anew. */
export function contextIn(lines: RecordList): string | undefined {
  return text(lines.values().find(({ value }) => value.type === 'fork-context-ref')?.value.parentLastUuid);
}

/** How a subagent or a call ended. */
interface Ended {
  readonly as: 'completed' | 'failed';
  /** The key of the notification that says so. */
  readonly notified?: string;
}

/**
 * What records say of subagents: which calls started which of them, and which of these reported, as the result of the call;
 * those that ran in the background by a notification, and those of a workflow in its journal.
 */
export class AgentNotes {
  readonly #calls = new Map<string, string>();
  readonly #ended = new Map<string, Ended>();
  readonly #results = new Map<string, Ended>();

  /** The calls that started them, by their ids; those of runs of workflows, by theirs. */
  get calls(): ReadonlyMap<string, string> {
    return this.#calls;
  }

  /** How those ended that reported, by their ids. */
  get ended(): ReadonlyMap<string, Ended> {
    return this.#ended;
  }

  /** How calls ended that waited for what they started. */
  get results(): ReadonlyMap<string, Ended> {
    return this.#results;
  }

  /**
   * Reads a record, of the session or of a subagent that the call `startedBy` started: a subagent that knows what its parent
   * knew has a result of its own for that call, which says that it has begun.
   */
  add(record: JsonObject, startedBy?: string): void {
    const agent = text(record.agentId);
    if (record.type === 'result' && agent !== undefined) this.#ended.set(agent, { as: 'completed' });
    if (record.type !== 'user' && !isQueued(record)) return;
    const details = isObject(record.toolUseResult) ? record.toolUseResult : {};
    const named = text(details.agentId) ?? text(details.runId);
    const waits = details.isAsync !== true && details.status !== 'async_launched';
    for (const block of blocksOf(record)) {
      const call = block.type === 'tool_result' ? text(block.tool_use_id) : undefined;
      if (call === undefined) continue;
      // A later call resumes what the first one started.
      if (named !== undefined && !this.#calls.has(named)) this.#calls.set(named, call);
      if (waits && call !== startedBy)
        this.#results.set(call, { as: block.is_error === true ? 'failed' : 'completed' });
    }
    const words = wordsOf(record);
    if (!words.includes('<task-notification>')) return;
    const notified = keyIn(record);
    for (const [, id = '', status] of words.matchAll(notification))
      this.#ended.set(id, { as: status === 'completed' ? status : 'failed', ...(notified && { notified }) });
  }
}

const notification =
  /<task-notification>\s*<task-id>([^<]*)<\/task-id>[\s\S]*?<status>(completed|failed|killed|stopped)<\/status>/g;
