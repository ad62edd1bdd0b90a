/**
 * Claude Code, the files of a session as a tree of conversations: `tool.ts` and `folder.ts` say where they are and what
 * each is, `plan-source.ts` reads those of a session, and all else is pure. `file-facts.ts` is what all records of a file
 * say together, `agents.ts` takes the subagents out of them, `chain.ts` links what is left, `paths.ts` finds the ways
 * through it (`places.ts` says which has which records), `read-way.ts` reads them, what they begin with together once
 * (`beginnings.ts`, `tree-reading.ts`), `kept.ts` finds what compactions kept, `faults.ts` what is wrong with ids and
 * parents, and `plan-file.ts` makes conversations of them, by the rules of `turns`, `message`, `answers`, `blocks`, `drafts`
 * and `weave`. Imports `formats` and what lies below.
 */

import type { Draft, JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { nameFault, sha256 } from '@tapedeck/tape/store';
import type { RecordList } from '../../lines/json-lines.ts';
import type { FaultyLine } from '../../plan/faulty-lines.ts';
import { keyPart } from '../../plan/key-part.ts';
import type { ConversationPlan, DerivedEdge, ImportPlan } from '../../plan/plan.ts';
import { text } from '../../plan/text.ts';
import { type AgentNotes, type AgentSource, contextIn, withoutNested, withoutSidechains } from './agents.ts';
import { countsOf, type ReadingCounts } from './counts.ts';
import { factsOf } from './file-facts.ts';
import { type FirstReading, firstReadingOf } from './first-reading.ts';
import { type SavedOutput, savedDraft } from './outputs.ts';
import { type FileKey, planFile } from './plan-file.ts';
import { readRecords } from './records.ts';

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
  for (const { value } of [...agentLines, ...beside]) notes.add(value);
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
  const all: ConversationPlan[] = [{ ...first, asides: [...first.asides, ...others] }, ...rest];
  const derived = [...top.derived];
  const own = new Set(agents);
  const agentPlans = found.map((agent) =>
    planAgent(agent, { key, notes, ...(!own.has(agent) && { file: key }) }),
  );
  // A subagent of a subagent comes after the one that called it.
  for (let left = agentPlans; left.length > 0; ) {
    const parentOf = ({ call, above }: (typeof left)[number]) =>
      all.find(({ spine }) => call !== undefined && hasCall(spine, call)) ??
      all.find((one) => one.key === above);
    const placed = left.filter(
      (one) => (one.call === undefined && one.above === undefined) || parentOf(one) !== undefined,
    );
    const now = placed.length > 0 ? placed : firstOf(left);
    for (const one of now) {
      const { call, context, guess, came, own } = one;
      const parent = parentOf(one) ?? all[0];
      if (parent === undefined) continue;
      const before = context === undefined ? [] : contextOf(parent.spine, { context, call });
      const inherits = before.length > 0 ? ({ inherits: true } as const) : {};
      const edge = { key: parent.key, ...(call !== undefined && { call }), ...inherits };
      const [agent, ...branches] = own.conversations.map((one) => behind(before, one));
      if (agent === undefined) continue;
      const received = came && receivedIn(parent.spine, came);
      all.push({ ...agent, parent: edge, ...(received !== undefined && { received }) }, ...branches);
      derived.push(...own.derived);
      if (guess !== undefined)
        derived.push({ conversation: agent.key, of: agent.key, from: parent.key, ...guess });
    }
    left = left.filter((one) => !now.includes(one));
  }
  const copyOf = facts.sources.findLast((one) => one !== session);
  return {
    format: 'claude-code',
    session,
    ...(copyOf !== undefined && { copyOf }),
    ...(top.exportOf !== undefined && { exportOf: top.exportOf }),
    ...(top.passedOver !== undefined && { passedOver: top.passedOver }),
    conversations: all,
    derived,
    counts: countsByFile(all, [
      { file: key, records: lines.length, reading: top.reading },
      ...agentPlans.map(({ file, records, own: { reading } }) => ({ file, records, reading })),
    ]),
    faults: faultsByFile([
      { file: key, faults: top.faults },
      ...agentPlans.map(({ file, own: { faults } }) => ({ file, faults })),
    ]),
    // Where records of subagents are between the others, nothing is as plain as an end has to be.
    ...(top.end !== undefined && nested.agents.length + main.agents.length === 0 && { end: top.end }),
  };
}

