import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { assistant, type Draft, note, openTapeStore, toolCall, user } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { json, jsonError, jsonLines, startTape, tape, tapeProcess } from '../support/cli.ts';
import { writeSchema1 } from '../support/old-schemas.ts';
import { rawDb } from '../support/raw-db.ts';
import { tempDir } from '../support/temp-dir.ts';

/** A user with a home directory and a repository, whose tools leave traces. */
interface Desk extends Disposable {
  readonly repo: string;
  readonly home: string;
  /** The home that came with the repository. */
  readonly shipped: string;
  /** An environment with a model of the user's own. */
  readonly withModel: Readonly<Record<string, string>>;
  /** The script that came with the repository, as a model. */
  readonly evil: string;
  /** Runs `tape` in the repository, as a user who trusts nothing in general. */
  tape(args: readonly string[], env?: Readonly<Record<string, string>>): ReturnType<typeof tape>;
  /** The traces of the tools that ran. */
  ran(): readonly string[];
}

const answers = [{ text: 'Mine.' }, { text: 'Mine.' }, { text: 'Mine.' }];

function desk(): Desk {
  const dir = tempDir();
  const repo = dir.file('repo');
  const shipped = join(repo, '.tape');
  // The configuration imports a package, as that of a user does.
  symlinkSync(fileURLToPath(new URL('../../node_modules', import.meta.url)), dir.file('node_modules'));
  for (const path of [dir.file('user'), repo, dir.file('traces')]) mkdirSync(path, { mode: 0o700 });
  mkdirSync(shipped, { mode: 0o700 });
  const trace = `async ({ name }) => { writeFileSync(${JSON.stringify(dir.file('traces'))} + '/' + name, ''); return 'done'; }`;
  writeFileSync(
    dir.file('mine.mts'),
    `import { writeFileSync } from 'node:fs';
import { z } from 'zod';
const inputSchema = z.object({ name: z.string() });
export default { tools: {
  look: { description: 'Look', inputSchema, safeToRepeat: true, execute: ${trace} },
  erase: { description: 'Erase', inputSchema, needsApproval: true, execute: ${trace} },
} };
`,
  );
  writeFileSync(dir.file('mine.json'), JSON.stringify(answers));
  const call = (name: string) => [{ toolCalls: [{ name: 'look', input: { name } }] }, { text: 'Theirs.' }];
  writeFileSync(join(repo, 'evil.json'), JSON.stringify(call('script')));
  return {
    repo,
    home: dir.file('user'),
    shipped,
    withModel: { TAPE_MODEL: `script:${dir.file('mine.json')}` },
    evil: `script:${join(repo, 'evil.json')}`,
    tape: async (args, env = {}) =>
      await tape(args, {
        cwd: repo,
        env: { HOME: dir.file('user'), TAPE_TRUST_HOME: '', ...env },
      }),
    ran: () => readdirSync(dir.file('traces')).sort(),
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  };
}

/** Writes a home as another user's program would: a session of these entries. */
function ship(home: string, ...drafts: Draft[]): void {
  using store = openTapeStore(join(home, 'tape.db'));
  store.sessions.open('main');
  store.entries.append('main', [user('Go'), ...drafts]);
}

const openCall = (name: string) => assistant([toolCall('call_1', 'look', { name })]);
const eraseCall = assistant([toolCall('call_1', 'erase', { name: 'erase' })]);
const waiting = note('run/waiting', {
  calls: [{ toolCallId: 'call_1', toolName: 'erase', for: 'approval' }],
});

function contents(dir: string): unknown {
  return readdirSync(dir).map((name) => {
    const { mode, mtimeMs } = statSync(join(dir, name));
    return [name, mode, mtimeMs, readFileSync(join(dir, name)).toString('base64')];
  });
}

const reading = ['log main', 'show main', 'search Go', 'sessions', 'status', 'graph', 'check', 'view main'];
const writing = [
  'new other',
  'append main',
  'fork main',
  'run main x',
  'check --fix',
  'archive main',
  'init',
];

