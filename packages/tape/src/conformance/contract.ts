import {
  type Awaitable,
  assistant,
  type Draft,
  type Entry,
  toolCall,
  toolResult,
  user,
} from '../entry/entry.ts';
import { isObject, type Json, type JsonObject } from '../entry/json.ts';
import { TapeError } from '../errors.ts';
import type { TapeStore } from '../store/store.ts';

/** What the contract asks of an `expect`: vitest's, jest's and others have it. */
export interface Matchers {
  toBe(expected: unknown): void;
  toEqual(expected: unknown): void;
  toMatchObject(expected: object): void;
  toMatch(expected: RegExp): void;
}

/** The test runner that the contract runs in. */
export interface Runner {
  readonly test: (name: string, run: () => Promise<void>) => unknown;
  readonly expect: (value: unknown) => Matchers;
}

/** Opens a new, empty store; each case disposes of its own. */
export type Open = () => Awaitable<TapeStore>;

/** Where stores keep what they hold: it outlives each of them, and several may be open on it at once. */
export interface ReopenablePlace extends AsyncDisposable {
  open(): Awaitable<TapeStore>;
}

/** One part of the contract. */
export type Chapter = (runner: Runner, open: Open) => void;

/** All that an iterable gives, whether it comes at once or later. */
export async function all<T>(items: Iterable<T> | AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** What an act was refused with: its code and the facts of it. */
export interface Refusal {
  readonly code: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** The TapeError of an act, or the code `none` when it was not refused. */
export async function refusal(act: () => unknown): Promise<Refusal> {
  try {
    await act();
  } catch (error) {
    if (!(error instanceof TapeError)) throw error;
    return { code: error.code, data: error.data, message: error.message };
  }
  return { code: 'none', data: {}, message: '' };
}

/** An assistant's message that asks for tools, one call an id. */
export function asks(...ids: readonly string[]): Draft {
  return assistant(ids.map((id) => toolCall(id, 'read', { path: id })));
}

/** The result of one of those calls. */
export function answers(id: string, output: Json = `of ${id}`): Draft {
  return toolResult({ toolCallId: id, toolName: 'read' }, output);
}

/** The parts of a message entry; none for another. */
export function partsOf(entry: Entry | undefined): JsonObject[] {
  const payload = entry?.payload;
  return isObject(payload) && Array.isArray(payload.content) ? payload.content.filter(isObject) : [];
}

/** The state of an anchor entry; empty for another. */
export function stateOf(entry: Entry | undefined): JsonObject {
  const payload = entry?.payload;
  return isObject(payload) && isObject(payload.state) ? payload.state : {};
}

/** The text of a message entry; for others, their kind and name. */
export function textOf(entry: Entry | undefined): string {
  if (entry?.kind !== 'message') return [entry?.kind, entry?.name].filter(Boolean).join(' ');
  return partsOf(entry)
    .map((part) => String(part.text ?? part.type))
    .join('');
}

/** A session with the messages `m1`, `m2`, … from position 2 on. */
export async function sessionOf(store: TapeStore, name: string, messages: number): Promise<void> {
  await store.session(name);
  const batch = Array.from({ length: messages }, (_, i) =>
    i % 2 === 0 ? user(`m${i + 1}`) : assistant(`m${i + 1}`),
  );
  if (batch.length > 0) await store.append(name, batch);
}
