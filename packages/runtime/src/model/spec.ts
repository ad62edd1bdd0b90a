import type { Json, Secret, TapeStore } from '@tapedeck/tape';
import { isObject, maskFor, type Redactor } from '@tapedeck/tape/internal';
import { messageOf, SessionError } from '../errors.ts';
import { maskedModel } from './masked-model.ts';
import type { LanguageModel } from './model.ts';
import { assertSpec, type ModelFrom, withModelFrom } from './name.ts';
import type { ScriptAnswer } from './script.ts';

/** A model, or its name: `provider/model` or `script:FILE`. */
export type ModelSpec = LanguageModel | (string & {});

/** Makes the model for one session. A scripted model depends on the session; others do not. */
export type ModelSource = (session: string) => LanguageModel;

/** What `resolveModel` needs besides the spec. */
export interface ModelSettings {
  /** The variables that hold keys and base URLs. The library itself does not read the environment. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly store: TapeStore;
  /** Where the name comes from, for the errors. */
  readonly from?: ModelFrom | undefined;
  /** Replaced by their names in the answers and errors of the model. */
  readonly secrets?: readonly Secret[];
  /** @internal Replaces what has the form of a secret in its errors, and of a deck with `redact: 'all'` in its answers. */
  readonly redactor?: Redactor | undefined;
}

/**
 * Resolves a model spec. Fails before anything is written if the model cannot be used.
 * @throws SESSION_NO_FILE, SESSION_BAD_SCRIPT, SESSION_NO_KEY, SESSION_NO_MODEL
 *
 * @example
 * ```ts
 * import { resolveModel } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * const modelFor = await resolveModel('script:answers.json', { store: openTapeStore(':memory:') });
 * const model = modelFor('main');
 * console.log(typeof model === 'string' ? model : model.provider); // script
 * ```
 */
export async function resolveModel(
  spec: ModelSpec,
  { env = {}, store, from, secrets = [], redactor }: ModelSettings,
): Promise<ModelSource> {
  assertSpec(spec, from);
  const hidden = { mask: maskFor(secrets), redactor };
  if (typeof spec !== 'string') return () => maskedModel(spec, hidden);
  const named = await namedModel(spec, { env, from });
  if (!('script' in named)) return () => maskedModel(named, hidden);
  const { script } = named;
  const { scriptModel } = await import('./script.ts');
  return (session) =>
    maskedModel(scriptModel(script, { session, answered: () => answeredBy(store, session) }), hidden);
}

/**
 * Checks that a model spec can be used, without a store.
 * @throws what `resolveModel` throws
 */
export async function assertModel(
  spec: ModelSpec,
  { env = {}, from }: Pick<ModelSettings, 'env' | 'from'>,
): Promise<void> {
  assertSpec(spec, from);
  if (typeof spec === 'string') await namedModel(spec, { env, from });
}

/** A script, or the model of a provider. Its errors say where the name comes from. */
async function namedModel(
  spec: string,
  { env, from }: { readonly env: Env; readonly from: ModelFrom | undefined },
): Promise<Exclude<LanguageModel, string> | { readonly script: readonly ScriptAnswer[] }> {
  try {
    if (spec.startsWith('script:')) {
      const { readScript } = await import('./script.ts');
      return { script: await readScript(spec.slice('script:'.length)) };
    }
    return await providedModel(spec, env);
  } catch (error) {
    throw error instanceof SessionError ? withModelFrom(error, from) : error;
  }
}

type Env = Readonly<Record<string, string | undefined>>;

async function providedModel(spec: string, env: Env): Promise<Exclude<LanguageModel, string>> {
  const [provider = '', ...rest] = spec.split('/');
  const name = rest.join('/');
  if (provider === 'openai-compatible') {
    const baseURL = need(env, 'OPENAI_BASE_URL', spec);
    const apiKey = need(env, 'OPENAI_API_KEY', spec);
    const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
    return createOpenAICompatible({
      name: 'openai-compatible',
      baseURL,
      apiKey,
      includeUsage: true,
      // Without it the package does not send the output schema, and warns on stderr.
      supportsStructuredOutputs: true,
    })(name);
  }
  const known = Object.hasOwn(providers, provider) ? providers[provider] : undefined;
  const installed = known === undefined ? undefined : await load(known.package);
  if (known !== undefined && installed !== undefined) {
    const apiKey = need(env, known.key, spec);
    const create = installed[known.create];
    if (typeof create === 'function') return create({ apiKey })(name);
  }
  const apiKey = env.AI_GATEWAY_API_KEY ?? '';
  if (apiKey === '' && known !== undefined)
    throw new SessionError(
      'SESSION_NO_KEY',
      `cannot use model '${spec}': ${known.package} is not installed, and AI_GATEWAY_API_KEY is not set`,
      { data: { model: spec, variable: 'AI_GATEWAY_API_KEY', package: known.package } },
    );
  need(env, 'AI_GATEWAY_API_KEY', spec);
  const { createGateway } = await import('ai');
  return createGateway({ apiKey })(spec);
}

/** Providers whose AI SDK package is used if it is installed. */
const providers: Readonly<Record<string, { package: string; create: string; key: string }>> = {
  anthropic: { package: '@ai-sdk/anthropic', create: 'createAnthropic', key: 'ANTHROPIC_API_KEY' },
  openai: { package: '@ai-sdk/openai', create: 'createOpenAI', key: 'OPENAI_API_KEY' },
  google: {
    package: '@ai-sdk/google',
    create: 'createGoogleGenerativeAI',
    key: 'GOOGLE_GENERATIVE_AI_API_KEY',
  },
};

/**
 * The name by which `resolveModel` finds the model that an answer records; undefined for a provider that no name
 * selects, such as a script. Pure.
 */
export function recordedSpec(provider: string, model: string): string | undefined {
  const [name = ''] = provider.split('.');
  if (name === 'gateway') return model;
  return name === 'openai-compatible' || Object.hasOwn(providers, name) ? `${name}/${model}` : undefined;
}

type ProviderPackage = Readonly<
  Record<
    string,
    ((settings: { apiKey: string }) => (model: string) => Exclude<LanguageModel, string>) | undefined
  >
>;

async function load(name: string): Promise<ProviderPackage | undefined> {
  try {
    return (await import(name)) as ProviderPackage;
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ERR_MODULE_NOT_FOUND') return undefined;
    throw new SessionError('SESSION_NO_MODEL', `cannot load '${name}': ${messageOf(error)}`, {
      cause: error,
    });
  }
}

function need(env: Env, name: string, spec: string): string {
  const value = env[name];
  if (value !== undefined && value !== '') return value;
  throw new SessionError('SESSION_NO_KEY', `cannot use model '${spec}': ${name} is not set`, {
    data: { model: spec, variable: name },
  });
}

/** Notes that record failed model calls. */
const failures: ReadonlySet<string> = new Set(['run/error', 'run/retrying', 'context/not-compacted']);

/** The response ids that a session's own entries record, including those of failed calls. */
async function answeredBy(store: TapeStore, session: string): Promise<string[]> {
  const ids: string[] = [];
  for await (const { kind, name, meta, payload } of store.entries.read(session, { own: true })) {
    const id: Json | undefined =
      kind === 'message' || kind === 'compaction'
        ? meta.response
        : failures.has(name ?? '') && isObject(payload)
          ? payload.response
          : undefined;
    if (typeof id === 'string') ids.push(id);
  }
  return ids;
}
