import type { InboxItem } from '@tapedeck/tape/store';
import { openPermits } from '../terms/permits.ts';
import { lastSenders, senderOf, sendersIn } from '../terms/senders.ts';
import type { Ancestry } from '../terms/terms.ts';
import type { DeckTools } from '../tools/traits.ts';
import type { WorkerParts } from './parts.ts';
import type { RunRequest } from './request.ts';

/** The sessions whose messages a run answers, or answered before it was cut off or waited: their rules bind it, too. */
export async function sendersFor(
  { store }: WorkerParts,
  session: string,
  { items, options }: Pick<RunRequest, 'options'> & { readonly items: readonly InboxItem[] | 'continues' },
): Promise<readonly string[]> {
  if (items === 'continues') return await lastSenders(store, session);
  const { meta } = options;
  return [...(meta === undefined ? [] : senderOf({ meta })), ...sendersIn(items)];
}

/**
 * The tools without those that the provider runs and that rules do not allow: the provider runs a call before a user
 * can decide on it, so they are not offered.
 */
export async function withoutRefusedTools(
  parts: WorkerParts,
  line: Ancestry,
  { tools, senders }: { readonly tools: DeckTools; readonly senders: readonly string[] },
): Promise<DeckTools> {
  const permits = await openPermits(parts, { line, workspace: undefined }, senders);
  if (!permits.isRuled) return tools;
  const offered: [string, DeckTools[string]][] = [];
  for (const [name, tool] of Object.entries(tools)) {
    const isRunThere = tool.type === 'provider' && tool.isProviderExecuted;
    if (!isRunThere || (await permits.permit({ tool: name, input: {} }, tool)).verdict === 'allow')
      offered.push([name, tool]);
  }
  return Object.fromEntries(offered);
}
