import type { Entry, Json, Part } from '@tapedeck/tape';
import { clientCalls, isClientCall, isObject } from '@tapedeck/tape/internal';
import { noUsage, type Usage } from '../usage/usage.ts';
import { isAwaited, requestIn, type WaitingCall } from './call.ts';
import { chatFile } from './chat-file.ts';
import { chatIdOf } from './chat-id.ts';
import { type Chunk, decisionChunk, eventChunk, headOf } from './chunks.ts';
import { finishAfter } from './events.ts';
import type { Fresh } from './tail.ts';

/**
 * An entry as the watchers of a run see it. A message from a user or an agent is a `data-message` part, the
 * message of a merge a `data-merge` part. Yields nothing for an entry that is not shown. Pure.
 */
function* chunksOf(
  entry: Entry,
  {
    seen,
    answer,
    asked,
  }: { readonly seen: readonly Chunk[]; readonly answer: readonly Part[]; readonly asked: Set<string> },
): Generator<Chunk> {
  const { kind, payload, name } = entry;
  if (!isObject(payload)) return;
  if (kind === 'message') {
    if (payload.role === 'assistant') yield* answerChunks(entry, seen);
    else yield messageChunk(entry);
  } else if (kind === 'tool-result') yield* resultChunks(entry);
  else if (name === 'call/answered') {
    // A stream has no place for a decision that it does not show the request of.
    if (asked.has(String(payload.toolCallId))) yield decisionChunk(payload);
  } else if (name === 'run/error') {
    yield { type: 'error', errorText: String(payload.message) };
    yield eventChunk({ type: 'session-completed', finish: 'error', haltedAtLimit: false });
  } else if (name === 'run/halted')
    yield eventChunk({ type: 'session-completed', finish: 'halted', haltedAtLimit: true });
  else if (name === 'run/waiting') {
    const calls = waitingCalls(payload.calls, answer);
    for (const { toolCallId, for: what } of calls)
      if (what === 'approval') {
        asked.add(toolCallId);
        yield { type: 'tool-approval-request', approvalId: toolCallId, toolCallId };
      }
    yield eventChunk({ type: 'tool-waiting', calls });
    yield eventChunk({ type: 'session-completed', finish: 'waiting', haltedAtLimit: false });
  } else if (name === 'run/aborted') {
    yield { type: 'abort', reason: String(payload.reason) };
    yield eventChunk({ type: 'session-cancelled', reason: String(payload.reason) });
  }
}

/** The waiting calls of a note, with the arguments from the answer before it. */
function waitingCalls(calls: Json | undefined, answer: readonly Part[]): WaitingCall[] {
  return (Array.isArray(calls) ? calls.filter(isObject) : []).flatMap(
    ({ toolCallId, toolName, for: what, claims, offers, askedFor }) => {
      if (!isAwaited(what)) return [];
      const input = answer.find((part) => isClientCall(part) && part.toolCallId === toolCallId)?.input;
      const name = String(toolName);
      const request = what === 'approval' ? requestIn({ claims, offers, askedFor }) : {};
      return [{ toolCallId: String(toolCallId), name, input: (input ?? {}) as Json, for: what, ...request }];
    },
  );
}

/** The message of a user, an agent or a merge. */
export function messageChunk({ payload, meta, seq, tape }: Entry): Chunk {
  const type = meta.source === 'merge' ? 'data-merge' : 'data-message';
  const content = isObject(payload) ? payload.content : null;
  const id = chatIdOf(meta) ?? `${tape}@${seq}`;
  return { type, id, data: { seq, source: meta.source ?? 'user', content } } as Chunk;
}

function* answerChunks(entry: Entry, seen: readonly Chunk[]): Generator<Chunk> {
  const { payload, seq } = entry;
  if (!isObject(payload)) return;
  const content = partsOf(entry);
  const left = new Seen(seen);
  if (!left.isBegun) yield { type: 'start-step' };
  for (const [i, part] of content.entries()) yield* partChunks(part, `${seq}-${i}`, left);
  yield { type: 'finish-step' };
  for (const { toolCallId, toolName, input } of content.filter(isClientCall))
    yield eventChunk({
      type: 'tool-detected',
      toolCallId: String(toolCallId),
      name: String(toolName),
      input: (input ?? {}) as Json,
    });
}

