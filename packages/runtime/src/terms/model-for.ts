import type { Secret, TapeStore } from '@tapedeck/tape';
import type { Redactor } from '@tapedeck/tape/internal';
import type { InboxItem } from '@tapedeck/tape/store';
import { type CallSettings, callSettingsIn, mergeSettings } from '../model/call-settings.ts';
import { getModel, type LanguageModel } from '../model/model.ts';
import { assertSpec, type ModelFrom, usableName } from '../model/name.ts';
import { type ModelSpec, resolveModel } from '../model/spec.ts';
import type { RawTraffic } from '../traffic/traffic.ts';
import { carriedBy } from './carried-model.ts';
import { ancestryOf, type SessionFacts } from './terms.ts';

/** The sources of a model: the tape, the deck's configuration, and the environment with its keys. */
interface Models {
  readonly store: TapeStore;
  readonly config: {
    readonly model?: ModelSpec;
    readonly settings?: CallSettings;
    readonly summarizer?: ModelSpec;
    readonly record?: 'raw' | 'none';
  };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly secrets: readonly Secret[];
  readonly redactor: Redactor | undefined;
  readonly traffic: RawTraffic | undefined;
  /** Where the deck's model comes from; undefined: from the program. */
  readonly modelFrom: string | undefined;
}

/** The model and settings named by a run: in its options, or in the messages that it takes up from the inbox. */
interface Asked {
  readonly options: {
    readonly model?: ModelSpec | undefined;
    readonly settings?: CallSettings | undefined;
  };
  readonly items?: readonly InboxItem[];
}

/** The model of a run, and the settings of its calls. */
export interface RunModel {
  readonly model: LanguageModel;
  /** Where its name comes from. A model that was passed as an object has no name. */
  readonly from: ModelFrom | undefined;
  readonly settings: CallSettings;
}

/**
 * The model of a run: the one it names, else the one that the session carries, else the deck's; the same for each
 * setting of its calls.
 * @throws SESSION_NO_MODEL, and the errors of `resolveModel`; `data.modelFrom` says where the name comes from
 */
export async function modelFor(models: Models, session: SessionFacts, asked: Asked): Promise<RunModel> {
  const { store, config, modelFrom } = models;
  if (typeof asked.options.model !== 'string') assertSpec(asked.options.model, 'run');
  const given = typeof asked.options.model === 'object' ? asked.options.model : undefined;
  const { spec: named, from: place, settings } = await namedFor(store, session, asked);
  const spec = given ?? named ?? config.model;
  // A program that gives the deck and the run one model, such as `--model`, says where that comes from.
  const isGiven = place === 'run' && modelFrom !== undefined && spec === config.model;
  const known = isGiven ? modelFrom : (place ?? modelFrom ?? 'deck');
  const from = typeof spec === 'string' ? known : undefined;
  return {
    model: getModel(
      spec === undefined ? undefined : await sessionModel(models, session, spec, from),
      session.info.session,
    ),
    from,
    settings: mergeSettings(config.settings, settings),
  };
}

/** What a run names or its session carries: the name of a model with its place, and settings. */
export interface NamedModel {
  readonly spec: string | undefined;
  readonly from: ModelFrom | undefined;
  readonly settings: CallSettings;
}

/** The model and the settings that a run names, or that the session carries. */
export async function namedFor(
  store: TapeStore,
  session: SessionFacts,
  { options, items = [] }: Asked,
): Promise<NamedModel> {
  const messages = items.flatMap(({ body }) => (body.type === 'input' ? body.drafts : []));
  const carried = await carriedBy(store, session);
  const settings = mergeSettings(
    carried.settings,
    ...messages.map(({ meta }) => callSettingsIn(meta?.settings)),
    options.settings,
  );
  if (typeof options.model === 'string') return { spec: options.model, from: 'run', settings };
  const message = items
    .flatMap(({ body, ...item }) =>
      body.type === 'input' ? body.drafts.map(({ meta }) => nameIn(meta?.model, item)) : [],
    )
    .findLast((name) => name !== undefined);
  if (message !== undefined) return { spec: message, from: 'message', settings };
  return { spec: carried.model, from: carried.model === undefined ? undefined : 'session', settings };
}

function nameIn(recorded: unknown, item: Pick<InboxItem, 'elsewhere'>): string | undefined {
  return typeof recorded === 'string' ? usableName(recorded, item) : undefined;
}

/** The deck's summarizer, if it has one. */
export async function summarizerOf(
  models: Models,
  session: SessionFacts,
): Promise<LanguageModel | undefined> {
  const { summarizer } = models.config;
  return summarizer === undefined ? undefined : await sessionModel(models, session, summarizer);
}

/**
 * The model that a spec means, for calls of a session.
 * @throws the errors of `resolveModel`
 */
export async function sessionModel(
  models: Omit<Models, 'modelFrom'>,
  session: SessionFacts,
  spec: ModelSpec,
  from?: ModelFrom,
): Promise<LanguageModel> {
  const { store, env, secrets, redactor, traffic } = models;
  const { session: name, id } = session.info;
  const model = (await resolveModel(spec, { env, store, from, secrets, redactor }))(name);
  if (traffic === undefined || typeof model === 'string' || !(await keepsTraffic(models, session)))
    return model;
  return traffic.observed({ name, id }, model);
}

/** Whether the raw traffic of a session is kept: the deck keeps that of all, or it or one above it was made so. */
async function keepsTraffic({ store, config }: Pick<Models, 'store' | 'config'>, session: SessionFacts) {
  const isKept = ({ origin }: SessionFacts) => origin.settings.record === 'raw';
  if (config.record !== undefined) return config.record === 'raw';
  if (isKept(session) || session.info.parentId === undefined) return isKept(session);
  return ((await session.above?.()) ?? (await ancestryOf(store, session)).slice(1)).some(isKept);
}
