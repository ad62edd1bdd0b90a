import { type Draft, type Json, note, type Seq } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { Awaitable } from '@tapedeck/tape/store';
import { messageOf } from '../errors.ts';
import { within } from '../tools/within.ts';

/** Hooks for user messages and rewinds, for example to take and restore snapshots of a workspace. */
export interface Hooks {
  /**
   * Called before a user message is appended, including one from the inbox. The returned snapshot id is
   * stored in the message's meta as `snapshot_id`. The message is appended in any case: an error of the hook
   * is recorded as `hook/failed` and reported as a warning.
   */
  readonly onMessage?: (message: IncomingMessage) => Awaitable<{ readonly snapshotId?: string } | undefined>;
  /**
   * Called after a rewind, under the session's lease. An error is recorded and reported like one of
   * `onMessage`.
   */
  readonly onRewind?: (rewind: RewindEvent) => Awaitable<void>;
}

/** A user message that is about to be appended. */
export interface IncomingMessage {
  readonly session: string;
  /** Its text parts, joined by newlines. */
  readonly text: string;
  /** Its sender: `user`, `agent`, `merge` … */
  readonly source: string;
  /** Aborted with the run that takes up the message. */
  readonly signal: AbortSignal;
}

/** A completed rewind. */
export interface RewindEvent {
  readonly session: string;
  /** The view now ends at this position. */
  readonly to: Seq;
  /** Position of the target message. */
  readonly message: Seq;
  /** What `onMessage` returned for that message. */
  readonly snapshotId?: string;
}

/** Drafts with the snapshot ids of the hooks, and the hooks' errors as warnings. */
export interface HookedDrafts {
  readonly drafts: readonly Draft[];
  readonly warnings: readonly string[];
}

/** The session that messages are appended to, their default source, and the abort of the hook. */
interface HookContext {
  readonly session: string;
  readonly source?: string | undefined;
  readonly signal?: AbortSignal;
  readonly graceMs?: number;
}

const never = new AbortController().signal;

/**
 * Calls `onMessage` for each user message among the drafts. After an abort it waits for the hook at most
 * `graceMs`.
 */
export async function callOnMessage(
  hooks: Hooks | undefined,
  drafts: readonly Draft[],
  { session, source = 'user', signal = never, graceMs = 0 }: HookContext,
): Promise<HookedDrafts> {
  const hook = hooks?.onMessage;
  if (hook === undefined) return { drafts, warnings: [] };
  const hooked: Draft[] = [];
  const warnings: string[] = [];
  for (const draft of drafts) {
    const { payload, meta } = draft;
    if (draft.kind !== 'message' || !isObject(payload) || payload.role !== 'user') {
      hooked.push(draft);
      continue;
    }
    const from = typeof meta?.source === 'string' ? meta.source : source;
    const message = { session, text: textOf(payload.content ?? null), source: from, signal };
    try {
      const called = Promise.try(() => hook(message));
      const returned = await within(called, { timeoutMs: Number.POSITIVE_INFINITY, graceMs, signal });
      const id = snapshotIn(returned);
      hooked.push(id === undefined ? draft : { ...draft, meta: { ...meta, snapshot_id: id } });
    } catch (error) {
      warnings.push(warningOf('onMessage', error));
      hooked.push(failure('onMessage', error), draft);
    }
  }
  return { drafts: hooked, warnings };
}

/** Calls `onRewind`. Returns the entry to record and the warning when it throws. */
export async function callOnRewind(hooks: Hooks | undefined, rewind: RewindEvent): Promise<HookedDrafts> {
  try {
    await hooks?.onRewind?.(rewind);
    return { drafts: [], warnings: [] };
  } catch (error) {
    return { drafts: [failure('onRewind', error)], warnings: [warningOf('onRewind', error)] };
  }
}

function snapshotIn(returned: unknown): string | undefined {
  if (returned === 'aborted') throw new Error('the run was aborted before it returned');
  const { snapshotId } = (returned ?? {}) as { snapshotId?: unknown };
  if (snapshotId === undefined) return undefined;
  if (typeof snapshotId === 'string' && snapshotId !== '') return snapshotId;
  throw new TypeError('it must return { snapshotId } with a string, or undefined');
}

function failure(hook: keyof Hooks, error: unknown): Draft {
  return note('hook/failed', { hook, message: messageOf(error) });
}

function warningOf(hook: keyof Hooks, error: unknown): string {
  return `the hook ${hook} failed: ${messageOf(error)}`;
}

/** The text parts of a message's content, joined by newlines. */
export function textOf(content: Json): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .flatMap((part) => (isObject(part) && part.type === 'text' ? [String(part.text)] : []))
    .join('\n');
}
