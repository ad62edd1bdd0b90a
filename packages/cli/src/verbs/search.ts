import { type EntryKind, type HomeStore, TapeError } from '@tapedeck/tape';
import { isoTime } from '@tapedeck/tape/internal';
import { isUlid, type SearchResult } from '@tapedeck/tape/store';
import type { Context } from '../context.ts';
import { jsonText, oneLine, shellWord } from '../escape.ts';
import { joined } from '../input.ts';
import { counted } from '../output/counted.ts';
import { briefText } from '../output/entry.ts';
import { withProgress } from '../output/progress.ts';
import { needSession } from '../session/place.ts';
import type { Style } from '../terminal/style.ts';
import { textWidth } from '../terminal/width.ts';
import { conditionsIn, whereHelp } from '../transcript/where.ts';
import { defineVerb, type Verb } from './verb.ts';

export const search: Verb = defineVerb({
  command: 'search <text..>',
  group: 'Look',
  paged: true,
  summary: 'Find entries that contain a text',
  detail:
    'Matches entries that contain the text as written, ignoring case. No character has a special meaning. A search indexes what ' +
    'was written since the last one, at most 20,000 entries, and scans as many that are not indexed, the newest. It says when ' +
    'that left entries out. A search that finds nothing has not failed: it exits 0 with an empty list.',
  examples: [
    [
      'tape search invoice rounding',
      'Search all sessions for these words in this order, newest entries first',
    ],
    ['tape search CHANGELOG.md --session main -n 5', 'Search the entries that main sees'],
    ['tape search heading --where branch=release', 'Search what was said on a branch'],
    [
      'tape search heading --kind message',
      'Search prompts and answers alone, not records that repeat them beside a conversation',
    ],
  ],
  arguments: { text: 'Text to find; several words need no quotes' },
  options: {
    session: { type: 'string', describe: 'Only entries that this session sees' },
    kind: { type: 'string', describe: 'Only entries of this kind' },
    where: { type: 'string', describe: whereHelp },
    n: { type: 'number', default: 20, describe: 'Show at most N hits' },
    all: { type: 'boolean', describe: 'Search all entries, and index them, however long it takes' },
  },
  run: async ({ text: words, session, kind, where, n, all }, context) =>
    await opened(context, async (store, canWrite) => {
      const text = joined(words);
      const ref = session === undefined ? undefined : needSession(store, session).id;
      if (all === true && canWrite)
        await withProgress(context, (progress) =>
          store.fillSearchIndex({ onProgress: progress('Indexing entries') }),
        );
      const found = store.entries.search({
        text,
        limit: n,
        ...(ref !== undefined && { session: ref }),
        ...(kind !== undefined && { kind: kind as EntryKind }),
        ...(where !== undefined && { where: conditionsIn(where, context.io) }),
        ...(all === true && { all }),
      });
      await print(found, { text, shownOf: (hit) => textOf(store, hit, text) }, context);
      if (found.unsearched > 0) {
        const why = found.unindexed > 0 ? 'they are not indexed yet' : 'the index finds words alone';
        context.status(`Did not search ${counted(found.unsearched, 'entry', 'entries')}: ${why}`);
        context.status(`Hint: search everything with: tape search --all -- ${shellWord(text)}`);
      }
      return 0;
    }),
});

/** How much of a hit a line has: at least on a terminal, and at most in a pipe. */
const textMin = 24;
const textMax = 160;
/** How far in the words about an entry a match may be, so that a line shows it. */
const wordsMax = 40;

const unwritable = new Set(['TAPE_IO', 'TAPE_LOCKED', 'GRAPH_DIVERGED']);

/**
 * Opens the home for writing, which brings the index up to date; for reading if the home cannot be written.
 */
async function opened(
  context: Context,
  act: (store: HomeStore, canWrite: boolean) => Promise<number>,
): Promise<number> {
  // Reading first: a search does not create a home. What is read from a copy cannot be written.
  const read = await context.reading(async (store) =>
    store.isCopy ? { result: await act(store, false) } : undefined,
  );
  if (read !== undefined) return read.result;
  try {
    return await context.writing((store) => act(store, true));
  } catch (error) {
    if (!(error instanceof TapeError) || !unwritable.has(error.code)) throw error;
    return await context.reading((store) => act(store, false));
  }
}

/**
 * What a line has of a hit: the text around the match, but of an anchor, an event or the message of a merge what `log` says
 * of it. Payloads have ids and times, too, and messages of merges the words around their results: they are shown where the
 * text is found in nothing else.
 */
