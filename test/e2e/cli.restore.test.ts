import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { assistant, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { writeSchema1 } from '../support/old-schemas.ts';
import { rawDb } from '../support/raw-db.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

/** A home with a fork, and a backup of it. */
async function withBackup(): Promise<TempHome> {
  const home = tempHome();
  home.session('main', user('one'));
  {
    using store = home.open();
    store.lineage.fork('main', { name: 'child' });
    store.entries.append('child', [assistant('Done.')]);
    store.lineage.merge('child');
  }
  await home.here(['backup', home.file('copy.db')]);
  return home;
}

test('restore makes a home of a backup, with its graph file, and checks it', async () => {
  using home = await withBackup();
  const dir = home.file('restored');
  const answer = json(await home.here(['restore', home.file('copy.db'), dir, '--json']));
  expect(answer).toMatchObject({ home: dir, ok: true, sessions: 2, sections: { integrity: { ok: true } } });
  expect(readFileSync(`${dir}/session_graph.jsonl`, 'utf8')).toBe(readFileSync(home.graph, 'utf8'));
  expect(await home.here(['graph', '--home', dir])).toEqual(await home.here(['graph']));
  const again = await home.here(['restore', home.file('copy.db'), dir, '--json']);
  expect([again.code, jsonError(again).code]).toEqual([4, 'TAPE_EXISTS']);
});

test('a backup that was copied by hand shows its lineage at once, and says that the file is missing', async () => {
  using home = await withBackup();
  const right = await home.here(['graph']);
  const dir = home.file('by-hand');
  mkdirSync(dir, { mode: 0o700 });
  cpSync(home.file('copy.db'), `${dir}/tape.db`);
  for (const argv of [['graph'], ['lineage', 'child'], ['children', 'main']]) {
    const shown = await home.here([...argv, '--home', dir]);
    expect(shown).toMatchObject({ code: 0, stderr: expect.stringContaining('There is no graph file') });
    if (argv[0] === 'graph') expect(shown.stdout).toBe(right.stdout);
  }
  expect(existsSync(`${dir}/session_graph.jsonl`)).toBe(false);
});

test('what is no backup, or a damaged one, is refused, and nothing is left', async () => {
  using home = await withBackup();
  const restored = async (file: string) => {
    const dir = home.file('refused');
    const { code } = await home.here(['restore', file, dir]);
    expect(existsSync(dir)).toBe(false);
    return code;
  };
  writeFileSync(home.file('text'), 'no database, but longer than a header of one'.repeat(50), {
    mode: 0o600,
  });
  expect(await restored(home.file('text'))).toBe(5);
  expect(await restored(home.file('none'))).toBe(3);
  {
    using db = rawDb(home.file('copy.db'));
    db.exec('DROP TRIGGER entry_update');
    db.exec(`UPDATE entry SET payload = replace(payload, 'one', 'two')`);
  }
  expect(await restored(home.file('copy.db'))).toBe(5);
});

test('a backup of schema 1 is upgraded', async () => {
  using home = tempHome();
  writeSchema1(home);
  const copy = home.file('copy.db');
  cpSync(home.db, copy);
  chmodSync(copy, 0o644);
  const dir = home.file('restored');
  const answer = json(await home.here(['restore', copy, dir, '--json']));
  expect(answer).toMatchObject({ home: dir, sections: { integrity: { ok: true }, lineage: { ok: true } } });
  for (const name of readdirSync(dir))
    expect([name, statSync(`${dir}/${name}`).mode & 0o077]).toEqual([name, 0]);
});

test('a home of schema 1 is restored with what is only in its log', async () => {
  using home = tempHome();
  writeSchema1(home);
  using db = rawDb(home.db);
  db.exec(`PRAGMA journal_mode = WAL; UPDATE tape SET updated_at = 1234 WHERE name = 'main'`);
  const dir = home.file('restored');
  json(await home.here(['restore', home.db, dir, '--json']));
  using restored = rawDb(`${dir}/tape.db`);
  expect(restored.all(`SELECT updated_at FROM tape WHERE name = 'main'`)).toEqual([{ updated_at: 1234 }]);
});

test('an older graph file in the directory is set aside, and is a finding', async () => {
  using home = await withBackup();
  const dir = home.file('restored');
  mkdirSync(dir, { mode: 0o700 });
  writeFileSync(`${dir}/session_graph.jsonl`, readFileSync(home.graph, 'utf8').replaceAll('child', 'older'));
  const { code, stdout } = await home.here(['restore', home.file('copy.db'), dir]);
  expect([code, stdout]).toEqual([5, expect.stringContaining('graph-aside:')]);
  expect(stdout).toContain(`Restored ${home.file('copy.db')} to ${dir} (use it with: --home`);
  expect(readFileSync(`${dir}/session_graph.jsonl`, 'utf8')).toBe(readFileSync(home.graph, 'utf8'));
});

test('a file in the place of the directory is named', async () => {
  using home = await withBackup();
  writeFileSync(home.file('file'), '');
  const at = await home.here(['restore', home.file('copy.db'), home.file('file'), '--json']);
  expect([at.code, jsonError(at)]).toEqual([
    4,
    expect.objectContaining({ code: 'TAPE_EXISTS', message: expect.stringContaining('it is a file') }),
  ]);
  const below = await home.here(['restore', home.file('copy.db'), home.file('file/home'), '--json']);
  expect([below.code, jsonError(below).message]).toEqual([
    1,
    expect.stringMatching(/^cannot make the directory/),
  ]);
});
