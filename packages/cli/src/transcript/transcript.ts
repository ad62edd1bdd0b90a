/**
 * The transcript of a session, for people: `read.ts` finds the entries that `wanted.ts` wants, `fold.ts` puts results
 * under their calls, `forks.ts` finds the children that left between them, `undoes.ts` what a rewind undoes, and `rows.ts`
 * draws what comes of it.
 * `page.ts` shows one entry, `summary.ts` adds up. Imports `output` and what lies below it.
 */
import type { Entry, HomeStore, Seq, SessionInfo } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { commandLine, oneLine, safe } from '../escape.ts';
import { fold, isGap } from './fold.ts';
import { isLeft, leftIn, placeOf, withForks } from './forks.ts';
import { callsOf } from './parts.ts';
import { boundsOf, type Reading, readShown, type Selection } from './read.ts';
import { drawer, type Look, type Shown } from './rows.ts';
import { undoesOf } from './undoes.ts';
import { isByContent, isConversation, isWanted } from './wanted.ts';

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
  store: HomeStore,
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

  /** What a selection shows, in order: of the last rows only those, whatever they are. */
  function rowsOf(selection: Selection): Iterable<Shown> {
    const { last, after, before } = selection;
    const bounds = boundsOf(selection, info);
    // A filter by content selects entries. A fork is not an entry.
    const left = (from: Seq) =>
      isByContent(selection) ? [].values() : leftIn(store, id, { ...bounds, from, after, before });
    const items = fold(readShown(store, info, selection, reading));
    if (last === undefined) return withForks(items, left(bounds.from));
    if (last === 0) return [];
    const kept = [...items].slice(-last);
    const [first] = kept;
    const from = kept.length < last || first === undefined ? bounds.from : placeOf(first);
    return [...withForks(kept, left(from))].slice(-last);
  }

  /** Returns how many rows it has printed. */
  async function showRows(selection: Selection): Promise<number> {
    let count = 0;
    for (const shown of rowsOf(selection)) {
      await print(draw(explained(shown)));
      count += 1;
    }
    return count;
  }

  /** A rewind with what it undoes. */
  function explained(shown: Shown): Shown {
    if (isGap(shown) || isLeft(shown) || shown.entry.kind !== 'rewind') return shown;
    return { ...shown, undoes: undoesOf(store, id, shown.entry) };
  }

  return {
    show: async (selection) => {
      const count = await showRows(selection);
      if (count > 0 || selection.last === 0 || info.head === info.floor) return;
      if (selection.tool !== undefined) status(noCallsText(selection.tool, toolsOf(store, id)));
      else if (!form.all)
        status(
          inHome(
            `Nothing of the conversation is selected: list all entries with ${commandLine('log', [session], ['--all'])}`,
          ),
        );
    },
    add: async (entry, selection) => {
      if (!isWanted(entry, selection) || !(form.all || isConversation(entry))) return;
      await print(draw(explained({ entry, results: new Map() })));
    },
  };
}

/** The names of the tools that a session calls, the ones with the most calls first. */
function toolsOf(store: HomeStore, id: string): readonly string[] {
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
