import type { DeckConfig, ModelSpec } from '@tapedeck/runtime';
import { isObject, secretsOf } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { ConfigError } from '../errors/kinds.ts';
import { shellWord } from '../escape.ts';
import { isConfigForeign } from '../origin.ts';
import { aliasKeys } from './aliases.ts';
import { fileConfig, homeConfig, ignoredText } from './deck.ts';
import { homeConfigFile } from './find.ts';
import { keyText, type Path, snakeCase } from './keys.ts';
import { inOwnNames, type OtherNamed } from './other-names.ts';
import { hideUrls, remotesIn } from './remotes.ts';

/** Where a value comes from: a variable, `tape.config.mts`, `config.yaml`, or the program. */
type Origin = 'environment' | 'code' | 'file' | 'default';

/** The value of one key, and where it comes from. */
export interface Setting {
  readonly path: Path;
  readonly key: string;
  readonly value: unknown;
  readonly origin: Origin;
  /** The variable or the file; null for a default. */
  readonly from: string | null;
  /** The name that the file has for it, where that is the name of another agent. */
  readonly called?: string;
  /** Why a value that the file has under such a name, which is the key then, does not count. */
  readonly unused?: string;
}

/**
 * The values of all keys, each from the first place that has it, in the order of precedence. A `tape.config.mts` that
 * needs trust and has none is left out, with a line of status.
 */
export async function effectiveSettings(
  config: string | false | undefined,
  { io, home, options, status: say }: Pick<Context, 'io' | 'home' | 'options' | 'status'>,
): Promise<readonly Setting[]> {
  // With --json, stderr is for the document of an error.
  const status = options.json === true || options.jsonl === true ? () => {} : say;
  const { TAPE_MODEL: model = '' } = io.env;
  const code = config === false ? undefined : await trustedCode(config, { io, home, status });
  io.hide(secretsOf(code?.config.secrets));
  const { config: inHome, data, otherNames, ignored: paths } = await homeConfig({ io, home });
  const { secretsOfServers } = await import('@tapedeck/runtime/internal');
  await hideUrls(
    (await remotesIn(home)).map(({ url }) => url),
    io,
  );
  io.hide([code?.config, inHome].flatMap((one) => secretsOfServers(one?.mcpServers)));
  const ignored = [...paths, ...(isConfigForeign(home, io) ? aliasKeys(data) : [])];
  if (ignored.length > 0) status(ignoredText(ignored, home));
  const from = homeConfigFile(home);
  const own = settingsIn(inOwnNames(data, otherNames), 'file', from)
    .filter(({ key }) => !ignored.some((name) => key === name || key.startsWith(`${name}.`)))
    .map((one) => withName(one, otherNames));
  const layers = [
    model === '' ? [] : settingsIn({ model }, 'environment', '$TAPE_MODEL'),
    code === undefined ? [] : settingsIn(dataOf(code.config), 'code', code.path),
    own,
    settingsIn(await defaults(), 'default', null),
  ];
  // What a place of higher precedence has.
  const above = [...(layers[0] ?? []), ...(layers[1] ?? [])];
  const unused = otherNames.flatMap((name) => unusedIn(name, { above, from }));
  const taken = new Set<string>();
  const used = layers.flatMap((layer) => {
    // The rules of code and of the home all count.
    const shown = layer.filter(({ path }) => path[0] === 'permissions' || !taken.has(unitOf(path)));
    for (const { path } of layer) taken.add(unitOf(path));
    return shown;
  });
  return [...used, ...unused];
}

/** The setting with the name that the file has for it, if that is another one. */
function withName(one: Setting, names: readonly OtherNamed[]): Setting {
  const name = names.find(
    ({ beside, setting, implies }) => beside === undefined && (setting === one.key || one.key in implies),
  );
  return name === undefined ? one : { ...one, called: name.key };
}

