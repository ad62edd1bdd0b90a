import { type EntryKind, type SqliteTapeStore, TapeError } from '@tapedeck/tape';
import { isoTime } from '@tapedeck/tape/internal';
import { type Hit, isUlid } from '@tapedeck/tape/store';
import type { Context } from '../context.ts';
import { jsonText, oneLine } from '../escape.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const search: Verb = defineVerb({
  command: 'search <text>',
  group: 'Look',
  summary: 'Find entries that contain a text',
  detail:
    'Matches entries that contain the text as written, ignoring case. No character has a special meaning.',
  examples: [
    ['tape search "invoice rounding"', 'Search all sessions, newest entries first'],
    ['tape search CHANGELOG.md --session main -n 5', 'Search the entries that main sees'],
  ],
  arguments: { text: 'Text to find' },
  options: {
    session: { type: 'string', describe: 'Only entries that this session sees' },
    kind: { type: 'string', describe: 'Only entries of this kind' },
    n: { type: 'number', default: 20, describe: 'Show at most N hits' },
  },
  run: async ({ text, session, kind, n }, context) =>
    await opened(context, async (store) => {
      const hits = store.entries.search({
        text,
        limit: n,
        ...(session !== undefined && { session: needSession(store, session).id }),
        ...(kind !== undefined && { kind: kind as EntryKind }),
      });
      await print(hits, context);
      return 0;
    }),
});

const unwritable = new Set(['TAPE_IO', 'TAPE_LOCKED', 'GRAPH_DIVERGED']);

/**
 * Opens the home for writing, which brings the index up to date; for reading if the home cannot be written.
 */
async function opened(context: Context, act: (store: SqliteTapeStore) => Promise<number>): Promise<number> {
  // Reading first: a search does not create a home. What is read from a copy cannot be written.
  const read = await context.reading(async (store) =>
    store.isCopy ? { result: await act(store) } : undefined,
  );
  if (read !== undefined) return read.result;
  try {
    return await context.writing(act);
  } catch (error) {
    if (!(error instanceof TapeError) || !unwritable.has(error.code)) throw error;
    return await context.reading(act);
  }
}

async function print(hits: readonly Hit[], { io, options, status }: Context): Promise<void> {
  const json = hits.map(({ at, ...hit }) => ({ ...hit, at: isoTime(at) }));
  if (options.jsonl === true) for (const hit of json) await io.out(`${jsonText(hit)}\n`);
  else if (options.json === true) await io.out(`${jsonText(json)}\n`);
  else if (options.quiet === true) for (const { session, seq } of hits) await io.out(`${session}@${seq}\n`);
  else {
    if (hits.length === 0) status('Nothing found');
    const width = io.isTerminal ? io.columns : 200;
    for (const { session, tape, seq, kind, snippet, sessions } of hits) {
      // A session of another realm is referred to by its id.
      const named = isUlid(session) ? ` of ${tape}` : '';
      const others = sessions.length > 1 ? ` (seen by ${sessions.length} sessions)` : '';
      await io.out(
        `${session}@${seq} ${kind}${named}${others}: ${oneLine(snippet, Math.max(40, width - 40))}\n`,
      );
    }
  }
}
