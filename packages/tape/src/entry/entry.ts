/**
 * Entries: what one may hold, and its stored form. `encode.ts` turns a draft into its stored form, with the
 * bytes of `blob.ts` and `spill.ts` beside it, by the rules of `json.ts`, `name.ts` and `hash.ts`. Imports `db`,
 * for the tables of bytes and touches, and `errors`.
 */
import { isObject, type Json, type JsonObject } from './json.ts';
import { parseAnchorName } from './name.ts';

/** A value or a promise of it: a store in this process returns values, a remote one promises. */
export type Awaitable<T> = T | PromiseLike<T>;

/** Position of an entry: 1, 2, 3 … without gaps. A fork continues its parent's numbering. */
export type Seq = number;

/**
 * Kinds of entries. `x-…` kinds are for applications; views skip them. `docs/format.md` lists the payload of
 * each kind.
 */
export type EntryKind =
  | 'message'
  | 'tool-result'
  | 'anchor'
  | 'compaction'
  | 'rewind'
  | 'redaction'
  | 'result'
  | 'status'
  | 'event'
  | 'ui'
  | `x-${string}`;

/** How an entry changes the reading of its tape. */
export type Mark = 'anchor' | 'boundary' | 'rewind' | 'redaction';

/** Facts about an entry that are not its content: run, step, model, source. */
export type Meta = JsonObject;

