/**
 * The transcript of a session, for people: `read.ts` finds the entries that `wanted.ts` wants, `fold.ts` puts results
 * under their calls, `forks.ts` finds the children that left between them, and `rows.ts` draws what comes of it.
 * `page.ts` shows one entry, `summary.ts` adds up. Imports `output` and what lies below it.
 */
import type { Entry, SessionInfo, SqliteTapeStore } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { oneLine, safe } from '../escape.ts';
import { fold, type Gap, isGap } from './fold.ts';
import { leftIn, withForks } from './forks.ts';
import { callsOf } from './parts.ts';
import { lastItems, type Reading, readShown, type Selection } from './read.ts';
import { drawer, type Look } from './rows.ts';
import { isConversation, isWanted } from './wanted.ts';

/** How to show a transcript. */
export interface Form {
  /** One row for each item. */
  readonly oneline: boolean;
  /** Whole texts, with whole times. */
  readonly full: boolean;
  /** What is outside of the conversation, too. */
  readonly all: boolean;
  /** What rewinds hide, too. */
  readonly hidden: boolean;
  readonly times: Look['times'] | undefined;
  /** A text that the reader looks for. */
  readonly find: string | undefined;
}

/** The transcript of a session: what it has, and what comes. */
export interface Transcript {
  /** Prints what a selection of its entries shows. */
  show(selection: Selection): Promise<void>;
  /** Prints an entry that has come. */
  add(entry: Entry, selection: Selection): Promise<void>;
}

/** Opens the transcript of a session. */
export function openTranscript(
  store: SqliteTapeStore,
  info: SessionInfo,
  form: Form,
  {
    io,
    style,
    link,
    color,
    inHome,
    status,
  }: Pick<Context, 'io' | 'style' | 'link' | 'color' | 'inHome' | 'status'>,
): Transcript {
  const { id } = info;
  const session = safe(info.session);
  const ranges = store.views.ranges(id);
  const reading: Reading = { ...form, ranges };
  const look: Look = {
    style,
    link,
    renders: color,
    // The user may resize the terminal while a log is followed.
    get columns() {
      return io.isTerminal ? io.columns : undefined;
    },
    times: form.times ?? (io.isTerminal && !form.full ? 'relative' : 'iso'),
    full: form.full,
    oneline: form.oneline,
    find: form.find,
    now: () => io.now(),
    session,
    inHome,
    isHidden: (seq) => ranges.find(({ to }) => seq <= to)?.hiddenBy !== undefined,
  };
  const draw = drawer(look);
  const print = async (rows: readonly string[]) => {
    for (const row of rows) await io.out(`${row.trimEnd()}\n`);
  };

  /** Returns how many items it has printed. */
  async function showItems(selection: Selection): Promise<number> {
    const { from, to, last, own: _, ...filters } = selection;
    const entries = fold(readShown(store, info, selection, reading));
    const items = last === undefined ? entries : [...lastItems(entries, last)];
    const first = Array.isArray(items) ? items.find((item) => !isGap(item)) : undefined;
    // A filter selects entries, and a fork is none.
    const isFiltered = Object.values(filters).some((value) => value !== undefined);
    const since = first === undefined || isGap(first) ? from : first.entry.seq;
    const left = isFiltered ? [].values() : leftIn(store, id, { from: since, to });
    let count = 0;
    // Where a filter selects nothing, what is hidden is not missing.
    const before: Gap[] = [];
    for (const shown of withForks(items, left)) {
      if (isFiltered && isGap(shown) && count === 0) {
        before.push(shown);
        continue;
      }
      for (const gap of before.splice(0)) await print(draw(gap));
      await print(draw(shown));
      count += 1;
    }
    return count;
  }

  return {
    show: async (selection) => {
      const count = await showItems(selection);
      if (count > 0 || selection.last === 0 || info.head === info.floor) return;
      if (selection.tool !== undefined) status(noCallsText(selection.tool, toolsOf(store, id)));
      else if (!form.all)
        status(
          inHome(`Nothing of the conversation is selected: list all entries with tape log ${session} --all`),
        );
    },
    add: async (entry, selection) => {
      if (!isWanted(entry, selection) || !(form.all || isConversation(entry))) return;
      await print(draw({ entry, results: new Map() }));
    },
  };
}

/** The names of the tools that a session calls, the ones with the most calls first. */
function toolsOf(store: SqliteTapeStore, id: string): readonly string[] {
  const counts = new Map<string, number>();
  for (const entry of store.entries.read(id, { calls: true }))
    for (const { name } of callsOf(entry)) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a).map(([name]) => name);
}

/** Names of tools that a line has. */
const toolsShown = 12;

function noCallsText(tool: string, tools: readonly string[]): string {
  const shown = tools.slice(0, toolsShown).map((name) => oneLine(name, 60));
  const more = tools.length > toolsShown ? `, and ${tools.length - toolsShown} more` : '';
  const why =
    tools.length === 0 ? 'the session calls no tool' : `the session calls ${shown.join(', ')}${more}`;
  return `No calls of ${oneLine(tool, 60)} are selected: ${why}`;
}
