import type { Part } from '../entry/entry.ts';
import { googleFiles, returnsToGoogle } from './google.ts';

/** The model that a view is for. */
export interface Target {
  /**
   * A provider by its AI SDK name, with or without the API after the dot: `anthropic.messages`, `openai`, …
   */
  readonly provider?: string;
  /** Whether the model reads text only: files become their names. */
  readonly textOnly?: boolean;
}

/** What a target accepts. Providers, or their AI SDK packages, reject everything else. */
export interface Dialect {
  /** The provider's name without its API; `undefined` for no specific provider. */
  readonly provider: string | undefined;
  /** The keys of `providerOptions` that the provider reads. */
  readonly optionNames: readonly string[];
  /**
   * A chat completions API: assistant messages hold text, reasoning and client-side calls; a result is one
   * text.
   */
  readonly chat: boolean;
  /** Whether the chat template requires an answer between a tool result and the next user message. */
  readonly alternates: boolean;
  /** Whether the provider checks ids in every call, its own included. */
  readonly checksIds: boolean;
  /** Whether the provider resumes an unfinished tool of its own when it receives the call again. */
  readonly pauses: boolean;
  /** Whether a call that the provider ran, or its result, can return to it. */
  readonly returns: (part: Part) => boolean;
  /** Whether custom parts return to the provider that made them. */
  readonly customs: boolean;
  /** Whether the texts of one result must be one text, and it must have one. */
  readonly oneResultText: boolean;
  /** Whether files in an assistant's message return to the provider that made them. */
  readonly ownFiles: boolean;
  /** Whether a blank text returns to its provider, for the item id or signature in its options. */
  readonly blankTexts: boolean;
  /** Media types of files that a user may send; `plainFiles` for files given as text. */
  readonly files: RegExp;
  readonly plainFiles: RegExp;
  /** Addresses of files that the provider can fetch. */
  readonly urls: RegExp;
  /** Media types of files in the result of a call. */
  readonly resultFiles: RegExp;
  /** Whether the model reads texts alone. */
  readonly textOnly: boolean;
}

const noFiles = /^(?!)/;
const web = /^https?:/i;
const all = /^/;
const images = 'image(?:/(?:\\*|png|jpe?g|gif|webp))?';

type Rules = Omit<Dialect, 'provider' | 'optionNames' | 'textOnly'>;

const generic: Rules = {
  chat: false,
  alternates: false,
  checksIds: false,
  pauses: true,
  returns: () => true,
  customs: true,
  oneResultText: false,
  ownFiles: true,
  blankTexts: true,
  files: all,
  plainFiles: all,
  urls: all,
  resultFiles: all,
};

const anthropic: Rules = {
  ...generic,
  checksIds: true,
  ownFiles: false,
  urls: web,
  blankTexts: false,
  files: new RegExp(`^(?:${images}|application/pdf|text/plain)$`),
  resultFiles: new RegExp(`^(?:${images}|application/pdf)$`),
};

const openai: Rules = {
  ...generic,
  checksIds: true,
  pauses: false,
  ownFiles: false,
  urls: web,
  files: new RegExp(`^(?:${images}|application/pdf)$`),
  plainFiles: noFiles,
  resultFiles: new RegExp(`^(?:${images}|application/pdf)$`),
};

const openaiChat: Rules = {
  ...openai,
  chat: true,
  customs: false,
  blankTexts: false,
  files: new RegExp(`^(?:${images}|application/pdf|audio/(?:wav|mp3|mpeg))$`),
  resultFiles: noFiles,
};

// The package also sends videos, as parts that the API does not have, and servers refuse them.
const otherChat: Rules = {
  ...openaiChat,
  alternates: true,
  checksIds: false,
  files: new RegExp(`^(?:${images}|application/pdf|audio/(?:wav|mp3|mpeg)|text/.+)$`),
  plainFiles: /^text\//,
};

const google: Rules = {
  ...generic,
  pauses: false,
  returns: returnsToGoogle,
  customs: false,
  oneResultText: true,
  files: googleFiles,
  plainFiles: noFiles,
  urls: web,
  resultFiles: /^(?:image\/(?:png|jpeg|webp|heic|heif)|application\/pdf)$/,
};

/** Returns what a target accepts. For an unknown provider, this is what its AI SDK package accepts. */
export function dialectOf({ provider: name, textOnly = false }: Target): Dialect {
  const provider = providerKey(name);
  const rules = rulesOf(name?.split('.') ?? []);
  // The packages for servers of open models read these options under one name.
  const shared = rules === otherChat ? ['openaiCompatible'] : [];
  // A recorded view can name any provider, also `constructor`.
  const others = provider !== undefined && Object.hasOwn(aliases, provider) ? (aliases[provider] ?? []) : [];
  return {
    ...rules,
    ...(textOnly && { files: noFiles, plainFiles: noFiles, resultFiles: noFiles }),
    textOnly,
    provider,
    optionNames: provider === undefined ? [] : [provider, ...others, ...shared],
  };
}

/** Parts of an AI SDK name: the provider, optionally the maker of the models, then the API. */
function rulesOf(name: readonly string[]): Rules {
  const [provider = ''] = name;
  const chat = name.at(-1) === 'chat';
  if (name.includes('anthropic')) return anthropic;
  if (provider === 'openai' || provider === 'azure') return chat ? openaiChat : openai;
  // Google's Vertex AI names its own API `chat` too.
  if (provider === 'google') return name[1] === 'vertex' ? { ...google, urls: /^(?:https?|gs):/i } : google;
  return chat ? otherChat : generic;
}

/** Returns the provider without its API: `anthropic.messages` and `anthropic` are one provider. */
export function providerKey(provider: string | undefined): string | undefined {
  return provider?.split('.')[0];
}

/** Other names under which a provider reads its options. */
const aliases: Readonly<Record<string, readonly string[]>> = {
  'amazon-bedrock': ['bedrock'],
  azure: ['openai'],
  google: ['vertex'],
  vertex: ['anthropic', 'google'],
};
