import { openBatch } from '../tools/open-batch.ts';
import { isRefusedAnswer, itemDrafts } from './intake.ts';
import type { RunRequest, RunScope } from './request.ts';

/**
 * Refuses the answers that a run begins with when no call waits for any of them, as when two processes give the same
 * answer: nothing follows from them. Returns the request without them, which may have nothing left to continue.
 */
export async function withoutRefused(scope: RunScope, request: RunRequest): Promise<RunRequest> {
  const { items = [], run } = request;
  if (items.length === 0 || items.some(({ body }) => body.type !== 'answer')) return request;
  const open = await openBatch(scope.parts.store, scope.session.id);
  const handled = items.map((item) => ({ id: item.id, drafts: itemDrafts(item, { open, run }) }));
  if (!handled.every(({ drafts }) => drafts.every(isRefusedAnswer))) return request;
  await scope.hold.drain(handled);
  const { items: _, ...rest } = request;
  return rest;
}
