import type { Entry } from '@tapedeck/tape';
import type { RedactPreview } from '@tapedeck/tape/store';
import { UsageError } from '../errors/kinds.ts';
import { safe } from '../escape.ts';
import { readText } from '../input.ts';
import { needSession, readPlace } from '../session/place.ts';
import { logNotEmptied, mayContain, trafficOf } from '../session/traffic.ts';
import { defineVerb, type Verb } from './verb.ts';

export const redact: Verb = defineVerb({
  command: 'redact <place>',
  group: 'Trust',
  summary: 'Erase the content of an entry permanently, and record the reason',
  detail:
    'Removes the content, and bytes that no other entry uses, from the database, its WAL and the search index. The entry keeps ' +
    'its place in the hash chain, which still verifies. Lists what may still contain the text: merges that quote it, forks that ' +
    'carry the state of an anchor, intentions in the graph file, raw traffic, copies of the database from before an upgrade. Earlier backups still contain it.',
  examples: [
    ['tape redact main@42 --reason "a key was pasted"', 'Erase main@42'],
    ['tape redact main@42 --reason "a key was pasted" --dry-run', 'Show what that would erase'],
  ],
  arguments: { place: 'SESSION@POINT' },
  options: {
    reason: { type: 'string', required: true, describe: 'Reason to record (-, @FILE); it stays readable' },
    'dry-run': { type: 'boolean', describe: 'Show what would be erased, and what may still contain it' },
  },
  run: async ({ place, reason, dryRun }, { io, home, reading, changing, answer, status, inHome }) => {
    const why = await readText(reason, io);
    if (why.trim() === '') throw new UsageError('cannot redact: the reason is empty');
    return await (dryRun === true ? reading : changing)(async (store) => {
      const { session, point } = readPlace(store, place);
      const { id } = needSession(store, session);
      if (point === undefined)
        throw new UsageError(`cannot redact '${place}': it is a session, not an entry`, {
          hint: `name an entry: tape redact ${session}@SEQ`,
        });
      const withTraffic = async <R extends RedactPreview>(redacted: R): Promise<R> => {
        const files = await trafficOf(store, home, needSession(store, redacted.session).id);
        return { ...redacted, quotedBy: [...redacted.quotedBy, ...files] };
      };
      if (dryRun === true) {
        const found = await withTraffic(store.entries.previewRedact(id, point));
        const [entry] = store.entries.read(id, { from: found.seq, to: found.seq });
        const at = `${found.session}@${found.seq}`;
        await answer({
          json: {
            session: found.session,
            seq: found.seq,
            kind: entry?.kind,
            repeated: found.repeated,
            quoted_by: found.quotedBy,
            dry_run: true,
          },
          quiet: at,
          human: found.repeated
            ? `${at} was redacted before: nothing to do${mayContain(found.quotedBy)}`
            : `Would erase ${at}, ${nameOf(entry)}, which cannot be undone${mayContain(found.quotedBy)}`,
        });
        return 0;
      }
      const redacted = await withTraffic(store.entries.redact(id, point, why));
      const { session: owner, seq, by, repeated, quotedBy, logEmptied } = redacted;
      if (!logEmptied) status(inHome(logNotEmptied));
      await answer({
        json: { session: owner, seq, by, repeated, quoted_by: quotedBy, log_emptied: logEmptied },
        quiet: `${owner}@${by}`,
        human: repeated
          ? `${owner}@${seq} was redacted by ${owner}@${by} before: nothing to do${mayContain(quotedBy)}`
          : `Redacted ${owner}@${seq}, recorded at ${owner}@${by}; it cannot be undone${mayContain(quotedBy)}`,
      });
      return 0;
    });
  },
});

/** `a message`, `the anchor plan`. */
function nameOf(entry: Entry | undefined): string {
  if (entry?.name !== undefined) return `the ${entry.kind} ${safe(entry.name)}`;
  return entry === undefined ? 'an entry' : `${/^[aeiou]/.test(entry.kind) ? 'an' : 'a'} ${entry.kind}`;
}
