import { isObject } from '@tapedeck/tape/internal';
import { aliasFault, readAliases } from '../config/aliases.ts';
import { homeConfigFile } from '../config/find.ts';
import { keyText, type Path, parseKey } from '../config/keys.ts';
import { hideUrls, remotesIn } from '../config/remotes.ts';
import type { Setting } from '../config/settings.ts';
import { parseValue, valueJson, valueText } from '../config/value.ts';
import type { Context } from '../context.ts';
import { NotFoundError, UsageError } from '../errors/kinds.ts';
import { jsonText, oneLine, safe, shellLine, shellWord } from '../escape.ts';
import { exit } from '../exit.ts';
import { readText } from '../input.ts';
import { tabbed } from '../output/table.ts';
import { cutName, cutText, textWidth } from '../terminal/width.ts';
import { hangingLines } from '../terminal/wrap.ts';
import { defineVerb, type Verb } from './verb.ts';

export const config: Verb = defineVerb({
  command: 'config [action] [key] [value]',
  group: 'Start',
  paged: true,
  summary: 'Read and change the configuration of a home',
  detail:
    'list shows the keys that are set, get the value of one, also where that is a default; --show-origin says which variable or file it comes from. ' +
    'set and unset change config.yaml of the home: a value that the field cannot have is refused, and comments and the order of the file stay. ' +
    'Of settings under the names of other agents, such as compaction.keep_recent_tokens, list shows what they are here, and --show-origin also those that are not used. ' +
    'A value is read as YAML, but for texts such as instructions, which are taken as they are (-, @FILE).',
  examples: [
    ['tape config', 'List what is set'],
    ['tape config set model openai-compatible/gpt-oss', 'Set the model of sessions without one'],
    ['tape config get limits.max_steps --show-origin', 'Show a value, and where it comes from'],
    ['tape config list --all', 'List defaults, too'],
    ['tape config unset instructions', 'Take a value away'],
    ["tape config set alias.lg 'log --graph'", 'Make tape lg stand for tape log --graph'],
  ],
  arguments: {
    action: { describe: 'What to do (default: list)', choices: ['list', 'get', 'set', 'unset'] },
    key: 'Key, such as model or limits.max_steps (for list: only keys below it)',
    value: 'Its value, for set',
  },
  options: {
    'show-origin': { type: 'boolean', describe: 'Show where each value comes from' },
    all: { type: 'boolean', describe: 'List defaults, too' },
    config: {
      type: 'string',
      takes: 'FILE',
      negatable: true,
      describe: 'Configuration file (default: nearest tape.config.mts; --no-config: load none)',
    },
  },
  run: async ({ action = 'list', key, value, showOrigin = false, all = false, config: file }, context) => {
    // What cannot be read is refused where it is used.
    const remotes = await remotesIn(context.home).catch(() => []);
    await hideUrls([...remotes.map(({ url }) => url), ...(value === undefined ? [] : [value])], context.io);
    const path = key === undefined ? undefined : parseKey(key, action);
    if (value !== undefined && action !== 'set')
      throw new UsageError(`cannot ${action} '${key}': there are too many arguments`);
    if (action === 'list') return await list({ path, showOrigin, all, file }, context);
    if (path === undefined) throw new UsageError(`cannot ${action}: the key is missing`);
    if (action === 'get') return await get(path, { showOrigin, file }, context);
    if (action === 'unset') return await unset(path, context);
    if (value === undefined)
      throw new UsageError(`cannot set ${keyText(path)}: the value is missing`, {
        hint: `take a value away with: tape config unset ${keyText(path)}`,
      });
    return await set(path, await readText(value, context.io), context);
  },
});

interface Shown {
  readonly showOrigin: boolean;
  /** As `--config` and `--no-config`. */
  readonly file: string | false | undefined;
}

