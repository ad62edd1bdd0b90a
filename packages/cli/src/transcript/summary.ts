import type { Entry, HomeStore, SessionInfo } from '@tapedeck/tape';
import { isSummarizer, recordedUsage, totalOf } from '@tapedeck/tape/internal';
import { touchesOf } from '@tapedeck/tape/store';
import { oneLine } from '../escape.ts';
import { counted } from '../output/counted.ts';
import { stateOf } from '../output/session.ts';
import { hangingLines } from '../terminal/wrap.ts';
import { callsOf } from './parts.ts';
import { roleOf, timeOfEntry } from './wanted.ts';

/** What entries of a session add up to. */
export interface Summary {
  readonly entries: number;
  readonly messages: { readonly user: number; readonly assistant: number; readonly merge: number };
  readonly tools: ReadonlyMap<string, number>;
  readonly tokens: number;
  /** Files that calls declared, and whether one wrote them. */
  readonly files: ReadonlyMap<string, boolean>;
  readonly first: number | undefined;
  readonly last: number | undefined;
  /** False if names of tools or files are left out. */
  readonly complete: boolean;
}

/** The most names of tools and files, which bounds the memory. */
const namesMax = 10_000;

/** Adds up entries, one at a time. */
export function summaryOf(entries: Iterable<Entry>): Summary {
  const messages = { user: 0, assistant: 0, merge: 0 };
  const tools = new Map<string, number>();
  const files = new Map<string, boolean>();
  let [count, tokens, complete] = [0, 0, true];
  let [first, last]: [number | undefined, number | undefined] = [undefined, undefined];
  const set = <T>(names: Map<string, T>, name: string, next: (before: T | undefined) => T) => {
    if (names.size < namesMax || names.has(name)) names.set(name, next(names.get(name)));
    else complete = false;
  };
  for (const entry of entries) {
    count += 1;
    const role = roleOf(entry);
    if (entry.kind === 'message') {
      const time = timeOfEntry(entry);
      first = Math.min(first ?? time, time);
      last = Math.max(last ?? time, time);
      messages[entry.meta.source === 'merge' ? 'merge' : role === 'assistant' ? 'assistant' : 'user'] += 1;
    }
    const usage = recordedUsage(entry.meta);
    if (usage !== undefined) tokens += totalOf(usage);
    for (const { name } of callsOf(entry)) set(tools, name, (before = 0) => before + 1);
    for (const { what, wrote } of touchesOf(entry))
      if (what.startsWith('file:')) set(files, what.slice(5), (before = false) => before || wrote);
  }
  return { entries: count, messages, tools, tokens, files, first, last, complete };
}

/** Children that are read at once. */
const childrenPage = 1_000;

/** The children of a session, by how they are, in the words for people. */
export function childStates(store: HomeStore, parent: string): ReadonlyMap<string, number> {
  const states = new Map<string, number>();
  for (let after: string | null = null; ; ) {
    const page: readonly SessionInfo[] = store.sessions.list({
      parent,
      all: true,
      after,
      limit: childrenPage,
    });
    for (const child of page) {
      const state = stateOf(child);
      if (!isSummarizer(child)) states.set(state, (states.get(state) ?? 0) + 1);
    }
    const last = page.at(-1);
    if (last === undefined || page.length < childrenPage) return states;
    after = last.id;
  }
}

type Children = ReadonlyMap<string, number>;

const iso = (time: number) => `${new Date(time).toISOString().slice(0, 19)}Z`;

/** A summary as `--json` prints it; part of the documented contract. */
export function summaryJson(
  { session }: Pick<SessionInfo, 'session'>,
  { entries, messages, tools, tokens, files, first, last, complete }: Summary,
  children: Children,
): Readonly<Record<string, unknown>> {
  return {
    session,
    entries,
    messages,
    tools: [...tools].map(([tool, calls]) => ({ tool, calls })),
    tokens,
    children: byFirstWord(children),
    files: [...files].map(([path, wrote]) => ({ path, wrote })),
    first: first === undefined ? null : iso(first),
    last: last === undefined ? null : iso(last),
    complete,
  };
}

/** Numbers of children by the first word of their state: programs ask the children how their tasks ended. */
function byFirstWord(children: Children): Readonly<Record<string, number>> {
  const words = Map.groupBy(children, ([state]) => state.split(',')[0] ?? '');
  return Object.fromEntries(
    [...words].map(([word, counts]) => [word, counts.reduce((sum, [, n]) => sum + n, 0)]),
  );
}

/** Names that a line of a summary has. */
const namesShown = 12;

/** A summary as text. */
export function summaryText(
  { entries, messages, tools, tokens, files, first, last, complete }: Summary,
  children: Children,
  columns: number = Number.POSITIVE_INFINITY,
): string {
  const { user, assistant, merge } = messages;
  const row = (what: string, text: string) =>
    text === '' ? [] : hangingLines(`${what.padEnd(9)} ${text}`, columns, 10);
  const list = (names: readonly string[]) =>
    [
      ...names.slice(0, namesShown),
      ...(names.length > namesShown ? [`and ${names.length - namesShown} more`] : []),
    ].join(', ');
  const used = [...tools].sort(([, a], [, b]) => b - a);
  const wrote = [...files].filter(([, wrote]) => wrote).map(([path]) => oneLine(path, 120));
  const read = [...files].filter(([, wrote]) => !wrote).map(([path]) => oneLine(path, 120));
  return [
    ...row('entries', String(entries)),
    ...row('messages', `${user} user, ${assistant} assistant${merge > 0 ? `, ${merge} merge` : ''}`),
    ...row('calls', list(used.map(([tool, calls]) => `${oneLine(tool, 60)} ×${calls}`))),
    ...row('tokens', tokens === 0 ? '' : String(tokens)),
    ...row('children', list([...children].map(([state, n]) => `${n} ${state.replace(', ', ' and ')}`))),
    ...row('wrote', list(wrote)),
    ...row('read', list(read)),
    ...row('time', first === undefined || last === undefined ? '' : spanText(first, last)),
    ...(complete ? [] : [`${counted(namesMax, 'name')} at most are counted`]),
  ].join('\n');
}

function spanText(first: number, last: number): string {
  const minutes = Math.round((last - first) / 60_000);
  const length =
    minutes < 1
      ? ''
      : minutes < 120
        ? ` (${minutes} min)`
        : minutes < 2880
          ? ` (${Math.round(minutes / 60)} h)`
          : ` (${Math.round(minutes / 1440)} days)`;
  return `${iso(first)} to ${iso(last)}${length}`;
}
