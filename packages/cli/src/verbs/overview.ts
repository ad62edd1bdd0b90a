import type { Status } from '@tapedeck/runtime';
import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { isDeleted } from '@tapedeck/tape/internal';
import type { LineageLine } from '@tapedeck/tape/store';
import { hasTapesToRead } from '../home.ts';
import { type Ended, type Overview, overviewJson, overviewText } from '../output/overview.ts';
import { stateOf } from '../output/session.ts';
import { distinctIn } from '../reference.ts';
import { aboutOf } from '../session/listing.ts';
import { userOf } from '../user.ts';
import { defineVerb, type Verb } from './verb.ts';

export const overview: Verb = defineVerb({
  command: 'overview',
  group: 'Look',
  paged: true,
  summary: 'Show what runs, what waits for you, and what ended since you last looked',
  detail:
    'What ended are children: those that finished, were merged or were discarded after the last overview in this home, or else the ' +
    'latest of them; not those whose merge an import found. Only output to a terminal is such a look, without --json and --quiet. Shows the sessions with the newest messages, too. `tape` alone ' +
    'shows it in a home that has sessions.',
  examples: [['tape overview', 'Look at the home']],
  run: async (_args, context) => {
    if (!hasTapesToRead(context.home)) {
      await context.answer({ json: overviewJson(nothing), quiet: '', human: 'No sessions' });
      return 0;
    }
    return await context.reading(async (store) => {
      const found = await look(store, context.home.dir);
      const names = [...found.running, ...found.waiting, ...found.interrupted].map(({ session }) => session);
      const { json, jsonl, quiet } = context.options;
      if (json === true || jsonl === true || quiet === true)
        await context.answer({ json: overviewJson(found), quiet: names.join('\n'), human: '' });
      else {
        await context.io.out(overviewText(found, { ...context, distinct: distinctIn(store) }));
        // A program that asks again and again is not the user, who would then see nothing of what ended.
        if (context.io.isTerminal) userOf(store)?.looks(store.lineageHash()?.g ?? 0);
      }
      return 0;
    });
  },
});

const nothing: Overview = {
  running: [],
  waiting: [],
  interrupted: [],
  ended: [],
  more: 0,
  recent: [],
  others: 0,
};

/** Number of sessions in each list: `status`, `children` and `sessions` list the others. */
const shownMax = 10;
const recentMax = 5;
/** Number of lines of the lineage, the last ones, in which ended children are looked for. */
const linesMax = 1_000;

async function look(store: HomeStore, home: string): Promise<Overview> {
  const pending = store.sessions.list({ all: true, deleted: false, pending: true });
  const { statusesOf } = await import('@tapedeck/runtime');
  const statuses = await statusesOf({ store, home }, pending);
  const isIn = (...states: readonly Status['state'][]) =>
    statuses.filter(({ state }) => states.includes(state));
  const ended = endedSince(store);
  const recent = store.sessions.list({ counts: true, limit: recentMax });
  return {
    running: isIn('busy', 'retrying'),
    waiting: isIn('waiting'),
    interrupted: isIn('interrupted', 'error'),
    ended: ended.slice(0, shownMax),
    more: Math.max(0, ended.length - shownMax),
    recent: recent.map((info) => ({ info, about: aboutOf(store, info) })),
    others: recent.length < recentMax ? 0 : store.countListed() - recent.length,
  };
}

/**
 * Whether an import found a merge: the child ended before that, and not since the user looked. Its mark has the time at the
 * source, or the line where its result came back.
 */
function isImported(store: HomeStore, { into, seq, received }: LineageLine): boolean {
  if (received !== undefined) return true;
  if (into === undefined || seq === undefined) return false;
  const [mark] = store.entries.read(into, { from: seq, to: seq });
  return mark?.sourceAt !== undefined;
}

/** The children that ended since the user looked, the last one first: each with the last thing that happened to it. */
function endedSince(store: HomeStore): readonly Ended[] {
  const last = store.lineageHash()?.g ?? 0;
  const from = Math.max((userOf(store)?.seen ?? 0) + 1, last - linesMax + 1);
  const lines = new Map<string, Ended>();
  for (const line of store.lineage.read({ from, types: ['status', 'merge', 'discard'] })) {
    const info: SessionInfo | undefined = store.sessions.find(line.session);
    const isEnd = line.type !== 'status' || (line.task !== undefined && line.task !== 'running');
    if (info?.parent === undefined || isDeleted(info) || !isEnd) continue;
    if (line.type === 'merge' && isImported(store, line)) continue;
    // What came of its task before the merge still counts.
    if (line.type === 'merge' && info.undone === true) continue;
    lines.delete(info.id);
    const { session, parent } = info;
    const { at } = line;
    const status = info.undone === true ? (line.task ?? line.status) : line.status;
    const state = status === 'merged' ? stateOf(info) : status;
    lines.set(info.id, { session, parent, status, state, at });
  }
  return [...lines.values()].reverse();
}
