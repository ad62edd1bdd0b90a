import type { CallSettings, Deck, ModelSpec, Session, WaitingCall } from '@tapedeck/runtime';
import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import type { MaskedIo } from '../masked-io.ts';
import { isConversation } from '../transcript/wanted.ts';

/** A conversation: its session, which commands can change, and what its user has seen of it. */
export interface Talk {
  readonly store: HomeStore;
  readonly deck: Deck;
  readonly context: Context;
  session: Session;
  /** The model and the settings that the user named for the next runs. */
  named: { readonly model?: string; readonly settings?: CallSettings };
  /** The model of the configuration, in whose place others can be named. */
  readonly configured: ModelSpec | undefined;
  /** The last position that the user has seen. */
  seen: number;
  /** Does an act that the next Ctrl-C stops. */
  readonly stoppable: <T>(act: (io: MaskedIo) => Promise<T>) => Promise<T>;
  /** Calls whose arguments a run has shown, by their ids. */
  readonly calls: Map<string, Pick<WaitingCall, 'name' | 'input'>>;
}

/** Makes the conversation about another session. Nothing of it counts as seen. */
export async function turnTo(talk: Talk, name: string): Promise<void> {
  talk.session = await talk.deck.session(name);
  talk.seen = 0;
}

/** The current row of its session. */
export function infoOf({ store, session }: Pick<Talk, 'store' | 'session'>): SessionInfo {
  const info = store.sessions.find(session.id);
  if (info === undefined) throw new TypeError(`the session ${session.name} has no row`);
  return info;
}

/** Items that are shown of a session when a conversation turns to it, and of what others added to it. */
const items = { greeting: 4, added: 50 } as const;

/** Entries that are looked at for something to show. */
const lookedAt = 200;

/**
 * Shows what the user has not seen: the end of a session at first, and then what others add.
 * @param end the last position to show (default: the head)
 */
export async function showUnseen(talk: Talk, end?: number): Promise<void> {
  const { store, context } = talk;
  const info = infoOf(talk);
  const to = end ?? info.head;
  const from = Math.max(talk.seen, info.floor) + 1;
  const isFirst = talk.seen === 0;
  talk.seen = Math.max(talk.seen, to);
  const range = { from, to };
  if (![...store.entries.read(info.id, { ...range, last: lookedAt })].some(isConversation)) return;
  if (!isFirst) await context.io.out(`${context.style.text('dim', `Added to ${info.session} by others:`)}\n`);
  const { openTranscript } = await import('../transcript/transcript.ts');
  const form = { oneline: false, full: false, all: false, hidden: false, times: undefined, find: undefined };
  await openTranscript(store, info, form, context).show({
    ...range,
    last: isFirst ? items.greeting : items.added,
  });
}
