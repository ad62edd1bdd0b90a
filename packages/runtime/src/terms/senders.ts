import type { Draft, Entry, TapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { InboxItem } from '@tapedeck/tape/store';
import type { SessionFacts } from './terms.ts';

/** The ULIDs of the sessions whose rules bind the last run of a session, beside those of its line. */
export async function sendersOf(
  store: TapeStore,
  { info, origin }: SessionFacts,
): Promise<readonly string[]> {
  const all = [...(origin.terms.senders ?? []), ...(await lastSenders(store, info.id))];
  return [...new Set(all)];
}

/** The ULIDs of the sessions that sent messages among these items. */
export function sendersIn(items: readonly InboxItem[]): readonly string[] {
  return items.flatMap(({ body }) => (body.type === 'input' ? body.drafts.flatMap(senderOf) : []));
}

/**
 * The session that sent a message, and those whose rules bound it then. The task of a child that is resumed has the latter
 * only: the rules of its parent are above its own.
 */
export function senderOf({ meta }: Pick<Draft | Entry, 'meta'>): readonly string[] {
  const by = meta?.by;
  if (!isObject(by)) return [];
  const others = Array.isArray(by.senders) ? by.senders : [];
  return [by.id, ...others].filter((id) => typeof id === 'string');
}

const pageSize = 20;

/**
 * The sessions that sent the messages of the turn that is not over, which another run continues: those since the last
 * complete answer, whichever runs took them up. A message that a steered run took up after its answer belongs to the
 * turn of that run.
 */
export async function lastSenders(store: TapeStore, session: string): Promise<readonly string[]> {
  const senders: string[] = [];
  const runs = new Set<unknown>();
  let isOpen = false;
  for (let to: number | undefined; to !== 0; ) {
    const page = await Array.fromAsync(
      store.entries.read(session, { kind: 'message', last: pageSize, ...(to !== undefined && { to }) }),
    );
    for (const entry of page.toReversed()) {
      const { payload, meta } = entry;
      if (!isObject(payload) || meta.source === 'merge') continue;
      if (payload.role === 'user') {
        isOpen = true;
        senders.push(...senderOf(entry));
        // Input with which a person begins a run begins a turn, whatever the last one was left with.
        if (isInput(entry)) return senders;
      } else if (isOpen && meta.finish === 'stop' && !runs.has(meta.run)) return senders;
      if (meta.run !== undefined) runs.add(meta.run);
    }
    to = page.length < pageSize ? 0 : (page[0]?.seq ?? 1) - 1;
  }
  return senders;
}

/** Whether a run was given a message as its input: one that came by the inbox has the time at which it was queued. */
function isInput({ meta }: Entry): boolean {
  return (
    meta.source === 'user' && meta.run !== undefined && meta.queued_at === undefined && meta.by === undefined
  );
}