/** One part of an AI SDK `ModelMessage`, stored verbatim, `providerOptions` included. */
export interface Part {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** One immutable fact of a tape. */
export interface Entry {
  /** The session that was read. */
  readonly session: string;
  /** The tape that owns the entry: an ancestor's for an inherited one. */
  readonly tape: string;
  readonly seq: Seq;
  readonly kind: EntryKind;
  readonly mark?: Mark;
  readonly name?: string;
  /** Target of a rewind, first position of the kept tail of a boundary, or target of a redaction. */
  readonly ref?: Seq;
  /** The content; null after a redaction. */
  readonly payload: Json;
  readonly meta: Meta;
  /** Milliseconds since the epoch, from the store's clock. Order never depends on it. */
  readonly at: number;
  /** When it happened at its source, for an entry of an import: milliseconds since the epoch. */
  readonly sourceAt?: number;
  readonly key?: string;
  /** Hash of the entry and, through the chain, of all entries before it; lower-case hex. */
  readonly hash: string;
  /** Whether the entry is stored on an ancestor's tape. */
  readonly inherited: boolean;
  /** It was written before the home came to this user and machine: see `StoreOptions.trust`. */
  readonly elsewhere?: true;
  /** A bundle brought it: it was written in another home, and counts as written elsewhere. */
  readonly adopted?: true;
  /** Its content is not here, since the bundle did not bring it: `payload` is null, as that of a redacted entry. */
  readonly absent?: true;
}

/** An entry before it is written. Use the constructors below rather than spelling a kind. */
export interface Draft {
  readonly kind: EntryKind;
  readonly mark?: Mark;
  readonly name?: string;
  readonly ref?: Seq;
  readonly payload: unknown;
  readonly meta?: Meta | undefined;
  /** Idempotency key: appending the same key again adds nothing. */
  readonly key?: string | undefined;
}

type Content = string | readonly Part[];

function message(role: string, content: Content, meta: Meta | undefined): Draft {
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  return { kind: 'message', payload: { role, content: parts }, meta };
}

/**
 * A message from the user, or from a program in the user's place.
 *
 * @example
 * ```ts
 * import { openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const { to } = store.entries.append('main', [user('Plan the release.')]);
 * console.log(to); // 2
 * ```
 */
export const user = (content: Content, meta?: Meta): Draft => message('user', content, meta);

/**
 * A message from the model. Its tool calls are parts of it and are stored with it, before any of them runs.
 *
 * @example
 * ```ts
 * import { assistant, openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.'), assistant('Test, tag, publish.')]);
 * ```
 */
export const assistant = (content: Content, meta?: Meta): Draft => message('assistant', content, meta);

/**
 * A part of an assistant message that calls a tool.
 *
 * @example
 * ```ts
 * import { assistant, openTapeStore, toolCall, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const call = toolCall('call-1', 'read_file', { path: 'NEWS.md' });
 * store.entries.append('main', [user('What is new?'), assistant([call])]);
 * ```
 */
export const toolCall = (toolCallId: string, toolName: string, input: Json): Part => ({
  type: 'tool-call',
  toolCallId,
  toolName,
  input,
});

/**
 * The result of one tool call. A string or another JSON value becomes the AI SDK's typed output.
 *
 * @example
 * ```ts
 * import { assistant, openTapeStore, toolCall, toolResult, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const read = { toolCallId: 'call-1', toolName: 'read_file' };
 * const call = toolCall(read.toolCallId, read.toolName, { path: 'NEWS.md' });
 * store.entries.append('main', [user('What is new?'), assistant([call])]);
 * store.entries.append('main', [toolResult(read, 'Faster forks.')]);
 * ```
 */
export function toolResult(
  call: { readonly toolCallId: string; readonly toolName: string },
  output: Json | { readonly type: string; readonly value?: Json },
  meta?: Meta,
): Draft {
  const { toolCallId, toolName } = call;
  return {
    kind: 'tool-result',
    payload: { type: 'tool-result', toolCallId, toolName, output: typedOutput(output) },
    meta,
  };
}

const outputTypes = new Set(['text', 'json', 'error-text', 'error-json', 'content', 'execution-denied']);

export function typedOutput(output: unknown): unknown {
  if (isObject(output) && typeof output.type === 'string' && outputTypes.has(output.type)) return output;
  return typeof output === 'string' ? { type: 'text', value: output } : { type: 'json', value: output };
}

/**
 * A named event. Views skip events.
 *
 * @example
 * ```ts
 * import { note, openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [note('build/started', { commit: 'a1b2c3d' })]);
 * console.log([...store.entries.read('main', { kind: 'event' })].length); // 1
 * ```
 */
export const note = (name: string, payload: Json, meta?: Meta): Draft => ({
  kind: 'event',
  name,
  payload,
  meta,
});

/**
 * The explicit result of a session, a text or any JSON value: what a merge delivers of a child.
 *
 * @example
 * ```ts
 * import { openTapeStore, result } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.lineage.fork('main', { name: 'tests' });
 * store.entries.append('tests', [result({ passed: 12, failed: 0 })]);
 * console.log(store.lineage.collect('tests').text); // {"passed":12,"failed":0}
 * ```
 */
export const result = (value: Json, meta?: Meta): Draft => ({ kind: 'result', payload: { value }, meta });

/**
 * A mark anchor: names this point and stores a state, without starting a new view.
 *
 * @example
 * ```ts
 * import { anchor, openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.'), anchor('planned', { steps: 3 })]);
 * console.log(store.entries.resolve('main', 'planned')); // 3
 * ```
 */
export const anchor = (name: string, state: JsonObject = {}): Draft => ({
  kind: 'anchor',
  mark: 'anchor',
  name: parseAnchorName(name),
  payload: { state },
});

/**
 * A boundary anchor: the next view starts here, with the state rendered. `keepFrom` is the first position of
 * a tail that stays in view.
 *
 * @example
 * ```ts
 * import { handoff, openTapeStore, user, view } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.')]);
 * store.entries.append('main', [handoff('review', { summary: 'The plan is ready.' })]);
 * const { from, messages } = view(store.views.entries('main'));
 * console.log(from, messages.length); // 3 1
 * ```
 */
export const handoff = (
  name: string,
  state: { readonly summary?: string } & JsonObject = {},
  { keepFrom }: { keepFrom?: Seq } = {},
): Draft => ({
  kind: 'anchor',
  mark: 'boundary',
  name: parseAnchorName(name),
  payload: { state },
  ...(keepFrom !== undefined && { ref: keepFrom }),
});

/**
 * A boundary whose state is a summary of a cited range; the range stays readable. The state records the range
 * and how and why the summary was made.
 *
 * @example
 * ```ts
 * import { compaction, openTapeStore, user, view } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const { from, to } = store.entries.append('main', [user('Plan the release.'), user('Add a changelog.')]);
 * store.entries.append('main', [compaction({ summary: 'A release with a changelog.', range: [from, to] })]);
 * console.log(view(store.views.entries('main')).messages.length); // 1
 * ```
 */
export const compaction = (
  state: { readonly summary: string; readonly range: readonly [Seq, Seq] } & JsonObject,
  { keepFrom }: { keepFrom?: Seq } = {},
): Draft => ({
  kind: 'compaction',
  mark: 'boundary',
  name: 'compaction',
  payload: { state },
  ...(keepFrom !== undefined && { ref: keepFrom }),
});
