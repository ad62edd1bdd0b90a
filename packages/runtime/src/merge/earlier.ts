import type { Merged, MergeRequest, TapeStore } from '@tapedeck/tape';

/**
 * The receipt of the merge that covers a child's current head; undefined without one.
 * @throws TAPE_CONFLICT when the request has another strategy or result than that merge
 */
export async function earlierMerge(
  store: TapeStore,
  child: string,
  request: MergeRequest = {},
): Promise<Merged | undefined> {
  const { entries: _, refusal, ...receipt } = await store.lineage.previewMerge(child, request);
  if (!receipt.repeated) return undefined;
  if (refusal !== undefined) throw refusal;
  return receipt;
}
