import type { Entry, HomeStore, Seq } from '@tapedeck/tape';
import { saysSource } from '@tapedeck/tape/internal';
import type { Redacted, RedactPreview } from '@tapedeck/tape/store';
import { UsageError } from '../errors/kinds.ts';
import { commandLine, safe } from '../escape.ts';
import { readText } from '../input.ts';
import { counted } from '../output/counted.ts';
import { erasing, whileShown } from '../output/progress.ts';
import { needSession, pointIn, readPlace, readRange } from '../session/place.ts';
import { saidElsewhere, soughtEntriesMax } from '../session/said-elsewhere.ts';
import { contentLeft, mayContain, trafficOf } from '../session/traffic.ts';
import { defineVerb, type Verb } from './verb.ts';

export const redact: Verb = defineVerb({
  command: 'redact <place> [more..]',
  group: 'Trust',
  summary: 'Erase the content of entries permanently, and record the reason',
  detail:
    'Removes the content, and bytes that no other entry uses, from the database, its WAL and the search index. An entry keeps ' +
    'its place in the hash chain, which still verifies. Several entries of a session are erased in one act, all or none: the ' +
    'file is written anew once. A range leaves out what has no content: rewinds, redactions, and the entry by which imports know a session. Lists what may still contain the text: other entries that say the same, also of deleted sessions, titles, merges that quote it, forks that ' +
    'carry the state of an anchor, intentions in the graph file, raw traffic, copies of the database from before an upgrade. Earlier backups still contain it.',
  examples: [
    ['tape redact main@42 --reason "a key was pasted"', 'Erase main@42'],
    ['tape redact main 3 5 7..9 --reason "a key was pasted"', 'Erase these entries of main'],
    ['tape redact main@42 --reason "a key was pasted" --dry-run', 'Show what that would erase'],
  ],
  arguments: {
    place: 'SESSION@POINT, SESSION@A..B, or SESSION before its points',
    more: 'Points and ranges A..B of the same session',
  },
  options: {
    reason: { type: 'string', required: true, describe: 'Reason to record (-, @FILE); it stays readable' },
    'dry-run': { type: 'boolean', describe: 'Show what would be erased, and what may still contain it' },
  },
  run: async ({ place, more = [], reason, dryRun }, context) => {
    const { io, home, reading, changing, answer, status, inHome } = context;
    const why = await readText(reason, io);
    if (why.trim() === '') throw new UsageError('cannot redact: the reason is empty');
    return await (dryRun === true ? reading : changing)(async (store) => {
      const { id, seqs } = entriesIn(store, place, more);
      // Of what is erased no text is left.
      const elsewhere = await saidElsewhere(store, id, seqs);
      if (seqs.length > soughtEntriesMax)
        status(`Looked for other places that say the same of the first ${soughtEntriesMax} entries alone`);
      const withOthers = async <R extends RedactPreview>(redacted: R): Promise<R> => {
        const { seq, quotedBy } = redacted;
        const files = await trafficOf(store, home, new Set([ownerOf(store, id, seq)]));
        return {
          ...redacted,
          quotedBy: [...new Set([...quotedBy, ...(elsewhere.get(seq) ?? []), ...files])],
        };
      };
      if (dryRun === true) {
        const found = await Promise.all(
          seqs.map(async (seq) => await withOthers(store.entries.previewRedact(id, seq))),
        );
        const said = found.map((one) => ({ ...one, entry: entryAt(store, id, one.seq) }));
        const json = said.map(({ session, seq, entry, repeated, quotedBy }) => ({
          ...{ session, seq, kind: entry?.kind, repeated, quoted_by: quotedBy },
        }));
        await answer({
          json: json.length === 1 ? { ...json[0], dry_run: true } : { entries: json, dry_run: true },
          quiet: found.map(({ session, seq }) => `${session}@${seq}`).join('\n'),
          human: said.map(previewLine).join('\n'),
        });
        return 0;
      }
      const erased = await whileShown(context, erasing, () => store.entries.redact(id, seqs, why));
      const redacted = await Promise.all(erased.map(withOthers));
      const logEmptied = redacted.every((one) => one.logEmptied);
      if (!logEmptied) status(inHome(contentLeft(home, 'redact the entry again')));
      const json = redacted.map(({ session, seq, by, repeated, quotedBy }) => ({
        ...{ session, seq, by, repeated, quoted_by: quotedBy },
      }));
      await answer({
        json:
          json.length === 1
            ? { ...json[0], log_emptied: logEmptied }
            : { entries: json, log_emptied: logEmptied },
        quiet: redacted.map(({ session, by }) => `${session}@${by}`).join('\n'),
        human: redactedLines(redacted).join('\n'),
      });
      return 0;
    });
  },
});

