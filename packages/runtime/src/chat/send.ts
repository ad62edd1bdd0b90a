import type { Part } from '@tapedeck/tape';
import { TapeError } from '@tapedeck/tape';
import type { UIMessage } from 'ai';
import { filePart } from '../stream/chat-file.ts';
import type { Chunk } from '../stream/chunks.ts';
import { messageId, turnsShown } from '../ui/messages.ts';
import { lastTurn, type Turn } from '../ui/turns.ts';
import { assertMay, type ChatAccess } from './access.ts';
import { answersIn } from './answers.ts';
import type { ChatBody } from './body.ts';
import { ChatError } from './errors.ts';
import { type ChatPlace, itemStream, otherStream, recordedStream, runStream } from './streams.ts';

type Chunks = AsyncIterable<Chunk>;

/**
 * Does what a chat asks for, and returns the stream of the answer. Everything is on the tape or in the inbox when it
 * resolves.
 * @throws ChatError, SessionError and TapeError, before anything is written
 */
export async function take(place: ChatPlace, access: ChatAccess, body: ChatBody): Promise<Chunks> {
  const { messages, trigger, messageId: named } = body;
  const message = messages.findLast(({ id }) => id === named) ?? messages.at(-1);
  if (message === undefined) throw new ChatError('CHAT_BAD_BODY', 'cannot send: there is no message');
  if (trigger === 'regenerate-message') {
    assertMay(access, 'send');
    return await regenerate(place, messages);
  }
  if (message.role === 'assistant') {
    assertMay(access, 'answer');
    return await answer(place, message);
  }
  assertMay(access, 'send');
  if (message.role !== 'user')
    throw new ChatError('CHAT_BAD_BODY', `cannot send a message of role '${message.role}'`);
  return await submit(place, message, { edits: named !== undefined });
}

/** Sends a message. One that the session has is edited: the session continues from before it. */
async function submit(
  place: ChatPlace,
  message: UIMessage,
  { edits }: { readonly edits: boolean },
): Promise<Chunks> {
  const { session } = place;
  const parts = partsOf(message);
  const key = `ui:${message.id}`;
  const meta = { ui: { id: message.id, ...metadataOf(message) } };
  const turn = edits ? await turnWith(place, message.id) : undefined;
  if (turn?.opening !== undefined) {
    await stopFor(place, 'replaced by an edited message');
    await session.rewind(turn.opening.seq);
    return sentStream(place, await session.send(parts, { key: `${key}@${turn.opening.seq}`, meta }));
  }
  const sent = await sendOnce(place, { parts, key, meta });
  if (sent !== undefined) return sentStream(place, sent);
  const before = await turnWith(place, message.id);
  if (before !== undefined) return seen(place, before);
  // A message of this id was sent and is hidden by a rewind.
  const { head } = await session.info();
  return sentStream(place, await session.send(parts, { key: `${key}@${head}`, meta }));
}

type Sending = Awaited<ReturnType<ChatPlace['session']['send']>>;

/**
 * Sends a message under a key. Undefined when the key was used before.
 * @throws CHAT_CONFLICT when a message that the session shows has the key and another content
 */
async function sendOnce(
  place: ChatPlace,
  {
    parts,
    key,
    meta,
  }: { readonly parts: readonly Part[]; readonly key: string; readonly meta: { ui: { id: string } } },
): Promise<Sending | undefined> {
  try {
    const sent = await place.session.send(parts, { key, meta });
    return sent.state === 'started' && sent.run === undefined ? undefined : sent;
  } catch (error) {
    if (!(error instanceof TapeError) || error.code !== 'TAPE_KEY_CONFLICT') throw error;
    if ((await turnWith(place, meta.ui.id)) === undefined) return undefined;
    throw new ChatError(
      'CHAT_CONFLICT',
      `cannot send message '${meta.ui.id}': the chat has another message with this id`,
      { data: { message: meta.ui.id }, cause: error },
    );
  }
}

function sentStream(place: ChatPlace, { id, run }: Pick<Sending, 'id' | 'run'>): Chunks {
  return run === undefined ? itemStream(place, id) : runStream(place, run);
}

/** The stream for a message that was sent before. */
function seen(place: ChatPlace, turn: Turn): Chunks {
  const run = place.session.attach();
  return run === undefined ? recordedStream(place, turn) : runStream(place, run, { whole: true });
}

/** Answers the last message of a user again. */
async function regenerate(place: ChatPlace, messages: readonly UIMessage[]): Promise<Chunks> {
  const message = messages.findLast(({ role }) => role === 'user');
  const turn = message === undefined ? undefined : await turnWith(place, message.id);
  if (turn?.opening === undefined)
    throw new ChatError('CHAT_CONFLICT', 'cannot generate again: the session does not show the message', {
      data: { message: message?.id },
    });
  await stopFor(place, 'generated again');
  const { run } = await place.session.rewind(turn.opening.seq, { mode: 'resend' });
  return run === undefined ? otherStream(place) : runStream(place, run);
}

/** Posts the answers in a message to the calls that wait, and continues. */
async function answer(place: ChatPlace, message: UIMessage): Promise<Chunks> {
  const { session, store } = place;
  const turn = await lastTurn(store, session.id);
  if (turn?.id !== message.id)
    throw new ChatError('CHAT_CONFLICT', `cannot answer message '${message.id}': it is not the last answer`, {
      data: { message: message.id },
    });
  const answers = [...answersIn(message, turn)];
  let sent: Sending | undefined;
  for (const [i, [call, given]] of answers.entries())
    sent = await session.respond(call, given, { start: i === answers.length - 1 });
  if (sent !== undefined) return sentStream(place, sent);
  return runStream(place, session.attach() ?? session.run());
}

/** The turn of a message of the session. */
async function turnWith({ store, session }: ChatPlace, id: string): Promise<Turn | undefined> {
  const turns = await turnsShown(store, session.id);
  return turns.findLast(({ opening }) => opening !== undefined && messageId(opening) === id);
}

async function stopFor({ session }: ChatPlace, reason: string): Promise<void> {
  await session.abort(reason);
  await session.idle();
}

function partsOf(message: UIMessage): readonly Part[] {
  if (message.parts.every((part) => part.type === 'text' && part.text.trim() === ''))
    throw new ChatError('CHAT_BAD_BODY', `cannot send message '${message.id}': it is empty`);
  return message.parts.map((part): Part => {
    if (part.type === 'text') return { type: 'text', text: part.text };
    if (part.type === 'file') return filePart(part);
    throw new ChatError('CHAT_BAD_BODY', `cannot send a part of type '${part.type}': only texts and files`, {
      data: { type: part.type },
    });
  });
}

function metadataOf({ metadata }: UIMessage) {
  return metadata === undefined || metadata === null
    ? {}
    : { metadata: JSON.parse(JSON.stringify(metadata)) };
}
