import { type Dialect, dialectOf, type Target } from './dialect.ts';
import type { Part } from './entry.ts';
import { callId, callInput, fitResult, toolName } from './fit-call.ts';
import { asMade, fitAssistantPart, fitUserPart, isOwn, optionsFor, withOptions } from './fit-part.ts';
import { type ProviderRuns, providerRuns } from './provider-runs.ts';
import type { Rendered, StoredMessage } from './render.ts';

/** Stands where a call has no result in view: a provider refuses a call that nothing answers. */
export const noResult = 'No result of this call was recorded.';

/** Stands where the user goes on after a result that was not answered, for those who refuse that. */
export const noAnswer = 'No answer was recorded here.';

/** Stands before a message of the assistant that begins a view: a conversation begins with the user. */
export const noStart = 'The conversation before this point is not shown.';

/** What the user says where the assistant is to go on by itself: after its own message, which is no question. */
export const goOn = 'Go on.';

interface Turn {
  readonly message: StoredMessage;
  /** Client-side calls of the message, in order: the id on the tape, the call as shown, and the result once found. */
  readonly calls: { readonly onTape: string; readonly id: string; readonly name: string; result?: Part }[];
  /** Whether it goes on with a call that the provider ran in the message before, so that nothing may part them. */
  readonly continues: boolean;
}

/**
 * Makes messages valid for their target (law 7): the user begins, user and assistant take turns; each client-side
 * call has exactly one result, right after its message; what only its own provider can read returns there byte for
 * byte and is dropped or quoted for others; nothing is empty. Pure, and of a longer tape the same with more at the
 * end, save for what the end leaves open.
 */
export function fitTo(rendered: readonly Rendered[], target: Target = {}): StoredMessage[] {
  const dialect = dialectOf(target);
  const runs = providerRuns(rendered, dialect);
  const turns: Turn[] = [];
  const seen = new Set(runs.ids);
  for (const item of rendered) {
    if (item.type === 'result') answer(turns, item.part, dialect);
    else turns.push(turnOf(item, { dialect, runs, seen }));
  }
  const messages: StoredMessage[] = [];
  for (const turn of turns) {
    if (turn.message.content.length === 0) continue;
    push(messages, turn, dialect);
    if (turn.calls.length > 0) messages.push({ role: 'tool', content: turn.calls.map(resultOf) });
  }
  return messages;
}

/** Adds a message to those before it, with what must stand between them. */
function push(messages: StoredMessage[], { message, continues }: Turn, { alternates }: Dialect): void {
  const last = messages.at(-1);
  if (message.role === 'user') {
    if (last?.role === 'user') {
      messages[messages.length - 1] = join(last, message);
      return;
    }
    if (alternates && last?.role === 'tool') messages.push(said('assistant', noAnswer));
  } else if (last === undefined) messages.push(said('user', noStart));
  else if (last.role === 'assistant' && !continues) messages.push(said('user', goOn));
  messages.push(message);
}

interface Context {
  readonly dialect: Dialect;
  readonly runs: ProviderRuns;
  /** Ids of calls that are taken. */
  readonly seen: Set<string>;
}

function turnOf(item: Rendered & { type: 'message' }, { dialect, runs, seen }: Context): Turn {
  const { message, provider: author } = item;
  const { role } = message;
  const calls: Turn['calls'] = [];
  const fitted = (part: Part, index: number): Part | undefined => {
    if (role !== 'assistant') return fitUserPart(part, dialect);
    const own = isOwn(part, author, dialect);
    if (part.type !== 'tool-call' || part.providerExecuted === true)
      return fitAssistantPart(part, { dialect, own, paired: runs.paired.get(message)?.has(index) === true });
    const free = own && !dialect.checksNames;
    const onTape = String(part.toolCallId);
    const id = callId(onTape, free, seen);
    const name = toolName(String(part.toolName), free);
    calls.push({ onTape, id, name });
    const shown = { ...part, toolCallId: id, toolName: name, input: callInput(part.input) };
    return own ? asMade(shown, dialect) : withOptions(shown, dialect);
  };
  const content = withoutLooseReasoning(message.content.flatMap((part, index) => fitted(part, index) ?? []));
  const options = optionsFor(message.providerOptions, dialect);
  return {
    message: { role, content, ...(options !== undefined && { providerOptions: options }) },
    calls,
    continues: runs.continuing.has(message),
  };
}

/** Reasoning that nothing follows led to nothing: providers refuse a message that ends with it. */
function withoutLooseReasoning(content: readonly Part[]): readonly Part[] {
  const last = content.findLastIndex(({ type }) => type !== 'reasoning' && type !== 'reasoning-file');
  return last === content.length - 1 ? content : content.slice(0, last + 1);
}

/** Gives a result to the newest call of its id that has none; a result without a call in view is dropped. */
function answer(turns: readonly Turn[], part: Part, dialect: Dialect): void {
  for (let i = turns.length - 1; i >= 0; i -= 1) {
    const call = turns[i]?.calls.find((c) => c.onTape === part.toolCallId && c.result === undefined);
    if (call === undefined) continue;
    call.result = fitResult(part, call, dialect);
    return;
  }
}

function resultOf({ id, name, result }: Turn['calls'][number]): Part {
  return (
    result ?? {
      type: 'tool-result',
      toolCallId: id,
      toolName: name,
      output: { type: 'error-text', value: noResult },
    }
  );
}

function said(role: 'user' | 'assistant', text: string): StoredMessage {
  return { role, content: [{ type: 'text', text }] };
}

function join(a: StoredMessage, b: StoredMessage): StoredMessage {
  const options = { ...a.providerOptions, ...b.providerOptions };
  const content = [...a.content, ...b.content];
  return { role: 'user', content, ...(Object.keys(options).length > 0 && { providerOptions: options }) };
}