/** The end of a step. It follows the results of the step's calls. */
function iterationEvent({ payload, meta }: Entry): Chunk | undefined {
  if (meta.partial === true) return undefined;
  const willContinue = clientCalls(payload).length > 0;
  const usage = { ...noUsage, ...(isObject(meta.usage) ? meta.usage : {}) } as Usage;
  return eventChunk({
    type: 'iteration-completed',
    iteration: Number(meta.step ?? 1),
    usage,
    willContinue,
  });
}

function* partChunks(part: Part, id: string, seen: Seen): Generator<Chunk> {
  const { type, toolCallId, toolName, input, providerExecuted, providerOptions } = part;
  const metadata = isObject(providerOptions) ? { providerMetadata: providerOptions as never } : {};
  if (type === 'text' || type === 'reasoning') {
    const before = seen.next(type);
    const rest = String(part.text).slice(before?.text.length ?? 0);
    const of = before?.id ?? id;
    if (before === undefined) yield { type: `${type}-start`, id: of };
    if (rest !== '') yield { type: `${type}-delta`, id: of, delta: rest };
    if (before?.ended !== true) yield { type: `${type}-end`, id: of, ...metadata };
  } else if (type === 'tool-call') {
    if (seen.calls.has(String(toolCallId))) return;
    yield {
      type: 'tool-input-available',
      toolCallId: String(toolCallId),
      toolName: String(toolName),
      input: input ?? {},
      ...(providerExecuted === true && { providerExecuted }),
      ...metadata,
    };
  } else if (type === 'tool-result') {
    if (seen.results.has(String(toolCallId))) return;
    yield outputChunk(part, true);
  } else if (type === 'source' && typeof part.url === 'string')
    yield { type: 'source-url', sourceId: String(part.id ?? id), url: part.url };
  else if (type === 'file') {
    const file = chatFile(part);
    if (file !== undefined && !seen.files.has(file.url)) yield file;
  }
}

function* resultChunks({ payload, at }: Entry): Generator<Chunk> {
  if (!isObject(payload)) return;
  const chunk = outputChunk(payload as unknown as Part, false);
  yield chunk;
  const success = chunk.type === 'tool-output-available';
  yield eventChunk({
    type: 'tool-completed',
    toolCallId: String(payload.toolCallId),
    name: String(payload.toolName),
    success,
    output: plainOutput(payload.output),
    at,
  });
}

/** The output of a call, of the payload of its result. */
export function outputChunk({ toolCallId: id, output }: Part, byProvider: boolean): Chunk {
  const toolCallId = String(id);
  const type = isObject(output) ? String(output.type) : '';
  const executed = byProvider ? { providerExecuted: true } : {};
  if (type === 'execution-denied') return { type: 'tool-output-denied', toolCallId };
  const value = plainOutput(output);
  if (!type.startsWith('error'))
    return { type: 'tool-output-available', toolCallId, output: value, ...executed };
  const errorText = typeof value === 'string' ? value : JSON.stringify(value);
  return { type: 'tool-output-error', toolCallId, errorText, ...executed };
}

function plainOutput(output: unknown): Json {
  if (!isObject(output)) return (output ?? null) as Json;
  return (output.value ?? output.reason ?? null) as Json;
}

/** The parts of an answer that its live chunks have already shown. */
class Seen {
  readonly isBegun: boolean;
  readonly calls = new Set<string>();
  readonly results = new Set<string>();
  /** The addresses of the files. */
  readonly files = new Set<string>();
  readonly #texts: { readonly type: string; readonly id: string; text: string; ended: boolean }[] = [];