/** Of subagents whose calls are not here those that no other of them called, or all where they call each other in a circle. */
function firstOf<Agent extends ReturnType<typeof planAgent>>(agents: readonly Agent[]): readonly Agent[] {
  const first = agents.filter(
    ({ call, above }) =>
      !agents.some(({ own }) =>
        own.conversations.some(
          ({ key, spine }) => key === above || (call !== undefined && hasCall(spine, call)),
        ),
      ),
  );
  return first.length > 0 ? first : agents;
}

/**
 * The subagents that others name as their parents, and of which nothing is here yet: they stand for those that come later, so
 * that their own are forked from them, and merged into them.
 */
function missingIn(agents: readonly AgentSource[]): readonly AgentSource[] {
  const here = new Set(agents.filter(({ lines }) => lines.length > 0).map(({ id }) => id));
  const named = new Set(agents.flatMap(({ meta }) => text(meta?.parentAgentId) ?? []));
  return [...named].filter((id) => !here.has(id)).map((id) => ({ id, lines: [], isMissing: true as const }));
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

/** The key of the first conversation in the file of a subagent. */
export function agentKey(key: string, id: string): string {
  return `${key}/agent:${keyPart(id)}`;
}

/** Claude Code names a file by its session. Records can name another one: those that were copied, or written before. */
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** A subagent as conversations, the first of which is its own. */
function planAgent(
  { id, lines, meta, isMissing, ...agent }: AgentSource,
  {
    key,
    notes,
    file,
  }: {
    readonly key: string;
    readonly notes: AgentNotes;
    /** That of the session, for a subagent that has no file of its own. */
    readonly file?: string;
  },
) {
  const ofRun = agent.workflow === undefined ? undefined : notes.calls.get(agent.workflow);
  const call = agent.call ?? text(meta?.toolUseId) ?? notes.calls.get(id) ?? ofRun;
  const named = { key: agentKey(key, id), name: agentName(id), kind: 'subagent' as const };
  const of = { ...named, ...(file !== undefined && { file }) };
  const own = planFile(readRecords(lines), of);
  const [first = isMissing === true ? emptyOf(of) : undefined, ...branches] = own.conversations;
  const answered = notes.results.get(call ?? '');
  // What it answered is not here yet.
  const ended = isMissing === true ? undefined : (notes.ended.get(id) ?? answered);
  const notified = ended?.notified ?? notes.ended.get(agent.workflow ?? '')?.notified;
  const said = meta === undefined ? [] : [{ draft: recordDraft('cc:agent-meta', meta), after: 0 }];
  const title = text(meta?.description);
  const conversation = first && {
    ...first,
    ...(ended !== undefined && { ended: ended.as }),
    ...(title !== undefined && { title }),
    asides: [...said, ...first.asides],
  };
  const came: Came | undefined = ended && { notified, call: answered && call };
  const parent = text(meta?.parentAgentId);
  const workflow = ofRun !== undefined && call === ofRun ? agent.workflow : undefined;
  return {
    call,
    above: parent && agentKey(key, parent),
    came,
    context: contextIn(lines),
    guess: call === undefined && parent !== undefined ? undefined : guessOf({ call, workflow, agent }),
    file: file ?? agentKey(key, id),
    records: lines.length,
    own: { ...own, conversations: conversation === undefined ? [] : [conversation, ...branches] },
  };
}

/** How the result of a subagent came back: in a notification, or as the result of a call that waited for it. */
interface Came {
  readonly notified: string | undefined;
  readonly call: string | undefined;
}

/** The key of the draft of a conversation with which that got the result of a subagent. */
function receivedIn(spine: readonly Draft[], { notified, call }: Came): string | undefined {
  const result = call === undefined ? undefined : `:${keyPart(call)}`;
  const draft = spine.find(({ kind, key = '' }) =>
    notified === undefined
      ? kind === 'tool-result' && result !== undefined && key.endsWith(result)
      : key === notified,
  );
  return draft?.key;
}

/** How it was concluded which call started a subagent, where no record says so. */
function guessOf({
  call,
  workflow,
  agent: { isNear },
}: {
  readonly call: string | undefined;
  readonly workflow: string | undefined;
  readonly agent: Pick<AgentSource, 'isNear'>;
}): Pick<DerivedEdge, 'why' | 'evidence'> | undefined {
  if (workflow !== undefined)
    return {
      why: 'workflow',
      evidence: `its file is in the folder of the run ${workflow}, which ${call} started`,
    };
  if (call === undefined)
    return { why: 'subagent', evidence: 'no record names its call: it belongs to the session' };
  if (isNear !== true) return undefined;
  return { why: 'subagent', evidence: `${call} is the last call before it that starts subagents` };
}

/** What a conversation had settled at one of its records, and before a call that was open there. */
function contextOf(
  spine: readonly Draft[],
  { context, call }: { readonly context: string; readonly call: string | undefined },
): readonly Draft[] {
  const at = spine.findLastIndex(({ meta }) => meta?.uuid === context);
  const result = spine.findIndex((draft) => call !== undefined && hasCall([draft], call));
  const message = result === -1 ? -1 : spine.findLastIndex(({ kind }, i) => i < result && kind === 'message');
  const end = message === -1 || (at !== -1 && at < message) ? at + 1 : message;
  return spine.slice(0, end);
}

/** A conversation with what it knows from its parent before it. */
function behind(before: readonly Draft[], one: ConversationPlan): ConversationPlan {
  const { length } = before;
  return {
    ...one,
    spine: [...before, ...one.spine],
    settled: length + one.settled,
    ...(one.shared !== undefined && { shared: length + one.shared }),
    asides: one.asides.map(({ draft, after }) => ({ draft, after: length + after })),
  };
}

/** A name for the session of a subagent, whose id comes from a file. */
function agentName(id: string): string {
  const name = `agent-${id}`;
  return nameFault(name) === undefined ? name : `agent-${sha256(id).slice(0, 12)}`;
}

/**
 * The session of a source and the key of its main conversation. A file of one subagent (`alone`) that is imported without
 * its session is a session of its own.
 */
function identityOf(named: string, alone: RecordList): { readonly session: string; readonly key: string } {
  const agent = text(alone.values().find(({ value }) => text(value.agentId) !== undefined)?.value.agentId);
  if (agent !== undefined)
    return { session: agentName(agent), key: agentKey(`claude-code:${keyPart(named)}`, agent) };
  const session = nameFault(named) === undefined ? named : `claude-code-${sha256(named).slice(0, 12)}`;
  return { session, key: `claude-code:${keyPart(named)}` };
}

/** A conversation of which nothing is here. */
function emptyOf({ key, kind, name, file = key }: FileKey): ConversationPlan {
  return { key, kind, file, name, spine: [], settled: 0, keeps: new Map(), asides: [] };
}

function recordDraft(key: string, payload: JsonObject): Draft {
  return { kind: 'x-claude-code', payload, meta: { source: 'import' }, key };
}

function hasCall(spine: readonly Draft[], call: string): boolean {
  return spine.some((draft) => {
    // Its key has the id of the call: of others the content need not be read.
    if (draft.kind !== 'tool-result' || draft.key?.includes(keyPart(call)) !== true) return false;
    return isObject(draft.payload) && draft.payload.toolCallId === call;
  });
}
