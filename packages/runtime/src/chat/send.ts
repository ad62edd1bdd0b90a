import { setTimeout as sleep } from 'node:timers/promises';
import { type Part, processOwner, TapeError } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { UIMessage } from 'ai';
import { SessionError } from '../errors.ts';
import { hold } from '../lease/hold.ts';
import type { SessionRewound, StartOptions } from '../session/options.ts';
import { partsOf as partsIn } from '../session/parts.ts';
import { waitsForTool } from '../status/waits.ts';
import { type ChatFile, filePart } from '../stream/chat-file.ts';
import type { Chunk } from '../stream/chunks.ts';
import { messageId, turnsShown } from '../ui/messages.ts';
import { lastTurn, type Turn } from '../ui/turns.ts';
import { assertMay, type ChatAccess } from './access.ts';
import { answersIn } from './answers.ts';
import { belowStream } from './below.ts';
import type { ChatBody } from './body.ts';
import { otherStream } from './elsewhere.ts';
import { ChatError } from './errors.ts';
import { itemStream, queuedItem } from './item.ts';
import {
  type ChatPlace,
  callsBelow,
  isWritten,
  lookMs,
  recordedStream,
  runStream,
  shownIn,
} from './streams.ts';

type Chunks = AsyncIterable<Chunk>;

/** A session that a chat asks for something, and the options of the runs that it starts. */
interface Asked extends ChatPlace {
  readonly run: StartOptions;
}

/**
 * Does what a chat asks for, and returns the stream of the answer. Everything is on the tape or in the inbox when it
 * resolves.
 * @throws ChatError, SessionError and TapeError, before anything is written
 */
export async function take(place: Asked, access: ChatAccess, body: ChatBody): Promise<Chunks> {
  const { messages, trigger, messageId: named } = body;
  const message = messageIn(body);
  if (message === undefined) throw new ChatError('CHAT_BAD_BODY', 'cannot send: there is no message');
  if (trigger === 'regenerate-message') {
    assertMay(access, 'send');
    return await regenerate(place, messages);
  }
  if (message.role === 'assistant') {
    assertMay(access, 'answer');
    return await answer(place, message, body);
  }
  assertMay(access, 'send');
  if (message.role !== 'user')
    throw new ChatError('CHAT_BAD_BODY', `cannot send a message of role '${message.role}'`);
  return await submit(place, message, { edits: named !== undefined });
}

/** The message that a body brings: the one that it names, or the last. */
function messageIn({ messages, messageId: named }: ChatBody): UIMessage | undefined {
  return (named === undefined ? undefined : messages.findLast(({ id }) => id === named)) ?? messages.at(-1);
}

/**
 * Checks that a body brings a message of a user, with which a chat can begin.
 * @throws CHAT_CONFLICT, CHAT_BAD_BODY
 */
export function assertBegins(body: ChatBody): void {
  const message = messageIn(body);
  if (body.trigger === 'regenerate-message' || message?.role === 'assistant')
    throw new ChatError('CHAT_CONFLICT', 'cannot continue the chat: the session does not show its messages');
  if (message?.role !== 'user')
    throw new ChatError('CHAT_BAD_BODY', `cannot begin a chat with a message of role '${message?.role}'`);
  partsOf(message);
}

/** Sends a message. One that the session has is edited: the session continues from before it. */
async function submit(
  place: Asked,
  message: UIMessage,
  { edits }: { readonly edits: boolean },
): Promise<Chunks> {
  const { session, run } = place;
  const parts = partsOf(message);
  const key = `ui:${message.id}`;
  const meta = { ui: { id: message.id, ...metadataOf(message) } };
  const turn = edits ? await editedTurn(place, message.id) : undefined;
  const isWritten = () => recordedMessage(place, message.id);
  if (turn?.opening !== undefined) {
    const { seq } = turn.opening;
    await rewound(place, 'replaced by an edited message', async (one) => await one.rewind(seq));
    const edited = await session.send(parts, { key: `${key}@${seq}`, meta, run });
    return sentStream(place, edited, isWritten);
  }
  const sent = await sendOnce(place, { parts, key, meta });
  if (sent !== undefined) return sentStream(place, sent, isWritten);
  const before = await turnWith(place, message.id);
  if (before !== undefined) return seen(place, before);
  // A message of this id was sent and is hidden by a rewind.
  const { head } = await session.info();
  const again = await sendOnce(place, { parts, key: `${key}@${head}`, meta });
  if (again === undefined) throw sameId(message.id);
  return sentStream(place, again, isWritten);
}

function sameId(id: string, cause?: unknown): ChatError {
  return new ChatError(
    'CHAT_CONFLICT',
    `cannot send message '${id}': the chat has another message with this id`,
    {
      data: { message: id },
      cause,
    },
  );
}

type Sending = Awaited<ReturnType<ChatPlace['session']['send']>>;

