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

/** The session that sent a message, and those whose rules bound it then. */
function senderOf({ meta }: Pick<Draft | Entry, 'meta'>): readonly string[] {
  const by = meta?.by;
  if (!isObject(by) || typeof by.id !== 'string') return [];
  const others = Array.isArray(by.senders) ? by.senders : [];
  return [by.id, ...others.filter((id) => typeof id === 'string')];
}

const pageSize = 20;

/** The sessions that sent messages to the run of the last message, which another run continues. */
export async function lastSenders(store: TapeStore, session: string): Promise<readonly string[]> {
  const senders: string[] = [];
  let run: unknown;
  for (let to: number | undefined; to !== 0; ) {
    const page = await Array.fromAsync(
      store.entries.read(session, { kind: 'message', last: pageSize, ...(to !== undefined && { to }) }),
    );
    for (const entry of page.toReversed()) {
      const { payload, meta } = entry;
      if (!isObject(payload) || payload.role !== 'user' || meta.source === 'merge') continue;
      run ??= meta.run ?? null;
      if (run === null || meta.run !== run) return senders;
      senders.push(...senderOf(entry));
    }
    to = page.length < pageSize ? 0 : (page[0]?.seq ?? 1) - 1;
  }
  return senders;
}
