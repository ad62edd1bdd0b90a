import { forgottenDraft, originDraft } from '@tapedeck/runtime/internal';
import { type Draft, type HomeStore, TapeError } from '@tapedeck/tape';
import { nameFault, sha256 } from '@tapedeck/tape/store';
import { type Holding, idOf, type Origin } from './holdings.ts';
import type { UnreadRecords } from './unread-records.ts';

/** How many records become entries at once: others can write in between. */
const atOnce = 20_000;

/** Writes on sessions that their source was forgotten. */
export function markForgotten(store: HomeStore, sessions: readonly Holding[]): void {
  for (const { id } of sessions.filter(({ isDeleted }) => !isDeleted)) {
    try {
      store.entries.append(id, [forgottenDraft()]);
    } catch (error) {
      // An archived session takes nothing, of any source.
      if (!(error instanceof TapeError) || error.code !== 'TAPE_ARCHIVED') throw error;
    }
  }
}

/** What none of the sessions has from another one, under the same keys. */
export function notInherited(
  store: HomeStore,
  sessions: readonly Holding[],
  drafts: readonly Draft[],
): readonly Draft[] {
  const forks = sessions.filter(({ isFork }) => isFork);
  const isThere = (id: string, { key }: Draft) =>
    [...store.entries.read(id, { key: `u:${key}`, limit: 1 })].length > 0;
  return drafts.filter((draft) => !forks.some(({ id }) => isThere(id, draft)));
}

/**
 * Remembers on a deleted session that a source was forgotten, with what it said that was not imported: when, and under which ids,
 * as of any message that was erased. So no import takes it from a copy.
 */
export function rememberApart(store: HomeStore, { origin, drafts }: UnreadRecords, reason: string): void {
  const { tool, main } = origin;
  const { id } = store.sessions.open(freeName(store, origin));
  store.entries.append(id, [originDraft({ format: tool, session: main }), forgottenDraft()]);
  const seqs: number[] = [];
  for (let at = 0; at < drafts.length; at += atOnce) {
    const { from, to } = store.entries.append(id, drafts.slice(at, at + atOnce));
    for (let seq = from; seq <= to; seq += 1) seqs.push(seq);
  }
  // Deleted first: no reader needs to see them.
  store.sessions.update(id, { lifecycle: 'destroyed' });
  for (let at = 0; at < seqs.length; at += atOnce)
    store.entries.redact(id, seqs.slice(at, at + atOnce), reason, { wipe: false });
}

/** The id of the conversation, unless something else has that name. */
function freeName(store: HomeStore, origin: Origin): string {
  const { main } = origin;
  const isFree = (name: string) => nameFault(name) === undefined && store.sessions.find(name) === undefined;
  if (isFree(main)) return main;
  const other = `forgotten-${sha256(idOf(origin)).slice(0, 12)}`;
  for (let n = 1; ; n += 1) {
    const name = n === 1 ? other : `${other}-${n}`;
    if (isFree(name)) return name;
  }
}
