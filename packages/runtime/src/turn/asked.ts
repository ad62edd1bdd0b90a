import { type Entry, type JsonObject, sha256, textTokens, type View, view } from '@tapedeck/tape';
import { modelMeta } from '../model/model.ts';
import type { LoopContext } from './context.ts';

/** What a model is asked with beside the messages. */
interface Beside extends Pick<LoopContext, 'compaction' | 'definitions'> {
  readonly instructions: string | undefined;
}

/** What a session's model is shown of these entries. */
export function viewFor(
  { model, shows, compaction }: Pick<LoopContext, 'model' | 'shows' | 'compaction'>,
  entries: Iterable<Entry>,
): View {
  const { provider } = modelMeta(model);
  const { countTokens } = compaction.policy;
  return view(entries, { policy: shows, target: provider === undefined ? {} : { provider }, countTokens });
}

/**
 * How much of the model's window a call takes: what the provider said of the last step and an estimate of what came after, else
 * an estimate of all that it is asked with (K24).
 */
export function usedBy(beside: Beside, shown: Pick<View, 'tokens' | 'isEstimate'>): number {
  return shown.isEstimate ? overheadOf(beside) + shown.tokens : shown.tokens;
}

/** What a call takes beside its messages, as an estimate. */
export function overheadOf({ compaction, instructions, definitions }: Beside): number {
  return textTokens(`${instructions ?? ''}${JSON.stringify(definitions)}`, compaction.policy.countTokens);
}

/** What a model was asked with, so that it can be told later: the manifest of what it was shown, and the digests of what it was told beside that. */
export function askedMeta(
  context: Pick<LoopContext, 'compaction' | 'definitions' | 'toolsDigest'>,
  shown: View,
  instructions: string | undefined,
): JsonObject {
  const tokens = usedBy({ ...context, instructions }, shown);
  return {
    view: { ...shown.manifest(), tokens } as unknown as JsonObject,
    ...(instructions !== undefined && { instructions_digest: sha256(instructions) }),
    ...(context.toolsDigest !== undefined && { tools_digest: context.toolsDigest }),
  };
}
