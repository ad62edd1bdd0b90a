/**
 * Acts of people on the history of a session: rewinds (`rewind.ts`, `rewind-target.ts`), branches (`branch.ts`),
 * and undoing a rewind or a compaction (`undo.ts`). Each is one entry or one fork of the store. No file
 * here loads the AI SDK. Imports `config`, `terms`, `tools`, `model`, `lease`, `fields` and `errors`.
 */
import {
  type Entry,
  type JsonObject,
  type Part,
  type Point,
  processOwner,
  type Rewound,
  type Seq,
  type SessionInfo,
  type TapeStore,
  user,
} from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { blobHashes, restoreBlobs } from '@tapedeck/tape/store';
import { callOnMessage, callOnRewind, type Hooks, textOf } from '../config/hooks.ts';
import { SessionError } from '../errors.ts';
import { getActive } from '../lease/get-active.ts';
import { type Hold, hold } from '../lease/hold.ts';
import { settleLeftovers } from '../lease/settle-leftovers.ts';
import { type CallSettings, callSettingsIn, mergeSettings, settingsMeta } from '../model/call-settings.ts';
import { usableName } from '../model/name.ts';
import { getTarget } from './rewind-target.ts';

/**
 * What a rewind does with its target message: `edit` returns it, to be changed and sent; `resend` appends it
 * again.
 */
export type RewindMode = 'edit' | 'resend';

const rewindModes: ReadonlySet<string> = new Set(['edit', 'resend'] satisfies RewindMode[]);

/** The receipt of a rewind to a message. */
export interface RewoundMessage extends Rewound {
  /** Position of the target message. */
  readonly message: Seq;
  /** Its text parts, joined by newlines. */
  readonly text: string;
  /** Its parts, usable as the input of a run. */
  readonly content: readonly Part[];
  /** The snapshot id that the hook `onMessage` returned for it. */
  readonly snapshotId?: string;
  /** Position of the resent message. */
  readonly resent?: Seq;
  /** Errors of the hooks, which are also recorded. */
  readonly warnings: readonly string[];
}

/** The store of a rewind, and the hooks to call. */
interface RewindPlace {
  readonly store: TapeStore;
  readonly hooks?: Hooks | undefined;
}

/**
 * Makes a session read as if it ended right before a user message, own or inherited. Hidden entries stay
 * readable, and `undoSession` shows them again. Runs under the session's lease. `model` names the model that
 * answers a resent message, and `settings` are those of its calls.
 * @throws SESSION_BUSY; SESSION_BAD_INPUT for an unknown mode; TAPE_ARCHIVED; TAPE_BAD_POINT when the point
 *   is not a visible user message; the errors of `store.resolve`
 *
 * @example
 * ```ts
 * import { openDeck, rewindSession } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const main = await deck.session('main');
 * const { from } = await main.run('Plan the release.');
 * const { text, hidden } = await rewindSession({ store: deck.store }, 'main', { to: from });
 * console.log(text, hidden); // Plan the release. 2
 * ```
 */
export async function rewindSession(
  { store, hooks }: RewindPlace,
  ref: string,
  { to, mode = 'edit', ...named }: ResendOptions & { readonly to: Point; readonly mode?: RewindMode },
): Promise<RewoundMessage> {
  const { id, session: name } = await getActive(store, ref, 'rewind');
  if (!rewindModes.has(mode))
    throw new SessionError(
      'SESSION_BAD_INPUT',
      `cannot rewind '${name}': unknown mode '${mode}', expected edit or resend`,
      {
        data: { session: name },
      },
    );
  const does = async (held: Hold, info: SessionInfo): Promise<RewoundMessage> => {
    const target = await getTarget(store, info, to);
    const content = await contentOf(store, target);
    const done = await store.history.rewind(id, target.seq - 1, { lease: held.lease, mode });
    const { snapshot_id: snapshot } = target.meta;
    const snapshotId = typeof snapshot === 'string' ? { snapshotId: snapshot } : {};
    const noticed = await callOnRewind(hooks, {
      session: info.session,
      to: done.to,
      message: target.seq,
      ...snapshotId,
    });
    const again =
      mode === 'resend'
        ? await callOnMessage(hooks, [user(content, againMeta(target, named))], { session: info.session })
        : { drafts: [], warnings: [] };
    const drafts = [...noticed.drafts, ...again.drafts];
    const appended =
      drafts.length > 0 ? await store.entries.append(id, drafts, { lease: held.lease }) : undefined;
    return {
      ...done,
      message: target.seq,
      text: textOf(isObject(target.payload) ? (target.payload.content ?? null) : null),
      content,
      ...snapshotId,
      ...(mode === 'resend' && appended !== undefined && { resent: appended.to }),
      warnings: [...noticed.warnings, ...again.warnings],
    };
  };
  return await withLease(store, id, { does });
}

/**
 * Runs an act under a session's lease, after it settled the leftovers of a killed run and drained the inbox.
 */
export async function withLease<T>(
  store: TapeStore,
  id: string,
  {
    act = 'rewind',
    does,
  }: {
    /** The verb for error messages. */
    readonly act?: string;
    readonly does: (held: Hold, info: SessionInfo) => Promise<T>;
  },
): Promise<T> {
  const held = await hold(store, id, { owner: processOwner(`${act}:${id}`), act });
  try {
    // Otherwise the next run would append a cut-off answer after the rewind.
    await settleLeftovers(store, id, held);
    await held.drain();
    return await does(held, await getActive(store, id, act));
  } finally {
    await held.release();
  }
}

/** The parts of a message, with blobs as bytes. */
async function contentOf(store: TapeStore, { payload }: Entry): Promise<readonly Part[]> {
  const content = isObject(payload) ? payload.content : undefined;
  const bytes = new Map<string, Uint8Array>();
  for (const hash of blobHashes(content)) bytes.set(hash, await store.entries.blob(hash));
  return restoreBlobs(content, (hash) => bytes.get(hash) ?? new Uint8Array()) as readonly Part[];
}

/** Metadata that a run or an inbox records of one append. It does not apply to a resent message. */
export const ofAppend: ReadonlySet<string> = new Set(['run', 'place', 'mode', 'queued_at', 'snapshot_id']);

/** What answers a resent message. */
interface ResendOptions {
  /** Name of a model. */
  readonly model?: string;
  readonly settings?: CallSettings;
}

/** The entry is recorded here: of one from elsewhere, a model that does not count stays out of it. */
function againMeta({ seq, meta, ...entry }: Entry, { model, settings }: ResendOptions): JsonObject {
  const { model: recorded, ...kept } = Object.fromEntries(
    Object.entries(meta).filter(([fact]) => !ofAppend.has(fact)),
  );
  const usable = typeof recorded === 'string' ? usableName(recorded, entry) : undefined;
  return {
    ...kept,
    ...(usable !== undefined && { model: usable }),
    resends: seq,
    ...(model !== undefined && { model }),
    ...settingsMeta(mergeSettings(callSettingsIn(meta.settings), settings)),
  };
}
