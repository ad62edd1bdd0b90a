import { copyFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { json } from '../support/cli.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tempHome } from '../support/temp-home.ts';
import { jsonl, person } from '../support/transcript.ts';

/** A tape home beside a folder of transcripts. */
function userWith(...sessions: readonly string[]) {
  const dir = tempDir();
  const home = tempHome();
  const backups = tempDir();
  const monday = backups.file('monday.db');
  const file = (session: string) => dir.file(`${session}.jsonl`);
  const write = (session: string, ...words: string[]) =>
    writeFileSync(
      file(session),
      jsonl(
        words.map((word, i) => {
          const parent = i === 0 ? null : `${session}-${words[i - 1]}`;
          return person({ uuid: `${session}-${word}`, parent }, `${word} in ${session}`, {
            sessionId: session,
          });
        }),
      ),
    );
  for (const session of sessions) write(session, 'one');
  const says = async (...args: string[]) => await home.here(args, { env: { HOME: dir.path } });
  return {
    ...{ home, file, write, says },
    imports: async (...args: string[]) => json(await says('import', '--json', ...args)),
    folder: dir.path,
    backUp: async () => {
      expect((await says('backup', monday)).code).toBe(0);
    },
    /** Puts that copy of the database in its place, and leaves all else as it is. */
    restore: () => {
      for (const end of ['-wal', '-shm']) rmSync(home.file(`tape.db${end}`), { force: true });
      copyFileSync(monday, home.file('tape.db'));
    },
    [Symbol.dispose]: () => {
      backups[Symbol.dispose]();
      home[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
}

test('behind an older copy of the database all that it lacks is imported again, and nothing twice', async () => {
  using user = userWith('s1', 's2', 's3', 's9');
  await user.imports(user.folder);
  await user.backUp();
  user.write('s1', 'one', 'two');
  user.write('s4', 'one');
  expect((await user.says('import', '--forget', user.file('s9'))).code).toBe(0);
  expect(await user.imports(user.folder)).toMatchObject({ entries: 3 });
  expect(await user.imports(user.folder)).toMatchObject({ entries: 0 });
  const views = async () =>
    await Promise.all(['s1', 's2', 's3', 's4'].map(async (one) => (await user.says('view', one)).stdout));
  const before = await views();
  user.restore();
  const table = readFileSync(user.home.file('sources.jsonl'), 'utf8');
  // Whatever only looks says what there is to read, and writes nothing.
  expect(json(await user.says('import', '--dry-run', '--json', user.folder)).tools).toMatchObject([
    { files: 4, new_files: 4 },
  ]);
  expect(readFileSync(user.home.file('sources.jsonl'), 'utf8')).toBe(table);
  const again = await user.says('import', user.folder);
  expect(again.stdout).toContain('Claude Code: 3 entries from 2 of 4 files\n');
  expect(again.stderr).toContain('The tapes are older than what the home knows of transcripts');
  expect(await views()).toEqual(before);
  // That is known from then on, and what was forgotten stays so.
  const known = await user.says('import', user.folder);
  expect(known.stdout).toContain('Claude Code: nothing new in 4 files\n');
  expect(known.stderr).not.toContain('older');
  expect(await user.imports(user.folder)).toMatchObject({ entries: 0, forgotten: 1 });
});

test('an older copy is known also where the last import brought nothing', async () => {
  using user = userWith('s1');
  await user.imports(user.folder);
  await user.backUp();
  user.write('s1', 'one', 'two');
  user.write('s2', 'one');
  await user.imports(user.folder);
  rmSync(user.home.file('sources.jsonl'));
  expect(await user.imports(user.folder)).toMatchObject({ entries: 0 });
  user.restore();
  expect(await user.imports(user.folder)).toMatchObject({ entries: 3 });
});

test('so it is with one transcript that is named', async () => {
  using user = userWith('s1');
  await user.imports(user.folder);
  await user.backUp();
  user.write('s1', 'one', 'two');
  expect(await user.imports(user.file('s1'))).toMatchObject({ entries: 1 });
  user.restore();
  for (const args of [['--dry-run'], []]) {
    const { stderr } = await user.says('import', user.file('s1'), ...args);
    expect(stderr).toMatch(/^The tapes are older than what the home knows of .* with: tape import\n$/);
  }
  expect((await user.says('view', 's1')).stdout).toContain('two in s1');
  expect(await user.imports(user.file('s1'))).toMatchObject({ entries: 0, files: [{ seen: 'unchanged' }] });
});

test.each(['named', 'found'])(
  'a file that is gone is known behind that, too: it is forgotten by its path, and its session marked (%s)',
  async (how) => {
    using user = userWith('s1', 's2');
    await user.imports(user.folder);
    await user.backUp();
    for (const one of ['s1', 's3']) user.write(one, 'one', 'two');
    await user.imports(user.folder);
    rmSync(user.file('s2'));
    renameSync(user.file('s3'), user.file('moved'));
    user.restore();
    await user.imports(how === 'named' ? user.file('s1') : user.folder);
    expect(await user.imports('--yes')).toMatchObject({ gone_sessions: expect.arrayContaining(['s2']) });
    // What the tapes lack is read where it is now.
    await user.imports(user.folder);
    expect((await user.says('view', 's3')).stdout).toContain('two in s3');
    expect(await user.imports(user.folder)).toMatchObject({ entries: 0 });
    const forgot = await user.imports('--forget', user.file('s2'));
    expect(forgot).toMatchObject({ forgotten: [user.file('s2')], names: ['s2'] });
  },
);

test('a purge is no older copy, and a home without a database is one', async () => {
  using user = userWith('s1', 's2');
  await user.imports(user.file('s1'));
  await user.imports(user.file('s2'));
  expect((await user.says('purge', 's2')).code).toBe(0);
  expect(await user.imports(user.folder)).toMatchObject({
    files: [{ seen: 'unchanged' }, { seen: 'unchanged' }],
  });
  for (const end of ['', '-wal', '-shm']) rmSync(user.home.file(`tape.db${end}`), { force: true });
  renameSync(user.home.file('session_graph.jsonl'), user.home.file('session_graph.old'));
  expect(await user.imports(user.folder)).toMatchObject({ sessions: 2, names: ['s1', 's2'] });
});