  constructor(chunks: readonly Chunk[]) {
    this.isBegun = chunks.length > 0;
    for (const chunk of chunks) {
      const [type = '', what] = chunk.type.split('-');
      if (chunk.type === 'tool-input-available' || chunk.type === 'tool-input-error')
        this.calls.add(chunk.toolCallId);
      else if (chunk.type === 'tool-output-available' || chunk.type === 'tool-output-error')
        this.results.add(chunk.toolCallId);
      else if (chunk.type === 'file') this.files.add(chunk.url);
      else if ((type === 'text' || type === 'reasoning') && 'id' in chunk && chunk.id !== undefined) {
        if (what === 'start') this.#texts.push({ type, id: chunk.id, text: '', ended: false });
        const text = this.#texts.findLast((one) => one.type === type && one.id === chunk.id);
        if (text === undefined) continue;
        if (what === 'end') text.ended = true;
        else if ('delta' in chunk) text.text += chunk.delta;
      }
    }
  }

  next(type: string) {
    const at = this.#texts.findIndex((text) => text.type === type);
    return at === -1 ? undefined : this.#texts.splice(at, 1)[0];
  }
}

/**
 * Converts news of a tape to UI message streams, one for each message of a user and the runs that answer it. An entry whose answer was streamed
 * live yields only the rest, so a reader receives the same texts as the watchers of the run itself.
 *
 * @example
 * ```ts
 * import { openDeck, tail, watchChunks } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const main = await deck.session('main');
 * await main.run('Plan the release.');
 * const fresh = tail(deck.store, 'main', { from: 1, untilIdle: true });
 * for await (const chunk of watchChunks(fresh)) if (chunk.type === 'text-delta') console.log(chunk.delta);
 * // Test, tag, publish.
 * ```
 */
export async function* watchChunks(fresh: AsyncIterable<Fresh>): AsyncGenerator<Chunk> {
  let run: unknown;
  let seen: Chunk[] = [];
  let over: Chunk | undefined;
  let answer: readonly Part[] = [];
  const asked = new Set<string>();
  for await (const item of fresh) {
    const of = item.type === 'chunk' ? item.run : item.entry.meta.run;
    // The results of a step's calls belong to the step; anything else ends it.
    if (over !== undefined && (item.type === 'chunk' || endsStep(item.entry))) {
      // A run that waits has not finished its step.
      if (item.type === 'chunk' || item.entry.name !== 'run/waiting') yield over;
      over = undefined;
    }
    if (of !== undefined && of !== run) {
      // A run without a message of its own continues the answer of the run before it.
      const isNew = run === undefined || (item.type === 'entry' && isUserMessage(item.entry));
      if (isNew && run !== undefined) yield { type: 'finish' };
      if (isNew) yield { type: 'start', messageId: String(of) };
      if (item.type === 'entry')
        yield eventChunk({
          type: 'run-started',
          run: String(of),
          session: item.entry.session,
          at: item.entry.at,
        });
      run = of;
    }
    if (item.type === 'entry') {
      const { entry } = item;
      yield* chunksOf(entry, { seen: isAnswer(entry) ? seen : [], answer, asked });
      if (!isAnswer(entry)) continue;
      answer = partsOf(entry);
      seen = [];
      over = iterationEvent(entry);
      if (over !== undefined && clientCalls(entry.payload).length === 0) {
        yield over;
        over = undefined;
        const finish = finishAfter(entry.meta.finish);
        yield eventChunk({ type: 'session-completed', finish, haltedAtLimit: false });
      }
    } else if (headOf(item.chunk) !== undefined) {
      seen = [];
    } else {
      if (seen.length === 0) yield { type: 'start-step' };
      seen.push(item.chunk);
      yield item.chunk;
    }
  }
  if (over !== undefined) yield over;
  if (run !== undefined) yield { type: 'finish' };
}

function partsOf({ payload }: Entry): readonly Part[] {
  return (isObject(payload) && Array.isArray(payload.content)
    ? payload.content
    : []) as unknown as readonly Part[];
}

/** Whether an entry cannot occur while the calls of a step run. */
function endsStep({ kind, name = '' }: Entry): boolean {
  return kind !== 'tool-result' && !(kind === 'event' && /^(?:call\/answered|run\/begun)$/.test(name));
}

function isAnswer({ payload }: Entry): boolean {
  return isObject(payload) && payload.role === 'assistant';
}

function isUserMessage({ kind, payload }: Entry): boolean {
  return kind === 'message' && isObject(payload) && payload.role === 'user';
}