describe('a home that came with a repository', () => {
  test('can be read, and stays as it is to the byte', async () => {
    using at = desk();
    ship(at.shipped);
    const before = contents(at.shipped);
    for (const line of reading) {
      const { code, stdout, stderr } = await at.tape([...line.split(' '), '--json']);
      expect([line, code], stderr).toEqual([line, 0]);
      expect(stdout, line).toMatch(/main|Go|\[\]/);
    }
    expect(contents(at.shipped)).toEqual(before);
  });

  test('has the remotes that the user adds, and not those that came with it', async () => {
    using at = desk();
    ship(at.shipped);
    const remote = (...args: string[]) => at.tape(['remote', ...args, '--home', at.shipped]);
    expect(await remote('add', 'origin', '/packs')).toMatchObject({ code: 0 });
    expect(await remote()).toMatchObject({ code: 0, stdout: 'origin\t/packs\n', stderr: '' });
    expect(await remote('remove', 'origin')).toMatchObject({ code: 0 });
    writeFileSync(join(at.shipped, 'config.yaml'), 'remotes:\n  theirs:\n    url: /theirs\n');
    expect(await remote()).toMatchObject({
      stdout: '',
      stderr: expect.stringMatching(/^Ignored remotes of [^\n]*\n$/),
    });
    expect(await remote('add', 'origin', '/packs')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('came with the home, with remotes.theirs.url'),
    });
  });

  test('is not written, and nothing of it runs, until the user trusts it', async () => {
    using at = desk();
    ship(at.shipped, openCall('open'));
    writeFileSync(join(at.shipped, 'config.yaml'), 'model: script:../evil.json\n');
    const before = contents(at.shipped);
    for (const line of writing) {
      const refused = await at.tape([...line.split(' '), '--json'], at.withModel);
      expect([line, refused.code]).toEqual([line, 2]);
      expect(jsonError(refused)).toMatchObject({
        code: 'CLI_FOREIGN_HOME',
        message: expect.stringContaining(at.shipped),
        hint: expect.stringContaining(`tape trust ${at.shipped}`),
        data: { home: at.shipped },
      });
    }
    expect(contents(at.shipped)).toEqual(before);
    expect(at.ran()).toEqual([]);
    expect(await at.tape(['trust', '.tape'])).toMatchObject({ code: 0 });
    expect(await at.tape(['anchor', 'main', 'here', '--json'])).toMatchObject({ code: 0 });
  });

  test('shows with tape trust what it would bring in, and trusts it without --dry-run alone', async () => {
    using at = desk();
    ship(
      at.shipped,
      user('Go on', { model: at.evil, run: 'r' }),
      eraseCall,
      waiting,
      note('call/answered', { toolCallId: 'call_1', approved: true }),
    );
    const shown = json(await at.tape(['trust', '.tape', '--dry-run', '--json']));
    expect(shown).toMatchObject({
      trusted: false,
      sessions: 1,
      brings: {
        models: [{ name: at.evil, sessions: 1 }],
        calls: [{ session: 'main', toolCallId: 'call_1', tool: 'erase', approved: true }],
      },
    });
    expect(await at.tape(['new', 'other'])).toMatchObject({ code: 2 });
    const { stdout } = await at.tape(['trust', '.tape']);
    expect(stdout).toContain('open call: main: call_1 of erase, approved');
    expect(stdout).toContain('Trusted ');
    expect(await at.tape(['new', 'other'])).toMatchObject({ code: 0 });
    expect((await at.tape(['trust', '.tape'])).stdout).toContain('nothing to do');
    expect(jsonLines(await at.tape(['trust', '--jsonl']))).toMatchObject([
      { dir: at.shipped, config: null, state: 'trusted' },
    ]);
    expect(await at.tape(['trust', '.tape', '--revoke'])).toMatchObject({ code: 0 });
    expect(await at.tape(['new', 'third'])).toMatchObject({ code: 2 });
  });

  test('without tapes, but with a configuration, is not created by a verb that found it', async () => {
    using at = desk();
    writeFileSync(join(at.shipped, 'config.yaml'), 'model: script:../evil.json\n');
    const refused = await at.tape(['run', 'main', 'x', '--json'], at.withModel);
    expect([refused.code, jsonError(refused).code]).toEqual([2, 'CLI_FOREIGN_HOME']);
    expect(existsSync(join(at.shipped, 'tape.db'))).toBe(false);
    expect(await at.tape(['init'])).toMatchObject({ code: 0 });
    const run = await at.tape(['run', 'main', 'x', '--config', '../mine.mts', '--json']);
    expect(jsonError(run)).toMatchObject({ message: expect.stringContaining('no model was given') });
    expect(at.ran()).toEqual([]);
  });
});

