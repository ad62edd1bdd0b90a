import type { Part } from './entry.ts';
import { isObject, type JsonObject } from './json.ts';
import type { Rendered, StoredMessage } from './render.ts';

/** Whom a view is for. A provider by the first part of its AI SDK name: `anthropic`, `openai`, … */
export interface Target {
  readonly provider?: string;
}

/** Stands where a call has no result in view: a provider refuses a call that nothing answers. */
export const noResult = 'No result of this call was recorded.';

interface Turn {
  readonly message: StoredMessage;
  /** Client-side calls of the message, in order: the id on the tape, the id in the view, and the result once found. */
  readonly calls: { readonly id: string; readonly shown: string; readonly name: string; result?: Part }[];
}

/**
 * Makes messages valid for their target (law 7): each client-side call has exactly one result, right after its
 * message; what only its own provider can read returns there byte for byte and is dropped or quoted for others;
 * nothing is empty; neighbouring user messages are one. Pure.
 */
export function fitTo(rendered: readonly Rendered[], target: Target = {}): StoredMessage[] {
  const provider = providerKey(target.provider);
  const turns: Turn[] = [];
  const seen = new Set<string>();
  for (const item of rendered) {
    if (item.type === 'result') answer(turns, item.part, provider);
    else turns.push(turnOf(item.message, providerKey(item.provider), provider, seen));
  }
  const messages: StoredMessage[] = [];
  for (const turn of turns) {
    if (turn.message.content.length === 0) continue;
    const last = messages.at(-1);
    if (turn.message.role === 'user' && last?.role === 'user')
      messages[messages.length - 1] = join(last, turn.message);
    else messages.push(turn.message);
    if (turn.calls.length > 0) messages.push({ role: 'tool', content: turn.calls.map(resultOf) });
  }
  return messages;
}

/** `anthropic.messages` and `anthropic` are one provider: the name that `providerOptions` uses. */
function providerKey(provider: string | undefined): string | undefined {
  return provider?.split('.')[0];
}

function turnOf(
  message: StoredMessage,
  author: string | undefined,
  target: string | undefined,
  seen: Set<string>,
): Turn {
  const calls: Turn['calls'] = [];
  const content = message.content.flatMap((part): Part[] => {
    const fitted =
      message.role === 'assistant' ? fitAssistantPart(part, author, target) : fitPart(part, target);
    if (fitted === undefined) return [];
    if (message.role !== 'assistant' || fitted.type !== 'tool-call' || fitted.providerExecuted === true)
      return [fitted];
    const id = String(fitted.toolCallId);
    const shown = unusedId(id, seen);
    calls.push({ id, shown, name: String(fitted.toolName) });
    return [shown === id ? fitted : { ...fitted, toolCallId: shown }];
  });
  const options = optionsFor(message.providerOptions, target);
  const fitted = { role: message.role, content, ...(options !== undefined && { providerOptions: options }) };
  return { message: fitted, calls };
}

/** Some servers number their calls anew in every answer, and others refuse two calls of one id. */
function unusedId(id: string, seen: Set<string>): string {
  let shown = id;
  for (let n = 2; seen.has(shown); n += 1) shown = `${id}_${n}`;
  seen.add(shown);
  return shown;
}

/** Gives a result to the newest call of its id that has none; a result without a call in view is dropped. */
function answer(turns: readonly Turn[], part: Part, target: string | undefined): void {
  for (let i = turns.length - 1; i >= 0; i -= 1) {
    const call = turns[i]?.calls.find((c) => c.id === part.toolCallId && c.result === undefined);
    if (call === undefined) continue;
    call.result = { ...withOptions(part, target), toolCallId: call.shown };
    return;
  }
}

function resultOf({ shown, name, result }: Turn['calls'][number]): Part {
  return (
    result ?? {
      type: 'tool-result',
      toolCallId: shown,
      toolName: name,
      output: { type: 'error-text', value: noResult },
    }
  );
}

function fitAssistantPart(
  part: Part,
  author: string | undefined,
  target: string | undefined,
): Part | undefined {
  const own = target !== undefined && (author ?? optionsOwner(part, target)) === target;
  if (own) return isEmptyText(part, target) ? undefined : part;
  switch (part.type) {
    case 'reasoning':
    case 'reasoning-file':
    case 'custom':
      return undefined;
    case 'tool-call':
      if (part.providerExecuted !== true) return withOptions(part, target);
      return quoteText(`${String(part.toolName)} was called by the provider`, part.input);
    case 'tool-result':
      return quoteText(`${String(part.toolName)} answered`, part.output);
    default:
      return fitPart(part, target);
  }
}

function fitPart(part: Part, target: string | undefined): Part | undefined {
  return isEmptyText(part, target) ? undefined : withOptions(part, target);
}

/** An empty text is refused by providers, unless it carries something for them. */
function isEmptyText(part: Part, target: string | undefined): boolean {
  return part.type === 'text' && part.text === '' && optionsFor(part.providerOptions, target) === undefined;
}

function optionsOwner(part: Part, target: string): string | undefined {
  return isObject(part.providerOptions) && target in part.providerOptions ? target : undefined;
}

function withOptions(part: Part, target: string | undefined): Part {
  if (part.providerOptions === undefined) return part;
  const { providerOptions, ...rest } = part;
  const options = optionsFor(providerOptions, target);
  return options === undefined ? (rest as Part) : ({ ...rest, providerOptions: options } as Part);
}

function optionsFor(options: unknown, target: string | undefined): JsonObject | undefined {
  if (!isObject(options) || target === undefined) return undefined;
  const own = options[target];
  return own === undefined ? undefined : { [target]: own };
}

function quoteText(what: string, value: unknown): Part {
  return { type: 'text', text: `[${what}: ${JSON.stringify(value ?? null)}]` };
}

function join(a: StoredMessage, b: StoredMessage): StoredMessage {
  const options = { ...a.providerOptions, ...b.providerOptions };
  const content = [...a.content, ...b.content];
  return { role: 'user', content, ...(Object.keys(options).length > 0 && { providerOptions: options }) };
}
