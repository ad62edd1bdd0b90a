import type { Forked, JsonObject, Point, SessionInfo, TapeStore } from '@tapedeck/tape';
import type { Fields } from '../fields.ts';
import { asBusySession } from '../lease/hold.ts';
import { carriedModel } from '../terms/carried-model.ts';
import { originOf } from '../terms/terms.ts';

/** What a branch is made with. What is left out is as its parent has it. */
export interface BranchOptions {
  /** Its name; by default one is derived. */
  readonly name?: string;
  /** The same key on the same parent is the same branch. */
  readonly key?: string;
  readonly title?: string;
  /** A sidecar: left out of lists (G31). */
  readonly ephemeral?: boolean;
  readonly instructions?: string;
  /** The name of a model. */
  readonly model?: string;
  /** Names of the tools that it may call, of those that its parent may. */
  readonly tools?: readonly string[];
  /** Facts about it: merged, key by key, with those of its parent (G27). */
  readonly metadata?: JsonObject;
}

/** The fields of `BranchOptions`. */
export const branchFields: Fields<BranchOptions> = {
  name: true,
  key: true,
  title: true,
  ephemeral: true,
  instructions: true,
  model: true,
  tools: true,
  metadata: true,
};

/** The facts about a branch that were given with it and with those above it. */
export async function metadataOf(store: TapeStore, info: SessionInfo): Promise<JsonObject> {
  return (await originOf(store, info)).settings.metadata ?? {};
}

/**
 * Forks a session for people: all that is visible of it up to a point, that point included, with its model and its other settings
 * (G22-G30, K7). Its parent does not change.
 * @throws SESSION_BUSY while somebody is writing the parent; TAPE_BAD_POINT when a rewind hides the point; what a fork throws
 */
export async function branchSession(
  store: TapeStore,
  parent: SessionInfo,
  { at, ...options }: BranchOptions & { readonly at?: Point },
): Promise<Forked> {
  const { name, key, title, ephemeral, instructions, tools, metadata } = options;
  const seq = at === undefined ? parent.head : await store.resolve(parent.id, at);
  const model = options.model ?? (await carriedModel(store, parent.id, { at: seq }));
  const given = {
    ...(instructions !== undefined && { instructions }),
    ...(tools !== undefined && { tools: [...tools] }),
  };
  const facts =
    metadata === undefined ? {} : { metadata: { ...(await metadataOf(store, parent)), ...metadata } };
  try {
    return await store.fork(parent.id, {
      kind: 'session',
      whenIdle: true,
      whereShown: true,
      ...(at !== undefined && { cut: at }),
      ...(name !== undefined && { name }),
      ...(key !== undefined && { key }),
      ...(title !== undefined && { title }),
      ...(ephemeral !== undefined && { ephemeral }),
      settings: { ...given, ...facts, ...(model !== undefined && { model }) },
      asked: {
        branch: true,
        ...given,
        ...(options.model !== undefined && { model: options.model }),
        ...(title !== undefined && { title }),
        ...(ephemeral === true && { ephemeral }),
        ...(metadata !== undefined && { metadata }),
      },
    });
  } catch (error) {
    throw asBusySession(error, 'branch');
  }
}
