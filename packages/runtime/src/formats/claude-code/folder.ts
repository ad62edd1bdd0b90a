import { closeSync, existsSync, lstatSync, openSync, readdirSync, readSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '@tapedeck/tape';
import { isObject, quote } from '@tapedeck/tape/internal';
import { ImportError } from '../../lines/errors.ts';
import type { Identity } from '../../plan/format.ts';
import { text } from '../../plan/text.ts';
import { sessionName } from './session-name.ts';

/** The folder of a session in a path, and what lies in it. */
export const inFolder: RegExp = /([^/\\]+)[/\\](subagents|tool-results)[/\\](?:.*[/\\])?([^/\\]+)$/;

/** What Claude Code calls the file of a subagent. */
export const agentFile: RegExp = /^agent-[^/]*\.jsonl/;

/** What it calls a session. */
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * What lies in the folder of a session, and is no subagent; undefined for a link that leads out of the folder. One that is not
 * named by a session is a copy: its subagents say of which.
 */
export function partIn(path: string, inside: readonly string[]): Identity | undefined {
  if (!isInFolder(path, inside)) return undefined;
  const [whole = '', folder = '', , file = ''] = inside;
  // A compressed journal is the same one.
  const name = file.replace(/(?<=\.jsonl)\.\w+$/, '');
  const copied = uuid.test(folder) ? undefined : sessionIn(join(path.slice(0, -whole.length), folder));
  const main = sessionName(copied ?? folder);
  return { session: `${main}/${name}`, role: 'part', main };
}

/** The session that the first record of a subagent in a folder names. */
function sessionIn(folder: string): string | undefined {
  const agents = join(folder, 'subagents');
  if (!existsSync(agents)) return undefined;
  const files = namesIn(agents).filter((name) => agentFile.test(name));
  // A pipe would be read without an end, and a link leads elsewhere.
  const isFile = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isFile() === true;
  const file = files.map((name) => join(agents, name)).find(isFile);
  return file === undefined ? undefined : text(beginningOf(file)?.sessionId);
}

/** The most bytes of a first record that is read for what it names. */
const recordMax = 64 * 1024;

/** The first record of a file; undefined for one that is larger, compressed, or cannot be read. */
function beginningOf(file: string): JsonObject | undefined {
  try {
    const fd = openSync(file, 'r');
    try {
      const bytes = Buffer.alloc(recordMax);
      const [line = ''] = bytes.toString('utf8', 0, readSync(fd, bytes)).split('\n');
      const value: unknown = JSON.parse(line);
      return isObject(value) ? value : undefined;
    } finally {
      closeSync(fd);
    }
  } catch {
    return undefined;
  }
}

/**
 * Whether a part of a session lies in the folder of that session. Such a file is taken whatever is in it, so that a link in the
 * folder could lead to any file of the user.
 */
function isInFolder(path: string, inside: readonly string[]): boolean {
  if (!existsSync(path)) return true;
  const real = inFolder.exec(realpathSync(path)) ?? [];
  return [1, 2, 3].every((i) => real[i] === inside[i]);
}

/** The names in a folder; none in one that only lets pass who knows a name. */
export function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === 'EACCES' || code === 'EPERM') return [];
    throw new ImportError('IMPORT_CANNOT_READ', `cannot read ${quote(folder)}: ${message}`, {
      data: { file: folder, why: message },
      cause,
    });
  }
}
