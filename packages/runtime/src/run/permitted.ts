import type { InboxItem } from '@tapedeck/tape/store';
import { openPermits, type Permits } from '../terms/permits.ts';
import { lastSenders, sendersIn } from '../terms/senders.ts';
import type { Ancestry } from '../terms/terms.ts';
import type { DeckTools } from '../tools/traits.ts';
import type { WorkerParts } from './parts.ts';

/**
 * What decides on the calls of a run: the rules of the session's line, and those of the sessions whose messages the run
 * answers, or answered before it was cut off or waited.
 */
export async function permitsFor(
  parts: WorkerParts,
  line: Ancestry,
  {
    workspace,
    items,
  }: { readonly workspace: string | undefined; readonly items: readonly InboxItem[] | 'continues' },
): Promise<Permits> {
  const senders = items === 'continues' ? await lastSenders(parts.store, line[0].info.id) : sendersIn(items);
  return await openPermits(parts, { line, workspace }, senders);
}

/**
 * The tools without those that the provider runs and that rules do not allow: nobody can be asked about their calls, so
 * they are not offered.
 */
export async function withoutRefusedTools(
  parts: WorkerParts,
  line: Ancestry,
  tools: DeckTools,
): Promise<DeckTools> {
  const permits = await openPermits(parts, { line, workspace: undefined });
  if (!permits.isRuled) return tools;
  const offered: [string, DeckTools[string]][] = [];
  for (const [name, tool] of Object.entries(tools)) {
    const isRunThere = tool.type === 'provider' && tool.isProviderExecuted;
    if (!isRunThere || (await permits.permit({ tool: name, input: {} }, tool)).verdict === 'allow')
      offered.push([name, tool]);
  }
  return Object.fromEntries(offered);
}
