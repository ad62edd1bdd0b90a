import { createAnthropic } from '@ai-sdk/anthropic';
import { type Point, type SqliteTapeStore, view } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { restoreBlobs } from '@tapedeck/tape/store';
import { generateText, type ModelMessage } from 'ai';

/** A message of a request, with one list of blocks for each turn. */
export interface WireMessage {
  readonly role: string;
  readonly content: readonly Readonly<Record<string, unknown>>[];
}

/** The messages that Anthropic would be sent for what a session shows, by the AI SDK. */
export async function viewOnTheWire(
  store: SqliteTapeStore,
  session: string,
  at: Point = 'head',
): Promise<readonly WireMessage[]> {
  const { messages } = view(store.views.entries(session, { at }), {
    target: { provider: 'anthropic.messages' },
  });
  const whole = restoreBlobs(messages, (hash) => store.entries.blob(hash)) as unknown as ModelMessage[];
  let body: unknown;
  const anthropic = createAnthropic({
    apiKey: 'none',
    fetch: async (_, init) => {
      body = JSON.parse(String(init?.body));
      return new Response('{}', { status: 400 });
    },
  });
  const probe = { role: 'user', content: 'probe' } as const;
  const asked = generateText({
    model: anthropic('claude-opus-5-5'),
    messages: [...whole, probe],
    maxRetries: 0,
  });
  await asked.catch((error: unknown) => {
    if (body === undefined) throw error;
  });
  const sent = wireMessages(body);
  const last = sent.at(-1);
  if (last === undefined) throw new Error('the AI SDK sent nothing');
  const content = last.content.slice(0, -1);
  return content.length === 0 ? sent.slice(0, -1) : [...sent.slice(0, -1), { ...last, content }];
}

/**
 * The messages of a request in one form: neighbours of one role as one, texts as blocks, and without what says nothing to a
 * model: marks for caches, and messages of the system, which a program writes about itself.
 */
export function wireMessages(request: unknown): readonly WireMessage[] {
  const { messages } = request as { readonly messages: readonly { role: string; content: unknown }[] };
  const made: { role: string; content: Readonly<Record<string, unknown>>[] }[] = [];
  for (const { role, content } of messages) {
    if (role === 'system') continue;
    const blocks = blocksOf(content);
    const last = made.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else made.push({ role, content: blocks });
  }
  // Claude Code ends a text with a line break where another one follows.
  for (const { content } of made)
    for (const [i, { type, text }] of content.entries())
      if (type === 'text' && i < content.length - 1) content[i] = { type, text: String(text).trimEnd() };
  return made;
}

function blocksOf(content: unknown): Readonly<Record<string, unknown>>[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return (content as unknown[])
    .filter(isObject)
    .map(({ cache_control: _, is_error: failed, content: inner, ...block }) => ({
      ...block,
      ...(failed === true && { is_error: true }),
      ...(inner !== undefined && { content: block.type === 'tool_result' ? blocksOf(inner) : inner }),
    }));
}
