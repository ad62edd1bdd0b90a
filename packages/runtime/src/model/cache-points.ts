import type { ModelMessage, SystemModelMessage } from './model.ts';

/** The marker that makes Anthropic cache a prompt up to a part; other providers cache without markers. */
const keep = { anthropic: { cacheControl: { type: 'ephemeral' } } };

/** Whether a provider caches only what is marked. */
export function needsCacheMarks(provider: string | undefined): boolean {
  return provider?.split('.').includes('anthropic') === true;
}

/** Instructions with a cache marker. The marker also covers the tool definitions, which come before them. */
export function keptInstructions(instructions: string): SystemModelMessage {
  return { role: 'system', content: instructions, providerOptions: keep };
}

/** A place in a prompt: after `parts` parts of a message. */
export interface PromptPlace {
  readonly message: number;
  readonly parts: number;
}

/**
 * Where a shorter prompt, which ends where a session's own part begins, ends in a longer one. Pure.
 * @returns undefined if the longer prompt does not begin with the shorter one
 */
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

/** Marks a prompt for caching at the point of its fork, which sibling forks share, and at its end. Pure. */
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
