import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { assistant, openTapeStore, TapeError, user } from '@tapedeck/tape';
import { tapeHere } from './cli.ts';
import { type FaultPlace, faultPlace, openFaultStore } from './fault-acts.ts';
import { damage, stateOf } from './fault-check.ts';
import { writeSchema1 } from './old-schemas.ts';
import { jsonl, model, person, says } from './transcript.ts';

/** A command that changes files, under faults. */
export interface FaultCommand {
  /** Makes what the command needs. */
  readonly prepare: (base: string) => unknown;
  readonly args: (base: string) => readonly string[];
  /** Files that it reads, whose bytes stay as they are. */
  readonly reads: readonly string[];
  /** The name of the home that has an older schema until the command. */
  readonly upgrades?: 'home' | 'restored';
  /** A text that no file of the home has once it is done. */
  readonly erases?: string;
}

const secret = 'a key that was pasted';

function prepareHome(base: string): void {
  using store = openFaultStore(faultPlace(base));
  store.sessions.open('main');
  store.entries.append('main', [user(secret), assistant('answer')]);
  store.lineage.fork('main', { name: 'ada' });
  store.entries.append('ada', [assistant(`result ${'r'.repeat(30_000)}`)]);
}

async function prepareBackup(base: string): Promise<void> {
  prepareHome(base);
  await tapeHere(['backup', faultPlace(base).copy], { home: faultPlace(base).dir });
  rmSync(faultPlace(base).dir, { recursive: true });
}

function prepareOlder(base: string): void {
  const place = faultPlace(base);
  mkdirSync(place.dir, { mode: 0o700 });
  writeSchema1(place);
}

function prepareOlderBackup(base: string): void {
  prepareOlder(base);
  const { dir, db, copy } = faultPlace(base);
  cpSync(db, copy);
  rmSync(dir, { recursive: true });
}

/** A transcript with this many answers. */
function writeTranscript(base: string, answers: number): void {
  const records = Array.from({ length: answers * 2 }, (_, i) => {
    const link = { uuid: `r${i}`, parent: i === 0 ? null : `r${i - 1}` };
    return i % 2 === 0 ? person(link, `question ${i}`) : model(link, [says('z'.repeat(200))]);
  });
  writeFileSync(join(base, transcript), jsonl(records));
}

/** The file of a bundle that is imported. */
export const bundle = 'theirs.tape.gz';

/** The path of a bundle that is exported. */
export function exported(base: string): string {
  return join(base, 'copies/main.tape');
}

/** A session of another home, with a child that was merged. */
function writeBundle(base: string): void {
  using store = openTapeStore(':memory:');
  store.sessions.open('theirs');
  store.entries.append('theirs', [user('question'), assistant(`answer ${'r'.repeat(30_000)}`)]);
  store.lineage.fork('theirs', { name: 'kid' });
  store.entries.append('kid', [assistant('result')]);
  store.lineage.merge('kid');
  const lines = [...store.bundles.write('theirs', { scope: 'tree' })].join('');
  writeFileSync(join(base, bundle), gzipSync(lines));
}

const transcript = 'transcript.jsonl';
const importing = {
  args: (base: string) => ['import', join(base, transcript), '--as', 'imported'],
  reads: [transcript],
};
const restoring = {
  args: (base: string) => ['restore', faultPlace(base).copy, restoredPlace(base).dir],
  reads: ['copies/copy.db'],
};

export const commands: Readonly<Record<string, FaultCommand>> = {
  redact: {
    prepare: prepareHome,
    args: () => ['redact', 'main@2', '--reason', 'a key'],
    reads: [],
    erases: secret,
  },
  backup: {
    prepare: prepareHome,
    args: (base) => ['backup', faultPlace(base).copy],
    reads: ['home/tape.db', 'home/session_graph.jsonl'],
  },
  restore: { prepare: prepareBackup, ...restoring },
  'restore of schema 1': { prepare: prepareOlderBackup, upgrades: 'restored', ...restoring },
  import: {
    prepare: (base) => {
      prepareHome(base);
      writeTranscript(base, 300);
    },
    ...importing,
  },
  'import of a transcript that has grown': {
    prepare: async (base) => {
      prepareHome(base);
      writeTranscript(base, 10);
      await tapeHere(importing.args(base), { home: faultPlace(base).dir });
      writeTranscript(base, 20);
    },
    ...importing,
  },
  export: {
    prepare: prepareHome,
    args: (base) => ['export', 'main', '-o', exported(base)],
    reads: ['home/tape.db', 'home/session_graph.jsonl'],
  },
  'import of a bundle': {
    prepare: (base) => {
      prepareHome(base);
      writeBundle(base);
    },
    args: (base) => ['import', join(base, bundle)],
    reads: [bundle],
  },
  'the first write to a home of schema 1': {
    prepare: prepareOlder,
    args: () => ['raw', 'checkpoint'],
    reads: [],
    upgrades: 'home',
  },
};

/** The home that a restore makes. */
export function restoredPlace(base: string): FaultPlace {
  const dir = join(base, 'restored');
  return {
    ...faultPlace(base),
    dir,
    db: join(dir, 'tape.db'),
    graph: join(dir, 'session_graph.jsonl'),
  };
}

/** What a person finds in the homes and the copy afterwards, and what is wrong with them. */
export function look(base: string): { readonly state: string; readonly faults: readonly string[] } {
  const state: Record<string, readonly string[]> = {};
  const faults: string[] = [];
  for (const place of [faultPlace(base), restoredPlace(base)]) {
    if (!existsSync(place.db)) continue;
    using store = openFaultStore(place);
    faults.push(...damage(store, place));
    state[place.dir] = stateOf(store, place);
  }
  const { copy } = faultPlace(base);
  if (existsSync(copy)) state[copy] = stateOfCopy(copy, faults);
  return { state: JSON.stringify(state).replaceAll(base, ''), faults };
}

function stateOfCopy(copy: string, faults: string[]): string[] {
  try {
    using store = openTapeStore(copy, { readonly: true });
    for (const { message } of [...store.verifyDatabase(), ...store.verify()]) faults.push(`copy: ${message}`);
    return stateOf(store, { db: copy });
  } catch (error) {
    if (error instanceof TapeError && error.code === 'TAPE_SCHEMA_OLDER') return [error.code];
    throw error;
  }
}

/** The files under a directory, without those of an open database. */
export function filesIn(base: string): string[] {
  return readdirSync(base, { recursive: true, encoding: 'utf8' })
    .filter((name) => !/-(?:wal|shm|journal)$/.test(name))
    .sort();
}

/** Whether any file of a home has a text. */
export function homeHas({ dir }: FaultPlace, text: string): boolean {
  return readdirSync(dir).some((name) => readFileSync(join(dir, name)).includes(text));
}
