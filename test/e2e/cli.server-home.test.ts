import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { assistant, type HomeStore, openTapeStore, user } from '@tapedeck/tape';
import { openPostgresStore } from '@tapedeck/tape/postgres';
import { expect, test } from 'vitest';
import { type CliOptions, json, startTape, tape, tapeHere, tapeProcess } from '../support/cli.ts';
import { connected, serverPlace } from '../support/postgres.ts';
import { ownServer } from '../support/postgres-server.ts';
import { slowLink } from '../support/slow-link.ts';
import { tempDir } from '../support/temp-dir.ts';
import { jsonl, person } from '../support/transcript.ts';
import { followUi, startUi } from '../support/ui.ts';

/** What an address has that no output may have. */
const password = /not.{1,3}a.{1,3}secret/;

/** A user with a place on the server where no home is yet, and a home directory of their own. */
async function place() {
  const server = await serverPlace({ isNew: true });
  const dir = tempDir();
  mkdirSync(dir.file('project'));
  const shown = new URL(server.url);
  shown.username = '';
  shown.password = '';
  const options: CliOptions = { cwd: dir.file('project'), env: { HOME: dir.path } };
  return {
    ...server,
    dir,
    shown: shown.href,
    options,
    tape: async (args: readonly string[], more: Omit<CliOptions, 'node'> = {}) =>
      await tape(args, { ...options, ...more, env: { ...options.env, ...more.env } }),
    process: async (args: readonly string[], more: CliOptions = {}) =>
      await tapeProcess(args, { ...options, ...more, env: { ...options.env, ...more.env } }),
    [Symbol.asyncDispose]: async () => {
      dir[Symbol.dispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** All texts of the files below a directory. */
function textsBelow(dir: string): string {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n');
}

test('a home on a server is named by its address, and nothing says or keeps the password', {
  timeout: 300_000,
}, async () => {
  await using at = await place();
  const { url, shown } = at;
  const said: string[] = [];
  const tape = async (args: readonly string[], more: Omit<CliOptions, 'node'> = {}) => {
    const result = await at.tape(args, more);
    said.push(result.stdout, result.stderr);
    return result;
  };
  const home = ['--home', url];
  expect(await tape(['sessions', ...home])).toMatchObject({
    code: 3,
    stderr: expect.stringContaining(`create it with: tape init --home '${shown}'`),
  });
  expect(await tape([], { env: { TAPE_HOME: url } })).toMatchObject({ code: 3, stdout: '' });
  expect(json(await tape(['init', ...home, '--json']))).toMatchObject({ home: shown, created: true });
  expect(json(await tape(['init', '--json'], { env: { TAPE_HOME: url } }))).toMatchObject({ created: true });
  writeFileSync(join(at.dir.path, 'project/answers.json'), JSON.stringify([{ text: 'Done.' }]));
  // In its own process: its script is named from where it runs.
  const run = await at.process(['run', 'main', `Remember ${url}`, ...home, '--model', 'script:answers.json']);
  said.push(run.stdout, run.stderr);
  expect(run).toMatchObject({ code: 0, stdout: 'Done.\n' });
  for (const args of [
    ['log', 'main', '--json'],
    ['check', '--json'],
    ['doctor'],
    ['log', 'none'],
    ['log', 'none', '--json'],
    ['log', '--no-such-option'],
    ['backup', 'copy.db'],
    ['raw', 'checkpoint', '--json'],
    ['import', '--install', '--timer', '--yes'],
    ['mcp', '--install', 'claude-code', '--yes'],
  ]) {
    await tape([...args, ...home]);
    // The same address as a variable: in this process, since each of its own takes half a second of processor time.
    const { stdout, stderr } = await tapeHere(args, { ...at.options, home: url });
    said.push(stdout, stderr);
  }
  const wrong = url.replace('not%20a%20secret', 'not%20a%20secret%20either');
  expect(await tape(['sessions', '--home', wrong, '--json'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('TAPE_CANNOT_OPEN'),
  });
  await tape(['sessions', '--home', url.replace(/:\d+\//, ':1/')]);
  await tape(['sessions', '--home', url.replace('schema=', 'schema=No-')]);
  const asParameters = `${shown}&user=tapedeck&password=not%20a%20secret`;
  expect(await tape(['log', 'main', '--home', asParameters])).toMatchObject({ code: 0 });
  await tape(['log', 'main', asParameters]);
  expect(said.join('\n')).not.toMatch(password);
  expect(textsBelow(at.dir.path)).not.toMatch(password);
  using store = await at.openHome();
  expect(JSON.stringify([...store.entries.read('main')])).not.toMatch(password);
});

test('a password comes from the file of all programs of PostgreSQL, for the home and for its queue, and without a warning', {
  timeout: 300_000,
}, async () => {
  await using at = await place();
  const { username, password: secret, port } = new URL(at.url);
  const as = (home: string) => ({ home, env: { HOME: at.dir.path, PGUSER: decodeURIComponent(username) } });
  const none = await at.process(['sessions'], as(at.shown));
  expect([none.code, none.stderr]).toEqual([
    1,
    expect.stringMatching(/^Error: cannot use .*\nHint: .*PGPASSWORD, or in ~\/\.pgpass/),
  ]);
  const escaped = decodeURIComponent(secret).replace(/[:\\]/g, '\\$&');
  writeFileSync(
    at.dir.file('.pgpass'),
    ['# of others', 'elsewhere:*:*:*:no', '*:1:*:*:no', `*:${port}:*:*:${escaped}`, ''].join('\n'),
    { mode: 0o600 },
  );
  expect(await at.process(['new', 'main'], as(at.shown))).toMatchObject({ code: 0, stderr: '' });
  expect(await at.process(['worker', '--health'], as(at.shown))).toMatchObject({
    code: 1,
    stderr: '',
    stdout: expect.stringContaining('no queue'),
  });
});

test('a server that cannot be used is an error that says what to do next', {
  timeout: 300_000,
}, async () => {
  await using at = await place();
  const { hostname, port } = new URL(at.url);
  const refused = async (home: string) => {
    const { code, stderr } = await tapeHere(['sessions'], { ...at.options, home });
    expect(stderr).not.toMatch(password);
    return [code, stderr.split('\n').slice(0, 2).join(' ')];
  };
  const changed = (change: Partial<URL>) => Object.assign(new URL(at.url), change).href;
  expect(await refused(changed({ password: 'other' }))).toEqual([
    1,
    expect.stringMatching(/does not accept .* Hint: .*PGUSER/),
  ]);
  expect(await refused(changed({ port: '1' }))).toEqual([
    1,
    expect.stringContaining(`Hint: ask whether it takes connections with: pg_isready -h ${hostname} -p 1;`),
  ]);
  expect(await refused(changed({ pathname: '/nowhere' }))).toEqual([
    1,
    expect.stringContaining(`Hint: make it with: createdb -h ${hostname} -p ${port} nowhere;`),
  ]);
  expect(await refused(`${at.url}&host=${encodeURIComponent(at.dir.file('no-socket'))}`)).toEqual([
    1,
    expect.stringContaining('no server answers there'),
  ]);
  // The server that a parameter names is another one, and so is its home.
  const socket = at.dir.file('no-socket');
  expect(await refused(`postgres:///team?host=${encodeURIComponent(socket)}`)).toEqual([
    1,
    expect.stringMatching(`///team.host=${encodeURIComponent(socket)}: .* Hint: .*pg_isready -h ${socket};`),
  ]);
  expect(await refused(`${at.url}&sslmode=require`)).toEqual([
    1,
    expect.stringMatching(/no safe connection was made.* Hint: sslmode and sslrootcert/),
  ]);
  expect(await refused(`${at.url}&sslmode=require&sslrootcert=${at.dir.file('none.crt')}`)).toEqual([
    1,
    expect.stringMatching(/certificates cannot be read: ENOENT.* Hint: sslmode and sslrootcert/),
  ]);
  expect(await refused(`${at.url}&sslmode=required`)).toEqual([
    1,
    expect.stringContaining("'required' is no sslmode"),
  ]);
});

test('what is about a file says what to do with a server instead', async () => {
  await using at = await place();
  await at.tape(['new', 'main'], { home: at.url });
  const refused = async (...args: readonly string[]) => {
    const { code, stderr } = await at.tape(args, { home: at.url });
    return [code, stderr];
  };
  expect(await refused('backup', 'copy.db')).toEqual([
    2,
    expect.stringMatching(/on a server\nHint: .*tape copy .*pg_dump/),
  ]);
  expect(await refused('raw', 'checkpoint')).toEqual([2, expect.stringMatching(/on a server\nHint: /)]);
  writeFileSync(at.dir.file('project/copy.db'), '');
  expect(await refused('restore', 'copy.db')).toEqual([
    2,
    expect.stringMatching(/Hint: .*tape copy DIR ADDRESS/),
  ]);
});

test('redact, purge and import --forget say that a server may still have the content, and check finds nothing left to do', {
  timeout: 120_000,
}, async () => {
  await using at = await place();
  {
    using store = await at.openHome();
    store.sessions.open('main');
    store.entries.append('main', [user('Erase this'), assistant('Done.')]);
    store.sessions.open('other');
  }
  const inServer = expect.stringMatching(/^The server may still have the content, .*docs\/server\.md/);
  expect(await at.tape(['redact', 'main@2', '--reason', 'test'], { home: at.url })).toMatchObject({
    code: 0,
    stderr: inServer,
  });
  expect(await at.tape(['purge', 'other'], { home: at.url })).toMatchObject({ code: 0, stderr: inServer });
  writeFileSync(at.dir.file('s-1.jsonl'), jsonl([person({ uuid: 'u1' }, 'Erase this')]));
  await at.tape(['import', at.dir.file('s-1.jsonl')], { home: at.url });
  const forgotten = await at.tape(['import', '--forget', 's-1'], { home: at.url });
  expect(forgotten).toMatchObject({ code: 0, stderr: inServer });
  const checked = await at.tape(['check'], { home: at.url });
  expect(checked).toMatchObject({ code: 0, stdout: expect.stringContaining('home: ok') });
  // A home on a server has no graph file to report on.
  expect(checked.stdout).not.toContain('graph file');
});

test('with durability fast no commit waits for the disk of the server', async () => {
  await using at = await place();
  // What the address sets counts for those that are to wait.
  const url = `${at.url}&options=${encodeURIComponent('-c synchronous_commit=on')}`;
  const home = ['--home', url];
  expect(await at.tape(['new', 'main', ...home])).toMatchObject({ code: 0 });
  await using client = await connected(url);
  await client.query(`
    CREATE TABLE waits (how text);
    CREATE FUNCTION note_waits() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN INSERT INTO waits VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
    CREATE TRIGGER note_waits AFTER INSERT ON entry FOR EACH ROW EXECUTE FUNCTION note_waits()`);
  const how = async () => {
    const { rows } = await client.query<{ how: string }>('SELECT how FROM waits');
    await client.query('DELETE FROM waits');
    return rows.map((row) => row.how);
  };
  const line = '{"role":"user","content":"One"}\n';
  expect(await at.tape(['append', 'main', ...home], { stdin: line })).toMatchObject({ code: 0, stderr: '' });
  expect(await how()).toEqual(['on']);
  expect(await at.tape(['append', 'main', ...home, '--durability=fast'], { stdin: line })).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('Durability fast: a crash of the server may lose the latest entries'),
  });
  await using store = await openPostgresStore(url, { durability: 'fast' });
  await store.entries.append('main', [user('Three')]);
  expect(await how()).toEqual(['off', 'off']);
  await client.query('DROP TRIGGER note_waits ON entry; DROP TABLE waits');
});

test('the address of a process is not among its words', async () => {
  await using at = await place();
  await at.tape(['new', 'main', '--home', at.url]);
  const { child, done, until } = startTape(['log', 'main', '--follow', '--home', at.url], at.options);
  await at.tape(['append', 'main', '--home', at.url], { stdin: '{"content":"Hello"}' });
  await until('Hello');
  expect(readFileSync(`/proc/${child.pid}/cmdline`, 'latin1')).not.toMatch(password);
  child.kill('SIGINT');
  expect((await done).code).toBe(130);
});

test('Ctrl-C ends a command at once whose server has fallen silent', { timeout: 120_000 }, async () => {
  await using at = await place();
  await using link = await slowLink(at.url);
  await at.tape(['new', 'main'], { home: at.url });
  const append = async (content: string) =>
    await at.tape(['append', 'main'], { home: at.url, stdin: JSON.stringify({ content }) });
  const { child, done, until } = startTape(['log', 'main', '--follow'], { ...at.options, home: link.url });
  await append('Hello');
  await until('Hello');
  // It hears that there is more, and has no answer to what that is.
  link.stopAfter(0);
  await append('More');
  await sleep(1_000);
  const began = performance.now();
  child.kill('SIGINT');
  expect((await done).code).toBe(130);
  expect(performance.now() - began).toBeLessThan(10_000);
});

test.each(['silent', 'gone'])(
  'Ctrl-C ends a command that waits for children, also where the server is %s',
  { timeout: 120_000 },
  async (how) => {
    await using at = await place();
    await using link = await slowLink(at.url);
    await at.tape(['new', 'main'], { home: at.url });
    writeFileSync(at.dir.file('project/answers.json'), '[]');
    const words = [
      'delegate',
      'main',
      '--task',
      'A',
      '--engine',
      'pg-boss',
      '--model',
      'script:answers.json',
    ];
    const { child, done, until } = startTape(words, { ...at.options, home: link.url });
    await until('Hint: start one with: tape worker');
    if (how === 'silent') link.stopAfter(0);
    else await link[Symbol.asyncDispose]();
    const began = performance.now();
    child.kill('SIGINT');
    expect((await done).code).toBe(130);
    expect(performance.now() - began).toBeLessThan(10_000);
    const { searchParams } = new URL(at.url);
    await using client = await connected(at.url);
    await client.query(`DROP SCHEMA IF EXISTS ${searchParams.get('schema')}_boss CASCADE`);
  },
);

test('graph --export writes the bytes that a home in files has, and follows what others add', {
  timeout: 180_000,
}, async () => {
  await using at = await place();
  const here = at.dir.file('here');
  const local = ['--home', here];
  await at.tape(['new', 'main', ...local]);
  await at.tape(['fork', 'main', '--as', 'fix', ...local]);
  expect(await at.tape(['copy', here, at.url])).toMatchObject({ code: 0 });
  const file = at.dir.file('graph.jsonl');
  expect(await at.tape(['graph', '--export', file], { home: at.url })).toMatchObject({ code: 0 });
  expect(readFileSync(file, 'utf8')).toBe(readFileSync(join(here, 'session_graph.jsonl'), 'utf8'));

  const following = startTape(['graph', '--export', file, '--follow'], { ...at.options, home: at.url });
  await following.until('which has');
  await at.tape(['new', 'other'], { home: at.url });
  await expect.poll(() => readFileSync(file, 'utf8')).toContain('"session_id":"other"');
  following.child.kill('SIGINT');
  expect((await following.done).code).toBe(130);

  writeFileSync(file, 'no line of it\n');
  expect(await at.tape(['graph', '--export', file, '--json'], { home: at.url })).toMatchObject({ code: 2 });
  expect(
    (await at.tape(['graph', '--export', join(here, 'session_graph.jsonl')], { home: at.url })).code,
  ).toBe(0);
});

test('log --follow and graph --export --follow go on when the server was restarted', {
  timeout: 120_000,
}, async () => {
  await using server = await ownServer();
  using dir = tempDir();
  const write = async (act: (store: Awaited<ReturnType<typeof openPostgresStore>>) => unknown) => {
    await using store = await openPostgresStore(server.url);
    await act(store);
  };
  await write((store) => store.sessions.open('main'));
  const options = { cwd: dir.path, env: { HOME: dir.path }, home: server.url };
  const file = dir.file('graph.jsonl');
  const log = startTape(['log', 'main', '--follow'], options);
  const graph = startTape(['graph', '--export', file, '--follow'], options);
  await graph.until('which has');
  await write((store) => store.entries.append('main', [user('Before')]));
  await log.until('Before');
  await server.restart();
  await write(async (store) => {
    await store.entries.append('main', [user('Afterwards')]);
    await store.sessions.open('other');
  });
  await log.until('Afterwards');
  await expect.poll(() => readFileSync(file, 'utf8'), { timeout: 20_000 }).toContain('"session_id":"other"');
  for (const running of [log, graph]) {
    running.child.kill('SIGINT');
    expect((await running.done).code).toBe(130);
  }
});

test('check finds a trigger that someone took away, and with --fix makes it anew', {
  timeout: 300_000,
}, async () => {
  await using at = await place();
  {
    using store = await at.openHome();
    store.sessions.open('main');
  }
  await using client = await connected(at.url);
  await client.query('DROP TRIGGER entry_delete ON entry');
  await client.query('ALTER TABLE lineage DISABLE TRIGGER lineage_change');
  const found = await at.tape(['check', '--home', at.url]);
  expect(found).toMatchObject({
    code: 5,
    stdout: expect.stringContaining('trigger entry_delete is missing'),
  });
  expect(found.stdout).toContain('trigger lineage_change is disabled');
  expect(await at.tape(['check', '--fix', '--home', at.url])).toMatchObject({ code: 0 });
  expect(await at.tape(['check', '--home', at.url])).toMatchObject({ code: 0 });
  await expect(client.query('DELETE FROM lineage')).rejects.toMatchObject({ code: 'TD002' });
});

test('tape ui shows it, follows what others add, and checks it in a process of its own', {
  timeout: 120_000,
}, async () => {
  await using at = await place();
  {
    using store = await at.openHome();
    store.sessions.open('main');
    store.entries.append('main', [user('Go'), assistant('Gone.')]);
    store.lineage.fork('main', { name: 'kid' });
    store.lineage.merge('kid', { strategy: 'discard' });
    // More than is checked by the process that answers.
    store.entries.append(
      'main',
      Array.from({ length: 2_000 }, (_, i) => user(`Step ${i}`)),
    );
  }
  await using ui = await startUi(['--home', at.url], at.options);
  const said: string[] = [];
  const asked = async (path: string) => {
    const response = await ui.ask(`/api/${path}`);
    said.push(await response.text());
    expect(response.status, said.at(-1)).toBe(200);
    return JSON.parse(said.at(-1) ?? '');
  };
  const home = await asked('home');
  expect(home).toMatchObject({ title: at.shown, isLive: true, sessions: 2 });
  using events = followUi(ui, { after: home.at });
  using writer = await at.openHome();
  writer.entries.append('main', [user('Live')]);
  const head = writer.sessions.find('main')?.head ?? 0;
  await expect.poll(() => events.events.at(-1)).toMatchObject({ session: 'main', head });
  expect((await asked('sessions')).rows[0]).toMatchObject({ session: 'main', head });
  expect((await asked(`timeline?session=main&from=${head}&to=${head}`)).items).toMatchObject([{ seq: head }]);
  expect((await asked('lineage')).rows).toHaveLength(2);
  expect(await asked('trace?session=main&seq=3')).toMatchObject([
    { session: 'main', seq: 3 },
    { session: 'kid' },
  ]);
  expect(await asked('findings')).toMatchObject({ sessions: 2, findings: [] });
  expect(await asked('findings?session=main')).toMatchObject({ sessions: 1, findings: [] });
  const file = at.dir.file('main.html');
  const exported = await at.tape(['export', 'main', '--tree', '--format', 'html', '-o', file], {
    home: at.url,
  });
  expect(exported).toMatchObject({ code: 0 });
  said.push(events.text(), exported.stderr, readFileSync(file, 'utf8'));
  ui.running.child.kill('SIGINT');
  const { code, stderr } = await ui.running.done;
  expect([code, stderr]).toEqual([130, expect.stringContaining(`Showing ${at.shown} until Ctrl-C`)]);
  expect([...said, stderr].join('\n')).not.toMatch(password);
});

/** The heads of all sessions, by their ids. */
const headsOf = ({ sessions }: HomeStore) =>
  Object.fromEntries(sessions.list({ all: true }).map(({ id, headHash }) => [id, headHash]));

test('a copy to a server that is killed at any moment goes on, and ends with equal heads', {
  timeout: 300_000,
}, async () => {
  await using at = await place();
  const here = at.dir.file('here');
  mkdirSync(here, { mode: 0o700 });
  {
    using store = openTapeStore(join(here, 'tape.db'), { durability: 'fast' });
    for (let i = 0; i < 12; i += 1) {
      store.sessions.open(`root-${i}`);
      store.entries.append(
        `root-${i}`,
        Array.from({ length: 40 }, (_, n) => user(`Step ${n} of ${i}`)),
      );
      store.lineage.fork(`root-${i}`, { name: `fork-${i}` });
    }
  }
  let kills = 0;
  for (const afterMs of [600, 900, 1_300]) {
    const { child, done } = startTape(['copy', here, at.url], at.options);
    const timer = setTimeout(() => child.kill('SIGKILL'), afterMs);
    if ((await done).code === 137) kills += 1;
    clearTimeout(timer);
  }
  expect(kills).toBeGreaterThan(0);
  expect(json(await at.tape(['copy', here, at.url, '--json']))).toMatchObject({ home: at.shown, behind: [] });
  expect(json(await at.tape(['copy', here, at.url, '--json']))).toMatchObject({ changed: 0, entries: 0 });
  using store = openTapeStore(join(here, 'tape.db'), { readonly: true });
  using there = await at.openHome();
  expect(headsOf(there)).toEqual(headsOf(store));
  expect(there.count()).toEqual(store.count());
  expect([...there.verify()]).toEqual([]);

  const back = at.dir.file('back');
  expect(json(await at.tape(['copy', at.url, back, 'fork-3', '--json']))).toMatchObject({
    sessions: 2,
    changed: 2,
  });
  using named = openTapeStore(join(back, 'tape.db'), { readonly: true });
  expect(
    named.sessions
      .list({ all: true })
      .map(({ session }) => session)
      .sort(),
  ).toEqual(['fork-3', 'root-3']);
});
