                                              
import { isObject,                 } from '../entry/json.js';
import {               providerKey } from './dialect.js';
import { fitUserFile, isLinked, quoteMadeFile } from './file-part.js';

/** What the fit of an assistant's part depends on. */
                          
                            
                                          
                        
                                                                                                        
                           
 

/**
 * Returns whether the target made a part: it made the message or, if its author is unknown, the part has its
 * options.
 */
export function isOwn(part      , author                    , dialect         )          {
  if (dialect.provider === undefined) return false;
  if (author !== undefined) return providerKey(author) === dialect.provider;
  return optionsFor(part.providerOptions, dialect) !== undefined;
}

/** Fits a part of a user's message; `undefined` when no provider accepts it from a user. */
export function fitUserPart(part      , dialect         )                   {
  if (part.type === 'text') return isBlank(part) ? undefined : withOptions(part, dialect);
  if (part.type === 'file' || part.type === 'image') return withOptions(fitUserFile(part, dialect), dialect);
  return undefined;
}

/**
 * Fits a part of an assistant's message that is no client-side call. It returns unchanged to the provider
 * that made it; for others it is quoted as text, or dropped if it has no meaning for them.
 */
export function fitAssistantPart(part      , { dialect, own, paired }         )                   {
  switch (part.type) {
    case 'text':
      if (isBlank(part)) return own && keepsBlank(part, dialect) ? part : undefined;
      return own ? asAuthored(part, dialect) : withOptions(part, dialect);
    case 'reasoning':
      return own ? asAuthored(part, dialect) : undefined;
    case 'reasoning-file':
      return own && dialect.ownFiles && !isLinked(part) ? asAuthored(part, dialect) : undefined;
    case 'custom':
      return own && isOwnKind(part, dialect) ? asAuthored(part, dialect) : undefined;
    case 'file':
    case 'image':
      return own && dialect.ownFiles && !isLinked(part)
        ? asAuthored(fitUserFile(part, dialect), dialect)
        : quoteMadeFile(part);
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

/**
 * Returns a part as its provider made it, without malformed options, which would invalidate the whole prompt.
 */
export function asAuthored(part      , dialect         )       {
  const { providerOptions: options } = part;
  const sound = options === undefined || (isObject(options) && Object.values(options).every(isObject));
  return sound ? part : withOptions(part, dialect);
}

/** Returns whether a text is blank: providers reject blank text. */
function isBlank({ text }      )          {
  return typeof text === 'string' && text.trim() === '';
}

/** A blank text can carry an item id or a signature for the provider that made it. */
function keepsBlank(part      , dialect         )          {
  return dialect.blankTexts && optionsFor(part.providerOptions, dialect) !== undefined;
}

function isOwnKind(part      , { customs, provider, checksIds }         )          {
  return customs && typeof part.kind === 'string' && (!checksIds || part.kind.startsWith(`${provider}.`));
}

/** Quotes a provider-executed call or result as text, without opaque and signed fields. */
function quoteText(what        , value         )       {
  return { type: 'text', text: `[${what}: ${JSON.stringify(value ?? null, withoutOpaque)}]` };
}

function withoutOpaque(name        , value         )          {
  return /^encrypted|signature$|^providerOptions$/i.test(name) ? undefined : value;
}

/** Returns a part with only the options that the target reads. */
export function withOptions(part      , dialect         )       {
  if (part.providerOptions === undefined) return part;
  const { providerOptions, ...rest } = part;
  const options = optionsFor(providerOptions, dialect);
  return options === undefined ? (rest        ) : ({ ...rest, providerOptions: options }        );
}

/** Returns the provider options that the target reads. */
export function optionsFor(options         , { optionNames }         )                         {
  if (!isObject(options)) return undefined;
  const own = Object.entries(options).filter(
    ([name, value]) => optionNames.includes(name) && isObject(value),
  );
  return own.length === 0 ? undefined : Object.fromEntries(own);
}
