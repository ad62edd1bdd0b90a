import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { anchor, assistant, openTapeStore, user } from '@tapedeck/tape';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { json, jsonError, jsonLines, startTape, tape } from '../support/cli.ts';
import { atFullSize, sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tempHome } from '../support/temp-home.ts';

const bin = fileURLToPath(new URL('../../packages/cli/bin/tape.js', import.meta.url));
const mode = (path: string): number => statSync(path).mode & 0o777;

test('in names with @ the longest session name wins, and the point follows it', async () => {
  using home = tempHome();
  const mom = 'dm:gmail:mom@gmail.com';
  home.session(mom, anchor('plan'), user('Hi mom'));
  expect(json(await home.tape(['show', mom, '--json']))).toMatchObject({ session: mom, head: 3 });
  for (const [point, seq] of [
    ['3', 3],
    ['plan', 2],
    ['head', 3],
  ] as const)
    expect(json(await home.tape(['show', `${mom}@${point}`, '--json']))).toMatchObject({ session: mom, seq });
  expect(json(await home.tape(['fork', `${mom}@plan`, '--json']))).toMatchObject({ parent: mom, base: 2 });
  expect(json(await home.tape(['view', `${mom}@2`, '--json']))).toMatchObject({ to: 2 });
  const appended = await home.tape(['append', mom, '--json'], { stdin: '{"content":"x"}\n' });
  expect(json(appended)).toMatchObject({ session: mom, from: 4 });
  // A shorter name beside it takes nothing away.
  home.session('dm:gmail:mom');
  expect(json(await home.tape(['show', `${mom}@3`, '--json']))).toMatchObject({ session: mom, seq: 3 });
  expect(json(await home.tape(['show', 'dm:gmail:mom@1', '--json']))).toMatchObject({
    session: 'dm:gmail:mom',
  });
  expect(json(await home.tape(['log', mom, '-n', '1', '--json']))).toMatchObject([{ tape: `tape:${mom}` }]);
});

test('a session can be named by its id, or a prefix of the id', async () => {
  using home = tempHome();
  home.session('main');
  const { id } = json(await home.tape(['show', 'main', '--json']));
  for (const ref of [String(id), String(id).slice(0, 20)])
    expect(json(await home.tape(['show', `${ref}@1`, '--json']))).toMatchObject({ session: 'main' });
});

test('a point can name the anchor before the last of its name', async () => {
  using home = tempHome();
  home.session('main', anchor('plan', { n: 1 }), anchor('plan', { n: 2 }));
  expect(json(await home.tape(['show', 'main@plan', '--json']))).toMatchObject({ seq: 3 });
  expect(json(await home.tape(['show', 'main@plan~1', '--json']))).toMatchObject({ seq: 2 });
  expect(await home.tape(['show', 'main@plan~2'])).toMatchObject({ code: 3 });
});

test('the home is --home, else TAPE_HOME, else the nearest .tape upward, else ~/.tape', async () => {
  using dir = tempDir();
  const [a, b, person, project] = ['a', 'b', 'person', 'project'].map((name) => dir.file(name));
  mkdirSync(`${project}/deep/er`, { recursive: true });
  const sessions = async (options: { args?: string[]; env?: Record<string, string>; cwd?: string }) => {
    const { args = [], env = {}, cwd = dir.path } = options;
    return (await tape(['sessions', '--quiet', ...args], { env: { HOME: String(person), ...env }, cwd }))
      .stdout;
  };
  const make = (name: string, options: Parameters<typeof tape>[1], ...args: string[]) =>
    tape(['new', name, ...args], {
      cwd: dir.path,
      ...options,
      env: { HOME: String(person), ...options?.env },
    });
  await make('in-a', {}, '--home', String(a));
  await make('in-b', { env: { TAPE_HOME: String(b) } });
  await make('in-person', {});
  expect(await tape(['init', String(project)], { cwd: dir.path })).toMatchObject({ code: 0 });
  await make('in-project', { cwd: `${project}/deep/er` });
  expect(await sessions({ args: ['--home', 'a'] })).toBe('in-a\n');
  expect(await sessions({ env: { TAPE_HOME: String(b) } })).toBe('in-b\n');
  expect(await sessions({ args: ['--home', 'a'], env: { TAPE_HOME: String(b) } })).toBe('in-a\n');
  expect(await sessions({})).toBe('in-person\n');
  expect(await sessions({ cwd: `${project}/deep` })).toBe('in-project\n');
  expect(await sessions({ cwd: `${project}/deep`, env: { TAPE_HOME: '' } })).toBe('in-project\n');
  expect(existsSync(`${person}/.tape/tape.db`)).toBe(true);
});

