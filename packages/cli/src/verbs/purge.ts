import { UsageError } from '../errors/kinds.ts';
import { commandLine } from '../escape.ts';
import { readText } from '../input.ts';
import { counted } from '../output/counted.ts';
import { erasing, whileShown } from '../output/progress.ts';
import { needSession } from '../session/place.ts';
import { contentLeft, mayContain, trafficOf } from '../session/traffic.ts';
import { defineVerb, type Verb } from './verb.ts';

export const purge: Verb = defineVerb({
  command: 'purge <name>',
  group: 'Trust',
  summary: 'Erase the content of a whole session permanently, and free its names',
  detail:
    'Erases each own entry as redact does, the title, what waits in the inbox, and the sessions in which its summaries and its ' +
    'title were written. The tape stays in the lineage, and its hash chain still verifies; its names are free. Refused while ' +
    'forks inherit its entries: purge these first. Lists what may still contain the text. Names, keys, times and the reasons ' +
    'of redactions stay readable. Earlier backups and bundles still contain everything. A purge that was interrupted is finished ' +
    'by the same command with the ULID: the name is free by then.',
  examples: [
    ['tape purge other --dry-run', 'Show what that would erase'],
    ['tape purge other --reason "the customer asked for it"', 'Erase the session other'],
  ],
  arguments: { name: 'Session, or the ULID of a deleted one' },
  options: {
    reason: {
      type: 'string',
      default: 'purged',
      describe: 'Reason to record for each entry (-, @FILE); it stays readable',
    },
    'dry-run': { type: 'boolean', describe: 'Show what would be erased, and what may still contain it' },
  },
  run: async ({ name, reason, dryRun }, context) => {
    const { io, home, reading, changing, answer, status, inHome } = context;
    const why = await readText(reason, io);
    if (why.trim() === '') throw new UsageError('cannot purge: the reason is empty');
    return await (dryRun === true ? reading : changing)(async (store) => {
      const { id } = needSession(store, name);
      const done =
        dryRun === true ? undefined : await whileShown(context, erasing, () => store.sessions.purge(id, why));
      const { session, erased, repeated, quotedBy } = done ?? store.sessions.previewPurge(id);
      const quoted = [...quotedBy, ...(await trafficOf(store, home, new Set([id])))];
      if (done?.wiped === false)
        status(inHome(contentLeft(home, `try again with: ${commandLine('purge', [id])}`)));
      const entries = counted(erased, 'entry', 'entries');
      const again = done?.wiped === true ? 'nothing of it is left in the file' : 'nothing to erase';
      const human =
        done === undefined
          ? `Would erase ${entries} of ${session}, which cannot be undone`
          : `Purged ${session} (${id}): ${entries} erased, which cannot be undone`;
      await answer({
        json: {
          session,
          id,
          erased,
          repeated,
          quoted_by: quoted,
          ...(done === undefined ? { dry_run: true } : { wiped: done.wiped }),
        },
        quiet: id,
        human: `${repeated ? `${session} (${id}) was purged before: ${again}` : human}${mayContain(quoted)}`,
      });
      return 0;
    });
  },
});
