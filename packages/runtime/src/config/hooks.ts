import { type Awaitable, type Draft, isObject, type Json, note, type Seq } from '@tapedeck/tape';
import { messageOf } from '../errors.ts';
import { within } from '../tools/within.ts';

/** What a deck has done when people speak and take back: to keep snapshots of a workspace, say, and to restore them. */
export interface Hooks {
  /**
   * Called before a user's message lands on the tape, one that waited in the inbox too (G19). The snapshot that it names is kept in
   * the message's meta, as `snapshot_id` (G18). The message lands in any case: what goes wrong is recorded as `hook/failed`, and
   * told as a warning.
   */
  readonly onMessage?: (message: LandingMessage) => Awaitable<{ readonly snapshotId?: string } | undefined>;
  /** Called after a rewind, while nobody else can write the session. What goes wrong is recorded and told in the same way. */
  readonly onRewind?: (rewind: RewindEvent) => Awaitable<void>;
}

/** A message that is about to land. */
export interface LandingMessage {
  readonly session: string;
  /** Its texts, joined by line ends. */
  readonly text: string;
  /** Who sent it: `user`, `agent`, `merge` … */
  readonly source: string;
  /** Aborted with the run that takes the message in. */
  readonly signal: AbortSignal;
}

/** A rewind that is done. */
export interface RewindEvent {
  readonly session: string;
  /** The session reads as if it ended here. */
  readonly to: Seq;
  /** Position of the message that it was rewound to. */
  readonly message: Seq;
  /** What `onMessage` returned for that message. */
  readonly snapshotId?: string;
}

/** Messages with what the hooks say of them, and what went wrong. */
export interface Landing {
  readonly drafts: readonly Draft[];
  readonly warnings: readonly string[];
}

/** Where messages land, who sent those that do not say so, and what they are waited for by. */
interface LandingPlace {
  readonly session: string;
  readonly source?: string | undefined;
  readonly signal?: AbortSignal;
  readonly graceMs?: number;
}

const never = new AbortController().signal;

/** Asks `onMessage` of each user's message among drafts that are about to land. It is not waited for after an abort and `graceMs`. */
export async function announce(
  hooks: Hooks | undefined,
  drafts: readonly Draft[],
  { session, source = 'user', signal = never, graceMs = 0 }: LandingPlace,
): Promise<Landing> {
  const hook = hooks?.onMessage;
  if (hook === undefined) return { drafts, warnings: [] };
  const landing: Draft[] = [];
  const warnings: string[] = [];
  for (const draft of drafts) {
    const { payload, meta } = draft;
    if (draft.kind !== 'message' || !isObject(payload) || payload.role !== 'user') {
      landing.push(draft);
      continue;
    }
    const from = typeof meta?.source === 'string' ? meta.source : source;
    const message = { session, text: textOf(payload.content ?? null), source: from, signal };
    try {
      const asked = Promise.try(() => hook(message));
      const said = await within(asked, { timeoutMs: Number.POSITIVE_INFINITY, graceMs, signal });
      const id = snapshotIn(said);
      landing.push(id === undefined ? draft : { ...draft, meta: { ...meta, snapshot_id: id } });
    } catch (error) {
      warnings.push(warningOf('onMessage', error));
      landing.push(failure('onMessage', error), draft);
    }
  }
  return { drafts: landing, warnings };
}

/** Tells `onRewind` of a rewind: what to record, and to warn of, when that goes wrong. */
export async function tellRewind(hooks: Hooks | undefined, rewind: RewindEvent): Promise<Landing> {
  try {
    await hooks?.onRewind?.(rewind);
    return { drafts: [], warnings: [] };
  } catch (error) {
    return { drafts: [failure('onRewind', error)], warnings: [warningOf('onRewind', error)] };
  }
}

function snapshotIn(said: unknown): string | undefined {
  if (said === 'aborted') throw new Error('it had not answered when the run was aborted');
  const { snapshotId } = (said ?? {}) as { snapshotId?: unknown };
  if (snapshotId === undefined) return undefined;
  if (typeof snapshotId === 'string' && snapshotId !== '') return snapshotId;
  throw new TypeError('it must return { snapshotId } with a text, or nothing');
}

function failure(hook: keyof Hooks, error: unknown): Draft {
  return note('hook/failed', { hook, message: messageOf(error) });
}

function warningOf(hook: keyof Hooks, error: unknown): string {
  return `the hook ${hook} failed: ${messageOf(error)}`;
}

/** The texts of a message's content, on lines of their own. */
export function textOf(content: Json): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .flatMap((part) => (isObject(part) && part.type === 'text' ? [String(part.text)] : []))
    .join('\n');
}
