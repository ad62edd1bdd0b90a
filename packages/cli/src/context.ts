import type { HomeStore, Redact, StoreOptions } from '@tapedeck/tape';
import { jsonText, safe } from './escape.ts';
import { type GraphFileState, graphFields, graphLines } from './graph-file.ts';
import {
  addressOf,
  findHome,
  type Home,
  hasDatabase,
  inHome,
  openExisting,
  openForReading,
  openForWriting,
} from './home.ts';
import type { Io } from './io.ts';
import type { MaskedIo } from './masked-io.ts';
import { openRecent } from './recent.ts';
import { linkTo, usesLinks } from './terminal/link.ts';
import { type ColorWhen, makeStyle, type Style, usesColor } from './terminal/style.ts';
import { setUser, type User } from './user.ts';

type WritingOptions = Pick<StoreOptions, 'keepInboxes' | 'redact'>;

/** Options of every verb. */
export interface CommonOptions {
  readonly home?: string | undefined;
  readonly base?: string | undefined;
  readonly json?: boolean | undefined;
  readonly jsonl?: boolean | undefined;
  readonly quiet?: boolean | undefined;
  readonly color?: ColorWhen | false | undefined;
  readonly durability?: 'full' | 'fast' | undefined;
}

/** The result of a verb, in the forms that a user can ask for. */
export interface Answer {
  readonly json: unknown;
  readonly quiet?: string;
  readonly human: string;
  /** `human` has styles: the texts in it were made safe for a terminal before. */
  readonly isStyled?: boolean;
}

/** Home, options and output of one command line. */
export interface Context {
  readonly io: MaskedIo;
  readonly options: CommonOptions;
  /** The word of the command line that named the verb: its name, or another one. */
  readonly word: string;
  /** Whether a word names a verb. */
  readonly isVerb: (word: string) => boolean;
  readonly home: Home;
  /** Whether to colour text output. */
  readonly color: boolean;
  /** Formats text output, where its user and the terminal allow it. */
  readonly style: Style;
  /** The name of a session, which leads to its files, if it has any, where the terminal has links. */
  link(id: string, name: string): string;
  /** Opens the home for reading, and closes it after `act`. */
  reading<T>(act: (store: HomeStore) => Promise<T>): Promise<T>;
  /** Opens the home for writing, and creates it if it does not exist. */
  writing<T>(act: (store: HomeStore) => Promise<T>, o?: WritingOptions): Promise<T>;
  /** Opens an existing home for writing, for acts on a session that must exist. */
  changing<T>(act: (store: HomeStore) => Promise<T>, o?: WritingOptions): Promise<T>;
  /**
   * Prints the result: `json` with `--json` or `--jsonl`, `quiet` (the id alone) with `--quiet`, else
   * `human`.
   */
  answer(result: Answer): Promise<void>;
  /** Prints one document of JSON, with what happened to the graph file when the verb wrote. */
  print(json: unknown): Promise<void>;
  /** A sentence of the command itself whose commands name the home, where the user has named one. */
  inHome(text: string): string;
  /** Prints one line of status on stderr, unless `--quiet`. The commands of a hint name the home, as `inHome` writes them. */
  status(text: string): void;
  /** Runs another command line with this input and output, by default its own, and returns its exit code. */
  tape(argv: readonly string[], io?: MaskedIo): Promise<number>;
}

/** Adds to a document what happened to the graph file, for a verb that wrote. */
function withGraph(json: unknown, state: GraphFileState | undefined): unknown {
  if (state === undefined || typeof json !== 'object' || json === null || Array.isArray(json)) return json;
  return { ...json, ...graphFields(state) };
}

/** Makes the context of one command line; `main` runs the command lines that a verb starts. */
export function makeContext(
  io: MaskedIo,
  {
    options: given,
    word,
    isVerb,
    redactIn,
  }: Pick<Context, 'options' | 'word' | 'isVerb'> & {
    /** Reads what the home says about the forms of secrets. */
    readonly redactIn: (at: { readonly io: MaskedIo; readonly home: Home }) => Promise<Redact | undefined>;
  },
  main: (argv: readonly string[], io: Io) => Promise<number>,
): Context {
  const home = { ...findHome(given.home, io), ...(given.base !== undefined && { base: given.base }) };
  // What is printed of them must not open a server.
  const options =
    home.server === undefined ? given : { ...given, ...(given.home !== undefined && { home: home.name }) };
  const recent = openRecent(home, io);
  let named: string | undefined;
  const user: User = {
    // Read when a reference needs it: most command lines have none.
    get recent() {
      return recent.read();
    },
    get seen() {
      return recent.seen();
    },
    looks: recent.look,
    now: io.now(),
    uses: (id) => {
      // The first session that a line names is what it is about.
      if (named === undefined) recent.add(id);
      named ??= id;
    },
  };
  /** The store that the verb opened last for writing. */
  let written: HomeStore | undefined;
  const during = async <T>(store: HomeStore, act: (store: HomeStore) => Promise<T>): Promise<T> => {
    setUser(store, user);
    try {
      return await act(store);
    } finally {
      store.close();
    }
  };
  const duringWrites = async <T>(store: HomeStore, act: (store: HomeStore) => Promise<T>): Promise<T> => {
    written = store;
    try {
      return await during(store, act);
    } finally {
      for (const line of graphLines(store.graphFile)) io.err(`${safe(line)}\n`);
    }
  };
  /** The options of a store that is opened for writing. */
  const toWrite = async (o?: WritingOptions) => {
    const redact = o?.redact ?? io.redact ?? (await redactIn({ io, home }));
    return { ...options, ...o, ...(redact !== undefined && { redact }) };
  };
  const print = async (json: unknown) => io.out(`${jsonText(withGraph(json, written?.graphFile))}\n`);
  const color = usesColor(options.color === false ? 'never' : (options.color ?? 'auto'), io);
  const links = color && usesLinks(io);
  const here = (text: string) => inHome(text, { home: options.home, isVerb });
  const status = (text: string) => {
    if (options.quiet !== true) io.err(`${safe(text.startsWith('Hint: ') ? here(text) : text)}\n`);
  };
  return {
    io,
    options,
    word,
    isVerb,
    home,
    color,
    style: makeStyle(color),
    link: (id, name) => {
      const address = links && name !== '' ? addressOf(home, id) : undefined;
      return address === undefined ? name : linkTo(address, name);
    },
    reading: async (act) => during(await openForReading(home, io), act),
    writing: async (act, o) => {
      const isNew = home.isFallback && !hasDatabase(home);
      const store = await openForWriting(home, io, await toWrite(o));
      // The user named no home, and `tape init` later makes another one.
      if (isNew) status(`Created the tape home ${home.dir}`);
      return await duringWrites(store, act);
    },
    changing: async (act, o) => duringWrites(await openExisting(home, io, await toWrite(o)), act),
    print,
    answer: async ({ json, quiet, human, isStyled }) => {
      if (options.json === true || options.jsonl === true) await print(json);
      else {
        const shown = () => (isStyled === true ? human : safe(human));
        const text = options.quiet === true ? (quiet ?? shown()) : shown();
        await io.out(text === '' ? '' : `${text}\n`);
      }
    },
    inHome: here,
    status,
    tape: (argv, given = io) => main(argv, given),
  };
}
