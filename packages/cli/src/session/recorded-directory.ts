import { existsSync } from 'node:fs';
import type { Entry, HomeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { commandLine, shellWord } from '../escape.ts';

/** The number of newest messages among which a directory is looked for: an import has many that have none. */
const lastMax = 50;

/** What is recorded of the newest message of a session that says where it was; undefined for one that says so of none. */
export function lastPlaced(store: HomeStore, session: string): Entry['meta'] | undefined {
  const messages = [...store.entries.read(session, { kind: 'message', last: lastMax })];
  return messages.findLast(({ meta }) => isObject(meta.place))?.meta;
}

/** The directory in which an imported session worked last; undefined when it ran here since. */
function importedDirectory(store: HomeStore, session: string): string | undefined {
  const last = lastPlaced(store, session);
  if (last?.source !== 'import' || !isObject(last.place)) return undefined;
  return typeof last.place.cwd === 'string' ? last.place.cwd : undefined;
}

/** Says where an imported session worked, and how to run it there, when it is about to run elsewhere. */
export function offerDirectory(
  store: HomeStore,
  session: string,
  { io, status, home }: Pick<Context, 'io' | 'status' | 'home'>,
): void {
  const directory = importedDirectory(store, session);
  if (directory === undefined || directory === io.cwd) return;
  const there = existsSync(directory)
    ? // Another directory may have a home of its own.
      `run it there with: cd ${shellWord(directory)} && ${commandLine('run', [session], [`--home ${shellWord(home.name)}`])}`
    : 'that directory is not here';
  status(`${session} worked in ${directory}, and runs here now (${there})`);
}
