import { type Entry, type JsonObject, type View, view } from '@tapedeck/tape';
import { textTokens } from '@tapedeck/tape/internal';
import { sha256 } from '@tapedeck/tape/store';
import { settingsMeta } from '../model/call-settings.ts';
import { modelMeta } from '../model/model.ts';
import type { LoopContext } from './context.ts';

/** The parts of a model call other than the messages. */
interface CallParts extends Pick<LoopContext, 'compaction' | 'definitions'> {
  readonly instructions: string | undefined;
}

/** The view of these entries for the session's model. */
export function viewFor(
  { model, shows, compaction }: Pick<LoopContext, 'model' | 'shows' | 'compaction'>,
  entries: Iterable<Entry>,
): View {
  const { provider } = modelMeta(model);
  const { countTokens } = compaction.policy;
  return view(entries, { policy: shows, target: provider === undefined ? {} : { provider }, countTokens });
}

/**
 * The tokens of the model's window that a call uses: the provider's count of the last step plus an estimate
 * of the entries since; without a count, an estimate of the whole call.
 */
export function usedBy(call: CallParts, shown: Pick<View, 'tokens' | 'isEstimate'>): number {
  return shown.isEstimate ? overheadOf(call) + shown.tokens : shown.tokens;
}

/** Estimated tokens of a call without its messages. */
export function overheadOf({ compaction, instructions, definitions }: CallParts): number {
  return textTokens(`${instructions ?? ''}${JSON.stringify(definitions)}`, compaction.policy.countTokens);
}

/**
 * Metadata that reproduces a model call: the manifest of its view, the digests of its instructions and tools,
 * and its settings.
 */
export function callMeta(
  context: Pick<LoopContext, 'compaction' | 'definitions' | 'sentTools' | 'callSettings'>,
  shown: View,
  instructions: string | undefined,
): JsonObject {
  const tokens = usedBy({ ...context, instructions }, shown);
  return {
    view: { ...shown.manifest(), tokens } as unknown as JsonObject,
    ...(instructions !== undefined && { instructions_digest: sha256(instructions) }),
    ...(context.sentTools !== undefined && { tools_digest: context.sentTools.digest }),
    ...settingsMeta(context.callSettings),
  };
}
