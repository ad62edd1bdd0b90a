import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { assistant, type Draft, user } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { json, startTape } from '../support/cli.ts';
import { forge } from '../support/forge.ts';
import { disagreements, skipsPython } from '../support/python.ts';
import { rawDb } from '../support/raw-db.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

type Problems = Parameters<typeof disagreements>[1];

/** `bad`, which a row is about, and `fine`. */
function homeWith(sql: string, drafts: readonly Draft[] = [user('Hi'), assistant('Hello.')]): TempHome {
  const home = tempHome();
  home.session('bad', ...drafts);
  home.session('fine', user('Hi'), assistant('Hello.'));
  {
    using db = rawDb(home.db);
    // A program that writes tapes need not know of times that JavaScript cannot write.
    db.exec(sql);
  }
  return home;
}

/** What `tape check` reports as damage; the program in Python has to say the same. */
async function damageOf(home: TempHome): Promise<readonly string[]> {
  const { code, stdout } = await home.here(['verify', '--json']);
  const { problems } = JSON.parse(stdout) as { problems: Problems };
  expect(disagreements(home.path, problems)).toEqual([]);
  expect([(await home.here(['check'])).code, code]).toEqual([5, problems.length === 0 ? 0 : 5]);
  return problems.map(({ code: found, session }) => `${found} ${session}`);
}

describe('an inbox item that no process of ours posted', () => {
  const item = (
    body: string,
    at = '0',
  ) => `INSERT INTO inbox (ulid, tape_id, mode, source, key, body, queued_at)
    SELECT '01JD0000000000000000000099', id, 'queue', 'test', 'k', '${body}', ${at} FROM tape WHERE name = 'bad'`;

  test.each([
    ['{"type":"append"}'],
    ['{"type":"append","drafts":null}'],
    ['{"type":"append","drafts":[null]}'],
    ['{"type":"append","drafts":"abc"}'],
    ['{"type":"merge"}'],
    ['{"type":"merge","draft":null}'],
    ['{"type":"input"}'],
    ['{"type":"input","drafts":{}}'],
    ['{"type":"answer"}'],
    ['{"type":"abort"}'],
    ['{"type":"append","drafts":[]}', '9223372036854775807'],
  ])('is damage of its session alone: %s', async (body, at = '0') => {
    using home = homeWith(item(body, at));
    expect(await damageOf(home)).toEqual(['database-damaged bad']);
    for (const line of [
      ['new', 'other'],
      ['fork', 'fine'],
      ['append', 'fine'],
      ['check', '--fix'],
    ])
      expect([line, (await home.here(line, { stdin: '{"role":"user","content":"x"}\n' })).code]).toEqual([
        line,
        line[0] === 'check' ? 5 : 0,
      ]);
  });

  test('is refused, and says why, when its drafts are none', async () => {
    using home = homeWith(
      item('{"type":"append","drafts":[{"kind":"message","key":5,"payload":{"role":"user","content":"x"}}]}'),
    );
    expect((await home.here(['new', 'other'])).code).toBe(0);
    using store = home.open();
    expect([...store.entries.read('bad', { name: 'inbox/refused', kind: 'event' })]).toMatchObject([
      { payload: { code: 'TAPE_BAD_ENTRY', message: 'cannot append: a key must be a text' } },
    ]);
  });
});

describe('an object of the schema that is not ours', () => {
  const names = ['entry_fts_sync', 'sqlite_zz', 'evil'];
  test.skipIf(skipsPython('a forged schema')).each(names)(
    'is found, whatever its name: the trigger %s',
    async (name) => {
      using home = homeWith('SELECT 1');
      // SQLite's own prefix can be given to a trigger only by writing its table of schemas.
      const forged = `import sqlite3
db = sqlite3.connect('${home.db}')
db.execute('CREATE TRIGGER zz AFTER INSERT ON inbox BEGIN DELETE FROM inbox WHERE id = NEW.id; END')
db.execute('PRAGMA writable_schema = 1')
db.execute("UPDATE sqlite_schema SET name = '${name}', sql = replace(sql, 'zz', '${name}') WHERE name = 'zz'")
db.commit()`;
      execFileSync('python3', ['-c', forged]);
      const { code, stdout } = await home.here(['check']);
      expect([code, stdout]).toEqual([
        5,
        expect.stringContaining(`trigger ${name} does not belong in a tape home`),
      ]);
      const doctor = json(await home.here(['doctor', '--json'])) as { problems: Problems };
      expect(disagreements(home.path, doctor.problems)).toEqual([]);
    },
  );

  test.each(['VIEW entry_fts_v AS SELECT 1', 'TABLE entry_fts_t (a)', 'INDEX sqlitex ON tape (title)'])(
    'is found: %s',
    async (what) => {
      using home = homeWith(`CREATE ${what}`);
      expect((await home.here(['check'])).stdout).toContain('does not belong in a tape home');
    },
  );
});

