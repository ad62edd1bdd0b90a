/**
 * The transcript of a session, for people: `read.ts` finds the entries that `wanted.ts` wants, `fold.ts` puts results
 * under their calls, `forks.ts` finds the children that left between them, and `rows.ts` draws what comes of it.
 * `page.ts` shows one entry, `summary.ts` adds up. Imports `output` and what lies below it.
 */
import type { Entry, SessionInfo, SqliteTapeStore } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { safe } from '../escape.ts';
import { entryLine } from '../output/entry.ts';
import { fold, isGap } from './fold.ts';
import { leftIn, withForks } from './forks.ts';
import { gapText } from './item-rows.ts';
import { lastItems, type Reading, readShown, type Selection } from './read.ts';
import { drawer, type Look } from './rows.ts';
import { isConversation, isWanted } from './wanted.ts';

/** How to show a transcript. */
export interface Form {
  /** One row for each entry. */
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
  { io, style, link, color }: Pick<Context, 'io' | 'style' | 'link' | 'color'>,
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
    find: form.find,
    now: () => io.now(),
    session,
    isHidden: (seq) => ranges.find(({ to }) => seq <= to)?.hiddenBy !== undefined,
  };
  const draw = drawer(look);
  const print = async (rows: readonly string[]) => {
    for (const row of rows) await io.out(`${row.trimEnd()}\n`);
  };
  const line = (entry: Entry) => entryLine(entry, { color, width: io.columns });

  async function showLines(selection: Selection): Promise<number> {
    let count = 0;
    for (const entry of lastItems(readShown(store, info, selection, reading), selection.last)) {
      await print([
        isGap(entry)
          ? `${String(entry.to).padStart(5)}   rewind      ${gapText(entry, session)}`
          : line(entry),
      ]);
      count += 1;
    }
    return count;
  }

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
    for (const shown of withForks(items, left)) {
      await print(draw(shown));
      count += 1;
    }
    return count;
  }

  return {
    show: async (selection) => {
      const count = await (form.oneline ? showLines(selection) : showItems(selection));
      if (count === 0 && !form.all && selection.last !== 0 && info.head > info.floor)
        io.err(`Nothing of the conversation is selected: list all entries with tape log ${session} --all\n`);
    },
    add: async (entry, selection) => {
      if (!isWanted(entry, selection) || !(form.all || isConversation(entry))) return;
      await print(form.oneline ? [line(entry)] : draw({ entry, results: new Map() }));
    },
  };
}
