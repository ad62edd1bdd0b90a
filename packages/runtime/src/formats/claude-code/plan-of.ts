/**
 * Claude Code, the files of a session as a tree of conversations: `tool.ts` and `folder.ts` say where they are and what
 * each is, `plan-source.ts` reads those of a session, and all else is pure. `file-facts.ts` is what all records of a file
 * say together, `agents.ts` takes the subagents out of them, `chain.ts` links what is left, `paths.ts` finds the ways
 * through it (`places.ts` says which has which records), `read-way.ts` reads them, what they begin with together once
 * (`beginnings.ts`, `tree-reading.ts`), `kept.ts` finds what compactions kept, `faults.ts` what is wrong with ids and
 * parents, and `plan-file.ts` makes conversations of them, by the rules of `turns`, `message`, `answers`, `blocks`, `drafts`
 * and `weave`. A subagent is planned as a file (`plan-agent.ts`), and comes behind what called it (`place-agents.ts`, `called.ts`). Imports `formats` and what lies below.
 */

import type { JsonObject } from '@tapedeck/tape';
import type { RecordList } from '../../lines/json-lines.ts';
import type { FaultyLine } from '../../plan/faulty-lines.ts';
import { keyPart } from '../../plan/key-part.ts';
import type { ConversationPlan, ImportPlan } from '../../plan/plan.ts';
import { text } from '../../plan/text.ts';
import { type AgentSource, namedCallOf, withoutNested, withoutSidechains } from './agents.ts';
import { countsOf, type ReadingCounts } from './counts.ts';
import { recordDraft } from './drafts.ts';
import { factsOf } from './file-facts.ts';
import { type FirstReading, firstReadingOf } from './first-reading.ts';
import { type SavedOutput, savedDraft } from './outputs.ts';
import { placeAgents } from './place-agents.ts';
import { agentKey, agentName, missingIn, planAgent } from './plan-agent.ts';
import { withRuns } from './plan-end.ts';
import { emptyOf, planFile } from './plan-file.ts';
import { readRecords } from './records.ts';
import { sessionName } from './session-name.ts';

/** What is read of one session: its main file, and what lies in the folder beside it. */
export interface ClaudeCodeSource {
  /** The session, if no record names it: the file's name. */
  readonly name: string;
  readonly lines: RecordList;
  /** What was read of the lines already; without it, they are read. */
  readonly first?: FirstReading;
  readonly agents?: readonly AgentSource[];
  /** Records of other files of the session, by keys of their own. */
  readonly beside?: readonly { readonly key: string; readonly value: JsonObject }[];
  /** Outputs that were too large for the transcript. */
  readonly outputs?: readonly SavedOutput[];
}

/**
 * Reads a session of Claude Code as a tree of conversations. Pure. Each way through the records that says something of its
 * own becomes a conversation: the one to the head is the main one, and `/clear` begins another. Subagents whose session has
 * no file, or none yet, have a main conversation without a message. A file that says nothing, and not of what session it is,
 * has no conversation yet.
 */
