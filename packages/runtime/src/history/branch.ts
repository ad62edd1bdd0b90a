import type { Forked, Inherit, JsonObject, Point, SessionInfo, TapeStore } from '@tapedeck/tape';
import type { Fields } from '../fields.ts';
import { asBusySession } from '../lease/hold.ts';
import { assertSettings, type CallSettings, mergeSettings, settingsMeta } from '../model/call-settings.ts';
import { assertModelName } from '../model/name.ts';
import { carriedBy } from '../terms/carried-model.ts';
import { ancestryOf, assertCeiling, factsOf, originOf, type Terms } from '../terms/terms.ts';

/** Options of a branch. Omitted settings are those of its parent. */
export interface BranchOptions {
  /**
   * How much of its parent it inherits, up to the point: a tail with `{ last: n }`, a slice with `{ since }`. Its
   * settings are those of the parent in each case. Default: `all`.
   */
  readonly inherit?: Inherit;
  /** Its name. Default: derived from the parent's. */
  readonly name?: string;
  /** Spawn key: the same key on the same parent gives the same branch. */
  readonly key?: string;
  readonly title?: string;
  /** True: leave the branch out of lists. */
  readonly ephemeral?: boolean;
  readonly instructions?: string;
  /** The name of a model. */
  readonly model?: string;
  /** Settings of its model calls. */
  readonly settings?: CallSettings;
  /** Names of the tools that the branch may call, among those of its parent. */
  readonly tools?: readonly string[];
  /** Names of those that its own model may call. Default: those that its parent uses. */
  readonly uses?: readonly string[];
  /** Metadata of the branch, merged key by key over that of its parent. */
  readonly metadata?: JsonObject;
}

/** The fields of `BranchOptions`. */
export const branchFields: Fields<BranchOptions> = {
  inherit: true,
  name: 'text',
  key: 'text',
  title: 'text',
  ephemeral: 'flag',
  instructions: 'text',
  model: true,
  settings: 'object',
  tools: 'texts',
  uses: 'texts',
  metadata: 'object',
};

/** The metadata of a branch, over that of the branches above it. */
export async function metadataOf(store: TapeStore, info: SessionInfo): Promise<JsonObject> {
  return (await originOf(store, info)).settings.metadata ?? {};
}

/**
 * Forks an independent session with everything visible up to a point, inclusive, or with the part that `inherit`
 * selects, and with the parent's model and other settings. The parent does not change.
 * @throws SESSION_NO_MODEL when `model` is not the name of one; SESSION_BUSY while a process writes the parent;
 *   TAPE_BAD_POINT when a rewind hides the point; the errors of `store.fork`
 *
 * @example
 * ```ts
 * import { branchSession, openDeck } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const main = await deck.session('main');
 * await main.run('Plan the release.');
 * const { session, parent } = await branchSession(deck.store, await main.info(), { name: 'idea' });
 * console.log(session, parent); // idea main
 * ```
 */
export async function branchSession(
  store: TapeStore,
  parent: SessionInfo,
  { cut, ...options }: BranchOptions & { readonly cut?: Point },
): Promise<Forked> {
  const { inherit, name, key, title, ephemeral, instructions, tools, uses, metadata } = options;
  assertModelName(options.model);
  if (tools !== undefined || uses !== undefined)
    assertCeiling(
      await ancestryOf(store, await factsOf(store, parent)),
      { tools, uses },
      `branch '${parent.session}'`,
    );
  const seq = cut === undefined ? parent.head : await store.entries.resolve(parent.id, cut);
  assertSettings(options.settings, `branch '${parent.session}'`);
  const carried = await carriedBy(store, await factsOf(store, parent), { at: seq });
  const model = options.model ?? carried.model;
  const call = mergeSettings(carried.settings, options.settings);
  const given = {
    ...(instructions !== undefined && { instructions }),
    ...(tools !== undefined && { tools: [...tools] }),
    ...(uses !== undefined && { uses: [...uses] }),
  };
  const facts =
    metadata === undefined ? {} : { metadata: { ...(await metadataOf(store, parent)), ...metadata } };
  try {
    return await store.lineage.fork(parent.id, {
      kind: 'session',
      whenIdle: true,
      whereShown: true,
      ...(cut !== undefined && { cut }),
      ...(inherit !== undefined && { inherit }),
      // The provider has not cached its prompt with that of the parent, so tools that it may not call are not offered.
      ...(inherit !== undefined && inherit !== 'all' && { terms: { context: 'part' } satisfies Terms }),
      ...(name !== undefined && { name }),
      ...(key !== undefined && { key }),
      ...(title !== undefined && { title }),
      ...(ephemeral !== undefined && { ephemeral }),
      settings: {
        ...given,
        ...facts,
        ...(model !== undefined && { model }),
        ...(Object.keys(call).length > 0 && { call: call as JsonObject }),
      },
      asked: {
        branch: true,
        ...given,
        ...(options.model !== undefined && { model: options.model }),
        ...settingsMeta(options.settings ?? {}),
        ...(title !== undefined && { title }),
        ...(ephemeral === true && { ephemeral }),
        ...(metadata !== undefined && { metadata }),
      },
    });
  } catch (error) {
    throw asBusySession(error, 'branch');
  }
}
