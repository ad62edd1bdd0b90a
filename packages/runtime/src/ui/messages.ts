import { setImmediate } from 'node:timers/promises';
import type { Entry, Json, JsonObject, Part, TapeStore } from '@tapedeck/tape';
import { isObject, select } from '@tapedeck/tape/internal';
import type { InboxItem } from '@tapedeck/tape/store';
import type { UIMessage } from 'ai';
import { chatFile } from '../stream/chat-file.ts';
import { chatIdOf } from '../stream/chat-id.ts';
import { type Chunk, childChunk } from '../stream/chunks.ts';
import { watchChunks } from '../stream/replay.ts';
import type { Fresh } from '../stream/tail.ts';
import { addUsage, noUsage, type Usage } from '../usage/usage.ts';
import { chatChunks } from './chat-chunks.ts';
import { childCallChunks, childCallsOf } from './child-calls.ts';
import { progressOf } from './children.ts';
import { restored } from './restored.ts';
import { childrenOf, type StartedChild, type TurnPlace } from './started.ts';
import { isTask, placeOf, type Turn, turnsIn, turnsOf } from './turns.ts';
import { unsettledEntries } from './unsettled.ts';

/**
 * The messages of a session as the AI SDK's chats hold them. Rewound entries are left out. Loads the AI SDK, whose own
 * reader makes each answer of its chunks.
 */
export async function uiMessages(
  store: TapeStore,
  session: string,
  { last = Number.POSITIVE_INFINITY }: UIMessagesOptions = {},
): Promise<UIMessage[]> {
  const messages: UIMessage[] = [];
  const turns = await turnsShown(store, session, { unsettled: true });
  for (const [i, turn] of turns.slice(Math.max(0, turns.length - last)).entries()) {
    // Other tasks of the process run while a long session is read.
    if (i % turnsAtOnce === turnsAtOnce - 1) await setImmediate();
    messages.push(...(await messagesOf({ store, session }, turn)));
  }
  for (const item of await store.inbox.list(session)) messages.push(...queuedMessages(item));
  return messages;
}

/** The messages of a turn: that of the user, and the answer. */
async function messagesOf(place: TurnPlace, turn: Turn): Promise<readonly UIMessage[]> {
  const answer = await assistantMessage(place, turn);
  return [
    ...(turn.opening === undefined ? [] : [userMessage(await whole(place.store, turn.opening))]),
    ...(answer === undefined ? [] : [answer]),
  ];
}

/** The messages of turns that are read one by one: no more of a long session is in memory than a turn. */
export async function* messagesIn(place: TurnPlace, shown: AsyncIterable<Entry>): AsyncGenerator<UIMessage> {
  for await (const turn of turnsIn(shown)) yield* await messagesOf(place, turn);
}

/** The messages of users that wait in the inbox. */
function queuedMessages({ id, source, body }: InboxItem): UIMessage[] {
  if (body.type !== 'input' || source !== 'user') return [];
  return body.drafts.map(({ meta = {}, payload }, i) =>
    userMessage({
      meta: { source, ...meta, ...(chatIdOf(meta) === undefined && { ui: { id: `${id}-${i}` } }) },
      payload: payload as Json,
      kind: 'message',
      tape: id,
      seq: i,
    }),
  );
}

/** What is shown of the message that opens a turn: an entry, or what waits to be one. */
type Shown = Pick<Entry, 'meta' | 'payload' | 'kind' | 'name' | 'tape' | 'seq'>;

/** Options of `Session.uiMessages`. */
export interface UIMessagesOptions {
  /** Only those of the last turns: messages of users with their answers. Default: all. */
  readonly last?: number;
}

/** How many turns are read before other tasks of the process run. */
const turnsAtOnce = 20;

/** The turns that a session shows, from its first; with `unsettled`, also what a process that died had saved. */
export async function turnsShown(
  store: TapeStore,
  session: string,
  { unsettled = false }: { readonly unsettled?: boolean } = {},
): Promise<readonly Turn[]> {
  const info = unsettled ? await store.sessions.find(session) : undefined;
  const more = info === undefined ? [] : await unsettledEntries(store, info);
  const entries = await Array.fromAsync(store.views.entries(session, { policy: 'full' }));
  const { entries: shown } = select(entries, 'full');
  // Another process can have settled them meanwhile.
  const isNew = more.length > 0 && (await store.sessions.find(session))?.head === info?.head;
  return turnsOf(isNew ? [...shown, ...more] : shown);
}

/** The id of the message that opens a turn: that of the chat that sent it, or its place on the tape. */
export function messageId(entry: Pick<Entry, 'meta' | 'tape' | 'seq'>): string {
  return chatIdOf(entry.meta) ?? placeOf(entry);
}

