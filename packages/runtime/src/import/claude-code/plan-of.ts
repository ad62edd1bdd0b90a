import type { Draft } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { nameFault } from '@tapedeck/tape/store';
import { answersOf } from '../answers.ts';
import type { Conversation, SpokenTurn } from '../conversation.ts';
import type { JsonLine } from '../json-lines.ts';
import { messageOf } from '../message.ts';
import type { ConversationPlan, ImportPlan, PlacedAside } from '../plan.ts';
import { titleOf } from '../provenance.ts';
import { type CodeRecord, readRecords, text } from '../records.ts';
import { turnsOf } from '../turns.ts';
import { weave } from '../weave.ts';
import { type AgentSource, callsByResult, withoutNested, withoutSidechains } from './agents.ts';
import { chainOf } from './chain.ts';
import { pathsOf, speaks, type TreePath } from './paths.ts';

/** What is read of one session: its main file, and what lies in the folder beside it. */
export interface ClaudeCodeSource {
  /** The session, if no record names it: the file's name. */
  readonly name: string;
  readonly lines: readonly JsonLine[];
  readonly agents?: readonly AgentSource[];
}

/**
 * Reads a session of Claude Code as a tree of conversations. Pure. Each way through the records that says something of its
 * own becomes a conversation: the one to the head is the main one, and `/clear` begins another. `chain.ts` links the
 * records, `paths.ts` finds the ways, and `agents.ts` takes the subagents out.
 */
export function planClaudeCode({ name, lines, agents = [] }: ClaudeCodeSource): ImportPlan {
  const nested = withoutNested(lines, new Set(agents.map(({ id }) => id)));
  const main = withoutSidechains(nested.lines);
  const session = sessionIn(lines) ?? name;
  const results = callsByResult(lines);
  const found = planFile(main.lines, { key: `claude-code:${session}`, name: session, kind: 'main' });
  const all = [...found.conversations];
  const derived = [...found.derived];
  for (const agent of [...nested.agents, ...main.agents, ...agents]) {
    const call =
      agent.call ??
      results.get(agent.id) ??
      (agent.workflow === undefined ? undefined : results.get(agent.workflow));
    const parent = all.find(({ spine }) => call !== undefined && hasCall(spine, call)) ?? all[0];
    const key = `claude-code:${session}/agent:${agent.id}`;
    const own = planFile(agent.lines, { key, name: `agent-${agent.id}`, kind: 'subagent' });
    derived.push(...own.derived);
    if (agent.workflow !== undefined && parent !== undefined)
      derived.push({ of: key, from: parent.key, why: 'workflow' });
    const edge = parent && { parent: { key: parent.key, ...(call !== undefined && { call }) } };
    all.push(...own.conversations.map((one) => (one.key === key ? { ...one, ...edge } : one)));
  }
  return { format: 'claude-code', session, conversations: all, derived };
}

interface FileKey {
  readonly key: string;
  readonly name: string;
  readonly kind: ConversationPlan['kind'];
}

function planFile(
  lines: readonly JsonLine[],
  { key, name, kind }: FileKey,
): Pick<ImportPlan, 'conversations' | 'derived'> {
  const records = readRecords(lines);
  const chain = chainOf(records);
  const trees = chain.trees.filter((tree) => tree.some((record) => speaks(record)));
  const title = titleOf(records);
  const derived = [...chain.derived];
  const taken = new Set<CodeRecord>();
  const ways = trees.map((tree) => pathsOf(tree, chain).map((path) => readPath(path, tree, taken)));
  // Records of a tree that says nothing, and those without a place in a tree, go with the first conversation.
  const later = new Map(trees.slice(1).flatMap((tree, i) => tree.map((record) => [record, i + 1] as const)));
  const beside = records.filter((record) => !taken.has(record));
  const conversations: ConversationPlan[] = [];
  let before: ConversationPlan | undefined;
  for (const [t, paths] of ways.entries()) {
    const made: ConversationPlan[] = [];
    for (const [p, { path, conversation }] of paths.entries()) {
      const first = path.steps[path.shared];
      const isRoot = p === 0;
      const id = isRoot ? (t === 0 ? key : `${key}/clear:${first?.key}`) : `${key}/branch:${first?.key}`;
      const parent = isRoot ? before : made[path.from ?? 0];
      if (isRoot && t > 0 && parent !== undefined) derived.push({ of: id, from: parent.key, why: 'cleared' });
      const own = isRoot ? beside.filter((record) => (later.get(record) ?? 0) === t) : [];
      const plan = planPath(
        { ...conversation, beside: own },
        { key: id, kind: isRoot ? (t === 0 ? kind : 'cleared') : 'branch' },
        { parent, name: nameOf(name, id === key ? undefined : { first, isRoot }) },
      );
      made.push(isRoot && title !== undefined ? { ...plan, title } : plan);
    }
    before = made[0] ?? before;
    conversations.push(...made);
  }
  return { conversations, derived };
}