/**
 * Sends a message under a key. Undefined when the key was used before.
 * @throws CHAT_CONFLICT when a message that the session shows has the key and another content
 */
async function sendOnce(
  place: Asked,
  {
    parts,
    key,
    meta,
  }: { readonly parts: readonly Part[]; readonly key: string; readonly meta: { ui: { id: string } } },
): Promise<Sending | undefined> {
  try {
    const sent = await place.session.send(parts, { key, meta, run: place.run });
    return sent.state === 'started' && sent.run === undefined ? undefined : sent;
  } catch (error) {
    if (!(error instanceof TapeError) || error.code !== 'TAPE_KEY_CONFLICT') throw error;
    const { store, session } = place;
    const isQueued = (await store.inbox.list(session.id)).some((item) => item.key === key);
    if (!isQueued && key === `ui:${meta.ui.id}` && (await turnWith(place, meta.ui.id)) === undefined)
      return undefined;
    throw sameId(meta.ui.id, error);
  }
}

function sentStream(place: Asked, { id, run }: Pick<Sending, 'id' | 'run'>, written: () => Chunks): Chunks {
  return run === undefined ? itemStream(place, id, { options: place.run, written }) : runStream(place, run);
}

/** The answer to a message, when a run has taken it up and is over. */
async function* recordedMessage(place: ChatPlace, id: string): AsyncGenerator<Chunk> {
  const turn = await turnWith(place, id);
  if (turn === undefined)
    throw new ChatError('CHAT_CONFLICT', 'the message was replaced by an edit before it', {
      data: { message: id },
    });
  yield* recordedStream(place, turn);
}

/** What came after the answers to calls, when a run has taken them up and is over. */
async function* recordedRest(place: ChatPlace, calls: readonly string[]): AsyncGenerator<Chunk> {
  const turn = await lastTurn(place.store, place.session.id);
  const from = turn?.entries.findIndex(
    ({ payload }) => isObject(payload) && calls.includes(String(payload.toolCallId)),
  );
  if (turn === undefined || from === undefined || from === -1) yield { type: 'finish' };
  else yield* recordedStream(place, turn, from);
}

/** The stream for a message that was sent before. */
function seen(place: ChatPlace, turn: Turn): Chunks {
  const run = place.session.attach();
  return run === undefined ? recordedStream(place, turn) : runStream(place, run, { whole: true });
}

/** Answers the last message of a user again. */
async function regenerate(place: Asked, messages: readonly UIMessage[]): Promise<Chunks> {
  const id = messages.findLast(({ role }) => role === 'user')?.id;
  const queued = id === undefined ? undefined : await queuedItem(place, id);
  if (id !== undefined && queued !== undefined)
    return sentStream(place, queued, () => recordedMessage(place, id));
  const turn = id === undefined ? undefined : await turnWith(place, id);
  if (turn?.opening === undefined)
    throw new ChatError('CHAT_CONFLICT', 'cannot generate again: the session does not show the message', {
      data: { message: id },
    });
  const { seq } = turn.opening;
  const { run } = await rewound(
    place,
    'generated again',
    async (session) => await session.rewind(seq, { mode: 'resend', run: place.run }),
  );
  return run === undefined ? otherStream(place) : runStream(place, run);
}

/** Posts the answers in a message to the calls that wait, and continues. */
async function answer(
  place: Asked,
  message: UIMessage,
  { remember }: Pick<ChatBody, 'remember'>,
): Promise<Chunks> {
  const { session, store, run } = place;
  const turn = await lastTurn(store, session.id);
  if (turn?.id !== message.id)
    throw new ChatError('CHAT_CONFLICT', `cannot answer message '${message.id}': it is not the last answer`, {
      data: { message: message.id },
    });
  const below = await callsBelow(place, turn);
  const shown = await shownIn(place, turn);
  const given = [...answersIn(message, turn, { below, remember })];
  const answers = given.filter(([id]) => below.every(({ ref }) => ref !== id));
  for (const [id, answer] of given)
    if (!answers.some(([own]) => own === id)) await session.respond(id, answer, run);
  let sent: Sending | undefined;
  for (const [i, [call, given]] of answers.entries())
    sent = await session.respond(call, given, { ...run, start: i === answers.length - 1 });
  const parts = partsIn.get(session);
  // Other processes may have recorded answers, and not have gone on.
  if (parts !== undefined) {
    const { continueAnswered } = await import('../delegation/continue.ts');
    await continueAnswered(parts, session.id, { options: run, until: session.id });
  }
  const calls = answers.map(([id]) => id);
  if (sent !== undefined)
    return toolsMissing(
      place,
      sentStream(place, sent, () => recordedRest(place, calls)),
    );
  if (below.length > 0) return toolsMissing(place, belowStream(place, turn, shown));
  const current = session.attach();
  if (current !== undefined) return toolsMissing(place, runStream(place, current));
  await assertTools(place);
  return runStream(place, session.run(undefined, run));
}

