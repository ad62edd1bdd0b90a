import type { Entry, EntryKind, Seq, SessionInfo, TapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { isInterrupted } from '../tools/interrupted.ts';
import { awaitsAnswer } from '../tools/open-batch.ts';
import type { AuditFinding } from './finding.ts';
import type { Subject } from './subject.ts';

/** What a session that was not delegated still owes: the rest of a run, an answer, or its merge. */
export async function* examineWork(subject: Subject): AsyncGenerator<AuditFinding> {
  const { store, info, isRun, open } = subject;
  if (isRun || info.lifecycle !== 'active') return;
  yield* examineInbox(subject);
  // A delegated child that has not ended is reported as such.
  if (isDelegated(info)) return;
  for (const { toolCallId, toolName, seq, for: what } of open.filter(awaitsAnswer))
    yield {
      code: 'call-waiting',
      session: info.session,
      seq,
      message: `call '${toolCallId}' of '${toolName}' waits for ${what === 'approval' ? 'an approval' : 'a result of the client'}`,
      next: { act: 'answer', session: info.session },
    };
  // Calls without a result are reported one by one.
  if (open.length > 0) return;
  const isCut = await isInterrupted(store, info.id);
  // What was saved of an answer is continued from: one that cannot be read is damage.
  if (isCut) await store.live.read(info.id);
  if (isCut)
    yield {
      code: 'run-interrupted',
      session: info.session,
      seq: info.head,
      message: `the process of the last run of '${info.session}' died during it`,
      next: { act: 'run', session: info.session },
    };
  else yield* examineLastMessage(subject);
}

/** Whether the engine of a delegation runs a session. */
export function isDelegated({ deliver, task }: SessionInfo): boolean {
  return deliver !== undefined || task !== undefined;
}

/** Messages and answers that were acknowledged, and that no process will take up. */
async function* examineInbox({ store, info }: Subject): AsyncGenerator<AuditFinding> {
  const count = (await store.inbox.list(info.id)).filter(
    ({ body: { type } }) => type === 'input' || type === 'answer',
  ).length;
  if (count > 0)
    yield {
      code: 'message-unanswered',
      session: info.session,
      seq: null,
      message: `${count === 1 ? 'a message waits' : `${count} messages wait`} in the inbox of '${info.session}', and no process runs it`,
      next: { act: 'run', session: info.session },
    };
}

/** How many entries at the end are searched for the message of the last run. */
const backMax = 50;

/** The last own entries, the newest first. Usually the first of them decides. */
async function* lastOf(store: TapeStore, id: string): AsyncGenerator<Entry> {
  const [newest] = await Array.fromAsync(store.entries.read(id, { own: true, last: 1 }));
  if (newest === undefined) return;
  yield newest;
  const rest = await Array.fromAsync(
    store.entries.read(id, { own: true, to: newest.seq - 1, last: backMax - 1 }),
  );
  yield* rest.toReversed();
}

/** A message that a run took up, when the run failed before it answered. */
async function* examineLastMessage({ store, info }: Subject): AsyncGenerator<AuditFinding> {
  let failed = false;
  for await (const { seq, kind, name, payload, meta } of lastOf(store, info.id)) {
    if (kind === 'event' && name === 'run/error') failed = true;
    else if (kind === 'rewind' || (kind === 'event' && name === 'run/aborted')) return;
    if (kind !== 'message' || meta.run === undefined || !isObject(payload)) continue;
    if (payload.role === 'user' && failed)
      yield {
        code: 'message-unanswered',
        session: info.session,
        seq,
        message: `the run of the message ${info.session}@${seq} failed before it answered`,
        next: { act: 'run', session: info.session },
      };
    return;
  }
}

/** The kinds that make a merge worthwhile. Notes about the end of a run do not. */
const mergeable: ReadonlySet<EntryKind> = new Set(['message', 'tool-result', 'result', 'anchor']);

/** The first position after another one that a merge would deliver. */
export async function grownAfter(store: TapeStore, id: string, to: Seq): Promise<Seq | undefined> {
  for await (const { seq, kind } of store.entries.read(id, { own: true, from: to + 1 }))
    if (mergeable.has(kind)) return seq;
  return undefined;
}

/**
 * The position of a fork's intention when its work is meant for its parent: it has a task, or it is to notify the
 * parent. Undefined for other sessions.
 */
export async function owedSince(
  store: TapeStore,
  { id, parentId, base }: SessionInfo,
): Promise<Seq | undefined> {
  if (parentId === undefined) return undefined;
  for await (const entry of store.entries.read(id, { own: true, from: base + 2, to: base + 2 })) {
    const { next_steps, trigger_on_complete } = intentionIn(entry);
    if (typeof next_steps === 'string' || trigger_on_complete === 'notify_parent') return entry.seq;
  }
  return undefined;
}

function intentionIn({ kind, name, payload }: Entry): Readonly<Record<string, unknown>> {
  const isIntention = kind === 'anchor' && name === 'intention';
  return isIntention && isObject(payload) && isObject(payload.state) ? payload.state : {};
}
