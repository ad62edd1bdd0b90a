import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { TapeError } from '@tapedeck/tape';
import { NotFoundError } from '../errors/kinds.ts';
import { safe } from '../escape.ts';
import { doesExist } from '../file-home.ts';
import { graphFields, graphLines } from '../graph-file.ts';
import { type Home, homeAt, makeHome, openForReading, openForWriting } from '../home.ts';
import type { Io } from '../io.ts';
import { assertOwn } from '../origin.ts';
import { otherRealms } from '../output/other-realms.ts';
import { defineVerb, type Verb } from './verb.ts';

export const init: Verb = defineVerb({
  command: 'init [dir]',
  group: 'Start',
  summary: 'Create a tape home in this directory',
  detail:
    'Creates DIR/.tape, which git ignores; with --home X, creates X. With --base NAME, verbs without --base use the sessions of ' +
    'that realm from then on, also in a home that exists; the sessions of others stay, and need their --base.',
  examples: [
    ['tape init', 'Keep the tapes of this directory in ./.tape'],
    ['tape init --base bub', 'Name the tapes bub:NAME'],
  ],
  arguments: { dir: 'Directory (default: the working directory)' },
  run: async ({ dir, home, base, quiet }, { io, answer }) => {
    const place = homeAt(home ?? join(resolve(io.cwd, dir ?? '.'), '.tape'), io);
    const created = place.server === undefined ? !doesExist(place.db) : !(await isThere(place, io));
    // Tapes that are there already may have come with the directory; --home names them.
    const at = { ...place, isFound: home === undefined && !created };
    assertOwn(at, io);
    makeHome(at);
    if (at.server === undefined) ignoreIn(at.dir);
    const store = await openForWriting(at, io, { hasOwnConfig: home !== undefined });
    try {
      if (base !== undefined) {
        store.keepBase(base);
        if (quiet !== true) for (const line of otherRealms(store, base)) io.err(`${safe(line)}\n`);
      }
    } finally {
      store.close();
    }
    const { TAPE_HOME: named = '' } = io.env;
    if (home === undefined && named !== '' && homeAt(named, io).dir !== at.dir && quiet !== true)
      io.err(
        `TAPE_HOME is set: verbs use ${safe(homeAt(named, io).name)}, and not this home, without --home\n`,
      );
    for (const line of graphLines(store.graphFile))
      io.err(`${safe(line)}
`);
    await answer({
      json: { home: at.name, created, ...graphFields(store.graphFile) },
      quiet: at.name,
      human: created
        ? `Created ${at.name}`
        : base === undefined
          ? `${at.name} is a tape home already: nothing to do`
          : `${at.name} is a tape home already: it names tapes ${base}:NAME now`,
    });
    return 0;
  },
});

/** Whether a server has the home already. */
async function isThere(home: Home, io: Io): Promise<boolean> {
  try {
    (await openForReading(home, io)).close();
    return true;
  } catch (error) {
    if (error instanceof NotFoundError) return false;
    // Opened for writing it is upgraded.
    if (error instanceof TapeError && error.code === 'TAPE_SCHEMA_OLDER') return true;
    throw error;
  }
}

/** Makes git ignore a home. The flag also refuses to write through a link, which may have come with the directory. */
export function ignoreIn(dir: string): void {
  try {
    writeFileSync(join(dir, '.gitignore'), '*\n', { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
