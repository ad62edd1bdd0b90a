import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { SourceTable } from '@tapedeck/runtime/import';
import { type SqliteTapeStore, view } from '@tapedeck/tape';
import { treeParentOf } from '@tapedeck/tape/internal';
import fc from 'fast-check';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { importFiles } from '../support/import-files.ts';
import { acts, filesOf } from '../support/random-transcripts.ts';
import { sized } from '../support/size.ts';
import { fixedSources, openStore } from '../support/store.ts';
import { memoryDir } from '../support/temp-dir.ts';
import { jsonl, model, person, says } from '../support/transcript.ts';

const dir = memoryDir();
afterAll(() => dir[Symbol.dispose]());

type Raw = { readonly [field: string]: unknown };

/** A home of which each import is that of a process of its own. */
class Home {
  readonly #folder: string;
  readonly #sources = fixedSources();

  constructor(name: string) {
    this.#folder = dir.file(name);
    mkdirSync(this.#folder, { mode: 0o700 });
    mkdirSync(`${this.#folder}.files`);
  }

  get kept(): string {
    return join(this.#folder, 'sources.jsonl.sessions');
  }

  open(): SqliteTapeStore {
    return openStore(join(this.#folder, 'tape.db'), this.#sources);
  }

  /** Imports a version of a file, and returns which sessions were read that have entries. */
  async take(records: readonly Raw[]): Promise<readonly string[]> {
    const path = join(`${this.#folder}.files`, `${records[0]?.sessionId}.jsonl`);
    writeFileSync(path, jsonl(records));
    using store = this.open();
    const read = vi.spyOn(store.entries, 'read');
    await importFiles(store, [path], { table: SourceTable.open(join(this.#folder, 'sources.jsonl')) });
    const names = read.mock.calls.flatMap(([ref]) => store.sessions.find(String(ref))?.session ?? []);
    return [...new Set(names)].sort();
  }

  state() {
    using store = this.open();
    const sessions = store.sessions.list({ all: true, deleted: false });
    return {
      sessions: sessions
        .map((info) => ({
          session: info.session,
          parent: treeParentOf(info).parent,
          messages: view(store.views.entries(info.session)).messages,
        }))
        .sort((a, b) => (a.session < b.session ? -1 : 1)),
      output: store.sessions.calls().reduce((sum, { usage }) => sum + usage.output, 0),
    };
  }
}

const turn = (session: string, n: number, parent?: string): Raw[] =>
  [
    person({ uuid: `${session}-u${n}`, ...(parent !== undefined && { parent }) }, `ask ${session} ${n}`),
    model({ uuid: `${session}-a${n}`, parent: `${session}-u${n}` }, [says(`did ${n}`)], {
      usage: { output_tokens: 3 },
    }),
  ].map((one, i) => ({
    ...one,
    sessionId: session,
    timestamp: new Date(Date.UTC(2026, 2, 1, Number(session.slice(1)), n, i)).toISOString(),
  }));

const names = Array.from({ length: 12 }, (_, i) => `s${i}`);

/** A home with sessions that have nothing in common. */
async function homeOf(name: string): Promise<Home> {
  const home = new Home(name);
  for (const session of names) await home.take(turn(session, 0));
  return home;
}

test('an import of one file reads no other session of the home that has not changed', async () => {
  const home = await homeOf('one');
  const longer = [...turn('s3', 0), ...turn('s3', 1, 's3-a0')];
  expect(await home.take(longer)).toEqual(['s3']);
  expect(await home.take(turn('s20', 0))).toEqual(['s20']);
  using store = home.open();
  store.entries.append('s7', [{ kind: 'message', payload: { role: 'user', content: 'mine' } }]);
  expect(await home.take(turn('s21', 0))).toEqual(['s21', 's7']);
  expect(statSync(home.kept).mode & 0o777).toBe(0o600);
  // Without what is kept, all are read.
  rmSync(home.kept);
  expect(await home.take(turn('s22', 0))).toEqual([...names, 's20', 's21', 's22'].sort());
});

test('of a session that has changed, what was kept before counts no more', async () => {
  const home = await homeOf('older');
  const [asked, answered] = turn('s20', 0);
  await home.take([asked ?? {}]);
  const older = readFileSync(home.kept, 'utf8');
  await home.take([asked ?? {}, answered ?? {}]);
  writeFileSync(home.kept, older);
  // Its first answer alone says whose copy it is.
  const copy = [asked, answered].map((one, i) => ({
    ...one,
    ...{ sessionId: 's21', uuid: `s21-${i}`, parentUuid: i === 0 ? null : 's21-0' },
  }));
  await home.take([...copy, ...turn('s21', 1, 's21-1')]);
  using store = home.open();
  expect(store.sessions.find('s21')).toMatchObject({ parent: 's20' });
});

test('what is kept has few lines that a later one replaces', async () => {
  const home = await homeOf('again');
  const text = readFileSync(home.kept, 'utf8');
  writeFileSync(home.kept, text.repeat(40));
  await home.take(turn('s20', 0));
  const lines = readFileSync(home.kept, 'utf8').trimEnd().split('\n');
  expect(lines).toHaveLength(names.length + 1);
  expect(await home.take(turn('s21', 0))).toEqual(['s21']);
});

test('a copy is placed behind a source that was imported long before, by the same process', async () => {
  const folder = dir.file('long');
  mkdirSync(folder);
  using store = openStore();
  const write = (file: string, session: string, records: readonly Raw[]) => {
    writeFileSync(file, jsonl(records.map((one) => ({ ...one, sessionId: session }))));
    return file;
  };
  /** Imports a file. */
  const take = async (session: string, records: readonly Raw[]) => {
    await importFiles(store, [write(join(folder, `${session}.jsonl`), session, records)]);
  };
  const first = turn('s0', 0);
  const longer = [...first, ...turn('s0', 1, 's0-a0')];
  await take('s0', first);
  await take('copy-1', longer);
  await take('copy-2', [...first, ...turn('s0', 2, 's0-a0')]);
  // Each of these has a family, too: more than are kept.
  const others = dir.file('others');
  mkdirSync(others);
  for (let i = 1; i <= sized(8, 220, 220); i += 1) {
    write(join(others, `s${i}.jsonl`), `s${i}`, turn(`s${i}`, 0));
    const copy = [...turn(`s${i}`, 0), ...turn(`s${i}`, 1, `s${i}-a0`)];
    write(join(others, `other-${i}.jsonl`), `other-${i}`, copy);
  }
  await importFiles(store, [others]);
  await take('copy-3', [...longer, ...turn('s0', 3, 's0-a1')]);
  expect(store.sessions.find('copy-3')).toMatchObject({ parent: 'copy-1' });
});

/** Lines with other content, each with the sum that it has then. */
const summed = (text: string, change: (json: string) => string): string =>
  text.replaceAll(/^\w{8} (.*)$/gm, (_, json: string) => {
    const changed = change(json);
    return `${crc32(changed).toString(16).padStart(8, '0')} ${changed}`;
  });

describe('a copy is placed behind its source', () => {
  test.each([
    ['is damaged', (text: string) => text.replaceAll('s3-u0', 's9-u0')],
    ['was cut off', (text: string) => text.slice(0, text.indexOf('s3-u0') + 3)],
    ['is of another version', (text: string) => summed(text, (json) => json.replace('[1,', '[0,'))],
    ['is of another shape', (text: string) => summed(text, (json) => json.replace(',{', ',0,{'))],
    ['has no line of its own', () => 'nonsense\n\n{}\n00000000 []\n'],
  ])('where what is kept %s', async (how, damage) => {
    const home = await homeOf(how);
    writeFileSync(home.kept, damage(readFileSync(home.kept, 'utf8')));
    const copy = [...turn('s3', 0), ...turn('s3', 1, 's3-a0')].map((one) => ({ ...one, sessionId: 's30' }));
    await home.take(copy);
    using store = home.open();
    expect(store.sessions.find('s30')).toMatchObject({ parent: 's3' });
  });

  test('where a folder is in the place of what is kept', async () => {
    const home = await homeOf('folder');
    rmSync(home.kept);
    mkdirSync(home.kept);
    const copy = [...turn('s3', 0), ...turn('s3', 1, 's3-a0')].map((one) => ({ ...one, sessionId: 's30' }));
    await home.take(copy);
    using store = home.open();
    expect(store.sessions.find('s30')).toMatchObject({ parent: 's3' });
  });
});

test('nothing that is kept is content, or a digest of it', async () => {
  const [home, other] = [new Home('said'), new Home('other')];
  const [asked, answered] = turn('s1', 0);
  await home.take([asked ?? {}, answered ?? {}]);
  await other.take([
    { ...asked, message: { role: 'user', content: 'another prompt' } },
    { ...answered, message: { ...Object(answered?.message), content: [says('another answer')] } },
  ]);
  // The hash of a head has a salt.
  const kept = ({ kept: file }: Home) =>
    readFileSync(file, 'utf8').replaceAll(/"[0-9a-f]{64}"|^\w{8} /gm, '');
  expect(kept(home)).toContain('s1-u0');
  expect(kept(other)).toBe(kept(home));
});

test('files of turns, copies and compactions end the same with what is kept and without, also behind erasures', async () => {
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(
      acts(['turn', 'turn', 'turn', 'copy', 'compact']),
      fc.array(fc.nat(1_000), { minLength: 6, maxLength: 12 }),
      async (all, order) => {
        runs += 1;
        const [kept, bare] = [new Home(`kept-${runs}`), new Home(`bare-${runs}`)];
        const number = (i: number) => order[i % order.length] ?? 0;
        const files = filesOf(all, { requests: true });
        const half = files.map((file, i) => file.slice(0, 1 + (number(i) % file.length)));
        for (const [i, file] of [...half, ...files].entries()) {
          for (const home of [kept, bare]) {
            if (home === bare && existsSync(home.kept)) rmSync(home.kept);
            await home.take(file);
            if (number(i) % 3 === 0) erase(home, number(i));
          }
          expect(kept.state()).toEqual(bare.state());
        }
      },
    ),
    { seed: 11, numRuns: sized(6, 6, 1_000) },
  );
});

/** Erases an entry of a session. */
function erase(home: Home, number: number): void {
  using store = home.open();
  const all = store.sessions.list({ all: true });
  const one = all[number % all.length];
  const entries = one === undefined ? [] : [...store.entries.read(one.id, { own: true })];
  const said = entries.filter(({ kind, seq }) => kind === 'message' && seq <= (one?.settled ?? 0));
  const entry = said[number % Math.max(1, said.length)];
  if (one !== undefined && entry !== undefined) store.entries.redact(one.id, [entry.seq], 'private');
}
