import { type SessionInfo, sessionName, type TapeStore } from '@tapedeck/tape';
import type { Awaitable } from '@tapedeck/tape/store';
import type { RecoveryReport } from '../recovery/recover.ts';
import type { Session } from '../session/session.ts';
import { ChatError } from './errors.ts';

/** What a client may do: read messages and streams, send and edit messages, answer calls, stop runs. */
export type ChatRight = 'read' | 'send' | 'answer' | 'stop';

const allRights: readonly ChatRight[] = ['read', 'send', 'answer', 'stop'];

/** The sessions that a client may use. */
export interface ChatAccess {
  /** Names of sessions. The id of a chat is one of them. */
  readonly sessions?: readonly string[];
  /**
   * The beginning of the names of the client's sessions, such as `user-42.`; the id of a chat follows, as `sessionName`
   * writes it. The prefix of one client must not be the beginning of another's: end it with a character that no user name has.
   */
  readonly prefix?: string;
  /** Default: everything. */
  readonly may?: readonly ChatRight[];
}

/** Decides what the sender of a request may use. Undefined refuses it with 401. */
export type Authorize = (request: Request) => Awaitable<ChatAccess | undefined>;

/** The name of the session of a chat; undefined when the client may not use it. */
export function nameOf({ sessions = [], prefix }: ChatAccess, id: string): string | undefined {
  if (sessions.includes(id)) return id;
  // An empty prefix would name every session of the home.
  return prefix === undefined || prefix === '' || id === '' ? undefined : sessionName(`${prefix}${id}`);
}

/** The most characters of the id of a chat. */
const idMax = 180;

/** A chat in a list. */
export interface ListedChat {
  readonly id: string;
  readonly title?: string;
  /** The messages of users and the answers. */
  readonly messageCount: number;
  /** Milliseconds since the epoch; absent without messages. */
  readonly lastMessageAt?: number;
}

/** The most chats that a list has. */
const listMax = 100;

/** The chats that a client may use, those with the newest messages first. Children and branches are not listed. */
export async function chatsOf(
  store: TapeStore,
  { sessions = [], prefix }: ChatAccess,
): Promise<readonly ListedChat[]> {
  const found: SessionInfo[] = [];
  for (const name of sessions) {
    const info = await store.sessions.find(name);
    if (info?.session === name) found.push(info);
  }
  const named = prefix === undefined || prefix === '' ? undefined : namePrefix(prefix);
  if (named !== undefined)
    found.push(...(await store.sessions.list({ prefix: named, roots: true, limit: listMax, titles: true })));
  const chats = found.flatMap((info): readonly ListedChat[] => {
    const id = sessions.includes(info.session)
      ? info.session
      : chatId(info.session.slice(named?.length ?? 0));
    if (
      id === undefined ||
      nameOf({ sessions, ...(prefix !== undefined && { prefix }) }, id) !== info.session
    )
      return [];
    const { title, messageCount, lastMessageAt } = info;
    return [
      {
        id,
        ...(title !== undefined && { title }),
        messageCount,
        ...(lastMessageAt !== undefined && { lastMessageAt }),
      },
    ];
  });
  return chats.toSorted((a, b) => (b.lastMessageAt ?? 0) - (a.lastMessageAt ?? 0)).slice(0, listMax);
}

/** The beginning of the names of the sessions of a prefix: its last character may be written otherwise at an end. */
function namePrefix(prefix: string): string {
  return sessionName(`${prefix}x`).slice(0, -1);
}

function idOf(name: string, { prefix = '' }: ChatAccess): string | undefined {
  return chatId(name.slice(namePrefix(prefix).length));
}

/** The id that `sessionName` wrote so; undefined for one that it has cut. */
function chatId(name: string): string | undefined {
  try {
    return decodeURIComponent(name.replaceAll(/!([a-z])/g, (_, letter: string) => letter.toUpperCase()));
  } catch {
    return undefined;
  }
}

/** @throws CHAT_FORBIDDEN */
export function assertMay({ may = allRights }: ChatAccess, right: ChatRight): void {
  if (!may.includes(right))
    throw new ChatError('CHAT_FORBIDDEN', `cannot ${acts[right]}: this client may not`, { data: { right } });
}

const acts: Readonly<Record<ChatRight, string>> = {
  read: 'read this chat',
  send: 'send to this chat',
  answer: 'answer a call of this chat',
  stop: 'stop this chat',
};

/** The deck of a handler. */
export interface ChatDeck {
  session(name: string): Promise<Session>;
  find(name: string): Promise<Session | undefined>;
  recover(session: string): Promise<RecoveryReport>;
}

/**
 * The session of a chat. One that does not exist is created for a message.
 * @throws CHAT_NOT_FOUND, also for a session that the client may not use
 */
export async function sessionOf(
  deck: ChatDeck,
  access: ChatAccess,
  { id, creates }: { readonly id: string; readonly creates: boolean },
): Promise<Session | undefined> {
  if (id.length > idMax)
    throw new ChatError('CHAT_BAD_BODY', `cannot use the id: it has more than ${idMax} characters`);
  const name = nameOf(access, id);
  if (name !== undefined && name !== id && idOf(name, access) !== id)
    throw new ChatError('CHAT_BAD_BODY', `cannot use the id '${id}': it is too long for a name`);
  if (name === undefined) throw new ChatError('CHAT_NOT_FOUND', `there is no chat '${id}'`, { data: { id } });
  const session = creates ? await deck.session(name) : await deck.find(name);
  // A name finds sessions by their aliases and ids too, which the client may not use.
  if (session !== undefined && session.name !== name)
    throw new ChatError('CHAT_NOT_FOUND', `there is no chat '${id}'`, { data: { id } });
  return session;
}