export function planClaudeCode({
  name,
  lines,
  first: reading = firstReadingOf(lines),
  agents = [],
  beside = [],
  outputs = [],
}: ClaudeCodeSource): ImportPlan {
  const facts = reading.facts();
  const ids = new Set(agents.map(({ id }) => id));
  const nested = facts.hasNested ? withoutNested(lines, ids) : { lines, agents: [] };
  const main = facts.hasSidechains ? withoutSidechains(nested.lines) : { lines: nested.lines, agents: [] };
  const given = [...nested.agents, ...main.agents, ...agents];
  const found = [...given, ...missingIn(given)];
  const agentLines = found.flatMap((agent) => [...agent.lines]);
  const isAgent = agents.length === 0 && facts.isSidechain;
  const named = uuid.test(name) ? name : (facts.session ?? factsOf(agentLines).session ?? name);
  const { session, key } = identityOf(named, isAgent ? lines : []);
  const { notes } = facts;
  for (const agent of found) for (const { value } of agent.lines) notes.add(value, namedCallOf(agent));
  for (const { value } of beside) notes.add(value);
  const records = main.lines === lines ? reading.end(lines) : readRecords(main.lines);
  const top = planFile(records, { key, name: session, kind: 'main' });
  const [first = emptyOf({ key, name: session, kind: 'main' }), ...rest] = top.conversations;
  // What no record names yet has another session when the file has grown.
  const isNamed = facts.session !== undefined || uuid.test(name);
  const isSilent = top.conversations.every(({ spine }) => spine.length === 0);
  if (found.length === 0 && isSilent && (!isNamed || top.conversations.length === 0))
    return { format: 'claude-code', session, conversations: [], derived: [], counts: new Map() };
  const drafts = [...beside.map(({ key: of, value }) => recordDraft(of, value)), ...outputs.map(savedDraft)];
  const others = drafts.map((draft) => ({ draft, after: first.spine.length }));
  const own = new Set(agents);
  const agentPlans = found.map((agent) =>
    planAgent(agent, { key, notes, ...(!own.has(agent) && { file: key }) }),
  );
  const placed = placeAgents([{ ...first, asides: [...first.asides, ...others] }, ...rest], agentPlans);
  const source = facts.sources.map(sessionName).findLast((one) => one !== session);
  const begunWith = facts.run === undefined ? undefined : sessionName(facts.run);
  const run = begunWith === session ? undefined : begunWith;
  const copyOf = source ?? (facts.isCleared || !facts.isAnswered ? undefined : run);
  const clearedFrom = source === undefined && facts.isCleared ? run : undefined;
  const visitedBy = facts.visits
    .map((one) => ({ session: sessionName(one.session), at: one.at }))
    .filter((one) => one.session !== session && one.session !== clearedFrom);
  const clearedAt = run === undefined ? facts.clearedAt : undefined;
  return {
    format: 'claude-code',
    session,
    ...(copyOf !== undefined && { copyOf }),
    ...(clearedFrom !== undefined && { clearedFrom }),
    ...(visitedBy.length > 0 && { visitedBy }),
    ...(clearedAt !== undefined && { clearedAt }),
    ...(facts.leftAt.length > 0 && { leftAt: facts.leftAt }),
    ...(top.exportOf !== undefined && { exportOf: top.exportOf }),
    ...(top.exportFrom !== undefined && { exportFrom: top.exportFrom }),
    ...(top.passedOver !== undefined && { passedOver: top.passedOver }),
    conversations: placed.conversations,
    derived: [...top.derived, ...placed.derived],
    counts: countsByFile(placed.conversations, [
      { file: key, records: lines.length, reading: top.reading },
      ...agentPlans.map(({ file, records, own: { reading } }) => ({ file, records, reading })),
    ]),
    faults: faultsByFile([
      { file: key, faults: top.faults },
      ...agentPlans.map(({ file, own: { faults } }) => ({ file, faults })),
    ]),
    // Where records of subagents are between the others, nothing is as plain as an end has to be.
    ...(top.end !== undefined &&
      nested.agents.length + main.agents.length === 0 && { end: withRuns(top.end, facts.otherRuns) }),
  };
}

/** What was found in each file. Subagents inside of a file count as a part of it. */
function countsByFile(
  conversations: readonly ConversationPlan[],
  read: readonly { readonly file: string; readonly records: number; readonly reading: ReadingCounts }[],
): ImportPlan['counts'] {
  const byFile = Map.groupBy(read, ({ file }) => file);
  return new Map(
    [...byFile].map(([file, [first, ...inside]]) => {
      const of = conversations.filter((one) => one.file === file);
      const sum = (name: keyof ReadingCounts) =>
        [first, ...inside].reduce((total, one) => total + (one?.reading[name] ?? 0), 0);
      const reading = {
        ...{ merged: sum('merged'), reordered: sum('reordered') },
        ...{ dangling: sum('dangling'), irregular: sum('irregular') },
      };
      return [file, countsOf(first?.records ?? 0, of, reading)] as const;
    }),
  );
}

function faultsByFile(
  read: readonly { readonly file: string; readonly faults: readonly FaultyLine[] }[],
): ReadonlyMap<string, readonly FaultyLine[]> {
  const byFile = Map.groupBy(
    read.filter(({ faults }) => faults.length > 0),
    ({ file }) => file,
  );
  return new Map([...byFile].map(([file, all]) => [file, all.flatMap(({ faults }) => faults)]));
}

/** Claude Code names a file by its session. Records can name another one: those that were copied, or written before. */
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * The session of a source and the key of its main conversation. A file of one subagent (`alone`) that is imported without
 * its session is a session of its own.
 */
function identityOf(named: string, alone: RecordList): { readonly session: string; readonly key: string } {
  const agent = text(alone.values().find(({ value }) => text(value.agentId) !== undefined)?.value.agentId);
  if (agent !== undefined)
    return { session: agentName(agent), key: agentKey(`claude-code:${keyPart(named)}`, agent) };
  return { session: sessionName(named), key: `claude-code:${keyPart(named)}` };
}
