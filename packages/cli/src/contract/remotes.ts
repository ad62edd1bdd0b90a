import { z } from 'zod';
import { type Contracts, count, dryRun, listed, listOf, names, printed, repeated, text } from './form.ts';

const leftOut = listOf('sessions that were left out', {
  session: text('its name'),
  code: text('why'),
  message: text('why'),
});
/** What came from a remote. */
const brought = {
  packs: count('number of files that were read'),
  bytes: count('their bytes'),
  sessions: listOf('sessions that something came of', {
    session: text('its name here'),
    id: text('its ULID'),
    became: z.enum(['new', 'grown', 'same', 'copy', 'kept']).describe('`new`, or `grown`'),
    entries: count('number of new entries'),
  }),
  entries: count('number of new entries'),
  lines: count('number of new lines of the lineage'),
  filled: count('entries that were here, and got their content'),
  refused: leftOut,
  failed: listOf('files that were left out', {
    pack: text('its name'),
    code: text('why'),
    message: text('why'),
  }),
  aliases_taken: names('other names that name something else here'),
  redacted_elsewhere: names('entries that were redacted elsewhere, and have their content here'),
};

/** Verbs by which homes share sessions. */
export const remoteVerbs: Contracts = {
  remote: {
    json: [
      ...listed(z.strictObject({ name: text('name of the remote'), url: text('its URL') })),
      ...printed(
        { name: text('name of the remote'), url: text('its URL'), repeated },
        'for `add` and `remove`',
      ),
    ],
    quiet: 'the name of each remote',
    exits: {
      2: 'the name or the URL is not allowed, or `config.yaml` cannot be changed',
      3: 'no tape home, or no such remote',
      4: 'the remote has another URL',
    },
  },
  push: {
    json: printed({
      remote: text('name of the remote'),
      url: text('its URL'),
      pack: text('name of the new file there; null when nothing was sent').nullable(),
      bytes: count('its size; with `--dry-run` the size that it would have'),
      sessions: listOf('sessions of which something was sent', {
        session: text('its name'),
        id: text('its ULID'),
        entries: count('number of entries'),
        lines: count('number of lines of the lineage'),
      }),
      entries: count('number of entries that were sent'),
      lines: count('number of lines of the lineage that were sent'),
      withheld: count('entries that were sent as hashes alone, because a secret was found in them'),
      refused: leftOut,
      behind: names('sessions of which the remote has more, and this home nothing new'),
      dry_run: dryRun.optional(),
    }),
    quiet: 'the name of the new file; nothing when nothing was sent',
    exits: {
      1: 'the remote cannot be reached or written, or has what cannot be read',
      2: 'the home has no remote, or several and none is named',
      3: 'no such session or remote, or no tape home',
      4: 'the remote has entries of sessions that are not here: these were left out',
    },
  },
  pull: {
    json: printed({
      remote: text('name of the remote'),
      url: text('its URL'),
      ...brought,
      dry_run: dryRun.optional(),
    }),
    quiet: 'the name of each session that something came of',
    exits: {
      1: 'the remote cannot be reached, or has files that do not verify: these were left out',
      2: 'the home has no remote, or several and none is named',
      3: 'no such remote, or no tape home',
      4: 'sessions went on in another way here, or their names are taken: these were left out',
    },
  },
  clone: {
    json: printed({
      home: text('absolute path of the new home'),
      url: text('URL of the remote'),
      ...brought,
    }),
    quiet: 'the new home',
    exits: {
      1: 'the remote cannot be reached, or has files that do not verify: these were left out',
      2: 'the URL is not allowed',
      4: 'the directory has tapes, or sessions of the remote contradict each other: these were left out',
    },
  },
};
