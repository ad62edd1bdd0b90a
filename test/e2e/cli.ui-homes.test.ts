import { once } from 'node:events';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { assistant, openTapeStore, toolCall, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { jsonError } from '../support/cli.ts';
import { isAlive } from '../support/is-alive.ts';
import { writeSchema1 } from '../support/old-schemas.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tempHome } from '../support/temp-home.ts';
import { followUi, startUi, type Ui } from '../support/ui.ts';

const isRoot = process.getuid?.() === 0;

/** Writes a home with a session. */
function write(path: string, said = 'Go'): void {
  using store = openTapeStore(join(path, 'tape.db'));
  store.sessions.open('main');
  store.entries.append('main', [user(said), assistant('So.')]);
}

/** The names, modes, times and bytes of all files of a home. */
function contents(path: string): readonly (readonly [name: string, ...rest: unknown[]])[] {
  return readdirSync(path).map((name) => {
    const { mode, mtimeMs } = statSync(join(path, name));
    return [name, mode, mtimeMs, readFileSync(join(path, name)).toString('base64')];
  });
}

const questions = [
  ...['home', 'sessions', 'lineage', 'lineage?session=main', 'session?session=main', 'usage', 'findings'],
  ...['timeline?session=main&from=1&to=200', 'seen?session=main&seq=2', 'trace?session=main&seq=2'],
];

/** The status of what each question of the page is answered, and the code of a refusal, whose message does not name the home. */
async function answersOf(ui: Ui, home: string): Promise<readonly string[]> {
  return await Promise.all(
    questions.map(async (question) => {
      const response = await ui.ask(`/api/${question}`);
      const text = await response.text();
      const { code = '', message = '' } = JSON.parse(text) as { code?: string; message?: string };
      if (response.status !== 200) expect(message).not.toContain(home);
      return `${response.status} ${code}`.trim();
    }),
  );
}

const all = (status: string) => questions.map(() => status);

/** Ends the server as Ctrl-C does, and returns what it said. */
async function said(ui: Ui): Promise<string> {
  ui.running.child.kill('SIGINT');
  const { code, stderr } = await ui.running.done;
  expect(code).toBe(130);
  return stderr;
}

test('a home that came with a repository is shown, nothing of it runs, and it stays as it is to the byte', async () => {
  using dir = tempDir();
  const [repo, home, desk] = [dir.file('repo'), dir.file('repo/.tape'), dir.file('user')];
  for (const path of [repo, home, desk]) mkdirSync(path, { mode: 0o700 });
  write(home);
  const server = `mcp_servers:\n  notes: { command: touch, args: [${dir.file('started')}] }\n`;
  writeFileSync(join(home, 'config.yaml'), `model: script:../evil.json\n${server}`);
  const before = contents(home);
  await using ui = await startUi([], { cwd: repo, env: { HOME: desk, TAPE_TRUST_HOME: '' } });
  expect(await answersOf(ui, home)).toEqual(all('200'));
  await said(ui);
  expect(contents(home)).toEqual(before);
  expect(existsSync(dir.file('started'))).toBe(false);
});

test.skipIf(!isRoot)(
  'a home of another user is shown from a copy, which no end of the server leaves behind (needs root)',
  async () => {
    using home = tempHome();
    using tmp = tempDir();
    write(home.path);
    for (const name of ['.', ...readdirSync(home.path)]) chownSync(home.file(name), 65_534, 65_534);
    const before = contents(home.path);
    for (const signal of ['SIGINT', 'SIGHUP', 'SIGTERM'] as const) {
      await using ui = await startUi([], { home: home.path, env: { TMPDIR: tmp.path } });
      expect(await answersOf(ui, home.path)).toEqual(all('200'));
      expect(await (await ui.ask('/api/home')).json()).toMatchObject({ isLive: false });
      ui.running.child.kill(signal);
      await ui.running.done;
      expect(readdirSync(tmp.path).filter((name) => name.startsWith('tapedeck-read-'))).toEqual([]);
    }
    expect(contents(home.path)).toEqual(before);
  },
);

test('a home that cannot be read is refused at once, with the reason, and stays as it is', async () => {
  using older = tempHome();
  writeSchema1(older);
  using linked = tempHome();
  write(linked.path);
  renameSync(linked.db, linked.file('elsewhere.db'));
  symlinkSync(linked.file('elsewhere.db'), linked.db);
  using text = tempHome();
  writeFileSync(text.db, 'no database, but longer than a header of one'.repeat(50), { mode: 0o600 });
  for (const [home, code, hint] of [
    [older, 'TAPE_SCHEMA_OLDER', /tape raw checkpoint/],
    [linked, 'TAPE_CANNOT_OPEN', undefined],
    [text, 'TAPE_CORRUPT', /tape check|tape restore/],
  ] as const) {
    const before = contents(home.path);
    const refused = jsonError(await home.process(['ui', '--json'], { stdin: '' }));
    expect(refused).toMatchObject({ code, ...(hint !== undefined && { hint: expect.stringMatching(hint) }) });
    // Every reader of SQLite makes the files of its log.
    const after = contents(home.path).filter(([name]) => !/-(?:wal|shm)$/.test(name));
    expect(after).toEqual(before);
  }
});

test('a database that is damaged or cut off while it is shown ends no server, and is shown again when it is whole', async () => {
  using home = tempHome();
  home.session('main', ...Array.from({ length: 300 }, (_, i) => user(`${i} ${'words '.repeat(100)}`)));
  await using ui = await startUi([], { home: home.path });
  expect(await answersOf(ui, home.path)).toEqual(all('200'));
  const { at } = (await (await ui.ask('/api/home')).json()) as { at: string };
  using stream = followUi(ui, { after: at });
  await expect.poll(() => stream.text()).toContain('retry');
  const whole = readFileSync(home.db);
  const damaged = Buffer.from(whole).fill(0xff, 0, 100);
  for (const bytes of [damaged, Buffer.from('no database'), Buffer.alloc(0)]) {
    writeFileSync(home.db, bytes);
    // It is looked at each second, whether someone asks or not.
    await new Promise((done) => setTimeout(done, 1_500));
    expect(isAlive(ui.pid)).toBe(true);
    for (const answer of await answersOf(ui, home.path))
      expect(answer).toMatch(/^(?:200|[45]\d\d [A-Z]+_[A-Z_]+)$/);
  }
  writeFileSync(home.db, whole);
  await expect.poll(async () => await answersOf(ui, home.path)).toEqual(all('200'));
  expect(await said(ui)).not.toContain('    at ');
});

test('a home that is deleted is said to be gone, is not made again, and one in its place is shown', async () => {
  using dir = tempDir();
  const home = dir.file('home');
  const other = dir.file('other');
  for (const path of [home, other]) mkdirSync(path, { mode: 0o700 });
  write(home);
  write(other, 'Elsewhere');
  await using ui = await startUi([], { home });
  expect(await answersOf(ui, home)).toEqual(all('200'));
  const { at } = (await (await ui.ask('/api/home')).json()) as { at: string };
  using stream = followUi(ui, { after: at });
  await expect.poll(() => stream.text()).toContain('retry');
  const ended = once(stream.socket, 'close');
  rmSync(home, { recursive: true });
  expect(await answersOf(ui, home)).toEqual(all('404 CLI_NOT_FOUND'));
  await ended;
  expect(existsSync(home)).toBe(false);
  // A file where the directory was.
  writeFileSync(home, '');
  await new Promise((done) => setTimeout(done, 1_500));
  expect(await answersOf(ui, home)).toEqual(all('500 TAPE_CANNOT_OPEN'));
  rmSync(home);
  renameSync(other, home);
  expect(await answersOf(ui, home)).toEqual(all('200'));
  expect(await (await ui.ask('/api/session?session=main')).json()).toMatchObject({ about: 'Elsewhere' });
  expect(await said(ui)).not.toContain('    at ');
});

test('other questions are answered while a large session is checked, as tape check checks it', async () => {
  using home = tempHome();
  {
    using store = openTapeStore(join(home.path, 'tape.db'));
    store.sessions.open('main');
    for (let n = 0; n < 40; n += 1)
      store.entries.append(
        'main',
        Array.from({ length: 200 }, (_, i) => user(`${n} ${i} `.repeat(100))),
      );
    store.entries.append('main', [assistant([toolCall('c', 'read', {})])]);
  }
  await using ui = await startUi([], { home: home.path });
  const answered = async (question: string) => (await ui.ask(`/api/${question}`)).json();
  await answered('home');
  let isOver = false;
  const found = answered('findings?session=main').finally(() => {
    isOver = true;
  });
  let others = 0;
  for (; !isOver; others += 1) await answered('home');
  // A process is started meanwhile.
  expect(others).toBeGreaterThan(5);
  const { stdout } = await home.process(['check', 'main', '--json']);
  const { entries, sections } = JSON.parse(stdout) as {
    entries: number;
    sections: Record<string, { findings: readonly { id: string }[] }>;
  };
  const ids = Object.values(sections).flatMap(({ findings }) => findings.map(({ id }) => id));
  expect(ids.length).toBeGreaterThan(0);
  const { findings, ...rest } = (await found) as { findings: readonly { id: string; command?: string }[] };
  expect(findings.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  const commands = findings.flatMap(({ command }) => command ?? []);
  expect(commands.length).toBeGreaterThan(0);
  expect(commands.filter((line) => !line.endsWith(` --home ${home.path}`))).toEqual([]);
  expect(rest).toMatchObject({ entries, total: ids.length });
});

test.skipIf(process.platform !== 'linux')(
  'the check of a large home ends with the server, however that ends, and however busy it is (needs /proc)',
  async () => {
    using home = tempHome();
    home.session('main', ...Array.from({ length: 2_100 }, (_, i) => user(`${i}`)));
    using dir = tempDir();
    // Its thread never comes back from where it opens the database.
    writeFileSync(
      dir.file('busy.cjs'),
      "if (process.argv[2] === 'check') process.dlopen = () => { for (;;); };",
    );
    const env = { NODE_OPTIONS: `--require ${dir.file('busy.cjs')}` };
    for (const signal of ['SIGKILL', 'SIGTERM', 'SIGHUP', 'SIGINT'] as const) {
      await using ui = await startUi([], { home: home.path, env });
      const asked = ui.ask('/api/findings').catch(() => {});
      const children = () => readFileSync(`/proc/${ui.pid}/task/${ui.pid}/children`, 'utf8').trim();
      await expect.poll(children).toMatch(/^\d+$/);
      const check = Number(children());
      // It has started to be busy.
      const threads = () => readdirSync(`/proc/${check}/task`).length;
      await expect.poll(() => readFileSync(`/proc/${check}/cmdline`, 'utf8')).toContain('check');
      await expect.poll(threads).toBeGreaterThan(1);
      ui.running.child.kill(signal);
      await asked;
      try {
        await expect.poll(() => isAlive(check)).toBe(false);
      } finally {
        if (isAlive(check)) process.kill(check, 'SIGKILL');
      }
    }
  },
);
