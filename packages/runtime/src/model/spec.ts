import type { Json, TapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { messageOf, SessionError } from '../errors.ts';
import type { LanguageModel } from './model.ts';

/** A model, or its name: `provider/model` or `script:FILE`. */
export type ModelSpec = LanguageModel | (string & {});

/** Makes the model for one session. A scripted model depends on the session; others do not. */
export type ModelSource = (session: string) => LanguageModel;

export interface ModelSettings {
  /** The variables that hold keys and base URLs. The library itself does not read the environment. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly store: TapeStore;
}

/**
 * Resolves a model spec. Fails before anything is written if the model cannot be used.
 * @throws SESSION_NO_FILE, SESSION_BAD_SCRIPT, SESSION_NO_KEY, SESSION_NO_MODEL
 */
export async function resolveModel(
  spec: ModelSpec,
  { env = {}, store }: ModelSettings,
): Promise<ModelSource> {
  if (typeof spec !== 'string') return () => spec;
  if (spec.startsWith('script:')) {
    const { readScript, scriptModel } = await import('./script.ts');
    const script = await readScript(spec.slice('script:'.length));
    return (session) => scriptModel(script, { session, answered: () => answeredBy(store, session) });
  }
  const model = await namedModel(spec, env);
  return () => model;
}

/**
 * Checks that a model spec can be used, without a store.
 * @throws what `resolveModel` throws
 */
export async function assertModel(
  spec: ModelSpec,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  if (typeof spec !== 'string') return;
  if (spec.startsWith('script:')) {
    const { readScript } = await import('./script.ts');
    await readScript(spec.slice('script:'.length));
  } else await namedModel(spec, env);
}

async function namedModel(
  spec: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<LanguageModel> {
  const [provider = '', ...rest] = spec.split('/');
  const name = rest.join('/');
  if (provider === '' || name === '')
    throw new SessionError(
      'SESSION_NO_MODEL',
      `cannot use model '${spec}': it must be PROVIDER/MODEL or script:FILE`,
      {
        data: { model: spec },
      },
    );
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
  const known = providers[provider];
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

type ProviderPackage = Readonly<
  Record<string, ((settings: { apiKey: string }) => (model: string) => LanguageModel) | undefined>
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

function need(env: Readonly<Record<string, string | undefined>>, name: string, spec: string): string {
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
