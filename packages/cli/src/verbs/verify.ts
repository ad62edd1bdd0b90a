import type { JournalReport } from '@tapedeck/graph';
import { type Problem, type SqliteTapeStore, TapeError } from '@tapedeck/tape';
import { exit } from '../errors.ts';
import type { Home } from '../home.ts';
import { needSession } from '../place.ts';
import { defineVerb, type Verb } from '../verb.ts';

interface Found {
  readonly code: string;
  readonly session: string | null;
  readonly seq: number | null;
  readonly message: string;
}

export const verify: Verb = defineVerb({
  command: 'verify [name]',
  group: 'Trust',
  summary: 'Prove that no entry was changed, removed or added',
  detail:
    'Recomputes every hash from the stored bytes. With a name: that session and all it inherits. Without: every session, ' +
    'the lineage and the graph file. Exit 5 when something is wrong.',
  examples: [
    ['tape verify', 'Everything'],
    ['tape verify main', 'One session and its ancestors'],
  ],
  options: (y) => y.positional('name', { type: 'string', describe: 'Session (default: all)' }),
  run: async ({ name }, { reading, answer, home }) =>
    await reading(async (store) => {
      const ref = name === undefined ? undefined : needSession(store, name).id;
      const problems: Found[] = [
        ...verifyTapes(store, ref),
        ...(ref === undefined ? verifyGraph(store, await readJournal(home)) : []),
      ];
      const { sessions, entries } = store.count(ref);
      const ok = problems.length === 0;
      await answer({
        json: { ok, sessions, entries, problems },
        quiet: ok ? 'ok' : 'damaged',
        human: ok
          ? `ok: ${sessions} sessions, ${entries} entries, every hash as recorded`
          : [...problems.map((p) => `${p.code}: ${p.message}`), `${problems.length} problems`].join('\n'),
      });
      return ok ? exit.done : exit.damaged;
    }),
});

function* verifyTapes(store: SqliteTapeStore, ref: string | undefined): Iterable<Found> {
  try {
    for (const problem of store.verify(ref)) yield problem satisfies Problem;
  } catch (error) {
    // A page that SQLite itself cannot read is damage to tell, not a reason to stop without a report.
    if (!(error instanceof TapeError) || error.code !== 'TAPE_CORRUPT') throw error;
    const { session = null, seq = null } = error.data as { session?: string; seq?: number };
    yield { code: 'database-damaged', session, seq, message: error.message };
  }
}

async function readJournal(home: Home): Promise<JournalReport> {
  const { checkJournal, readLines } = await import('@tapedeck/graph');
  return checkJournal(readLines(home.graph));
}

/** The file checked by itself, then against the database: one may lag behind, never differ. */
function* verifyGraph(store: SqliteTapeStore, report: JournalReport): Iterable<Found> {
  for (const { code, line, message } of report.problems)
    yield {
      code: `graph-${code}`,
      session: null,
      seq: null,
      message: `session_graph.jsonl line ${line}: ${message}`,
    };
  if (report.problems.length > 0 || report.g === 0) return;
  const recorded = store.lineageHash(report.g);
  if (recorded?.hash !== report.hash)
    yield {
      code: 'graph-differs',
      session: null,
      seq: null,
      message: `session_graph.jsonl: its line ${report.g} is not the one in the database`,
    };
}
