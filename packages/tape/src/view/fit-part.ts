import type { Part } from '../entry/entry.ts';
import { isObject, type JsonObject } from '../entry/json.ts';
import { type Dialect, providerKey } from './dialect.ts';
import { fitUserFile, quoteMadeFile } from './file-part.ts';

/** What fitting a part of an assistant's message depends on, beside the part. */
export interface PartFit {
  readonly dialect: Dialect;
  /** Whether the target made the part. */
  readonly own: boolean;
  /** Whether the part is a call that the provider ran, or its result, and both are in view. */
  readonly paired: boolean;
}

/** Whether the target made a part: it made the message, or, where that is not known, the options are for it. */
export function isOwn(part: Part, author: string | undefined, dialect: Dialect): boolean {
  if (dialect.provider === undefined) return false;
  if (author !== undefined) return providerKey(author) === dialect.provider;
  return optionsFor(part.providerOptions, dialect) !== undefined;
}

/** A part of a user's message; `undefined` for what nobody takes from a user. */
export function fitUserPart(part: Part, dialect: Dialect): Part | undefined {
  if (part.type === 'text') return isBlank(part) ? undefined : withOptions(part, dialect);
  if (part.type === 'file' || part.type === 'image') return withOptions(fitUserFile(part, dialect), dialect);
  return undefined;
}

/**
 * A part of an assistant's message, calls of ours excepted. To who made it, it goes back as it is; for others it is
 * told in words, or dropped where it is nothing to them.
 */
export function fitAssistantPart(part: Part, { dialect, own, paired }: PartFit): Part | undefined {
  switch (part.type) {
    case 'text':
      if (isBlank(part)) return own && keepsBlank(part, dialect) ? part : undefined;
      return own ? asAuthored(part, dialect) : withOptions(part, dialect);
    case 'reasoning':
      return own ? asAuthored(part, dialect) : undefined;
    case 'reasoning-file':
      return own && dialect.ownFiles ? asAuthored(part, dialect) : undefined;
    case 'custom':
      return own && isOwnKind(part, dialect) ? asAuthored(part, dialect) : undefined;
    case 'file':
    case 'image':
      return own && dialect.ownFiles ? asAuthored(fitUserFile(part, dialect), dialect) : quoteMadeFile(part);
    case 'tool-call':
      if (own && paired) return asAuthored(part, dialect);
      return quoteText(`${String(part.toolName)} was called by the provider`, part.input);
    case 'tool-result':
      if (own && paired) return asAuthored(part, dialect);
      return quoteText(`${String(part.toolName)} answered`, part.output);
    default:
      return undefined;
  }
}

/** A part as its maker gave it; options that no maker gives are left out, as they would spoil the whole prompt. */
export function asAuthored(part: Part, dialect: Dialect): Part {
  const { providerOptions: options } = part;
  const sound = options === undefined || (isObject(options) && Object.values(options).every(isObject));
  return sound ? part : withOptions(part, dialect);
}

/** Whether a text says nothing: providers refuse it. */
function isBlank({ text }: Part): boolean {
  return typeof text === 'string' && text.trim() === '';
}

/** A blank text may carry something for who made it: the id of an item, a signature. */
function keepsBlank(part: Part, dialect: Dialect): boolean {
  return dialect.blankTexts && optionsFor(part.providerOptions, dialect) !== undefined;
}

function isOwnKind(part: Part, { chat, provider, checksNames }: Dialect): boolean {
  return !chat && typeof part.kind === 'string' && (!checksNames || part.kind.startsWith(`${provider}.`));
}

/** What a provider did that only it can read, in words; nothing that is opaque or signed goes along. */
function quoteText(what: string, value: unknown): Part {
  return { type: 'text', text: `[${what}: ${JSON.stringify(value ?? null, withoutOpaque)}]` };
}

function withoutOpaque(name: string, value: unknown): unknown {
  return /^encrypted|signature$|^providerOptions$/i.test(name) ? undefined : value;
}

/** A part with the options that are meant for the target, and no others. */
export function withOptions(part: Part, dialect: Dialect): Part {
  if (part.providerOptions === undefined) return part;
  const { providerOptions, ...rest } = part;
  const options = optionsFor(providerOptions, dialect);
  return options === undefined ? (rest as Part) : ({ ...rest, providerOptions: options } as Part);
}

/** Of provider options, those that are meant for the target. */
export function optionsFor(options: unknown, { optionNames }: Dialect): JsonObject | undefined {
  if (!isObject(options)) return undefined;
  const own = Object.entries(options).filter(
    ([name, value]) => optionNames.includes(name) && isObject(value),
  );
  return own.length === 0 ? undefined : Object.fromEntries(own);
}