async function list(
  { path, showOrigin, all, file }: Shown & { readonly path: Path | undefined; readonly all: boolean },
  context: Context,
): Promise<number> {
  const { io, options } = context;
  const { effectiveSettings } = await import('../config/settings.ts');
  const found = (await effectiveSettings(file, context)).filter(
    (one) =>
      (all || one.origin !== 'default') &&
      (showOrigin || one.unused === undefined) &&
      (path ?? []).every((name, i) => one.path[i] === name),
  );
  const sorted = found.toSorted((a, b) => (a.key < b.key ? -1 : 1));
  if (options.jsonl === true) for (const one of sorted) await io.out(`${jsonText(settingJson(one))}\n`);
  else if (options.json === true) await io.out(`${jsonText(sorted.map(settingJson))}\n`);
  else if (options.quiet === true) for (const { key } of sorted) await io.out(`${safe(key)}\n`);
  else if (sorted.length > 0) {
    const rows = sorted.map((one) => [
      ...(showOrigin ? [safe(originText(one))] : []),
      safe(one.key),
      safe(lineOf(valueText(one.value, one.path))),
    ]);
    await io.out(`${settingsText(rows, context)}\n`);
  } else context.status(context.inHome('Nothing is set (see defaults with: tape config list --all)'));
  return exit.done;
}

/** How much of a value a list shows. */
const valueMax = 160;
/** Columns of a value beside its key, and of an origin before it. */
const valueMin = 24;
const originMin = 12;

/**
 * Settings, one a row: origin, key and value. At a terminal that has no room for the value beside its key it stands below it: a
 * key is typed, and stays whole.
 */
function settingsText(rows: readonly (readonly string[])[], { io, style }: Context): string {
  const key = (rows[0]?.length ?? 0) - 2;
  if (!io.isTerminal) return tabbed(rows, (cell, column) => (column < key ? style.text('dim', cell) : cell));
  const widest = (column: number) => Math.max(...rows.map((row) => textWidth(row[column] ?? '')));
  const room = io.columns - widest(key) - 2 - Math.min(valueMin, widest(key + 1));
  const columns = key === 0 ? 0 : Math.min(widest(0), room - 2);
  const isBeside = key === 0 ? room >= 0 : columns >= Math.min(originMin, widest(0));
  return rows
    .flatMap((row) => {
      const [value = '', name = '', origin] = row.toReversed();
      const shown = cutText(value, valueMax);
      if (!isBeside)
        return [name, `  ${shown}${origin === undefined ? '' : style.text('dim', `  ${origin}`)}`];
      const before = origin === undefined ? '' : `${padded(cutName(origin, columns), columns)}  `;
      const label = `${before}${padded(name, widest(key))}  `;
      const [first = '', ...others] = hangingLines(label + shown, io.columns, label.length);
      return [style.text('dim', before) + first.slice(before.length), ...others];
    })
    .join('\n');
}

function padded(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - textWidth(text)));
}

async function get(path: Path, { showOrigin, file }: Shown, context: Context): Promise<number> {
  const { effectiveSettings } = await import('../config/settings.ts');
  const found = await effectiveSettings(file, context);
  const key = keyText(path);
  const [one, ...others] = found.filter((setting) => setting.key === key);
  if (one === undefined) {
    if (found.some((setting) => path.every((name, i) => setting.path[i] === name)))
      throw new UsageError(`cannot get ${key}: it has several keys`, {
        hint: `list them with: tape config list ${shellWord(key)}`,
      });
    throw new NotFoundError(`cannot get ${key}: it is not set, and has no default`, { key });
  }
  const all = [one, ...others];
  const texts = all.map(({ value }) => valueText(value, path));
  const rows = texts.map((text, i) => (showOrigin ? `${originText(all[i] ?? one)}\t${text}` : text));
  await context.answer({
    json: others.length === 0 ? settingJson(one) : placesJson(all),
    quiet: texts.join('\n'),
    human: rows.join('\n'),
  });
  return exit.done;
}

/** A text with line ends is printed as JSON. */
function lineOf(text: string): string {
  return /[\n\t]/.test(text) ? JSON.stringify(text) : text;
}

function settingJson({ key, value, origin, from, called, unused }: Setting): unknown {
  return {
    ...{ key, value: valueJson(value), origin, from },
    ...(called !== undefined && { called }),
    ...(unused !== undefined && { unused }),
  };
}

