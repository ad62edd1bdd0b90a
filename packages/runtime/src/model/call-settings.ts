import { isDeepStrictEqual } from 'node:util';
import type { Json, JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { encodeJson } from '@tapedeck/tape/store';
import { SessionError } from '../errors.ts';

/** Reasoning efforts, from none to the most. `provider-default` sends none. */
export const efforts = [
  'provider-default',
  'none',
  'minimal',
  'low',
  'medium',
  'high',
  'xhigh',
  'max',
] as const;

/** How much a model reasons before it answers: the call setting `reasoning` of the AI SDK. */
export type Effort = (typeof efforts)[number];

/** Settings of model calls. A missing one is that of the next source: the run, the session, the deck. */
export interface CallSettings {
  /** From 0 to 2. Some models ignore it. */
  readonly temperature?: number;
  readonly effort?: Effort;
  /**
   * Options of the request body, by provider, as the AI SDK takes them: `{ anthropic: { … } }`. They are replaced as
   * a whole. They hold no key, header or address, and no name of a model.
   */
  readonly providerOptions?: Readonly<Record<string, JsonObject>>;
}

/**
 * Names that no provider option may have, at any depth, in lower case without `_` and `-`: what connects to a
 * provider is set where the model is made.
 */
const connecting: ReadonlySet<string> = new Set([
  ...['baseurl', 'headers', 'anthropicbeta', 'byok'],
  ...['apikey', 'authtoken', 'accesstoken', 'authorization', 'authorizationtoken', 'credentials', 'secret'],
]);

/** The first name of a provider option that connects to a provider, or names a model; undefined without one. Pure. */
function refusedName(options: Json): string | undefined {
  if (Array.isArray(options)) return options.map(refusedName).find((name) => name !== undefined);
  if (!isObject(options)) return undefined;
  for (const [name, value] of Object.entries(options)) {
    if (connecting.has(name.toLowerCase().replace(/[_-]/g, ''))) return name;
    const inner = refusedName(value);
    if (inner !== undefined) return inner;
  }
  return undefined;
}

/** Why a setting of that name cannot have that value; undefined when it can. Pure. */
const faults: Readonly<Record<string, (value: unknown) => string | undefined>> = {
  temperature: (value) =>
    typeof value === 'number' && value >= 0 && value <= 2 ? undefined : 'must be a number from 0 to 2',
  effort: (value) =>
    efforts.some((name) => name === value) ? undefined : `must be one of ${efforts.join(', ')}`,
  providerOptions: (value) => {
    if (!isJson(value) || !isObject(value) || !Object.values(value).every(isObject))
      return 'must be an object of JSON objects, one for each provider';
    const hasModel = Object.values(value).some(
      (options) => isObject(options) && Object.hasOwn(options, 'model'),
    );
    const name = refusedName(value) ?? (hasModel ? 'model' : undefined);
    return name === undefined
      ? undefined
      : `must not have '${name}': keys, headers, addresses and models are set where the model is made`;
  },
};

function isJson(value: unknown): value is Json {
  try {
    // A function or a date has no JSON form, or another one.
    return isDeepStrictEqual(JSON.parse(encodeJson(value)), value);
  } catch {
    return false;
  }
}

/** The first field of settings that cannot be used, and why; undefined when all can. Pure. */
export function settingsFault(
  settings: unknown,
): { readonly field: string; readonly why: string } | undefined {
  if (settings === undefined) return undefined;
  if (typeof settings !== 'object' || settings === null || Array.isArray(settings))
    return { field: '', why: 'must be an object of temperature, effort and providerOptions' };
  for (const [field, value] of Object.entries(settings)) {
    if (!Object.hasOwn(faults, field)) return { field, why: 'is not a setting' };
    const why = value === undefined ? undefined : faults[field]?.(value);
    if (why !== undefined) return { field, why };
  }
  return undefined;
}

/**
 * Refuses settings that no model call takes, before anything is written.
 * @throws SESSION_BAD_INPUT
 */
export function assertSettings(settings: CallSettings | undefined, act: string): void {
  const fault = settingsFault(settings);
  if (fault === undefined) return;
  throw new SessionError('SESSION_BAD_INPUT', `cannot ${act}: ${faultText(fault)}`, { data: fault });
}

/** A fault in words: `settings.effort must be one of …`. Pure. */
export function faultText({ field, why }: { readonly field: string; readonly why: string }): string {
  return `settings${field === '' ? '' : `.${field}`} ${why}`;
}

/** Reads settings from a tape, which is untrusted data: ignores each one that cannot be used. */
export function callSettingsIn(value: Json | undefined): CallSettings {
  if (!isObject(value)) return {};
  const fields = Object.entries(value).filter(
    ([field, setting]) => settingsFault({ [field]: setting }) === undefined,
  );
  return Object.fromEntries(fields) as CallSettings;
}

/** Settings of several sources, the strongest last. Drops fields with the value `undefined`. Pure. */
export function mergeSettings(...sources: readonly (CallSettings | undefined)[]): CallSettings {
  const given = sources.flatMap((source) => Object.entries(source ?? {}).filter(([, v]) => v !== undefined));
  return Object.fromEntries(given) as CallSettings;
}

/** Settings as a field of metadata; nothing without any. Pure. */
export function settingsMeta(settings: CallSettings): { readonly settings?: JsonObject } {
  return Object.keys(settings).length === 0 ? {} : { settings: settings as JsonObject };
}