/** Each way to consent to a home, after which what the tape says still runs nothing. */
const consents: readonly (readonly [string, (at: Desk) => Promise<unknown>, readonly string[]])[] = [
  ['named with --home', async () => {}, ['--home', '.tape']],
  ['trusted', async (at) => await at.tape(['trust', '.tape']), []],
];

describe.each(consents)('in a home that came from elsewhere and is %s', (_, consent, option) => {
  const run = ['run', 'main', '--config', '../mine.mts', ...option];

  test('a script that the tape names is not the model', async () => {
    using at = desk();
    ship(at.shipped, assistant('Hi.'), user('Again', { model: at.evil, run: 'r' }), assistant('Hi.'));
    await consent(at);
    expect((await at.tape([...run, 'x'], at.withModel)).stdout).toBe('Mine.\n');
    expect(at.ran()).toEqual([]);
  });

  test('a configuration in it names no script and no directory', async () => {
    using at = desk();
    ship(at.shipped);
    writeFileSync(
      join(at.shipped, 'config.yaml'),
      'model: script:../evil.json\nprompt:\n  project: ../../user\n',
    );
    await consent(at);
    const refused = await at.tape([...run, 'x', '--json']);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('no model was given');
    expect((await at.tape([...run, 'x'], at.withModel)).stderr).toContain(
      'Ignored model, prompt.project of ',
    );
    expect(at.ran()).toEqual([]);
  });

  test('a configuration in it starts no MCP server, and tape trust shows what it would start', async () => {
    using at = desk();
    ship(at.shipped);
    writeFileSync(
      join(at.shipped, 'config.yaml'),
      `mcp_servers:\n  notes: { command: touch, args: [${at.repo}/started] }\n  far: { url: 'https://far.example/mcp' }\n`,
    );
    const shown = await at.tape(['trust', at.shipped, '--dry-run']);
    expect(shown.stdout).toContain(`MCP server: notes: touch ${at.repo}/started\n`);
    expect(shown.stdout).toContain('MCP server: far: https://far.example/mcp\n');
    await consent(at);
    const { stdout, stderr } = await at.tape([...run, 'x'], at.withModel);
    expect(stdout).toBe('Mine.\n');
    expect(stderr).toContain('Ignored mcp_servers of ');
    expect(existsSync(join(at.repo, 'started'))).toBe(false);
  });

  test('a configuration in it gives no tools, and allows nothing', async () => {
    using at = desk();
    ship(at.shipped);
    writeFileSync(
      join(at.shipped, 'config.yaml'),
      'builtin_tools: [run_command]\npermissions: [yolo, trusted, deny read(**)]\n',
    );
    await consent(at);
    const { stderr } = await at.tape([...run, 'x'], at.withModel);
    expect(stderr).toContain('Ignored permissions, builtin_tools of ');
    const { stdout } = await at.tape(['permissions', 'main', '--quiet', ...option], at.withModel);
    expect(stdout).toBe('ask write(**)\nask exec(*)\ndeny read(**)\n');
  });

  test('an open call does not run again, though its tool is safe to repeat', async () => {
    using at = desk();
    ship(at.shipped, openCall('open'));
    await consent(at);
    expect((await at.tape([...run, 'x'], at.withModel)).stdout).toBe('Mine.\n');
    expect(at.ran()).toEqual([]);
    expect((await at.tape(['log', 'main', '--json'])).stdout).toContain('Outcome unknown');
  });

  test('an approval on the tape or in the inbox does not count, and one that is given here does', async () => {
    using at = desk();
    ship(at.shipped, eraseCall, waiting, note('call/answered', { toolCallId: 'call_1', approved: true }));
    {
      using store = openTapeStore(join(at.shipped, 'tape.db'), { keepInboxes: true });
      const answer = { toolCallId: 'call_1', answer: { approved: true } };
      store.inbox.post('main', { body: { type: 'answer', ...answer }, source: 'user', key: 'k' });
    }
    await consent(at);
    await at.tape(run, at.withModel);
    await at.tape(run, at.withModel);
    expect(at.ran()).toEqual([]);
    const approved = await at.tape(['approve', 'main', '--config', '../mine.mts', ...option], at.withModel);
    expect(approved).toMatchObject({ code: 0, stdout: 'Mine.\n' });
    expect(at.ran()).toEqual(['erase']);
  });

  test('entries that wait in its inbox count as little as those on its tapes', async () => {
    using at = desk();
    ship(at.shipped, eraseCall, waiting);
    {
      using store = openTapeStore(join(at.shipped, 'tape.db'), { keepInboxes: true });
      const drafts = [note('call/answered', { toolCallId: 'call_1', approved: true })];
      store.inbox.post('main', { body: { type: 'append', drafts }, source: 'user', key: 'k' });
    }
    await consent(at);
    await at.tape(run, at.withModel);
    await at.tape(run, at.withModel);
    expect(at.ran()).toEqual([]);
  });
});