/** Rules that several places have: all of them count. */
function placesJson(all: readonly Setting[]): unknown {
  const [first] = all;
  const rules = all.flatMap(({ value }) => (typeof value === 'string' ? value.split('\n') : value));
  return {
    ...(first && { key: first.key, value: rules, origin: first.origin, from: first.from }),
    places: all.map(({ value, origin, from }) => ({ value: valueJson(value), origin, from })),
  };
}

function originText({ origin, from, called, unused }: Setting): string {
  const place = from ?? origin;
  if (unused !== undefined) return `${place} (not used: ${unused})`;
  return called === undefined ? place : `${place} (as ${called})`;
}

async function set(path: Path, text: string, context: Context): Promise<number> {
  const value = parseValue(text, path);
  if (path[0] === 'alias') await assertAliases(path, value, context);
  const { changeHomeConfig } = await import('../config/change.ts');
  const key = keyText(path);
  const { was, file, repeated } = await context.writing(
    async () => await changeHomeConfig(path, value, context),
  );
  const shown = `${key} to ${clipped(valueText(value, path))}`;
  const back =
    was === undefined
      ? context.inHome(`undo with: tape config unset ${shellWord(key)}`)
      : wayBack(path, was, context);
  await context.answer({
    json: { key, value: valueJson(value), was: valueJson(was) ?? null, file, repeated },
    quiet: key,
    human: repeated
      ? `${key} is ${clipped(valueText(value, path))} already: nothing to do`
      : `Set ${shown} in ${file} (${back})`,
  });
  if (key === 'model' && (context.io.env.TAPE_MODEL ?? '') !== '')
    context.status('$TAPE_MODEL is set, and has precedence');
  return exit.done;
}

async function unset(path: Path, context: Context): Promise<number> {
  const { configText } = await import('../config/home.ts');
  const { changeHomeConfig } = await import('../config/change.ts');
  const key = keyText(path);
  const missing = new NotFoundError(`cannot unset ${key}: it is not set in ${homeConfigFile(context.home)}`, {
    key,
  });
  if (configText(homeConfigFile(context.home)) === undefined) throw missing;
  const { was, file } = await context.writing(async () => await changeHomeConfig(path, undefined, context));
  if (was === undefined) throw missing;
  await context.answer({
    json: { key, was: valueJson(was), file },
    quiet: key,
    human: `Unset ${key} in ${file} (${wayBack(path, was, context)})`,
  });
  return exit.done;
}

/**
 * Refuses an alias that would hide a verb, or stands for none.
 * @throws UsageError
 */
async function assertAliases([, name]: Path, value: unknown, { home, isVerb }: Context): Promise<void> {
  const aliases = await readAliases(home);
  const given =
    name === undefined ? (isObject(value) ? Object.entries(value) : []) : [[name, value] as const];
  for (const [one, text] of given) {
    const fault = aliasFault(one, text, { isVerb, aliases });
    if (fault !== undefined)
      throw new UsageError(`cannot set alias.${one}: ${fault}`, {
        hint: "an alias stands for a verb with options: tape config set alias.lg 'log --graph'",
      });
  }
}

/** Length of a text up to which a line has it whole. */
const wholeMax = 1_000;

/** What a value was, and the command that gives a key this value again: none for one with a secret, which is masked. */
function wayBack(
  path: Path,
  value: unknown,
  { io: { masked }, inHome }: Pick<Context, 'io' | 'inHome'>,
): string {
  const text = valueText(value, path);
  if (text.length > wholeMax) return `was a text of ${text.length} characters`;
  if (masked(text) !== text) return `was ${clipped(text)}, with a secret of the environment`;
  const word = text.startsWith('@') ? `@${text}` : text;
  const end = word.startsWith('-') ? '-- ' : '';
  return `was ${clipped(text)}; restore it with: ${inHome('tape config set')} ${end}${shellWord(keyText(path))} ${shellLine(word)}`;
}

function clipped(text: string): string {
  return oneLine(text, 60);
}