describe('a row whose values cannot be', () => {
  const row = (what: string) => `UPDATE tape SET ${what} WHERE name = 'bad'`;

  test.each(['updated_at', 'merged_at', 'last_message_at'])(
    'is damage, and can be listed: %s',
    async (column) => {
      using home = homeWith('SELECT 1');
      forge(home.db, (db) => db.run(row(`${column} = 9000000000000000`)));
      expect(await damageOf(home)).toContain('row-changed bad');
      for (const line of [
        ['show', 'bad'],
        ['sessions', '--all'],
        ['status', '--all'],
        ['children', 'bad'],
      ])
        expect([line, (await home.here([...line, '--json'])).code]).toEqual([line, 0]);
    },
  );

  test('is damage: the time of a message before that of another, where one was redacted', async () => {
    using home = homeWith('SELECT 1');
    {
      using store = home.open();
      store.entries.redact('bad', 2, 'a test');
      expect([...store.verify()]).toEqual([]);
    }
    forge(home.db, (db) => db.run(row('last_message_at = 0')));
    expect(await damageOf(home)).toEqual(['row-changed bad']);
  });

  test('is damage: whether something was written', async () => {
    using home = tempHome();
    home.session('main');
    {
      using store = home.open();
      store.lineage.fork('main', { name: 'child' });
      const meta = { paths: { read: ['a'] } };
      store.entries.append('child', [
        { kind: 'tool-result', payload: { toolCallId: 'c', toolName: 'read', output: 'x' }, meta },
      ]);
    }
    forge(home.db, (db) => db.run('UPDATE touch SET wrote = 2'));
    expect(await damageOf(home)).toEqual(['row-changed child']);
  });

  test('is damage, and can be overruled: the base of the home', async () => {
    using home = homeWith(`INSERT INTO home VALUES ('base', '../x')`);
    for (const verb of ['check', 'sessions', 'log bad'])
      expect(await home.here(verb.split(' '))).toMatchObject({
        code: 5,
        stderr: expect.stringMatching(/cannot use the base '\.\.\/x' that .+\n.*--base/),
      });
    const { code, stdout } = await home.here(['verify', '--base', 'tape', '--json']);
    const { problems } = JSON.parse(stdout) as { problems: Problems };
    expect([code, problems]).toMatchObject([5, [{ code: 'database-damaged', session: null }]]);
    expect(disagreements(home.path, problems)).toEqual([]);
  });
});

test('a saved piece of an answer that can be no entry is left out, and stops no writer', async () => {
  using home = homeWith(
    `INSERT INTO stream_chunk SELECT id, '01JD0000000000000000000098', 1,
       '{"type":"tool-input-available","toolCallId":5,"toolName":null,"input":5}' FROM tape WHERE name = 'bad'`,
  );
  const appended = await home.here(['append', 'bad'], { stdin: '{"role":"user","content":"x"}\n' });
  expect(appended.code).toBe(0);
  using store = home.open();
  const names = [...store.entries.read('bad', { own: true })].map(({ kind, name }) => name ?? kind);
  expect(names.slice(-2)).toEqual(['run/interrupted', 'message']);
});

test.each(['config.yaml', 'tape.db-journal'])(
  'a pipe named %s is refused, and not waited for',
  async (name) => {
    using home = homeWith('SELECT 1');
    execFileSync('mkfifo', [home.file(name)]);
    writeFileSync(home.file('answers.json'), '[{"text":"Hi"}]');
    const verb = name === 'config.yaml' ? ['run', 'fine', 'Hi'] : ['log', 'fine'];
    const run = startTape(verb, { home: home.path });
    const { code, stderr } = await run.done;
    expect([code, stderr]).toEqual([expect.any(Number), expect.stringContaining('is not a regular file')]);
    expect(code).toBeGreaterThan(0);
  },
);

test('a graph file without its database is damage for every verb that reads', async () => {
  using home = homeWith('SELECT 1');
  for (const name of ['tape.db', 'tape.db-wal', 'tape.db-shm']) execFileSync('rm', ['-f', home.file(name)]);
  for (const verb of ['sessions', 'status', 'log bad', 'verify', 'audit', 'doctor', 'check'])
    expect([verb, (await home.here(verb.split(' '))).code]).toEqual([verb, 5]);
});
