import type { IncomingHttpHeaders } from 'node:http';
import type { Json, JsonObject } from '@tapedeck/tape';

/** A message as the server was sent it. */
interface ChatMessage extends JsonObject {
  readonly role: string;
}

/** A request as the server was sent it, after it was found valid. */
export interface ChatRequest extends JsonObject {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
}

interface ChatCall {
  readonly id?: string;
  readonly name: string;
  /** A text is sent as it is, JSON or not. */
  readonly arguments: Json;
}

/** The server's response in place of an answer. */
export interface Failure {
  readonly status: number;
  readonly message: string;
  readonly type?: string;
  readonly code?: string;
  /** How long clients have to wait before they retry. */
  readonly retryAfterMs?: number;
  /** The same as the text of a `retry-after` header, alone. */
  readonly retryAfter?: string;
}

/** The server's answer. */
export interface Answer {
  /** Thoughts before the answer, signed where the protocol signs them. */
  readonly reasoning?: string;
  /** Thoughts that only the server can read, before those. */
  readonly redacted?: string;
  /** A search of the web that the server runs itself, before the text. */
  readonly search?: string;
  /** Sent as one chunk for each text. */
  readonly text?: string | readonly string[];
  readonly calls?: readonly ChatCall[];
  readonly finish?: string;
  /** Prompt and completion tokens. */
  readonly usage?: readonly [number, number];
  readonly delayMs?: number;
  /** Between two texts (default 1). */
  readonly pauseMs?: number;
  /** What comes after half of the texts waits for it. */
  readonly half?: Promise<unknown>;
  /** Closes the connection after the texts, before the answer is finished. */
  readonly cut?: true;
  /** Sends the texts, and then nothing more. */
  readonly hang?: true;
  /** Sends the texts, and then that the server is overloaded. */
  readonly breaks?: true;
}

/** Bytes in place of an answer, as no sound server sends them. */
export interface RawAnswer {
  readonly raw: readonly (string | Uint8Array)[];
  /** Default 200. */
  readonly code?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Closes the connection after the bytes; `before`: without a response. */
  readonly cut?: true | 'before';
}

/** An answer; an error; that the prompt is too long, as the provider words it; or bytes. */
export type ChatAnswer = Answer | Failure | RawAnswer | { readonly overflow: true };

/** How a provider is spoken to, and what it refuses. */
export interface Protocol {
  readonly path: string;
  /** Why a request may not ask at all: no key, or a wrong one. */
  readonly refuses: (headers: IncomingHttpHeaders) => Failure | undefined;
  /** The faults for which a strict server would refuse a body. */
  readonly fault: (body: unknown) => Failure | undefined;
  readonly overflow: Failure;
  /** The body of an error. */
  readonly errorBody: (failure: Failure) => JsonObject;
  /** The events of an answer up to its texts, and those after them. */
  readonly begin: (request: ChatRequest, answer: Answer) => readonly string[];
  readonly end: (request: ChatRequest, answer: Answer) => readonly string[];
  /** The body of an answer to a request that does not ask for a stream. Without it, the server only streams. */
  readonly whole?: (request: ChatRequest, answer: Answer) => JsonObject;
}

/** The key that every one of these servers takes. */
export const apiKey = 'test-key';

/** A malformed request. */
export function invalid(message: string, code?: string): Failure {
  return { status: 400, message, type: 'invalid_request_error', ...(code !== undefined && { code }) };
}

export function textsOf(text: string | readonly string[] | undefined): readonly string[] {
  if (text === undefined) return [];
  return typeof text === 'string' ? [text] : text;
}

/** An id that differs from all others. */
export function randomId(): string {
  return Math.random().toString(36).slice(2, 12).padEnd(10, '0');
}

/** Where a text is that is no Unicode: half of a surrogate pair. */
export function brokenText(value: unknown, path = 'body'): string | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? undefined : path;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, field] of Object.entries(value)) {
    const found = name.isWellFormed() ? brokenText(field, `${path}.${name}`) : path;
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The media types of images that these providers take. */
export const imageTypes: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
]);

export function isBase64(text: unknown): boolean {
  return typeof text === 'string' && text !== '' && Buffer.from(text, 'base64').toString('base64') === text;
}
