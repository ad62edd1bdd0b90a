import type { TapeStore } from '@tapedeck/tape';
import type { InboxItem } from '@tapedeck/tape/store';
import { getModel, type LanguageModel } from '../model/model.ts';
import { type ModelSpec, resolveModel } from '../model/spec.ts';
import { modelCarried } from './carried-model.ts';
import type { SessionFacts } from './terms.ts';

/** The sources of a model: the tape, the deck's configuration, and the environment with its keys. */
interface Models {
  readonly store: TapeStore;
  readonly config: { readonly model?: ModelSpec; readonly summarizer?: ModelSpec };
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The model named by a run: in its options, or in the messages that it takes up from the inbox. */
interface Named {
  readonly options: { readonly model?: ModelSpec | undefined };
  readonly items?: readonly InboxItem[];
}

/**
 * The model of a run: the one it names, else the one that the session carries, else the deck's.
 * @throws SESSION_NO_MODEL, and the errors of `resolveModel`
 */
export async function modelFor(
  { store, config, env }: Models,
  session: SessionFacts,
  { options, items = [] }: Named,
): Promise<LanguageModel> {
  const spec = options.model ?? namedIn(items) ?? (await modelCarried(store, session)) ?? config.model;
  const source = spec === undefined ? undefined : await resolveModel(spec, { env, store });
  return getModel(source?.(session.info.name), session.info.name);
}

/** The name of the model that a run names, or that the session carries. */
export async function namedFor(
  store: TapeStore,
  session: SessionFacts,
  { options, items = [] }: Named,
): Promise<string | undefined> {
  if (typeof options.model === 'string') return options.model;
  return namedIn(items) ?? (await modelCarried(store, session));
}

/** The deck's summarizer, if it has one. */
export async function summarizerOf(
  { store, config, env }: Models,
  session: string,
): Promise<LanguageModel | undefined> {
  if (config.summarizer === undefined) return undefined;
  return (await resolveModel(config.summarizer, { env, store }))(session);
}

function namedIn(items: readonly InboxItem[]): string | undefined {
  const drafts = items.flatMap(({ body }) => (body.type === 'input' ? body.drafts : []));
  const model = drafts.findLast(({ meta }) => typeof meta?.model === 'string')?.meta?.model;
  return typeof model === 'string' ? model : undefined;
}
