import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { TapeError } from '@tapedeck/tape';
import { changeHomeConfig } from '../config/change.ts';
import { remoteState } from '../config/remotes.ts';
import { NotFoundError, UsageError } from '../errors/kinds.ts';
import { shellWord } from '../escape.ts';
import { graphFields, graphLines } from '../graph-file.ts';
import { type Home, hasDatabase, homeAt, makeHome, openForReading, openForWriting } from '../home.ts';
import type { Io } from '../io.ts';
import { withProgress } from '../output/progress.ts';
import { broughtText, pulledJson, sayLeft } from '../session/pulled.ts';
import { ignoreIn } from './init.ts';
import { defineVerb, type Verb } from './verb.ts';

export const clone: Verb = defineVerb({
  command: 'clone <url> [dir]',
  group: 'Share',
  summary: 'Make a new home of what a remote has',
  detail:
    'Makes the home DIR, or that of --home, else .tape in the working directory, with the remote as origin, and pulls from it. Refuses a home that ' +
    'has sessions. The sessions are foreign data: nothing that was approved elsewhere is approved here. When it is interrupted, tape pull in ' +
    'the new home goes on, or the same command where it has no session yet.',
  examples: [['tape clone ~/team/tapes ~/tapes', 'Make the home ~/tapes of a directory that others push to']],
  arguments: {
    url: 'Directory, git:PATH or git+https://… that homes push to, or ssh://HOST/HOME',
    dir: 'New home',
  },
  run: async ({ url: given, dir, home: named }, context) => {
    const { io, answer, status } = context;
    if (dir !== undefined && named !== undefined)
      throw new UsageError('cannot clone with --home and DIR: both name the new home');
    const at = homeAt(dir ?? named ?? join(io.cwd, '.tape'), io);
    if (await hasSessions(at, io))
      throw new TapeError('TAPE_EXISTS', `cannot clone to '${at.name}': it has sessions`, {
        data: { home: at.name },
      });
    const { openRemote, pull, reach, remoteUrl, shownUrl } = await import('@tapedeck/tape/remotes');
    const url = remoteUrl(given, io.cwd);
    const remote = { name: 'origin', url };
    const state = remoteState(at, remote);
    const from = await openRemote(url, { state, env: io.env });
    // A remote that is not there leaves no home behind.
    await reach(from);
    makeHome(at);
    if (at.server === undefined && basename(at.dir) === '.tape') ignoreIn(at.dir);
    const store = await openForWriting(at, io);
    try {
      await changeHomeConfig(['remotes', 'origin', 'url'], url, { home: at, io });
      const pulled = await withProgress({ ...context, home: at }, (progress) =>
        pull(store, from, { state, onProgress: progress('Reading packs') }),
      );
      await answer({
        json: { home: at.name, url: shownUrl(url), ...pulledJson(pulled), ...graphFields(store.graphFile) },
        quiet: at.name,
        human: `Cloned ${broughtText(pulled)} to ${at.name}${isFound(at.dir, io.cwd) ? '' : ` (use it with: --home ${shellWord(at.name)})`}`,
      });
      return sayLeft(pulled, { url: shownUrl(url) }, context);
    } catch (error) {
      status(`Hint: go on with: tape pull --home ${shellWord(at.name)}`);
      throw error;
    } finally {
      store.close();
      for (const line of graphLines(store.graphFile)) status(line);
    }
  },
});

/** Whether a home has a session; a clone that was interrupted early has left one without. */
async function hasSessions(home: Home, io: Io): Promise<boolean> {
  if (!hasDatabase(home)) return false;
  try {
    using store = await openForReading(home, io);
    return store.sessions.list({ all: true, limit: 1 }).length > 0;
  } catch (error) {
    // A server says only when asked that it has none.
    if (error instanceof NotFoundError) return false;
    throw error;
  }
}

/** Whether verbs in the working directory use a home without its name. */
function isFound(dir: string, cwd: string): boolean {
  return basename(dir) === '.tape' && existsSync(dir) && cwd === dirname(dir);
}