/** Posts an item to the inbox of `main`, as a program would that writes rows. */
const itemOf = (body: unknown) =>
  `INSERT OR IGNORE INTO inbox (ulid, tape_id, mode, source, key, body, queued_at)
   SELECT '01ARZ3NDEKTSV4RRFFQ69G5FAV', id, 'followup', 'user', 'k', '${JSON.stringify(body)}', 0
     FROM tape WHERE name = 'main'`;

describe.each(consents)('of a forged home that is %s', (_, consent, option) => {
  const run = ['run', 'main', '--config', '../mine.mts', ...option];

  test('a call in saved pieces of an answer is not begun by an item of its inbox', async () => {
    using at = desk();
    ship(at.shipped, assistant('Hi.'));
    {
      using db = rawDb(join(at.shipped, 'tape.db'));
      const call = { toolCallId: 'call_9', toolName: 'look', input: { name: 'piece' } };
      const pieces = [
        { type: 'data-answer', data: {} },
        { type: 'tool-input-available', ...call },
      ];
      for (const [i, piece] of pieces.entries())
        db.run(
          `INSERT INTO stream_chunk SELECT id, 'r', ?, ? FROM tape WHERE name = 'main'`,
          i,
          JSON.stringify(piece),
        );
      const begun = note('run/begun', { calls: [{ toolCallId: 'call_9' }] });
      db.exec(itemOf({ type: 'append', drafts: [begun] }));
    }
    await consent(at);
    expect((await at.tape([...run, 'x'], at.withModel)).stdout).toBe('Mine.\n');
    expect(at.ran()).toEqual([]);
    expect((await at.tape(['log', 'main', '--json'])).stdout).toContain('was cut off');
  });

  test('a trigger writes nothing', async () => {
    using at = desk();
    ship(at.shipped, assistant('Hi.'));
    {
      using db = rawDb(join(at.shipped, 'tape.db'));
      const body = { type: 'input', drafts: [user('Go', { model: at.evil })] };
      db.exec(`CREATE TRIGGER later AFTER INSERT ON lease BEGIN ${itemOf(body)}; END`);
    }
    const before = contents(at.shipped);
    await consent(at);
    const refused = await at.tape([...run, 'x', '--json'], at.withModel);
    expect(refused.code).not.toBe(0);
    expect((await at.tape(['trust', '.tape'])).stderr).toContain(
      'trigger later does not belong in a tape home',
    );
    expect(contents(at.shipped)).toEqual(before);
    expect(at.ran()).toEqual([]);
  });

  test('a message that is sent again does not bring its script', async () => {
    using at = desk();
    ship(at.shipped, user('Again', { model: at.evil, run: 'r' }), assistant('Hi.'));
    await consent(at);
    expect(await at.tape(['rewind', 'main@3', '--mode', 'resend', ...option])).toMatchObject({ code: 0 });
    expect((await at.tape(run, at.withModel)).stdout).toBe('Mine.\n');
    expect(at.ran()).toEqual([]);
  });

  test('a config.yaml that changes later, such as by git pull, names no script', async () => {
    using at = desk();
    ship(at.shipped);
    await consent(at);
    await at.tape(['new', 'other', ...option]);
    writeFileSync(join(at.shipped, 'config.yaml'), 'model: script:../evil.json\n');
    expect((await at.tape([...run, 'x', '--json'])).stderr).toContain('no model was given');
    expect(at.ran()).toEqual([]);
  });

  test('the greatest row id marks all of it', async () => {
    using at = desk();
    ship(at.shipped, openCall('open'));
    {
      using db = rawDb(join(at.shipped, 'tape.db'));
      db.dropTriggers();
      db.exec('UPDATE entry SET id = 9223372036854775807 WHERE id = (SELECT max(id) FROM entry)');
    }
    await consent(at);
    expect((await at.tape([...run, 'x'], at.withModel)).stdout).toBe('Mine.\n');
    expect(at.ran()).toEqual([]);
  });
});