/** The session and the positions that the arguments name, each once, in their order. */
function entriesIn(
  store: HomeStore,
  place: string,
  more: readonly string[],
): { readonly id: string; readonly seqs: readonly Seq[] } {
  const range = readRange(store, place);
  const { session, point } = range === undefined ? readPlace(store, place) : { session: range.session };
  const info = needSession(store, session);
  const first =
    range !== undefined
      ? contentIn(store, info.id, range)
      : point === undefined
        ? []
        : [store.entries.resolve(info.id, point)];
  const others = more.flatMap((text) => {
    const between = readRange(store, `${session}@${text}`);
    if (between !== undefined) return contentIn(store, info.id, between);
    return [store.entries.resolve(info.id, pointIn(store, info, text.replace(/^@/, '')))];
  });
  const seqs = [...new Set([...first, ...others])];
  if (range === undefined && point === undefined && more.length === 0)
    throw new UsageError(`cannot redact '${place}': it is a session, not an entry`, {
      hint: `name an entry: ${commandLine('redact', [`${session}@SEQ`])}`,
    });
  if (seqs.length === 0)
    throw new UsageError(`cannot redact '${place}': the range has no entry with content`);
  return { id: info.id, seqs };
}

/** The positions of a range whose entries have, or had, content. */
function contentIn(
  store: HomeStore,
  id: string,
  { from, to }: { readonly from: Seq; readonly to: Seq },
): readonly Seq[] {
  return [...store.entries.read(id, { from, to })]
    .filter((entry) => entry.kind !== 'rewind' && entry.kind !== 'redaction' && !saysSource(entry))
    .map(({ seq }) => seq);
}

/** The id of the session that wrote an entry, which another one may inherit. */
function ownerOf(store: HomeStore, id: string, seq: Seq): string {
  let at = store.sessions.find(id);
  while (at?.parentId !== undefined && seq <= at.base) at = store.sessions.find(at.parentId);
  return at?.id ?? id;
}

function entryAt(store: HomeStore, id: string, seq: Seq): Entry | undefined {
  return [...store.entries.read(id, { from: seq, to: seq })][0];
}

function previewLine({
  session,
  seq,
  entry,
  repeated,
  quotedBy,
}: RedactPreview & { readonly entry: Entry | undefined }): string {
  const at = `${session}@${seq}`;
  if (repeated) return `${at} was redacted before: nothing to do${mayContain(quotedBy)}`;
  return `Would erase ${at}, ${nameOf(entry)}, which cannot be undone${mayContain(quotedBy)}`;
}

function redactedLines(redacted: readonly Redacted[]): readonly string[] {
  const lines = redacted.map(({ session, seq, by, repeated, quotedBy }) =>
    repeated
      ? `${session}@${seq} was redacted by ${session}@${by} before: nothing to do${mayContain(quotedBy)}`
      : `Redacted ${session}@${seq}, recorded at ${session}@${by}; it cannot be undone${mayContain(quotedBy)}`,
  );
  const count = redacted.filter(({ repeated }) => !repeated).length;
  return redacted.length === 1 ? lines : [...lines, `${counted(count, 'entry', 'entries')} redacted`];
}

/** `a message`, `the anchor plan`. */
function nameOf(entry: Entry | undefined): string {
  if (entry?.name !== undefined) return `the ${entry.kind} ${safe(entry.name)}`;
  return entry === undefined ? 'an entry' : `${/^[aeiou]/.test(entry.kind) ? 'an' : 'a'} ${entry.kind}`;
}