function textOf(
  store: HomeStore,
  { session, seq, kind, snippet }: SearchResult['hits'][number],
  text: string,
): string {
  if (kind !== 'anchor' && kind !== 'event' && kind !== 'message') return snippet;
  const [entry] = store.entries.read(session, { from: seq, to: seq });
  if (kind === 'message' && entry?.meta.source !== 'merge') return snippet;
  const words = entry === undefined ? '' : briefText(entry);
  const at = words.toLowerCase().indexOf(text.toLowerCase());
  return at >= 0 && at < wordsMax ? words : snippet;
}

async function print(
  { hits, unsearched, unindexed }: SearchResult,
  {
    text,
    shownOf,
  }: { readonly text: string; readonly shownOf: (hit: SearchResult['hits'][number]) => string },
  { io, options, status, style }: Context,
): Promise<void> {
  const json = hits.map(({ at, ...hit }) => ({ ...hit, at: isoTime(at) }));
  if (options.jsonl === true) for (const hit of json) await io.out(`${jsonText(hit)}\n`);
  else if (options.json === true) await io.out(`${jsonText({ hits: json, unsearched, unindexed })}\n`);
  else if (options.quiet === true) for (const { session, seq } of hits) await io.out(`${session}@${seq}\n`);
  else {
    if (hits.length === 0) status('Nothing found');
    for (const hit of hits) {
      const { session, tape, seq, kind, sessions } = hit;
      const shown = shownOf(hit);
      const excerpt = (room: number) => marked(around(shown, text, room), { text, style });
      // A session of another realm is referred to by its id.
      const named = isUlid(session) ? ` of ${tape}` : '';
      const others = sessions.length > 1 ? ` (seen by ${sessions.length} sessions)` : '';
      const row = { place: `${session}@${seq}`, what: `${kind}${named}${others}:`, excerpt };
      await io.out(
        `${hitRows(row, { style, columns: io.isTerminal ? io.columns : undefined }).join('\n')}\n`,
      );
    }
  }
}

interface Hit {
  readonly place: string;
  readonly what: string;
  /** The text of the hit in so many columns. */
  readonly excerpt: (room: number) => string;
}

/**
 * A hit on one line; on a terminal that has too little room for its text there, on as many as it takes. Its place, which a reader
 * types, is whole on the first.
 */
function hitRows(
  { place, what, excerpt }: Hit,
  { style, columns }: { readonly style: Style; readonly columns: number | undefined },
): readonly string[] {
  const [at, about] = [style.text('bold', place), style.text('dim', what)];
  if (columns === undefined) return [`${at} ${about} ${excerpt(textMax)}`];
  const beside = columns - place.length - what.length - 2;
  if (beside >= textMin) return [`${at} ${about} ${excerpt(beside)}`];
  if (beside >= -1) return [`${at} ${about}`, `  ${excerpt(columns - 2)}`];
  const below = columns - what.length - 3;
  if (below >= textMin) return [at, `  ${about} ${excerpt(below)}`];
  return [at, `  ${about}`, `  ${excerpt(columns - 2)}`];
}

/** A text on one line, cut so that what was looked for is in the room, where that is large enough for it. */
function around(shown: string, text: string, room: number): string {
  const flat = shown.replace(/\s+/g, ' ').trim();
  const at = flat.toLowerCase().indexOf(text.toLowerCase());
  const before = flat.slice(0, Math.max(0, at));
  // Its end, and an ellipsis.
  const excess = textWidth(before) + textWidth(text) + 1 - room;
  if (at < 1 || excess <= 0) return oneLine(flat, room);
  const kept = fitEnd(before, Math.max(0, Math.min(textWidth(before) - excess - 1, leadMax)));
  return oneLine(`…${kept}${flat.slice(at)}`, room);
}

/** Columns of the words before what was looked for, where not all of them have room. */
const leadMax = 16;

/** The end of a text that fills at most a number of columns. */
function fitEnd(text: string, columns: number): string {
  const letters = [...text];
  while (textWidth(letters.join('')) > columns) letters.shift();
  return letters.join('');
}

/** A text with what was looked for in bold. */
function marked(line: string, { text, style }: { readonly text: string } & Pick<Context, 'style'>): string {
  const at = line.toLowerCase().indexOf(text.toLowerCase());
  if (at < 0) return line;
  const [before, found] = [line.slice(0, at), line.slice(at, at + text.length)];
  return `${before}${style.text('bold', found)}${line.slice(at + text.length)}`;
}
