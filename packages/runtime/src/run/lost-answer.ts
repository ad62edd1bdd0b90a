import { isDeepStrictEqual } from 'node:util';
import { processOwner, type SessionInfo, type TapeStore } from '@tapedeck/tape';
import type { InboxItem } from '@tapedeck/tape/store';
import { SessionError } from '../errors.ts';
import { hold } from '../lease/hold.ts';
import type { OpenCall } from '../stream/call.ts';
import { awaitsAnswer, openBatch } from '../tools/open-batch.ts';
import { itemDrafts, type ToDraft } from './intake.ts';

/**
 * Whether an answer was posted too late: between its check and its posting, a run took up another answer to the call. The
 * same answer is not too late. One that is too late leaves the inbox. `before`: the session when the answer was checked.
 */
export async function isTooLate(
  store: TapeStore,
  before: SessionInfo,
  { call, item }: { readonly call: OpenCall; readonly item: ToDraft },
): Promise<boolean> {
  const open = await openBatch(store, before.id);
  if (open.some((one) => one.toolCallId === call.toolCallId && awaitsAnswer(one))) return false;
  const [same] = itemDrafts(item, { open: [call], run: '' });
  for await (const { kind, name, payload } of store.entries.read(before.id, { from: before.head + 1 }))
    if (kind === same?.kind && name === same.name && isDeepStrictEqual(payload, same.payload)) return false;
  await withdraw(store, before.id, item);
  return true;
}

/** Takes an item from the inbox. A process that runs the session does it at the end of its run, and notes it. */
async function withdraw(store: TapeStore, session: string, { id }: Pick<InboxItem, 'id'>): Promise<void> {
  try {
    const held = await hold(store, session, { owner: processOwner(`answer:${id}`) });
    await held.drain([{ id, drafts: [] }]);
    await held.release();
  } catch (error) {
    if (!(error instanceof SessionError) || error.code !== 'SESSION_BUSY') throw error;
  }
}
