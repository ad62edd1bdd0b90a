import { isObject } from '@tapedeck/tape/internal';

type Path = readonly string[];

/** A setting as the configurations of other agents name it. */
interface OtherName {
  readonly key: string;
  /** The setting that it is here. */
  readonly setting: string;
  /** It does not count where one of these is set. Default: its setting. */
  readonly beside?: readonly string[];
  /** The rules that come with it there, in settings that count where there are no others. */
  readonly implies?: Readonly<Record<string, unknown>>;
  /** Its value here, where that has another unit. */
  readonly here?: (value: unknown) => unknown;
}

const keep = ['compaction.keep'];
const tail = { 'compaction.preset': 'reserve' };
const recent = { 'compaction.preset': 'reserve-16k' };
const ratios = { 'compaction.preset': 'at-90' };

/** All of them. Those of `compaction` that imply one preset are of one program. */
const table: readonly OtherName[] = [
  {
    key: 'compaction.keep_recent_tokens',
    setting: 'compaction.keep.tokens',
    beside: keep,
    implies: recent,
  },
  { key: 'compaction.tail_turns', setting: 'compaction.keep.turns', beside: keep, implies: tail },
  {
    key: 'compaction.tail_budget_pct',
    setting: 'compaction.keep.share',
    beside: keep,
    implies: { 'compaction.keep.turns': 2, ...tail },
  },
  {
    key: 'compaction.recent_preserve_ratio',
    setting: 'compaction.keep.ratio',
    beside: keep,
    implies: ratios,
  },
  {
    key: 'compaction.trigger_threshold',
    setting: 'compaction.threshold',
    beside: ['compaction.threshold', 'compaction.reserve_tokens'],
    implies: ratios,
  },
  { key: 'compaction.summary_budget_ratio', setting: 'compaction.summary.share', implies: ratios },
  { key: 'compaction.model', setting: 'summarizer', implies: ratios },
  { key: 'max_tool_iterations', setting: 'limits.max_steps' },
  { key: 'max_concurrent_tools', setting: 'limits.concurrent_tools' },
  {
    key: 'skill_timeout',
    setting: 'limits.tool_timeout_ms',
    here: (seconds) => (typeof seconds === 'number' ? Math.round(seconds * 1_000) : seconds),
  },
];

/** The keys of all of them. */
export const otherKeys: readonly string[] = table.map(({ key }) => key);

/** Settings of other agents that have the same name here. */
const sameNames: readonly string[] = [
  ...['enabled', 'reserve_tokens', 'retry_on_transient'],
  ...['prune_tool_outputs', 'chunked_summarize', 'drop_middle'].map((name) => `smart_recovery.${name}`),
].map((name) => `compaction.${name}`);

/** A setting that a file has under the name of another agent. */
export interface OtherNamed {
  /** The name that the file has. */
  readonly key: string;
  readonly value: unknown;
  /** The setting that it is here, and the value of that. */
  readonly setting: string;
  readonly here: unknown;
  /** Further settings that it brings along. */
  readonly implies: Readonly<Record<string, unknown>>;
  /** The setting of the file beside which it does not count; undefined where it counts. */
  readonly beside: string | undefined;
}

/** A fault in the names of a file: names of two programs for the same thing. */
export class NamesFault extends Error {
  /** The key at which it was found. */
  readonly key: string;
  constructor(key: string, message: string) {
    super(message);
    this.key = key;
  }
}

/** Whether another agent gives a setting this name, and there is no setting of the name here. */
export function isOtherName(key: string): boolean {
  return otherKeys.includes(key);
}

/** The setting of a key, which may be another name of it. */
export function ownPath(path: Path): Path {
  return table.find(({ key }) => key === path.join('.'))?.setting.split('.') ?? path;
}

/**
 * The settings that the data of a `config.yaml` has under other names. Pure.
 * @throws NamesFault
 */
export function otherNamesIn(data: unknown): readonly OtherNamed[] {
  const found = table.flatMap(({ key, setting, beside = [setting], implies = {}, here }): OtherNamed[] => {
    const value = valueAt(data, key);
    // Null is how some of them write a default.
    if (value === undefined || value === null) return [];
    const own = beside.find((one) => valueAt(data, one) !== undefined);
    return [{ key, value, setting, here: here?.(value) ?? value, implies, beside: own }];
  });
  const inBlock = found.filter(({ implies }) => 'compaction.preset' in implies);
  const [first] = inBlock;
  const other = inBlock.find(
    ({ implies }) => implies['compaction.preset'] !== first?.implies['compaction.preset'],
  );
  if (first !== undefined && other !== undefined)
    throw new NamesFault(
      other.key,
      `${first.key} and ${other.key} are names of two programs, and each has other rules: keep those of one`,
    );
  const isSet = (setting: string) =>
    valueAt(data, setting) !== undefined || found.some((one) => one.setting === setting);
  return found.map((one) => ({
    ...one,
    implies: Object.fromEntries(Object.entries(one.implies).filter(([setting]) => !isSet(setting))),
  }));
}

/** The settings of a file that have the same name for other agents, if it has others of theirs or a number of retries. */
export function sameNamesIn(data: unknown): readonly { readonly key: string; readonly value: unknown }[] {
  const found = sameNames.flatMap((key) => {
    const value = valueAt(data, key);
    return value === undefined || value === null ? [] : [{ key, value }];
  });
  const isTheirs =
    otherNamesIn(data).some(({ key }) => key.startsWith('compaction.')) ||
    typeof valueAt(data, 'compaction.retry_on_transient') === 'number';
  return isTheirs ? found : [];
}

/**
 * The data of a configuration with its settings under their own names. `spell` gives the spelling of the names in it.
 * Pure.
 */
export function inOwnNames<T extends object>(
  data: T,
  names: readonly OtherNamed[],
  spell: (name: string) => string = (name) => name,
): T {
  const path = (key: string) => key.split('.').map(spell);
  let made: unknown = table.reduce<unknown>((rest, { key }) => without(rest, path(key)), data);
  const counting = names.filter(({ beside }) => beside === undefined);
  for (const { setting, here } of counting) made = withValue(made, path(setting), here);
  for (const { implies } of counting)
    for (const [setting, value] of Object.entries(implies))
      if (valueAt(made, path(setting)) === undefined) made = withValue(made, path(setting), value);
  return made as T;
}

function valueAt(data: unknown, key: string | Path): unknown {
  const path = typeof key === 'string' ? key.split('.') : key;
  return path.reduce(
    (at, name) =>
      isObject(at) && Object.hasOwn(at, name) ? (at as Record<string, unknown>)[name] : undefined,
    data,
  );
}

function withValue(data: unknown, [name = '', ...rest]: Path, value: unknown): unknown {
  const fields = isObject(data) ? data : {};
  const inner = (fields as Record<string, unknown>)[name];
  return { ...fields, [name]: rest.length === 0 ? value : withValue(inner, rest, value) };
}

function without(data: unknown, [name = '', ...rest]: Path): unknown {
  if (!isObject(data) || !Object.hasOwn(data, name)) return data;
  if (rest.length > 0) return { ...data, [name]: without((data as Record<string, unknown>)[name], rest) };
  const { [name]: _, ...others } = data as Record<string, unknown>;
  return others;
}