/** A path as turns, with the results of its calls. */
function readPath(
  path: TreePath,
  tree: readonly CodeRecord[],
  taken: Set<CodeRecord>,
): { readonly path: TreePath; readonly conversation: Omit<Conversation, 'beside'> } {
  const claimed = new Set<string>();
  const steps = { steps: path.steps, dangling: 0 };
  const turns = turnsOf(steps, tree).map(
    (turn): SpokenTurn => (turn.kind === 'assistant' ? { ...turn, message: messageOf(turn, claimed) } : turn),
  );
  const calls = turns.flatMap((turn) =>
    turn.kind === 'assistant' ? turn.message.calls.map(({ toolCallId }) => toolCallId) : [],
  );
  for (const record of path.steps) taken.add(record);
  for (const turn of turns) if (turn.kind === 'assistant') for (const one of turn.members) taken.add(one);
  return {
    path,
    conversation: { path: steps, turns, answers: answersOf(new Set(calls), tree, new Set(path.steps)) },
  };
}

function planPath(
  conversation: Conversation,
  { key, kind }: Pick<ConversationPlan, 'key' | 'kind'>,
  { parent, name }: { readonly parent: ConversationPlan | undefined; readonly name: string },
): ConversationPlan {
  const { drafts, settled } = weave(conversation);
  const elsewhere = new Set(kind === 'branch' ? parent?.asides.map(({ draft }) => draft.key) : []);
  const spine: Draft[] = [];
  const asides: PlacedAside[] = [];
  let fixed = 0;
  for (const [i, draft] of drafts.entries()) {
    if (i === settled) fixed = spine.length;
    if (!draft.kind.startsWith('x-')) spine.push(draft);
    else if (!elsewhere.has(draft.key)) asides.push({ draft, after: spine.length });
  }
  if (settled >= drafts.length) fixed = spine.length;
  return {
    key,
    kind,
    ...(parent !== undefined && { parent: { key: parent.key } }),
    name,
    spine,
    settled: fixed,
    asides,
  };
}

/** The name of a conversation beside the main one, from the record that begins it. */
function nameOf(
  name: string,
  other: { readonly first: CodeRecord | undefined; readonly isRoot: boolean } | undefined,
): string {
  if (other === undefined) return name;
  const id = (other.first?.key ?? '')
    .replace(/^cc:/, '')
    .replace(/[^A-Za-z0-9]/g, '')
    .slice(0, 8);
  const full = `${name}-${other.isRoot ? 'clear' : 'branch'}-${id}`;
  return nameFault(full) === undefined ? full : name;
}

/** The session of the last record that names one; copies of another session's records name the copy. */
function sessionIn(lines: readonly JsonLine[]): string | undefined {
  return text(lines.findLast(({ value }) => text(value.sessionId) !== undefined)?.value.sessionId);
}

function hasCall(spine: readonly Draft[], call: string): boolean {
  return spine.some(
    ({ kind, payload }) => kind === 'tool-result' && isObject(payload) && payload.toolCallId === call,
  );
}