/** A value that the file has under another name, if it does not count. */
function unusedIn(
  { key, value, setting, beside }: OtherNamed,
  { above, from }: { readonly above: readonly Setting[]; readonly from: string },
): readonly Setting[] {
  const unit = unitOf(setting.split('.'));
  const other = above.find(({ path }) => unitOf(path) === unit);
  const why = beside === undefined ? other && `${other.from} has ${unit}` : `it has ${beside}, too`;
  if (why === undefined) return [];
  return [{ path: key.split('.'), key, value, origin: 'file', from, unused: why }];
}

async function trustedCode(
  config: string | undefined,
  { io, home, status }: Pick<Context, 'io' | 'home' | 'status'>,
): Promise<{ readonly path: string; readonly config: DeckConfig } | undefined> {
  try {
    return await fileConfig(config, { io, home });
  } catch (error) {
    if (!(error instanceof ConfigError) || error.code !== 'CLI_UNTRUSTED') throw error;
    const { config: path, dir } = error.data as { config: string; dir: string };
    status(
      `Left out ${path}: it is code, and is not trusted (read it, and trust it with: tape trust ${shellWord(dir)})`,
    );
    return undefined;
  }
}

/** What a place has as a whole: limits and settings count one by one, each other field with all that is in it. */
function unitOf([field = '', name = '']: Path): string {
  return field === 'limits' || field === 'settings' || field === 'alias' ? `${field}.${name}` : field;
}

/** Each value in the data of a place that is no mapping. */
function settingsIn(data: unknown, origin: Origin, from: string | null, path: Path = []): readonly Setting[] {
  if (isObject(data))
    return Object.entries(data).flatMap(([name, value]) => settingsIn(value, origin, from, [...path, name]));
  return [{ path, key: keyText(path), value: data, origin, from }];
}

/** What code says, as data in the spelling of `config.yaml`. Functions have no data. */
function dataOf(config: DeckConfig): unknown {
  const {
    model,
    summarizer,
    titles,
    instructions,
    settings,
    prompt,
    limits,
    compaction,
    windows,
    view,
    redact,
    permissions,
    builtinTools,
    mcpServers,
  } = config;
  const { providerOptions, ...others } = settings ?? {};
  const { concurrentCalls, ...numbers } = limits ?? {};
  return withoutGaps({
    model: modelText(model),
    summarizer: modelText(summarizer),
    titles: modelText(titles),
    instructions,
    settings: withoutGaps({ ...others, provider_options: providerOptions }),
    prompt: prompt && withoutGaps({ ...prompt }),
    limits: withoutGaps({ ...fieldsIn(numbers), concurrent_calls: concurrentCalls }),
    compaction: inSnakeCase(compaction),
    windows:
      typeof windows === 'object'
        ? Object.fromEntries(Object.entries(windows).map(([name, window]) => [name, inSnakeCase(window)]))
        : undefined,
    view,
    redact,
    permissions,
    builtin_tools: builtinTools,
    mcp_servers:
      mcpServers &&
      Object.fromEntries(
        Object.entries(mcpServers).map(([name, { timeoutMs, ...server }]) => [
          name,
          withoutGaps({ ...server, timeout_ms: timeoutMs }),
        ]),
      ),
  });
}

function modelText(spec: ModelSpec | undefined): string | undefined {
  return typeof spec === 'object' ? `${spec.provider}/${spec.modelId}` : spec;
}

function inSnakeCase(value: unknown): unknown {
  return isObject(value) ? fieldsIn(value) : value;
}

function fieldsIn(fields: object): Readonly<Record<string, unknown>> {
  return withoutGaps(
    Object.fromEntries(Object.entries(fields).map(([name, inner]) => [snakeCase(name), inSnakeCase(inner)])),
  );
}

function withoutGaps(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && typeof value !== 'function'),
  );
}

async function defaults(): Promise<unknown> {
  const { defaultLimits } = await import('@tapedeck/runtime');
  return {
    prompt: { project: false, environment: false, tools: false },
    limits: inSnakeCase(defaultLimits),
    compaction: 'reserve',
    redact: true,
  };
}
