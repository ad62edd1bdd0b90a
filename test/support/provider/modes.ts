import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { LanguageModelV4 } from '@ai-sdk/provider';
import type { JsonObject, Target } from '@tapedeck/tape';
import { wrapLanguageModel } from 'ai';
import { alternating, alternatingVision } from './alternating.ts';
import { anthropic } from './anthropic.ts';
import { chat } from './chat.ts';
import { google, googleModel } from './google.ts';
import { apiKey, type Protocol } from './protocol.ts';
import { responses } from './responses.ts';

/** A way to speak to a provider: its own package, and a strict server of its protocol. */
export interface Mode {
  readonly name: string;
  readonly protocol: Protocol;
  readonly target: Target & { readonly provider: string };
  readonly model: (o: { readonly baseURL: string; readonly fetch?: typeof fetch }) => LanguageModelV4;
  readonly providerOptions?: Readonly<Record<string, JsonObject>>;
}

type Access = Parameters<Mode['model']>[0];

const compatible = ({ baseURL, ...more }: Access): LanguageModelV4 =>
  wrapLanguageModel({
    model: createOpenAICompatible({
      name: 'openai-compatible',
      baseURL,
      apiKey,
      includeUsage: true,
      ...more,
    })('open'),
    // The server fetches images by their addresses: nothing is downloaded here.
    middleware: { specificationVersion: 'v4', overrideSupportedUrls: () => ({ 'image/*': [/^https:/] }) },
  });
const openai = (access: Access) => createOpenAI({ apiKey, ...access });

const responsesMode = {
  protocol: responses,
  target: { provider: 'openai.responses' },
  model: (access: Access) => openai(access).responses('gpt-5'),
};

export const modes: readonly Mode[] = [
  {
    name: 'anthropic',
    protocol: anthropic,
    target: { provider: 'anthropic.messages' },
    model: (access) => createAnthropic({ apiKey, ...access })('claude-sonnet-4-5'),
  },
  {
    name: 'openai chat',
    protocol: chat,
    target: { provider: 'openai.chat' },
    model: (access) => openai(access).chat('gpt-4o'),
  },
  { name: 'openai responses', ...responsesMode },
  // Content that OpenAI does not store is returned encrypted instead.
  { name: 'openai responses, unstored', ...responsesMode, providerOptions: { openai: { store: false } } },
  {
    name: 'google',
    protocol: google,
    target: { provider: 'google.generative-ai' },
    model: (access) =>
      wrapLanguageModel({
        model: createGoogle({ apiKey, ...access })(googleModel),
        // The server fetches images by their addresses: nothing is downloaded here.
        middleware: { specificationVersion: 'v4', overrideSupportedUrls: () => ({ '*': [/^https:/] }) },
      }),
  },
  { name: 'compatible', protocol: chat, target: { provider: 'openai-compatible.chat' }, model: compatible },
  {
    name: 'alternating',
    protocol: alternating,
    target: { provider: 'openai-compatible.chat', textOnly: true },
    model: compatible,
  },
  {
    name: 'alternating with images',
    protocol: alternatingVision,
    target: { provider: 'openai-compatible.chat' },
    model: compatible,
  },
];

/** A mode by its name. */
export function modeOf(name: string): Mode {
  const mode = modes.find((m) => m.name === name);
  if (mode === undefined) throw new TypeError(`no mode '${name}'`);
  return mode;
}
