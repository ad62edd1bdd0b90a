import { UsageError } from '../errors/kinds.ts';
import { readText } from '../input.ts';
import { needSession, readPlace } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const redact: Verb = defineVerb({
  command: 'redact <place>',
  group: 'Trust',
  summary: 'Erase what one entry says, for good, and record why',
  detail:
    'The entry stays as a place in the chain, which still verifies; its content, and bytes that nothing else needs, are gone ' +
    "from the database, its log and the search index. Merges that quote it, forks that carry an anchor's state, and the " +
    'beginning of an intention in the graph file stay, and are named. Backups made before still have it.',
  examples: [['tape redact main@42 --reason "a key was pasted"', 'Erase main@42']],
  options: (y) =>
    y
      .positional('place', { type: 'string', demandOption: true, describe: 'SESSION@POINT' })
      .option('reason', {
        type: 'string',
        requiresArg: true,
        demandOption: true,
        describe: 'Why (-, @FILE); it stays readable',
      }),
  run: async ({ place, reason }, { io, changing, answer, status }) => {
    const why = await readText(reason, io);
    if (why.trim() === '') throw new UsageError('cannot redact: the reason is empty');
    return await changing(async (store) => {
      const { session, point } = readPlace(store, place);
      const { id } = needSession(store, session);
      if (point === undefined)
        throw new UsageError(`cannot redact '${place}': it names no entry`, {
          hint: `say which: tape redact ${session}@SEQ`,
        });
      const { session: owner, seq, by, repeated, quotedBy, logEmptied } = store.redact(id, point, why);
      const quoted = quotedBy.length === 0 ? '' : `; what may hold it still: ${quotedBy.join(', ')}`;
      if (!logEmptied)
        status(
          'Somebody is reading: the content stays in the log until this has succeeded: tape raw checkpoint',
        );
      await answer({
        json: { session: owner, seq, by, repeated, quoted_by: quotedBy, log_emptied: logEmptied },
        quiet: `${owner}@${by}`,
        human: repeated
          ? `${owner}@${seq} was redacted by ${owner}@${by} before: nothing to do${quoted}`
          : `Redacted ${owner}@${seq}, recorded at ${owner}@${by}; it cannot be undone${quoted}`,
      });
      return 0;
    });
  },
});