test('a config.yaml that the user edits counts after a second tape trust, until it changes again', async () => {
  using at = desk();
  ship(at.shipped);
  expect(await at.tape(['trust', '.tape'])).toMatchObject({ code: 0 });
  const config = join(at.shipped, 'config.yaml');
  writeFileSync(config, 'model: script:../../mine.json\n');
  expect((await at.tape(['trust', '.tape'])).stdout).toContain(`Trusted ${config} as it is now`);
  expect((await at.tape(['trust', '.tape'])).stdout).toContain('nothing to do');
  expect(await at.tape(['run', 'main', 'x'])).toMatchObject({ code: 0, stdout: 'Mine.\n' });
  writeFileSync(config, 'model: script:../evil.json\n');
  await at.tape(['run', 'main', 'x', '--config', '../mine.mts']);
  expect(at.ran()).toEqual([]);
});

test('a log that comes later, such as by git pull, makes a trusted home another one', async () => {
  using at = desk();
  ship(at.shipped, assistant('Hi.'));
  const other = join(at.repo, 'other');
  mkdirSync(other, { mode: 0o700 });
  const db = join(at.shipped, 'tape.db');
  writeFileSync(join(other, 'tape.db'), readFileSync(db), { mode: 0o600 });
  expect(await at.tape(['trust', '.tape'])).toMatchObject({ code: 0 });
  {
    using store = openTapeStore(join(other, 'tape.db'));
    store.entries.append('main', [openCall('log')]);
    writeFileSync(`${db}-wal`, readFileSync(join(other, 'tape.db-wal')), { mode: 0o600 });
  }
  const run = ['run', 'main', 'x', '--config', '../mine.mts'];
  expect(await at.tape(run, at.withModel)).toMatchObject({ code: 2 });
  expect((await at.tape(['trust', '.tape'])).stdout).toContain('open call: main: call_1 of look');
  expect(await at.tape(run, at.withModel)).toMatchObject({ code: 0 });
  expect(at.ran()).toEqual([]);
});

test('a log that a killed command left in a trusted home needs no trust again', async () => {
  using at = desk();
  ship(at.shipped, assistant('Hi.'));
  expect(await at.tape(['trust', '.tape'])).toMatchObject({ code: 0 });
  const running = startTape(['append', 'main', '--each', '--jsonl'], {
    cwd: at.repo,
    env: { HOME: at.home, TAPE_TRUST_HOME: '' },
  });
  running.child.stdin?.write('{"kind":"event","name":"one","payload":null}\n');
  await running.until('"seq":4');
  // Others can write it meanwhile.
  expect(await at.tape(['new', 'other'])).toMatchObject({ code: 0 });
  running.child.kill('SIGKILL');
  await running.done;
  expect(statSync(join(at.shipped, 'tape.db-wal')).size).toBeGreaterThan(0);
  expect(await at.tape(['new', 'third'])).toMatchObject({ code: 0 });
});