test('init creates a home that git ignores, and that other users cannot read', async () => {
  using dir = tempDir();
  const made = json(await tape(['init', '--json'], { cwd: dir.path }));
  const home = dir.file('.tape');
  expect(made).toEqual({ home, created: true });
  expect(readFileSync(`${home}/.gitignore`, 'utf8')).toBe('*\n');
  expect(json(await tape(['init', '--json'], { cwd: dir.path }))).toEqual({ home, created: false });
  await tape(['new', 'main'], { cwd: dir.path });
  expect(mode(home)).toBe(0o700);
  for (const name of ['tape.db', 'session_graph.jsonl']) expect(mode(`${home}/${name}`)).toBe(0o600);
  const other = await tape(['init', '--home', dir.file('x'), '--quiet'], { cwd: dir.path });
  expect(other).toMatchObject({ code: 0, stdout: `${dir.file('x')}\n` });
  expect(existsSync(`${dir.file('x')}/tape.db`)).toBe(true);
});

test('no control sequence reaches a terminal', async () => {
  using home = tempHome();
  const nasty = '\u001b]0;gotcha\u0007\u001b[2J\u009b31m\rover\u202edesrever\u200b\u0000 end';
  home.session('main', user(nasty), assistant(nasty), anchor('plan', { summary: nasty, [nasty]: nasty }));
  writeFileSync(home.file('answers.json'), JSON.stringify([{ text: nasty }, { error: nasty }]));
  const model = ['--model', `script:${home.file('answers.json')}`];
  const commands = [
    ['log', 'main'],
    ['log', 'main', '--oneline'],
    ['log', 'main', '--graph'],
    ['show', 'main@2'],
    ['show', 'main@plan'],
    ['show', nasty.replaceAll('\0', '')],
    ['view', 'main'],
    ['view', 'main', '--explain'],
    ['new', nasty.replaceAll('\0', '')],
    ['log', 'main', `--${nasty.replaceAll('\0', '')}`],
    ['run', 'main', 'Hi', ...model],
    ['run', 'main', 'Hi', ...model],
    ['fork', 'main', '--as', 'kid', '--task', nasty.replaceAll('\0', '')],
    ['delegate', 'main', '--task', 'x', '--order', 'spawn', '--task', 'y', ...model],
    ['merge', 'kid'],
    ['lineage', 'main'],
    ['graph', '--format', 'tree'],
    ['sessions'],
  ];
  for (const args of commands) {
    const { stdout, stderr } = await home.tape(args);
    expect(stdout + stderr, args[0]).not.toMatch(/(?!\n|\t)[\p{Cc}\p{Cf}]/u);
    expect(stdout + stderr, args[0]).not.toBe('');
  }
  // For programs the text is as it was, as JSON.
  const [entry] = jsonLines<{ payload: { content: { text: string }[] } }>(
    await home.tape(['log', 'main', '--from', '2', '--to', '2', '--jsonl']),
  );
  expect(entry?.payload.content[0]?.text).toBe(nasty);
});

test('tape log | head exits cleanly when the reader closes the pipe', async () => {
  using home = tempHome();
  home.session('main', ...Array.from({ length: 3000 }, (_, i) => user(`line ${i} ${'x'.repeat(200)}`)));
  const pipeline = `"$1" "$2" log main --home "$3" | head -1; exit "\${PIPESTATUS[0]}"`;
  const result = spawnSync('bash', ['-c', pipeline, 'bash', process.execPath, bin, home.path], {
    encoding: 'utf8',
  });
  expect(result.stderr).toBe('');
  expect(result.stdout.split('\n')).toHaveLength(2);
  expect(result.status).toBe(0);
});

test('a verb that reads nothing does not wait for stdin', async () => {
  using home = tempHome();
  home.session('main');
  const running = startTape(['log', 'main'], { home: home.path });
  expect(await running.done).toMatchObject({ code: 0 });
});

test('a reader changes nothing, and reads a home without write permission', async () => {
  using home = tempHome();
  home.session('main', user('Hi'));
  const before = readFileSync(home.db);
  for (const args of [['log', 'main'], ['sessions'], ['verify'], ['graph'], ['view', 'main']])
    expect(await home.tape(args)).toMatchObject({ code: 0 });
  expect(readFileSync(home.db)).toEqual(before);
});

