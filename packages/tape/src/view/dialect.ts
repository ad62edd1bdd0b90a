/** Whom a view is for. */
export interface Target {
  /** A provider by its AI SDK name, with or without the API after the dot: `anthropic.messages`, `openai`, … */
  readonly provider?: string;
  /** The model reads texts alone: files are told by their names. */
  readonly textOnly?: boolean;
}

/** What a target takes. Providers refuse the rest, or their AI SDK packages do. */
export interface Dialect {
  /** The provider's name, without its API; `undefined` when the target is nobody in particular. */
  readonly provider: string | undefined;
  /** The names under which `providerOptions` are meant for the provider. */
  readonly optionNames: readonly string[];
  /** A chat completions API: an assistant has texts, reasoning and calls of ours, and a result is a text. */
  readonly chat: boolean;
  /** Chat templates that want an answer between the result of a call and what the user says next. */
  readonly alternates: boolean;
  /** Ids and names of calls are checked, whoever made them. */
  readonly checksNames: boolean;
  /** Whether the provider goes on with a tool that it had not finished, when it gets the call back. */
  readonly pauses: boolean;
  /** Whether files in an assistant's message go back to who made them. */
  readonly ownFiles: boolean;
  /** Whether a blank text goes back to who made it, for what its options say (an item's id, a signature). */
  readonly blankTexts: boolean;
  /** Media types of files that a user may send; `plain`, files given as a text. */
  readonly files: RegExp;
  readonly plainFiles: RegExp;
  /** Media types of files in the result of a call. */
  readonly resultFiles: RegExp;
  /** Whether the model reads texts alone. */
  readonly textOnly: boolean;
}

const none = /^(?!)/;
const all = /^/;
const images = 'image(?:/(?:\\*|png|jpe?g|gif|webp))?';

type Rules = Omit<Dialect, 'provider' | 'optionNames' | 'textOnly'>;

const anybody: Rules = {
  chat: false,
  alternates: false,
  checksNames: false,
  pauses: true,
  ownFiles: true,
  blankTexts: true,
  files: all,
  plainFiles: all,
  resultFiles: all,
};

const anthropic: Rules = {
  ...anybody,
  checksNames: true,
  ownFiles: false,
  blankTexts: false,
  files: new RegExp(`^(?:${images}|application/pdf|text/plain)$`),
  resultFiles: new RegExp(`^(?:${images}|application/pdf)$`),
};

const openai: Rules = {
  ...anybody,
  checksNames: true,
  pauses: false,
  ownFiles: false,
  files: new RegExp(`^(?:${images}|application/pdf)$`),
  plainFiles: none,
  resultFiles: new RegExp(`^(?:${images}|application/pdf)$`),
};

const openaiChat: Rules = {
  ...openai,
  chat: true,
  blankTexts: false,
  files: new RegExp(`^(?:${images}|application/pdf|audio/(?:wav|mp3|mpeg))$`),
  resultFiles: none,
};

const otherChat: Rules = {
  ...openaiChat,
  alternates: true,
  checksNames: false,
  files: new RegExp(`^(?:${images}|application/pdf|audio/(?:wav|mp3|mpeg)|video/.+|text/.+)$`),
  plainFiles: /^text\//,
};

/** What a target takes, by its name. One that is not known here takes what its AI SDK package takes. */
export function dialectOf({ provider: name, textOnly = false }: Target): Dialect {
  const provider = providerKey(name);
  const rules = rulesOf(name?.split('.') ?? []);
  // Whatever a server of open models is called, its package reads these.
  const shared = rules === otherChat ? ['openaiCompatible'] : [];
  return {
    ...rules,
    ...(textOnly && { files: none, plainFiles: none, resultFiles: none }),
    textOnly,
    provider,
    optionNames: provider === undefined ? [] : [provider, ...(aliases[provider] ?? []), ...shared],
  };
}

/** An AI SDK name is a provider, then perhaps whose models these are, then the API. */
function rulesOf(name: readonly string[]): Rules {
  const [provider = ''] = name;
  const chat = name.at(-1) === 'chat';
  if (name.includes('anthropic')) return anthropic;
  if (provider === 'openai' || provider === 'azure') return chat ? openaiChat : openai;
  // Google's Vertex AI names its own API so as well.
  return chat && provider !== 'google' ? otherChat : anybody;
}

/** `anthropic.messages` and `anthropic` are one provider. */
export function providerKey(provider: string | undefined): string | undefined {
  return provider?.split('.')[0];
}

/** Providers whose options have another name than themselves. */
const aliases: Readonly<Record<string, readonly string[]>> = {
  'amazon-bedrock': ['bedrock'],
  azure: ['openai'],
  google: ['vertex'],
  vertex: ['anthropic', 'google'],
};
