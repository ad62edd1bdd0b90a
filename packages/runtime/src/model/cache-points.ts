import type { ModelMessage, SystemModelMessage } from './model.ts';

/** How Anthropic is told that what comes up to here is to be kept; others find what they have seen by themselves. */
const keep = { anthropic: { cacheControl: { type: 'ephemeral' } } };

/** Whether a model's provider has to be told what to keep. */
export function needsCacheMarks(provider: string | undefined): boolean {
  return provider?.split('.').includes('anthropic') === true;
}

/** Instructions that are kept; they come after the definitions of tools, which are kept with them. */
export function keptInstructions(instructions: string): SystemModelMessage {
  return { role: 'system', content: instructions, providerOptions: keep };
}

/** Where something ends in a prompt: after so many parts of a message. */
export interface PromptPlace {
  readonly message: number;
  readonly parts: number;
}

/** How much of a prompt is the same as a shorter one, which ends where a session's own part begins. Pure. */
export function commonEnd(
  shorter: readonly ModelMessage[],
  prompt: readonly ModelMessage[],
): PromptPlace | undefined {
  const message = shorter.length - 1;
  const [end, other] = [shorter[message], prompt[message]];
  if (end === undefined || other === undefined || end.role !== other.role) return undefined;
  if (typeof end.content === 'string' || typeof other.content === 'string') return undefined;
  const parts = end.content.length;
  const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
  if (!same(shorter.slice(0, message), prompt.slice(0, message))) return undefined;
  return parts > 0 && same(end.content, other.content.slice(0, parts)) ? { message, parts } : undefined;
}

/** A prompt whose provider keeps it up to where it was forked, for the children beside it, and up to its end. Pure. */
export function withCachePoints(
  prompt: readonly ModelMessage[],
  cut: PromptPlace | undefined,
): readonly ModelMessage[] {
  const last = prompt.length - 1;
  const end = prompt[last];
  const tail = end === undefined ? undefined : { message: last, parts: end.content.length };
  return prompt.map((message, at) => {
    if (typeof message.content === 'string') return message;
    const kept = [cut, tail].flatMap((place) => (place?.message === at ? [place.parts - 1] : []));
    if (kept.length === 0) return message;
    const content = message.content.map((part, i) =>
      kept.includes(i) ? { ...part, providerOptions: { ...optionsOf(part), ...keepIn(part) } } : part,
    );
    return { ...message, content } as ModelMessage;
  });
}

function optionsOf(part: object): object {
  return 'providerOptions' in part && typeof part.providerOptions === 'object'
    ? (part.providerOptions ?? {})
    : {};
}

function keepIn(part: object) {
  const { anthropic } = optionsOf(part) as { anthropic?: object };
  return { anthropic: { ...anthropic, ...keep.anthropic } };
}
