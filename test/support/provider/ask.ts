import { toPrompt } from '@tapedeck/runtime';
import { type Entry, type Json, type ViewPolicy, view } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { streamText } from 'ai';
import type { Mode } from './modes.ts';
import type { ChatRequest } from './protocol.ts';

// Packages warn of what they omit; this inspects what they send.
globalThis.AI_SDK_LOG_WARNINGS = false;

/** What became of a view that was sent to a provider: the body, and why it was refused. */
export interface Asked {
  readonly body: Record<string, Json>;
  readonly refused: string | undefined;
}

interface View {
  readonly policy?: ViewPolicy;
  readonly blob?: (hash: string) => Uint8Array;
}

/**
 * Sends a view by the provider's own package to the check of the strict server, without a network between them.
 * Nothing for a view of nothing.
 */
export async function ask(mode: Mode, entries: Iterable<Entry>, view: View = {}): Promise<Asked | undefined> {
  let asked: Asked | undefined;
  const check = async (_url: unknown, init?: RequestInit) => {
    const body: unknown = JSON.parse(String(init?.body));
    const fault = mode.protocol.fault(body);
    asked = { body: isObject(body) ? body : {}, refused: fault?.message };
    if (fault !== undefined) return Response.json(mode.protocol.errorBody(fault), { status: fault.status });
    const { begin, end } = mode.protocol;
    const events = [begin, end].flatMap((part) => part(body as ChatRequest, { text: 'Fine.' }));
    return new Response(events.join(''), { headers: { 'content-type': 'text/event-stream' } });
  };
  const answer = await answerTo(mode, entries, {
    ...view,
    baseURL: 'http://strict.example/v1',
    fetch: check,
  });
  // What a package itself refuses was never sent.
  return answer === undefined ? undefined : (asked ?? { body: {}, refused: answer });
}

/** What a provider says to a view that is sent to it by its own package: its text, or its error. */
export async function answerTo(
  mode: Mode,
  entries: Iterable<Entry>,
  {
    policy = 'last-boundary',
    blob = () => new Uint8Array([1]),
    ...access
  }: View & Parameters<Mode['model']>[0],
): Promise<string | undefined> {
  const { messages } = view(entries, { policy, target: mode.target });
  if (messages.length === 0) return undefined;
  const { stream } = streamText({
    model: mode.model(access),
    messages: await toPrompt(messages, blob),
    maxRetries: 0,
    onError: () => {},
    ...(mode.providerOptions !== undefined && { providerOptions: mode.providerOptions as never }),
  });
  let text = '';
  for await (const part of stream) {
    if (part.type === 'text-delta') text += part.text;
    if (part.type === 'error') text = String(part.error);
  }
  return text;
}
