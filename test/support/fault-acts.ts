import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openJournal } from '@tapedeck/graph/journal';
import { assistant, openTapeStore, type SqliteTapeStore, type StoreOptions, user } from '@tapedeck/tape';
import { toSchema0, writeSchema1 } from './old-schemas.ts';

/** The files of a home under fault. */
export interface FaultPlace {
  readonly dir: string;
  readonly db: string;
  readonly graph: string;
  /** Where the backup goes. */
  readonly copy: string;
  /** Looked at by the worker when it is ready: what it does before that is not its act. */
  readonly marker: string;
}

export function faultPlace(dir: string): FaultPlace {
  const home = join(dir, 'home');
  return {
    dir: home,
    db: join(home, 'tape.db'),
    graph: join(home, 'session_graph.jsonl'),
    copy: join(dir, 'copies', 'copy.db'),
    marker: join(dir, 'marker'),
  };
}

export function openFaultStore({ db, graph }: FaultPlace, o: StoreOptions = {}): SqliteTapeStore {
  return openTapeStore(db, { journal: openJournal(graph), ...o });
}

/** One act on a store. The next process can repeat it after a crash, and it has one effect. */
interface FaultAct {
  readonly name: string;
  readonly does: (store: SqliteTapeStore, place: FaultPlace) => unknown;
  /** A text that no file of the home has once the act was acknowledged and has emptied the log. */
  readonly erases?: string;
}

export interface Workload {
  /** Makes the home that the acts begin with. */
  readonly prepare: (place: FaultPlace) => void;
  /** Whether opening is an act too. */
  readonly opens: boolean;
  /** The older schema of the home, which cannot be read before an opening for writing has upgraded it. */
  readonly older?: 0 | 1;
  readonly acts: readonly FaultAct[];
  /** The parts of the opening that are all there or not there, where it does several things, and their facts. */
  readonly pieceOf?: (fact: string) => string;
}

// The names hold no digits, so that numbers can be left out where effects are compared.
const words = ['alpha', 'beta', 'gamma'];

/** A session with a few turns, and two children with results. */
function prepareHome(place: FaultPlace): void {
  using store = openFaultStore(place);
  store.sessions.open('main');
  store.entries.append('main', [user('question'), assistant('answer')]);
  for (const name of ['ada', 'ben']) {
    store.lineage.fork('main', { name, intention: { nextSteps: `work of ${name}` } });
    store.entries.append(name, [user(`task of ${name}`), assistant(`result of ${name} ${'x'.repeat(3000)}`)]);
  }
}

/** The graph file ends in the middle of its last line, and acts wait in the inbox for a process. */
function prepareBehind(place: FaultPlace): void {
  prepareHome(place);
  {
    using store = openFaultStore(place);
    store.sessions.open('other');
    for (const word of words)
      store.inbox.post('main', { key: word, body: { type: 'append', drafts: [user(`${word} waited`)] } });
    store.inbox.post('main', { key: 'merge-ada', body: { type: 'merge', draft: { child: 'ada' } } });
    store.inbox.post('other', { key: 'late', body: { type: 'append', drafts: [user('late waited')] } });
  }
  const lines = readFileSync(place.graph, 'utf8').split('\n');
  writeFileSync(place.graph, `${lines[0]}\n${lines[1]?.slice(0, 40)}`);
}

/** A home of an older build. */
function prepareOlder(place: FaultPlace): void {
  prepareHome(place);
  toSchema0(place.db);
}

/** A home that a build with schema 1 made. */
function prepareSchema1(place: FaultPlace): void {
  mkdirSync(place.dir, { mode: 0o700 });
  writeSchema1(place);
}

const secretOf = (word: string) => `the secret of ${word}`;

/** Sessions whose second entry is a secret; that of the last is large, so that its bytes are beside the entry. */
function prepareSecrets(place: FaultPlace): void {
  prepareHome(place);
  using store = openFaultStore(place);
  for (const word of words) {
    store.sessions.open(word);
    store.entries.append(word, [user(secretOf(word) + (word === 'gamma' ? 's'.repeat(300_000) : ''))]);
  }
}

const append = (word: string): FaultAct => ({
  name: word,
  does: (store) =>
    store.entries.append('main', [user(`${word} asks`), assistant(`${word} answers ${'y'.repeat(5000)}`)], {
      key: word,
    }),
});

export const workloads: Readonly<Record<string, Workload>> = {
  create: {
    prepare: () => {},
    opens: true,
    acts: [{ name: 'new', does: (store) => store.sessions.open('main') }, append('alpha')],
  },
  append: { prepare: prepareHome, opens: false, acts: words.map(append) },
  fork: {
    prepare: prepareHome,
    opens: false,
    acts: words.map((name) => ({
      name,
      does: (store) =>
        store.lineage.fork('main', { name, key: name, intention: { nextSteps: `do ${name}` } }),
    })),
  },
  merge: {
    prepare: prepareHome,
    opens: false,
    acts: ['ada', 'ben'].map((name) => ({ name, does: (store) => store.lineage.merge(name) })),
  },
  import: {
    prepare: prepareHome,
    opens: false,
    acts: words.slice(0, 2).map((name) => ({ name, does: (store) => importChunks(store, `import-${name}`) })),
  },
  backup: {
    prepare: prepareHome,
    opens: false,
    acts: [
      {
        name: 'copy',
        does: async (store, { copy }) => {
          if (!existsSync(copy)) await store.backup(copy);
        },
      },
      append('alpha'),
    ],
  },
  drain: {
    prepare: prepareBehind,
    opens: true,
    acts: [append('delta')],
    pieceOf: (fact) => (fact.includes('delta') ? 'delta' : fact.includes('other') ? 'other' : 'main'),
  },
  redact: {
    prepare: prepareSecrets,
    opens: false,
    acts: words.map((word) => ({
      name: word,
      does: (store) => store.entries.redact(word, 2, 'a secret'),
      erases: secretOf(word),
    })),
  },
  'migrate schema 0': { prepare: prepareOlder, opens: true, older: 0, acts: [append('alpha')] },
  'migrate schema 1': { prepare: prepareSchema1, opens: true, older: 1, acts: [append('alpha')] },
  checkpoint: {
    prepare: prepareHome,
    opens: false,
    acts: [
      append('alpha'),
      { name: 'checkpoint', does: (store) => store.checkpoint() },
      append('beta'),
      { name: 'again', does: (store) => store.checkpoint() },
    ],
  },
};

/** As the command line imports: in invisible chunks, published at once. */
function importChunks(store: SqliteTapeStore, name: string): unknown {
  if (store.sessions.find(name) !== undefined) return 'there';
  const { id } = store.imports.stage(name, { title: 'imported' });
  for (const word of words)
    store.imports.append(id, [
      { ...user(`${word} asked`), key: `${word}-q` },
      { ...assistant(`${word} answered ${'z'.repeat(4000)}`), key: `${word}-a` },
    ]);
  return store.imports.publish([id]);
}
