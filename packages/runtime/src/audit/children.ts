import { type EntryKind, isSummarizer, type Seq, type SessionInfo, type TapeStore } from '@tapedeck/tape';
import { awaitsAnswer } from '../tools/open-batch.ts';
import type { AuditFinding, Remedy } from './finding.ts';
import type { PlacedCall, Subject } from './subject.ts';

/** What is missing of a child's way home: its end, or that its parent was told of it. */
export async function examineChild(subject: Subject): Promise<readonly AuditFinding[]> {
  const { store, info, isRun, open } = subject;
  // What is being run is on its way; a fork that nobody ran or was asked to run is nobody's task.
  if (info.parentId === undefined || isRun || info.delivery === 'discarded') return [];
  if (info.deliver === undefined && info.task === undefined) return [];
  // What came of it is on its parent's tape already, if anything did.
  if (isSummarizer(info)) return [];
  const home = info.delivery === 'merged' ? await wayHome(store, info) : undefined;
  const { merged } = home ?? {};
  const grownAt = merged === undefined ? undefined : await grownAfter(store, info, merged.to);
  if (merged !== undefined && grownAt === undefined) return [];
  if (info.task === undefined || info.task === 'running') return [notTerminal(info, open)];
  return [
    {
      code: 'result-not-merged',
      session: info.name,
      seq: grownAt ?? null,
      message: unmerged(info, home, grownAt),
      remedy: await bringHome(subject),
    },
  ];
}

function notTerminal(info: SessionInfo, open: readonly PlacedCall[]): AuditFinding {
  const waits = open.filter(({ state }) => state === 'waiting');
  const [first] = waits;
  const finding = { code: 'children-not-terminal', session: info.name } as const;
  if (first !== undefined) {
    return {
      ...finding,
      seq: first.seq,
      message: `'${info.name}' waits for ${waits.map(awaited).join(', ')}`,
      remedy: waits.some(isAsked) ? { act: 'answer', session: info.name } : goOn(info),
    };
  }
  const why = info.task === undefined ? 'has not begun' : 'was cut off';
  return { ...finding, seq: null, message: `'${info.name}' ${why}, and nobody runs it`, remedy: goOn(info) };
}

/** Whether a person or a client can answer a call now. */
function isAsked(call: PlacedCall): boolean {
  return awaitsAnswer(call) && call.for !== 'tool';
}

/** What a call waits for, in words. */
function awaited({ toolCallId, toolName, for: what, decision }: PlacedCall): string {
  const call = `call '${toolCallId}' of '${toolName}'`;
  if (what === 'tool') return `a run in which the tool of ${call} is offered`;
  if (decision !== undefined) return `a run that goes on with the answer to ${call}`;
  return what === 'approval' ? `somebody to approve ${call}` : `a client's result of ${call}`;
}

/** A recovery takes care of what was delegated; a child that was only forked and run is gone on with by a run. */
function goOn({ name, deliver, lifecycle }: SessionInfo): Remedy {
  if (lifecycle !== 'active') return { act: 'unarchive', session: name };
  return { act: deliver === undefined ? 'run' : 'recover', session: name };
}

/** What a child needs before its parent can take it in: results of its calls, and a parent that takes anything. */
async function bringHome({ store, info, open }: Subject): Promise<Remedy> {
  const { name, parentId = '', settled, head } = info;
  if (settled !== head) return { act: open.some(isAsked) ? 'answer' : 'run', session: name };
  const parent = await store.find(parentId);
  return parent === undefined || parent.lifecycle === 'active'
    ? { act: 'merge', session: name }
    : { act: 'unarchive', session: parent.name };
}

/** Where merges of a child stand: up to where targets still see it, and the newest that one does not. */
interface WayHome {
  readonly merged?: { readonly into: string; readonly seq: Seq; readonly to: Seq };
  readonly hidden?: { readonly into: string; readonly seq: Seq; readonly by: Seq };
}

async function wayHome(store: TapeStore, { id }: SessionInfo): Promise<WayHome> {
  let home: WayHome = {};
  for await (const { into = '', seq = 0, range } of store.lineage({ session: id, types: ['merge'] })) {
    const target = await store.find(into);
    if (target === undefined) continue;
    const by = await store.hiddenBy(target.id, seq);
    const to = range?.[1] ?? 0;
    if (by !== undefined) home = { ...home, hidden: { into: target.name, seq, by } };
    else if (to >= (home.merged?.to ?? 0)) home = { ...home, merged: { into: target.name, seq, to } };
  }
  return home;
}

/** What a merge would bring. Notes of how a run ended, and what models are not shown, are not worth one. */
const worth: ReadonlySet<EntryKind> = new Set(['message', 'tool-result', 'result', 'anchor']);

/** The first position after a merged range that another merge would bring home. */
async function grownAfter(store: TapeStore, { id }: SessionInfo, to: Seq): Promise<Seq | undefined> {
  for await (const { seq, kind } of store.read(id, { own: true, from: to + 1 }))
    if (worth.has(kind)) return seq;
  return undefined;
}

function unmerged(
  { name, task, head }: SessionInfo,
  home: WayHome | undefined,
  grownAt: Seq | undefined,
): string {
  const { merged, hidden } = home ?? {};
  if (merged !== undefined)
    return `'${name}' has grown since its merge ${merged.into}@${merged.seq}: ${grownAt}-${head} are not merged`;
  if (hidden !== undefined)
    return `the rewind ${hidden.into}@${hidden.by} hides the merge ${hidden.into}@${hidden.seq} of '${name}'`;
  return `'${name}' has ended (${task}), and is neither merged nor discarded`;
}
