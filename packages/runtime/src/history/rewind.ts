/**
 * Acts of people on the history of a session: rewinds and their way back (`rewind.ts`, `rewind-target.ts`), branches
 * (`branch.ts`), and taking a compaction back (`uncompact.ts`). Each is one entry or one fork of the store. No file
 * here loads the AI SDK. Imports `config`, `terms`, `tools`, `lease`, `fields` and `errors`.
 */
import {
  blobHashes,
  type Entry,
  isObject,
  type JsonObject,
  type Part,
  type Point,
  processOwner,
  type Rewound,
  restoreBlobs,
  type Seq,
  type SessionInfo,
  type TapeStore,
  user,
} from '@tapedeck/tape';
import { announce, type Hooks, tellRewind, textOf } from '../config/hooks.ts';
import { SessionError } from '../errors.ts';
import { getActive } from '../lease/get-active.ts';
import { type Hold, hold } from '../lease/hold.ts';
import { settleLeftovers } from '../tools/orphans.ts';
import { getTarget } from './rewind-target.ts';

/** What becomes of the message that is rewound to: `edit` gives it back to be changed and sent, `resend` appends it again (G12, K22). */
export type RewindMode = 'edit' | 'resend';

const rewindModes: ReadonlySet<string> = new Set(['edit', 'resend'] satisfies RewindMode[]);

/** The receipt of a rewind to a message. */
export interface RewoundMessage extends Rewound {
  /** Position of the message that was rewound to. */
  readonly message: Seq;
  /** Its texts, joined by line ends. */
  readonly text: string;
  /** Its parts, as a run takes them for input. */
  readonly content: readonly Part[];
  /** What the hook `onMessage` returned for it. */
  readonly snapshotId?: string;
  /** Position at which it was appended again. */
  readonly resent?: Seq;
  /** What the hooks failed of; it is recorded, too. */
  readonly warnings: readonly string[];
}

/** Where rewinds are done, and what is told of them. */
interface RewindPlace {
  readonly store: TapeStore;
  readonly hooks?: Hooks | undefined;
}

/**
 * Makes a session read as if it ended right before a message of a user, its own or an inherited one. What is hidden stays readable, and
 * `unrewindSession` shows it again. Nobody else writes the session meanwhile.
 * @param model the name of the model that the message is to be answered by when it is sent again
 * @throws SESSION_BUSY; SESSION_BAD_INPUT when there is no such mode; TAPE_ARCHIVED; TAPE_BAD_POINT when there is no such message to rewind to; what resolving the point throws
 */
export async function rewindSession(
  { store, hooks }: RewindPlace,
  ref: string,
  { to, mode = 'edit', model }: { readonly to: Point; readonly mode?: RewindMode; readonly model?: string },
): Promise<RewoundMessage> {
  const { id, name } = await getActive(store, ref, 'rewind');
  if (!rewindModes.has(mode))
    throw new SessionError(
      'SESSION_BAD_INPUT',
      `cannot rewind '${name}': there is no mode '${mode}', only edit and resend`,
      {
        data: { session: name },
      },
    );
  const does = async (held: Hold, info: SessionInfo): Promise<RewoundMessage> => {
    const target = await getTarget(store, info, to);
    const content = await contentOf(store, target);
    const done = await store.rewind(id, target.seq - 1, { lease: held.lease, mode });
    const { snapshot_id: snapshot } = target.meta;
    const snapshotId = typeof snapshot === 'string' ? { snapshotId: snapshot } : {};
    const told = await tellRewind(hooks, {
      session: info.name,
      to: done.to,
      message: target.seq,
      ...snapshotId,
    });
    const again =
      mode === 'resend'
        ? await announce(hooks, [user(content, againMeta(target, model))], { session: info.name })
        : { drafts: [], warnings: [] };
    const drafts = [...told.drafts, ...again.drafts];
    const appended = drafts.length > 0 ? await store.append(id, drafts, { lease: held.lease }) : undefined;
    return {
      ...done,
      message: target.seq,
      text: textOf(isObject(target.payload) ? (target.payload.content ?? null) : null),
      content,
      ...snapshotId,
      ...(mode === 'resend' && appended !== undefined && { resent: appended.to }),
      warnings: [...told.warnings, ...again.warnings],
    };
  };
  return await withLease(store, id, { does });
}

/**
 * Takes a rewind of a session back, the last if none is named: what it hid is shown again, and what was said since is hidden. Doing it
 * again takes that back. No hook is called: what became of files meanwhile is nobody's snapshot.
 * @param rewind the position of the rewind's entry
 * @throws SESSION_BUSY; TAPE_ARCHIVED; TAPE_BAD_POINT when nothing was rewound, or there is no rewind of the session's own; what
 *   resolving the point throws
 */
export async function unrewindSession(
  { store }: RewindPlace,
  ref: string,
  { rewind }: { readonly rewind?: Point | undefined } = {},
): Promise<Rewound> {
  const { id } = await getActive(store, ref, 'rewind');
  const which = rewind === undefined ? {} : { rewind: await store.resolve(id, rewind) };
  return await withLease(store, id, {
    does: async ({ lease }) => await store.unrewind(id, { lease, ...which }),
  });
}

/** Does something to a session that nobody is writing, after what others left for it and what a killed run left behind. */
export async function withLease<T>(
  store: TapeStore,
  id: string,
  {
    act = 'rewind',
    does,
  }: {
    /** What cannot be done while somebody else writes the session. */
    readonly act?: string;
    readonly does: (held: Hold, info: SessionInfo) => Promise<T>;
  },
): Promise<T> {
  const held = await hold(store, id, { owner: processOwner(`${act}:${id}`), act });
  try {
    // An answer that was cut off would else be appended by the next run, behind the rewind.
    await settleLeftovers(store, id, held);
    await held.drain();
    return await does(held, await getActive(store, id, act));
  } finally {
    await held.release();
  }
}

/** The parts of a message with their bytes. */
async function contentOf(store: TapeStore, { payload }: Entry): Promise<readonly Part[]> {
  const content = isObject(payload) ? payload.content : undefined;
  const bytes = new Map<string, Uint8Array>();
  for (const hash of blobHashes(content)) bytes.set(hash, await store.blob(hash));
  return restoreBlobs(content, (hash) => bytes.get(hash) ?? new Uint8Array()) as readonly Part[];
}

/** Facts of one landing, which do not hold for the next. */
const ofLanding: ReadonlySet<string> = new Set(['run', 'mode', 'queued_at', 'snapshot_id']);

function againMeta({ seq, meta }: Entry, model: string | undefined): JsonObject {
  const kept = Object.entries(meta).filter(([fact]) => !ofLanding.has(fact));
  return { ...Object.fromEntries(kept), resends: seq, ...(model !== undefined && { model }) };
}
