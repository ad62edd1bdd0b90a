import { nameFault, sha256 } from '@tapedeck/tape/store';
import { keyPart } from '../../plan/key-part.ts';
import type { DerivedEdge } from '../../plan/plan.ts';
import { text } from '../../plan/text.ts';
import { type AgentNotes, type AgentSource, contextIn, namedCallOf } from './agents.ts';
import { withoutCaller } from './called.ts';
import { recordDraft } from './drafts.ts';
import { emptyOf, type FilePlan, planFile } from './plan-file.ts';
import { readRecords } from './records.ts';

/** A subagent as conversations, and what says where they belong. */
export interface PlannedAgent {
  /** The call that started it, and the key of the subagent that its file names as its parent. */
  readonly call: string | undefined;
  readonly above: string | undefined;
  readonly came: Came | undefined;
  /** The record of its parent up to which it knows what that knew. */
  readonly context: string | undefined;
  /** How its place was concluded, where no record says it. */
  readonly guess: Pick<DerivedEdge, 'why' | 'evidence'> | undefined;
  readonly file: string;
  readonly records: number;
  readonly own: FilePlan;
}

/** A subagent as conversations, the first of which is its own. */
export function planAgent(
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
): PlannedAgent {
  const ofRun = agent.workflow === undefined ? undefined : notes.calls.get(agent.workflow);
  const call = namedCallOf({ ...agent, meta }) ?? notes.calls.get(id) ?? ofRun;
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
    spine: withoutCaller(first.spine, call),
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
export interface Came {
  readonly notified: string | undefined;
  readonly call: string | undefined;
}

/**
 * The subagents that others name as their parents, and of which nothing is here yet: they stand for those that come later, so
 * that their own are forked from them, and merged into them.
 */
export function missingIn(agents: readonly AgentSource[]): readonly AgentSource[] {
  const here = new Set(agents.filter(({ lines }) => lines.length > 0).map(({ id }) => id));
  const named = new Set(agents.flatMap(({ meta }) => text(meta?.parentAgentId) ?? []));
  return [...named].filter((id) => !here.has(id)).map((id) => ({ id, lines: [], isMissing: true as const }));
}

/** How it was concluded which call started a subagent, where no record says so. */
function guessOf({
  call,
  workflow,
  agent: { concludedBy },
}: {
  readonly call: string | undefined;
  readonly workflow: string | undefined;
  readonly agent: Pick<AgentSource, 'concludedBy'>;
}): Pick<DerivedEdge, 'why' | 'evidence'> | undefined {
  if (workflow !== undefined)
    return {
      why: 'workflow',
      evidence: `its file is in the folder of the run ${workflow}, which ${call} started`,
    };
  if (call === undefined)
    return { why: 'subagent', evidence: 'no record names its call: it belongs to the session' };
  if (concludedBy === undefined) return undefined;
  const is = concludedBy === 'prompt' ? 'has its prompt' : 'is the last call before it that starts subagents';
  return { why: 'subagent', evidence: `${call} ${is}` };
}

/** The key of the first conversation in the file of a subagent. */
export function agentKey(key: string, id: string): string {
  return `${key}/agent:${keyPart(id)}`;
}

/** A name for the session of a subagent, whose id comes from a file. */
export function agentName(id: string): string {
  const name = `agent-${id}`;
  return nameFault(name) === undefined ? name : `agent-${sha256(id).slice(0, 12)}`;
}
