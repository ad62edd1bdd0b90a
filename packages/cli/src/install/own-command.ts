import { existsSync, realpathSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';

/** The words that start this command for a program that has the path of the user's shell. */
export function commandOnPath({ PATH }: Readonly<Record<string, string | undefined>>): readonly string[] {
  const script = process.argv[1] ?? '';
  return isOnPath(script, PATH) ? ['tape'] : [process.execPath, realpathSync(script)];
}

/** The words that start this command wherever it is started: the path of a program may be another one there. */
export function absoluteCommand(): readonly string[] {
  // The link that a package manager made, if it is one: what it leads to changes with each version.
  return [process.execPath, resolve(process.argv[1] ?? '')];
}

/** Whether `tape` on the path is this command. */
function isOnPath(script: string, path = ''): boolean {
  const found = path
    .split(delimiter)
    .map((dir) => join(dir, 'tape'))
    .find((file) => existsSync(file));
  return found !== undefined && existsSync(script) && realpathSync(found) === realpathSync(script);
}
