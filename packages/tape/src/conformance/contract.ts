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

/** The matchers that the contract uses; vitest, jest and others provide them. */
export interface Matchers {
  toBe(expected: unknown): void;
  toEqual(expected: unknown): void;
  toMatchObject(expected: object): void;
  toMatch(expected: RegExp): void;
}

/** The test runner that runs the contract. */
export interface Runner {
  readonly test: (name: string, run: () => Promise<void>) => unknown;
  readonly expect: (value: unknown) => Matchers;
}

/** Opens a new, empty store. Each case disposes of its own. */
export type Open = () => Awaitable<TapeStore>;

/** A place where stores keep their data: it survives each store, and several can be open on it at once. */
export interface ReopenablePlace extends AsyncDisposable {
  /** Opens a store on this place. */
  open(): Awaitable<TapeStore>;
}

/** One part of the contract. */
export type Chapter = (runner: Runner, open: Open) => void;

/** Collects the items of a synchronous or asynchronous iterable. */
export async function all<T>(items: Iterable<T> | AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** The error of an act: code, data and message. */
export interface Refusal {
  readonly code: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** Returns the TapeError of an act, or the code `none` when it does not throw. */
export async function refusal(act: () => unknown): Promise<Refusal> {
  try {
    await act();
  } catch (error) {
    if (!(error instanceof TapeError)) throw error;
    return { code: error.code, data: error.data, message: error.message };
  }
  return { code: 'none', data: {}, message: '' };
}

/** Makes an assistant message with one tool call per id. */
export function asks(...ids: readonly string[]): Draft {
  return assistant(ids.map((id) => toolCall(id, 'read', { path: id })));
}

/** Makes the result of such a call. */
export function answers(id: string, output: Json = `of ${id}`): Draft {
  return toolResult({ toolCallId: id, toolName: 'read' }, output);
}

/** Returns the parts of a message entry; none for other entries. */
export function partsOf(entry: Entry | undefined): JsonObject[] {
  const payload = entry?.payload;
  return isObject(payload) && Array.isArray(payload.content) ? payload.content.filter(isObject) : [];
}

/** Returns the state of an anchor entry; empty for other entries. */
export function stateOf(entry: Entry | undefined): JsonObject {
  const payload = entry?.payload;
  return isObject(payload) && isObject(payload.state) ? payload.state : {};
}

/** Returns the text of a message entry; for other entries their kind and name. */
export function textOf(entry: Entry | undefined): string {
  if (entry?.kind !== 'message') return [entry?.kind, entry?.name].filter(Boolean).join(' ');
  return partsOf(entry)
    .map((part) => String(part.text ?? part.type))
    .join('');
}

/** Creates a session with the messages `m1`, `m2`, … from position 2 on. */
export async function sessionOf(store: TapeStore, name: string, messages: number): Promise<void> {
  await store.sessions.open(name);
  const batch = Array.from({ length: messages }, (_, i) =>
    i % 2 === 0 ? user(`m${i + 1}`) : assistant(`m${i + 1}`),
  );
  if (batch.length > 0) await store.entries.append(name, batch);
}

/** Creates `main` with two messages, and a finished child `child` with the result "done". */
export async function finishedChild(store: TapeStore): Promise<void> {
  await sessionOf(store, 'main', 2);
  await store.lineage.fork('main', { name: 'child' });
  await store.entries.append('child', [user('Do it.'), assistant('done')]);
}
