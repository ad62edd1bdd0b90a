import type { Json, JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { RecordList } from '../../lines/json-lines.ts';
import type { EndPlan, KnownEnd } from '../../plan/format.ts';
import type { OpenEnd } from '../../plan/open-end.ts';
import type { ConversationPlan } from '../../plan/plan.ts';
import { text } from '../../plan/text.ts';
import { wordsOf } from './blocks.ts';
import { countsOf } from './counts.ts';
import { LeaveReading } from './leave-reading.ts';
import { idsIn } from './open-end.ts';
import { planFile } from './plan-file.ts';
import { type CodeRecord, isLinked, readRecords } from './records.ts';
import type { Traits } from './traits.ts';

/**
 * Reads the records from an open end on as the end of a conversation: `spine` and `asides` have what follows what is before
 * it. Undefined where a record is no plain continuation: the whole file has to be read then. Pure.
 */
export function planEnd(
  lines: RecordList,
  { session, key, name, state, has, hasErased }: KnownEnd,
): EndPlan | undefined {
  if (!lines.values().every(({ value }) => isPlain(value, session))) return undefined;
  if (lines.values().some(({ value }) => value.type === 'last-prompt') && hasErased()) return undefined;
  if (leavesIn(lines) || namesNewRun(lines, { session, state })) return undefined;
  const start = { ordinal: Number(state.ordinal), before: text(state.before) };
  const records = readRecords(lines, start);
  if (!isContinuation(records, text(state.parent)) || idsIn(records).some(has)) return undefined;
  const systemTurns = typeof state.systemTurns === 'boolean' ? state.systemTurns : undefined;
  // The first snapshot counts for what is before it, too.
  if (systemTurns === undefined && records.some(({ traits }) => hasSystemTurns(traits))) return undefined;
  const file = { key, name, kind: 'main', systemTurns } as const;
  const { conversations, derived, end, reading, faults } = planFile(records, file);
  const [conversation, ...others] = conversations;
  if (conversation === undefined || others.length > 0) return undefined;
  if (derived.length > 0 || faults.length > 0) return undefined;
  const counts = countsOf(lines.length, conversations, reading);
  const next = end && withRuns(end, state.runs);
  return { conversation, counts, end: next ?? sameEnd(lines, conversation, state) };
}

/** An end that knows which sessions the records before it name as those with which runs began. */
export function withRuns(end: OpenEnd, runs: Json | undefined): OpenEnd {
  const isNone = runs === undefined || (Array.isArray(runs) && runs.length === 0);
  return isNone ? end : { ...end, state: { ...end.state, runs } };
}

/** Whether a run wrote some records that wrote none before them: it came to the session from another one. */
function namesNewRun(lines: RecordList, { session, state }: Pick<KnownEnd, 'session' | 'state'>): boolean {
  const known = new Set<unknown>(Array.isArray(state.runs) ? state.runs : []);
  return lines
    .values()
    .some(({ value: { session_id: run } }) => typeof run === 'string' && run !== session && !known.has(run));
}

/** Whether the session is left in some records: what is behind that may be here already. */
function leavesIn(lines: RecordList): boolean {
  const leave = new LeaveReading();
  for (const { value } of lines) leave.add(value);
  return leave.times.length > 0;
}

/** Whether a record is a turn of the system, or says whether there are any. */
function hasSystemTurns({ isOfSystem, systemTurns }: Traits): boolean {
  return isOfSystem || systemTurns !== undefined;
}

/** The open end from which records were read, where all that follows it is still open. */
function sameEnd(
  lines: RecordList,
  { key, spine, asides }: ConversationPlan,
  state: JsonObject,
): OpenEnd | undefined {
  const [first] = lines;
  if (first === undefined) return undefined;
  const drafts = [...spine, ...asides.map(({ draft }) => draft)];
  const keys = new Set(drafts.map((draft) => draft.key ?? ''));
  const { line, offset } = first;
  return { conversation: key, line, offset, keys, ids: () => [], state };
}

/** The records of which one before the end can say more: titles. */
const titles: ReadonlySet<unknown> = new Set(['custom-title', 'ai-title', 'summary']);

/** Whether a record says nothing of titles, other sessions, subagents, and what was compacted, exported or moved away. */
function isPlain(value: JsonObject, session: string): boolean {
  const { type, toolUseResult, sessionId, requestSessionId } = value;
  const details = isObject(toolUseResult) ? toolUseResult : {};
  const isOther = [sessionId, requestSessionId].some((id) => id !== undefined && id !== session);
  const isAside = value.isSidechain === true || value.agentId !== undefined || details.agentId !== undefined;
  const isMoved =
    details.runId !== undefined || value.forkedFrom !== undefined || type === 'fork-context-ref';
  const isCompacted = value.subtype === 'compact_boundary' || value.isCompactSummary === true;
  const isNested = type === 'progress' && isObject(value.data) && value.data.type === 'agent_progress';
  const isOfAll = titles.has(type) || type === 'result';
  if (isOther || isAside || isMoved || isCompacted || isNested || isOfAll) return false;
  return !/<task-notification>|<persisted-output>/.test(JSON.stringify(value.message) + wordsOf(value));
}

/** Whether each record follows another one of them, and the first what is before the end. */
function isContinuation(records: readonly CodeRecord[], parent: string | undefined): boolean {
  const ids = new Set<string | undefined>();
  for (const { id, uuid, parent: own, leaf, type, mark } of records) {
    if (mark !== undefined) return false;
    if (type === 'last-prompt' && leaf !== parent && !ids.has(leaf)) return false;
    if (id === undefined) {
      // A uuid twice.
      if (isLinked(type)) return false;
      continue;
    }
    if (uuid === undefined || (ids.size === 0 ? own !== parent : !ids.has(own))) return false;
    ids.add(id);
  }
  return ids.size > 0;
}
