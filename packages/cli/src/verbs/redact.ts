import { UsageError } from '../errors/kinds.ts';
import { readText } from '../input.ts';
import { needSession, readPlace } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const redact: Verb = defineVerb({
  command: 'redact <place>',
  group: 'Trust',
  summary: 'Erase the content of an entry permanently, and record the reason',
  detail:
    'Removes the content, and bytes that no other entry uses, from the database, its WAL and the search index. The entry keeps ' +
    'its place in the hash chain, which still verifies. Lists what may still contain the text: merges that quote it, forks that ' +
    'carry the state of an anchor, intentions in the graph file. Earlier backups still contain it.',
  examples: [['tape redact main@42 --reason "a key was pasted"', 'Erase main@42']],
  arguments: { place: 'SESSION@POINT' },
  options: {
    reason: { type: 'string', required: true, describe: 'Reason to record (-, @FILE); it stays readable' },
  },
  run: async ({ place, reason }, { io, changing, answer, status }) => {
    const why = await readText(reason, io);
    if (why.trim() === '') throw new UsageError('cannot redact: the reason is empty');
    return await changing(async (store) => {
      const { session, point } = readPlace(store, place);
      const { id } = needSession(store, session);
      if (point === undefined)
        throw new UsageError(`cannot redact '${place}': it is a session, not an entry`, {
          hint: `name an entry: tape redact ${session}@SEQ`,
        });
      const {
        session: owner,
        seq,
        by,
        repeated,
        quotedBy,
        logEmptied,
      } = store.entries.redact(id, point, why);
      const quoted = quotedBy.length === 0 ? '' : `; may still contain it: ${quotedBy.join(', ')}`;
      if (!logEmptied)
        status(
          'The WAL still has the content, because another process is reading or the disk failed; empty it with: tape raw checkpoint',
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
