import { isDeepStrictEqual } from 'node:util';
import { isObject } from '@tapedeck/tape/internal';
import { plainWord, shellWord } from '../escape.ts';
import { CannotChange } from './cannot-change.ts';
import type { Job } from './job.ts';
import { withJsonValue } from './json-value.ts';

/** How a hook of this command ends: it tells it from those of others. */
const mark = '# tape import --install';

/** The seconds that Claude Code waits for its end hooks when it is left; without a number it is 1.5 for all of them. */
const timeout = 10;

/**
 * The command of a hook: it starts the import as a process of its own, reads and prints nothing, and succeeds whatever
 * happens. The shell of a hook has the environment of its session.
 */
export function hookCommand({ command }: Job): string {
  return `${command.map(shellWord).join(' ')} --hook </dev/null >/dev/null 2>&1 || : ${mark}`;
}

/** The home into which the hook imports that is in some settings; undefined without one. */
export function hookHome(text: string): string | undefined {
  try {
    const settings = settingsIn(text.replace(/^\u{feff}/u, ''));
    const [command] = ownIn(settings).map((path) =>
      [...path, 'command'].reduce<unknown>((at, step) => (at as Record<string, unknown>)[step], settings),
    );
    const [, word] = / --home (.+) --hook <\/dev\/null /s.exec(String(command)) ?? [];
    return word && plainWord(word);
  } catch (error) {
    // The change that follows says what is wrong with them.
    if (error instanceof CannotChange) return undefined;
    throw error;
  }
}

/**
 * The settings of Claude Code with a hook that runs a command when a session ends, or without it. All else stays as it is.
 * @throws CannotChange for settings that Claude Code does not read, either
 */
export function withHook(text: string, command: string | undefined): string {
  // A file may begin with the mark of its encoding.
  const start = text.startsWith('\u{feff}') ? '\u{feff}' : '';
  const before = text.slice(start.length);
  const settings = settingsIn(before);
  const own = ownIn(settings);
  const [first, ...others] = own;
  if (command === undefined) return start + without(before, own);
  const once = without(before, others);
  if (first !== undefined) return start + withJsonValue(once, [...first, 'command'], command);
  const groups = groupsIn(settings).length;
  const hook = { type: 'command', command, timeout };
  const after = withJsonValue(once, ['hooks', event, groups], { hooks: [hook] });
  if (!isDeepStrictEqual(groupsIn(settingsIn(after)).at(-1), { hooks: [hook] }))
    throw new CannotChange('it has a field twice');
  return start + after;
}

/** Whether hooks are turned off in some settings. */
export function hooksAreOff(text: string): boolean {
  return settingsIn(text.replace(/^\u{feff}/u, '')).disableAllHooks === true;
}

const event = 'SessionEnd';

/** @throws CannotChange for what is no JSON: Claude Code takes no comments, and no comma at the end */
function settingsIn(text: string): Readonly<Record<string, unknown>> {
  if (text.trim() === '') return {};
  let settings: unknown;
  try {
    settings = JSON.parse(text);
  } catch (error) {
    // The parser quotes the text, which may have several lines, and need not be shown.
    const why = (error as Error).message.replace(/, "[\s\S]*$/, '');
    throw new CannotChange(`it is no JSON, and Claude Code does not read it either: ${why}`);
  }
  if (!isObject(settings)) throw new CannotChange('it is no JSON object');
  return settings;
}

function groupsIn({ hooks }: Readonly<Record<string, unknown>>): readonly unknown[] {
  const groups = isObject(hooks) ? hooks[event] : undefined;
  return Array.isArray(groups) ? groups : [];
}

type Path = readonly (string | number)[];

/** The paths of the hooks that this command wrote. */
function ownIn(settings: Readonly<Record<string, unknown>>): readonly Path[] {
  return groupsIn(settings).flatMap((group, at) => {
    const hooks = isObject(group) && Array.isArray(group.hooks) ? group.hooks : [];
    return hooks.flatMap((hook, i) =>
      isObject(hook) && typeof hook.command === 'string' && hook.command.endsWith(mark)
        ? [['hooks', event, at, 'hooks', i]]
        : [],
    );
  });
}

/** The settings without what is at some paths, the last one first, and without what is empty then. */
function without(text: string, paths: readonly Path[]): string {
  return paths
    .toReversed()
    .reduce((rest, path) => withJsonValue(rest, [...emptied(rest, path)], undefined), text);
}

/** The path of what has nothing in it but what is at a path: a list of hooks, its group, the event, all hooks. */
function emptied(text: string, path: Path): Path {
  let at = path;
  for (let up = path.slice(0, -1); up.length > 0; up = up.slice(0, -1)) {
    const value = up.reduce<unknown>(
      (inside, step) => (inside as Record<string, unknown>)[step],
      settingsIn(text),
    );
    const isGroup = up.length === 3;
    const isAlone = Array.isArray(value) ? value.length === 1 : Object.keys(value as object).length === 1;
    // What a group has beside its hooks says for which of them it counts.
    if (!isAlone && !(isGroup && at.at(-1) === 'hooks')) break;
    at = up;
  }
  return at;
}