test('a home of an older version is upgraded by its name, and then trusted', async () => {
  using at = desk();
  writeSchema1({ db: join(at.shipped, 'tape.db'), graph: join(at.shipped, 'session_graph.jsonl') });
  const refused = await at.tape(['trust', '.tape', '--json']);
  expect(refused.code).toBe(2);
  expect(jsonError(refused).hint).toContain(`tape raw checkpoint --home ${at.shipped}`);
  expect(await at.tape(['raw', 'checkpoint', '--home', at.shipped])).toMatchObject({ code: 0 });
  expect(await at.tape(['trust', '.tape'])).toMatchObject({ code: 0 });
  expect(await at.tape(['new', 'other'])).toMatchObject({ code: 0 });
});

test('tape init does not write through a link that came with the directory', async () => {
  using at = desk();
  symlinkSync('../made', join(at.shipped, '.gitignore'));
  await at.tape(['init']);
  expect(existsSync(join(at.repo, 'made'))).toBe(false);
});

test('TAPE_TRUST_HOME=1 consents to all of it', async () => {
  using at = desk();
  ship(at.shipped, openCall('open'), user('Again', { model: at.evil, run: 'r' }), assistant('Hi.'));
  const env = { TAPE_TRUST_HOME: '1' };
  expect((await at.tape(['run', 'main', 'x', '--config', '../mine.mts'], env)).stdout).toBe('Theirs.\n');
  expect(at.ran()).toEqual(['open', 'script']);
});

test('a home that this user made needs no trust, until it is moved, replaced or restored', async () => {
  using at = desk();
  expect(await at.tape(['init', 'made'])).toMatchObject({ code: 0 });
  const made = join(at.repo, 'made');
  const inside = async (args: readonly string[]) => await at.tape(['--home', join(made, '.tape'), ...args]);
  expect(await inside(['run', 'main', 'x', '--model', at.withModel.TAPE_MODEL ?? ''])).toMatchObject({
    code: 0,
  });
  // The tape names the script, here.
  expect(await inside(['run', 'main', 'x', '--json'])).toMatchObject({ code: 0 });
  expect(await inside(['backup', join(at.repo, 'copy.db')])).toMatchObject({ code: 0 });
  renameSync(join(made, '.tape', 'tape.db'), join(at.shipped, 'tape.db'));
  expect(await at.tape(['new', 'other'])).toMatchObject({ code: 2 });
  expect(await at.tape(['trust', '.tape'])).toMatchObject({ code: 0 });
  expect(await at.tape(['new', 'other'])).toMatchObject({ code: 0 });
  // Another file in its place is another home.
  renameSync(join(at.shipped, 'tape.db'), join(at.repo, 'old.db'));
  writeFileSync(join(at.shipped, 'tape.db'), readFileSync(join(at.repo, 'copy.db')), { mode: 0o600 });
  expect(await at.tape(['new', 'third'])).toMatchObject({ code: 2 });
});

test('a database that is overwritten in place is another home', async () => {
  using at = desk();
  expect(await at.tape(['trust', '.tape'])).toMatchObject({ code: 3 });
  expect(await at.tape(['new', 'main'])).toMatchObject({ code: 0 });
  const db = join(at.shipped, 'tape.db');
  const other = join(at.repo, 'other');
  mkdirSync(other, { mode: 0o700 });
  ship(other, openCall('open'));
  writeFileSync(db, readFileSync(join(other, 'tape.db')));
  expect(await at.tape(['new', 'second'])).toMatchObject({ code: 2 });
});

test('two processes that create a home at once both may use it', async () => {
  for (let round = 0; round < 5; round += 1) {
    using at = desk();
    const options = { cwd: at.repo, env: { HOME: at.home, TAPE_TRUST_HOME: '' } };
    const both = await Promise.all(['one', 'two'].map((name) => tapeProcess(['new', name], options)));
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
  }
});

test('tape check reports a home at a place where others may have put it', async () => {
  using at = desk();
  const dir = join(at.repo, 'node_modules', 'pkg', '.tape');
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  ship(dir);
  const checked = json<{ sections: { home: { findings: readonly { code: string; message: string }[] } } }>(
    await at.tape(['check', '--home', dir, '--json']),
  );
  expect(checked.sections.home.findings).toMatchObject([
    { code: 'odd-place', message: expect.stringContaining('node_modules') },
  ]);
});