function userMessage(entry: Shown): UIMessage {
  const { meta, payload } = entry;
  const source = isTask(entry) ? 'agent' : meta.source;
  const given = isObject(meta.ui) ? meta.ui.metadata : undefined;
  const metadata = given ?? (source === 'user' || source === undefined ? undefined : { source });
  return {
    id: messageId(entry),
    role: 'user',
    ...(metadata !== undefined && { metadata }),
    parts:
      source === 'merge'
        ? [reportPart(entry)]
        : contentOf(payload).flatMap((part): UIMessage['parts'] => {
            if (part.type === 'text') return [{ type: 'text', text: String(part.text) }];
            const file = chatFile(part);
            return file === undefined ? [] : [file];
          }),
  };
}

/** The report of a child that was merged, in the form that the stream of an answer has for it. */
function reportPart(entry: Shown): UIMessage['parts'][number] {
  const { seq, meta, payload } = entry;
  const content = isObject(payload) ? (payload.content ?? null) : null;
  return {
    type: 'data-merge',
    id: placeOf(entry),
    data: { seq, source: 'merge', session: meta.session ?? null, content },
  };
}

/** The parts of the message that opens a turn. A child's task is the text of its intention. */
function contentOf(payload: Json): readonly Part[] {
  if (!isObject(payload)) return [];
  const { content, state } = payload;
  if (Array.isArray(content)) return content as unknown as readonly Part[];
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  if (!isObject(state)) return [];
  const texts = [state.context_summary, state.next_steps].filter((text) => typeof text === 'string');
  return texts.map((text) => ({ type: 'text', text }));
}

/** The answer of a turn; undefined while there is nothing to show. */
async function assistantMessage(place: TurnPlace, turn: Turn): Promise<UIMessage | undefined> {
  const { id } = turn;
  if (id === undefined) return undefined;
  const { createUIMessageStream } = await import('ai');
  const metadata = async () => answerFacts(turn);
  const chunks = await Array.fromAsync(chatChunks(turnChunks(place, turn), { id, metadata }));
  let answer: UIMessage | undefined;
  const stream = createUIMessageStream<UIMessage>({
    originalMessages: [],
    generateId: () => id,
    execute: ({ writer }) => {
      for (const chunk of chunks) if (chunk.type !== 'error') writer.write(chunk);
    },
    onEnd: ({ responseMessage }) => {
      answer = responseMessage;
    },
  });
  for await (const _ of stream);
  return answer === undefined || answer.parts.length === 0 ? undefined : plain(answer);
}

/** The chunks of the entries of a turn of a session, with the progress of the children that its calls have started. */
export async function* turnChunks(
  { store, session }: TurnPlace,
  turn: Pick<Turn, 'entries'>,
): AsyncGenerator<Chunk> {
  async function* fresh(): AsyncGenerator<Fresh> {
    for (const entry of turn.entries) yield { type: 'entry', entry: await whole(store, entry) };
  }
  const children = await childrenOf({ store, session }, turn);
  let calls: string[] = [];
  for await (const chunk of watchChunks(fresh())) {
    yield chunk;
    if (chunk.type === 'tool-input-available') calls.push(chunk.toolCallId);
    if (chunk.type !== 'finish-step') continue;
    yield* childChunks(
      store,
      children.filter(({ call }) => calls.includes(call ?? '')),
    );
    calls = [];
  }
}

/** The progress of children, and what they wait or waited for. */
export async function* childChunks(
  store: TapeStore,
  children: readonly StartedChild[],
): AsyncGenerator<Chunk> {
  for (const child of children) yield childChunk(await progressOf(store, child));
  yield* childCallChunks(
    await childCallsOf(
      store,
      children.filter(({ isAwaited }) => isAwaited),
    ),
  );
}

/** What the metadata of an answer says: its last model, the usage of its model calls, and the time of its first. */
export function answerFacts({ entries }: Pick<Turn, 'entries'>): JsonObject | undefined {
  const answers = entries.filter(({ payload }) => isObject(payload) && payload.role === 'assistant');
  const [first] = answers;
  if (first === undefined) return undefined;
  const usage = answers
    .map(({ meta }) => (isObject(meta.usage) ? ({ ...noUsage, ...meta.usage } as Usage) : noUsage))
    .reduce(addUsage, noUsage);
  const model = answers.at(-1)?.meta.model;
  return {
    at: first.at,
    ...(typeof model === 'string' && { model }),
    usage: { ...usage },
  };
}

/** An entry with the bytes of its files in place of their references. */
async function whole(store: TapeStore, entry: Entry): Promise<Entry> {
  const payload = await restored(store, entry.payload);
  return payload === entry.payload ? entry : { ...entry, payload };
}

/** A message as it is sent as JSON: without the fields that the SDK leaves undefined. */
function plain(message: UIMessage): UIMessage {
  return JSON.parse(JSON.stringify(message)) as UIMessage;
}