/** Says on stderr which modules are loaded and which statements are prepared. */
const spy = `import { registerHooks } from 'node:module';
  registerHooks({ resolve(specifier, context, next) {
    const resolved = next(specifier, context);
    if (!specifier.startsWith('node:')) process.stderr.write('loads ' + resolved.url + '\\n');
    return resolved;
  } });
  const load = process.dlopen;
  process.dlopen = (module, ...rest) => {
    load(module, ...rest);
    const { prototype } = module.exports.Database;
    const { prepare } = prototype;
    prototype.prepare = function (sql, ...more) {
      process.stderr.write('prepares ' + JSON.stringify(sql) + '\\n');
      return prepare.call(this, sql, ...more);
    };
  };`;

test.runIf(atFullSize)(
  'log -n of a long tape neither reads the rest of the tape nor loads the AI SDK',
  async () => {
    using home = tempHome();
    const thousands = sized(10, 40, 100);
    {
      using store = openTapeStore(home.db, { durability: 'fast' });
      store.sessions.open('main');
      for (let i = 0; i < thousands; i += 1)
        store.entries.append(
          'main',
          Array.from({ length: 1000 }, (_, n) => user(`entry ${i * 1000 + n}`)),
        );
    }
    // With source maps, Node.js itself loads the bundle, where the spy sees it.
    const node = ['--enable-source-maps', '--import', `data:text/javascript,${encodeURIComponent(spy)}`];
    const result = await home.process(['log', 'main', '-n', '20', '--jsonl'], { node });
    expect(jsonLines(result).map(({ seq }) => seq)).toEqual(
      Array.from({ length: 20 }, (_, i) => thousands * 1000 - 18 + i),
    );
    const said = (what: string) =>
      result.stderr
        .split('\n')
        .flatMap((line) => (line.startsWith(`${what} `) ? [line.slice(what.length + 1)] : []));

    const loaded = said('loads').filter((url) => url.endsWith('.cjs'));
    const maps = loaded.map((url) => new URL(`${url}.map`)).filter((map) => existsSync(map));
    const sources = maps.flatMap(
      (map) => (JSON.parse(readFileSync(map, 'utf8')) as { sources: string[] }).sources,
    );
    expect(sources.some((source) => source.includes('better-sqlite3'))).toBe(true);
    expect(sources.some((source) => source.endsWith('/src/verbs/log.ts'))).toBe(true);
    const slow = /node_modules\/(?:ai|zod|yargs|@ai-sdk[^/]*)\/|\/runtime\/src\//;
    expect(sources.filter((source) => slow.test(source))).toEqual([]);

    const reads = said('prepares')
      .map((text) => String(JSON.parse(text)))
      .filter((sql) => /\bFROM\s+(?:entry|tape)\b/.test(sql));
    expect(reads.length).toBeGreaterThan(1);
    const db = new Database(home.db, { readonly: true });
    for (const sql of reads) {
      const names = [...sql.matchAll(/@(\w+)/g)].map(([, name = '']) => [name, 1]);
      const marks = sql.match(/\?/g)?.map(() => 1) ?? [];
      const plan = db
        .prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
        .all(...(names.length > 0 ? [Object.fromEntries(names)] : []), ...marks);
      expect(
        plan.filter(({ detail }) => /^SCAN (?:entry|tape|e|t)\b/.test(detail)),
        sql,
      ).toEqual([]);
    }
    db.close();
  },
);

test('--id names a session by an id of another program, with every verb that takes a session', async () => {
  using home = tempHome();
  const id = 'C1/naïve #x';
  const name = '!c1%2Fna%C3%AFve%20%23x';
  expect(json(await home.here(['new', '--id', id, '--json']))).toMatchObject({
    session: name,
    created: true,
  });
  const appended = await home.here(['append', '--json', `--id=${id}`], { stdin: '{"content":"Hi"}\n' });
  expect(json(appended)).toMatchObject({ session: name, from: 2 });
  expect(json(await home.here(['--id', id, 'show', '--json']))).toMatchObject({ session: name, head: 2 });
  const forked = json(await home.here(['fork', '--id', id, '--task', 'Look around', '--json']));
  expect(forked).toMatchObject({ parent: name });
  expect(forked.session).toMatch(/^!c1%2Fna%C3%AFve%20%23x-look-around-[0-9a-f]{8}$/);
  // An id that differs only by case is another session; one that differs only by Unicode form is refused.
  expect(await home.here(['new', '--id', 'c1/naïve #x'])).toMatchObject({ code: 0 });
  const alike = await home.here(['append', '--id', id.normalize('NFD'), '--json'], {
    stdin: '{"content":"x"}\n',
  });
  expect([alike.code, jsonError(alike)]).toMatchObject([4, { code: 'TAPE_EXISTS', data: { session: name } }]);
  for (const bad of [['sessions'], ['search', 'x'], ['init']])
    expect(await home.here([...bad, '--id', id]), bad[0]).toMatchObject({ code: 2 });
  for (const bad of [['--id'], ['--id', ''], ['--id', 'a', '--id=b']])
    expect(await home.here(['show', ...bad]), bad.join(' ')).toMatchObject({ code: 2 });
  expect((await home.here(['sessions', '--quiet'])).stdout.split('\n')).toHaveLength(4);
});

