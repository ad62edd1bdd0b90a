import type { Seq, SessionInfo, TapeStore } from '@tapedeck/tape';
import { isDeleted, isSummarizer } from '@tapedeck/tape/internal';
import { awaitsAnswer, awaitsChildren, openBatch } from '../tools/open-batch.ts';
import type { AuditFinding, NextStep } from './finding.ts';
import type { PlacedCall, Subject } from './subject.ts';
import { grownAfter, isDelegated, owedSince } from './work.ts';

/** What a child still lacks: its end, if it was delegated, or its merge, if its work is meant for its parent. */
export async function examineChild(subject: Subject): Promise<readonly AuditFinding[]> {
  const { store, info, isRun, open } = subject;
  // A running child may still deliver; a plain fork without a task has nothing to deliver.
  if (info.parentId === undefined || isRun || info.delivery === 'discarded') return [];
  // No session waits for the work of a deleted child.
  if (isDeleted(info)) return [];
  if (!isDelegated(info)) return await examineFork(subject);
  // The parent's compaction entry already holds the summary.
  if (isSummarizer(info)) return [];
  const merges = info.delivery === 'merged' ? await mergesOf(store, info) : undefined;
  const { merged } = merges ?? {};
  const grownAt = merged === undefined ? undefined : await grownAfter(store, info.id, merged.to);
  if (merged !== undefined && grownAt === undefined) return [];
  if (info.task === undefined || info.task === 'running') return [notTerminal(info, open)];
  // The end of its task has notified the parent, and nothing else is due.
  if (info.deliver === 'notify') return [];
  return [
    {
      code: 'result-not-merged',
      session: info.session,
      seq: grownAt ?? null,
      message: unmerged(info, merges, grownAt),
      next: await stepToMerge(subject),
    },
  ];
}

/** A fork that was made by hand for a task, or to notify its parent, and whose work its parent lacks. */
async function examineFork(subject: Subject): Promise<readonly AuditFinding[]> {
  const { store, info } = subject;
  const since = info.lifecycle === 'active' ? await owedSince(store, info) : undefined;
  if (since === undefined) return [];
  const merges = info.delivery === 'merged' ? await mergesOf(store, info) : undefined;
  const grownAt = await grownAfter(store, info.id, merges?.merged?.to ?? since);
  if (grownAt === undefined) return [];
  return [
    {
      code: 'fork-not-merged',
      session: info.session,
      seq: grownAt,
      message: unmerged(info, merges, grownAt),
      next: await stepToMerge(subject),
    },
  ];
}

function notTerminal(info: SessionInfo, open: readonly PlacedCall[]): AuditFinding {
  const waits = open.filter(({ state }) => state === 'waiting');
  const [first] = waits;
  const finding = { code: 'children-not-terminal', session: info.session } as const;
  if (first !== undefined) {
    return {
      ...finding,
      seq: first.seq,
      message: `'${info.session}' waits for ${waits.map(awaited).join(', ')}`,
      next: waits.some((call) => isAnswerable(call) || awaitsChildren(call))
        ? { act: 'answer', session: info.session }
        : stepToContinue(info),
    };
  }
  const why = info.task === undefined ? 'has not started' : 'was interrupted';
  return {
    ...finding,
    seq: null,
    message: `'${info.session}' ${why}, and no process runs it`,
    next: stepToContinue(info),
  };
}

/** Whether a person or a client can answer a call now. */
function isAnswerable(call: PlacedCall): boolean {
  return awaitsAnswer(call) && call.for !== 'tool';
}

/** What a call waits for, in words. */
function awaited({ toolCallId, toolName, for: what, decision }: PlacedCall): string {
  const call = `call '${toolCallId}' of '${toolName}'`;
  if (what === 'children') return `the children of ${call}`;
  if (what === 'tool') return `a run that offers the tool of ${call}`;
  if (decision !== undefined) return `a run that takes up the answer to ${call}`;
  return what === 'approval' ? `approval of ${call}` : `the client's result of ${call}`;
}

/** Recovery continues delegated children; a child that was only forked continues with a run. */
function stepToContinue({ session: name, deliver, lifecycle }: SessionInfo): NextStep {
  if (lifecycle !== 'active') return { act: 'unarchive', session: name };
  return { act: deliver === undefined ? 'run' : 'recover', session: name };
}

/** What must happen before the child can merge: results for its open calls, and an active parent. */
async function stepToMerge({ store, info, ref, open }: Subject): Promise<NextStep> {
  const { session: name, parentId = '', settled, head } = info;
  if (settled !== head) return { act: open.some(isAnswerable) ? 'answer' : 'run', session: name };
  const parent = await store.sessions.find(parentId);
  // Its merge follows the result of the call that waits for it.
  if (parent?.lifecycle === 'active' && (await openBatch(store, parent)).some(awaitsChildren))
    return { act: 'recover', session: ref(parent) };
  if (parent === undefined || parent.lifecycle === 'active') return { act: 'merge', session: name };
  return isDeleted(parent)
    ? { act: 'undelete', session: parent.id }
    : { act: 'unarchive', session: ref(parent) };
}

/** The merges of a child: up to where a target still shows it, and the newest one that a rewind hides. */
interface Merges {
  readonly merged?: { readonly into: string; readonly seq: Seq; readonly to: Seq };
  readonly hidden?: { readonly into: string; readonly seq: Seq; readonly by: Seq };
}

async function mergesOf(store: TapeStore, { id }: SessionInfo): Promise<Merges> {
  let merges: Merges = {};
  for await (const { into = '', seq = 0, range } of store.lineage.read({ session: id, types: ['merge'] })) {
    const target = await store.sessions.find(into);
    if (target === undefined) continue;
    const [{ hiddenBy: by } = {}] = await store.views.ranges(target.id, { from: seq });
    const to = range?.[1] ?? 0;
    if (by !== undefined) merges = { ...merges, hidden: { into: target.session, seq, by } };
    else if (to >= (merges.merged?.to ?? 0))
      merges = { ...merges, merged: { into: target.session, seq, to } };
  }
  return merges;
}

function unmerged(
  { session: name, task, head }: SessionInfo,
  merges: Merges | undefined,
  grownAt: Seq | undefined,
): string {
  const { merged, hidden } = merges ?? {};
  if (merged !== undefined)
    return `'${name}' has grown since its merge ${merged.into}@${merged.seq}: ${grownAt}-${head} are not merged`;
  if (hidden !== undefined)
    return `the rewind ${hidden.into}@${hidden.by} hides the merge ${hidden.into}@${hidden.seq} of '${name}'`;
  return task === undefined
    ? `'${name}' was forked for its parent and has work, and is neither merged nor discarded`
    : `'${name}' has ended (${task}), and is neither merged nor discarded`;
}