/** An answer that ends with an error when a call is approved whose tool no process has that goes on with it. */
async function* toolsMissing(place: ChatPlace, chunks: Chunks): AsyncGenerator<Chunk> {
  for await (const chunk of chunks) {
    // A chat that reads an end without a result would send its approval again, and again.
    if (chunk.type === 'finish') await assertTools(place);
    yield chunk;
  }
}

/** @throws CHAT_CONFLICT when a call is approved and waits for a process that has its tool */
async function assertTools({ store, session }: ChatPlace): Promise<void> {
  const info = await store.sessions.find(session.id);
  if (info === undefined) return;
  for await (const { call } of waitsForTool(store, info))
    throw new ChatError(
      'CHAT_CONFLICT',
      `cannot continue: the call of '${call.toolName}' is approved, and waits for a server that has this tool`,
      { data: { call: call.toolCallId } },
    );
}

/**
 * The turn of a message that is edited. One that waits is taken up first, so that the answer before it is not cut off; when
 * no run does that, it is put on the tape.
 */
async function editedTurn(place: ChatPlace, id: string): Promise<Turn | undefined> {
  for (;;) {
    const queued = await queuedItem(place, id);
    const turn = await turnWith(place, id);
    if (turn !== undefined || queued === undefined) return turn;
    if (place.session.attach() === undefined && !(await isWritten(place))) await recordQueued(place);
    else await sleep(lookMs);
  }
}

/** The turn of a message of the session. */
async function turnWith({ store, session }: ChatPlace, id: string): Promise<Turn | undefined> {
  const turns = await turnsShown(store, session.id);
  return turns.findLast(({ opening }) => opening !== undefined && messageId(opening) === id);
}

/** How often a rewind is tried while others start runs of the session, and the pause between, in milliseconds. */
const rewindTries = 40;
const rewindPauseMs = 25;

/**
 * Stops the current run and rewinds. Messages that wait are put on the tape first, where the rewind hides them: an edit
 * replaces what was sent after it.
 */
async function rewound(
  place: ChatPlace,
  reason: string,
  rewind: (session: ChatPlace['session']) => Promise<SessionRewound>,
): Promise<SessionRewound> {
  const { session } = place;
  for (let tries = 1; ; tries += 1) {
    await session.abort(reason);
    await session.idle();
    try {
      await recordQueued(place);
      return await rewind(session);
    } catch (error) {
      // A message that waits has started a run meanwhile.
      const isBusy = error instanceof SessionError && error.code === 'SESSION_BUSY';
      if (!isBusy || tries === rewindTries) throw error;
    }
    await sleep(rewindPauseMs);
  }
}

async function recordQueued({ store, session }: ChatPlace): Promise<void> {
  const queued = (await store.inbox.list(session.id)).filter(({ body }) => body.type === 'input');
  if (queued.length === 0) return;
  const held = await hold(store, session.id, { owner: processOwner(`edit:${session.id}`), act: 'edit' });
  try {
    await held.drain(
      queued.map(({ id, body }) => ({ id, drafts: body.type === 'input' ? body.drafts : [] })),
    );
  } finally {
    await held.release();
  }
}

function partsOf(message: UIMessage): readonly Part[] {
  if (message.parts.every((part) => part.type === 'text' && part.text.trim() === ''))
    throw new ChatError('CHAT_BAD_BODY', `cannot send message '${message.id}': it is empty`);
  return message.parts.map((part): Part => {
    if (part.type === 'text') return { type: 'text', text: part.text };
    if (part.type === 'file') return fileOf(part);
    throw new ChatError('CHAT_BAD_BODY', `cannot send a part of type '${part.type}': only texts and files`, {
      data: { type: part.type },
    });
  });
}

/**
 * A file of a message. Its bytes come with it: an address would be fetched by this server or by the provider, and one that
 * cannot be fetched fails every later answer.
 */
function fileOf(part: ChatFile): Part {
  if (!/^data:/i.test(part.url))
    throw new ChatError('CHAT_BAD_BODY', 'cannot take the file: its address must be a data: URL');
  try {
    return filePart(part);
  } catch (cause) {
    throw new ChatError('CHAT_BAD_BODY', 'cannot take the file: its data: URL is not valid', { cause });
  }
}

/** The most characters of the metadata of a message, as JSON. */
const metadataMax = 65_536;

function metadataOf({ metadata }: UIMessage) {
  if (metadata === undefined || metadata === null) return {};
  const refuse = (cause?: unknown) =>
    new ChatError('CHAT_BAD_BODY', `cannot take the metadata: it is larger than ${metadataMax} characters`, {
      cause,
    });
  let text: string;
  try {
    text = JSON.stringify(metadata);
  } catch (cause) {
    // Too many levels.
    throw refuse(cause);
  }
  if (text.length > metadataMax) throw refuse();
  return { metadata: JSON.parse(text) };
}