test('a home, and --base, choose the realm of the names; each has sessions of its own', async () => {
  using home = tempHome();
  const here = async (...args: string[]) => await home.here(args);
  expect(json(await here('new', 'main', '--base', 'bub', '--json'))).toMatchObject({ tape: 'bub:main' });
  expect(json(await here('new', 'main', '--json'))).toMatchObject({ tape: 'tape:main', created: true });
  expect(await here('init', '--base', 'bub', '--home', home.path)).toMatchObject({ code: 0 });
  expect(json(await here('new', 'main', '--json'))).toMatchObject({ tape: 'bub:main', created: false });
  expect(json(await here('new', 'main', '--base', 'tape', '--json'))).toMatchObject({ tape: 'tape:main' });
  expect(json(await here('sessions', '--json'))).toHaveLength(1);
  {
    using store = home.open();
    expect(store.sessions.find('main')?.tape).toBe('bub:main');
  }
  const { openDeck } = await import('@tapedeck/runtime');
  for (const [options, tape] of [
    [{}, 'bub:main'],
    [{ base: 'nano' }, 'nano:main'],
  ] as const) {
    await using deck = await openDeck({ home: home.path, ...options });
    expect((await (await deck.session('main')).info()).tape).toBe(tape);
  }
  for (const bad of ['', 'a:b', 'a b', '../x'])
    expect(await here('sessions', `--base=${bad}`), bad).toMatchObject({ code: 2 });
  expect(await here('check')).toMatchObject({ code: 0 });
});

test('verbs of one realm say on stderr which sessions of other realms they leave out', async () => {
  using home = tempHome();
  const here = async (...args: string[]) => await home.here(args);
  await here('new', 'main');
  expect((await here('sessions')).stderr).not.toContain('Not included');
  const left = "Not included: 1 session of base 'tape' (see them with --base tape)";
  expect((await here('init', '--base', 'acme', '--home', home.path)).stderr).toContain(left);
  for (const verb of ['sessions', 'status', 'recover']) {
    expect((await here(verb)).stderr, verb).toContain(left);
    expect((await here(verb, '--quiet')).stderr, verb).toBe('');
  }
  await here('new', 'other');
  expect((await here('status', 'other')).stderr).toBe('');
  expect((await here('sessions', '--base', 'tape')).stderr).toContain("1 session of base 'acme'");
});

test('a name that looks like another is refused by new, fork and run, and the error names the other', async () => {
  using home = tempHome();
  home.session('main');
  const model = home.file('script.json');
  writeFileSync(model, '[{"text":"Hi."}]');
  for (const args of [
    ['new', 'Main'],
    ['fork', 'main', '--as', 'MAIN'],
    ['run', 'Main', 'Hi', '--model', `script:${model}`],
    ['alias', 'main', 'MAIN'],
  ]) {
    const refused = await home.here([...args, '--json']);
    expect([args[0], refused.code, jsonError(refused)]).toMatchObject([
      args[0],
      4,
      { code: 'TAPE_EXISTS', data: { session: 'main' }, hint: expect.stringContaining('main') },
    ]);
  }
  expect((await home.here(['sessions', '--quiet'])).stdout).toBe('main\n');
});

test('show has what a root was created with', async () => {
  using home = tempHome();
  const args = [
    '--instructions',
    'Be brief.',
    '--tool',
    'look',
    '--tool',
    'read',
    '--model',
    'script:a.json',
  ];
  await home.here(['new', 'main', ...args, '--temperature', '0.5']);
  expect(json(await home.here(['show', 'main', '--json']))).toMatchObject({
    settings: {
      instructions: 'Be brief.',
      model: 'script:a.json',
      call: { temperature: 0.5 },
      tools: ['look', 'read'],
    },
  });
  home.session('plain');
  expect(json(await home.here(['show', 'plain', '--json']))).not.toHaveProperty('settings');
});

test('an id that is no UTF-8 is refused, since it would share its name with others', async () => {
  using home = tempHome();
  const { code, stderr } = await home.here(['new', '--id', 'caf\ufffd']);
  expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('it is not UTF-8') });
});
