import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Deck, openDeck } from '@tapedeck/runtime';
import { assistant, note, openTapeStore, toolCall, user } from '@tapedeck/tape';
import { homeRecord, recordHome } from '@tapedeck/tape/internal';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { writeSchema1 } from '../support/old-schemas.ts';
import { rawDb } from '../support/raw-db.ts';
import { skipsGit, tempRepository } from '../support/repository.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

test('entries up to the marks of a home are marked, with those that a fork inherits, and later ones are not', () => {
  using home = tempHome();
  home.session('main', user('Theirs'));
  using store = openTapeStore(home.db, { trust: false });
  store.lineage.fork('main', { name: 'child', inherit: 'all' });
  store.entries.append('child', [user('Mine')]);
  const marked = [...store.entries.read('child')].map(({ inherited, elsewhere }) => [inherited, elsewhere]);
  expect(marked).toEqual([
    [true, true],
    [true, true],
    [false, undefined],
    [false, undefined],
  ]);
  using later = openTapeStore(home.db, { trust: store.elsewhere });
  expect([...later.entries.read('child')].filter(({ elsewhere }) => elsewhere)).toHaveLength(2);
  using whole = openTapeStore(home.db);
  expect([...whole.entries.read('child')].filter(({ elsewhere }) => elsewhere)).toHaveLength(0);
});

test('entries of an inbox item that was posted elsewhere stay marked in every later opening', async () => {
  using home = tempHome();
  home.session('main');
  {
    using store = home.open();
    store.leases.acquire('main', { id: 'gone' }, { ttlMs: 20 });
    store.inbox.post('main', {
      body: { type: 'append', drafts: [user('Theirs')] },
      source: 'user',
      key: 'k',
    });
    await expect.poll(() => store.leases.list()).toEqual([]);
  }
  using store = openTapeStore(home.db, { trust: false, keepInboxes: true });
  store.inbox.drain('main');
  using whole = openTapeStore(home.db);
  expect([...whole.entries.read('main')].at(-1)).toMatchObject({
    elsewhere: true,
    meta: { elsewhere: true },
  });
});

test.each([{ entries: 1 }, { entries: 'x', inbox: 0 }, 'yes', null])('trust %j is refused', (trust) => {
  using home = tempHome();
  expect(() => openTapeStore(home.db, { trust: trust as never })).toThrow(
    expect.objectContaining({ code: 'TAPE_BAD_OPTION' }),
  );
});

test('the record of a home is that of its file, also where another file gets the same inode', () => {
  using home = tempHome();
  home.session('main');
  const state = home.file('state/tape');
  mkdirSync(home.file('state'), { mode: 0o700 });
  const fields = {
    home: 'id',
    consent: 'trusted',
    elsewhere: { entries: 1, inbox: 0 },
    config: null,
  } as const;
  recordHome(state, home.path, { ...fields, at: new Date().toISOString() });
  expect(homeRecord(state, home.path)).toMatchObject(fields);
  const [name = ''] = readdirSync(join(state, 'homes'));
  const file = join(state, 'homes', name);
  const record = JSON.parse(readFileSync(file, 'utf8'));
  writeFileSync(file, JSON.stringify({ ...record, born: '1' }), { mode: 0o600 });
  expect(homeRecord(state, home.path)).toBeUndefined();
  writeFileSync(file, JSON.stringify({ ...record, born: undefined }), { mode: 0o600 });
  expect(homeRecord(state, home.path)).toMatchObject(fields);
});

test('the name of a trigger is no SQL for an upgrade', () => {
  using home = tempHome();
  writeSchema1({ db: home.db, graph: home.graph });
  {
    using db = rawDb(home.db);
    const name = `a"; ATTACH '${home.file('other.db')}' AS other; CREATE TABLE other.made (x); --`;
    db.exec(`CREATE TRIGGER "${name.replaceAll('"', '""')}" AFTER INSERT ON tape BEGIN SELECT 1; END`);
    db.exec('CREATE TRIGGER a AFTER INSERT ON tape BEGIN SELECT 1; END');
  }
  using store = openTapeStore(home.db, { trust: false });
  expect(store.sessions.list({ all: true }).length).toBeGreaterThan(0);
  expect(existsSync(home.file('other.db'))).toBe(false);
});

const ran: string[] = [];
const look = {
  description: 'Look',
  inputSchema: z.object({}),
  safeToRepeat: true,
  execute: () => {
    ran.push('look');
    return 'done';
  },
};

const script = [{ text: 'Done.' }];

/** A deck on a home with the tool and the script, before any call has run. */
async function lookingDeck(home: TempHome, options: { readonly trust?: boolean }): Promise<Deck> {
  writeFileSync(home.file('mine.json'), JSON.stringify(script));
  ran.length = 0;
  const model = `script:${home.file('mine.json')}`;
  return await openDeck({ home: home.path, tools: { look }, model, ...options });
}

test.each([
  ['by default', {}, ['look'], { type: 'text', value: 'done' }],
  [
    'with trust: false',
    { trust: false },
    [],
    { type: 'error-text', value: 'Outcome unknown: aborted by host restart.' },
  ],
] as const)(
  'a deck %s repeats these calls that a crash left open: %j',
  async (_, options, expected, output) => {
    using home = tempHome();
    home.session('main', user('Go'), assistant([toolCall('call_1', 'look', {})]));
    {
      await using deck = await lookingDeck(home, options);
      expect(await (await deck.session('main')).run('On')).toMatchObject({ text: 'Done.' });
    }
    expect(ran).toEqual(expected);
    // A call that does not run again is closed at once: no approval of it is requested.
    using store = openTapeStore(home.db, { readonly: true });
    const results = [...store.entries.read('main')].filter(({ kind }) => kind === 'tool-result');
    expect(results.map(({ payload }) => payload)).toMatchObject([{ toolCallId: 'call_1', output }]);
  },
);

test.each([
  ['by default', {}, ['look'], 'stop'],
  ['with trust: false', { trust: false }, [], 'waiting'],
] as const)(
  'a deck %s runs these calls that were approved before: %j',
  async (_, options, expected, finish) => {
    using home = tempHome();
    home.session(
      'main',
      user('Go'),
      assistant([toolCall('call_1', 'look', {})]),
      note('run/waiting', { run: 'r', calls: [{ toolCallId: 'call_1', toolName: 'look', for: 'approval' }] }),
      note('call/answered', { toolCallId: 'call_1', approved: true }),
    );
    await using deck = await lookingDeck(home, options);
    expect(await (await deck.session('main')).run()).toMatchObject({ finish });
    expect(ran).toEqual(expected);
  },
);

test('a deck with trust: false counts approvals and scripts that it recorded itself', async () => {
  using home = tempHome();
  home.session('main', user('Go'));
  const calls = [{ toolCalls: [{ name: 'look', input: {}, id: 'call_2' }] }, ...script, ...script];
  writeFileSync(home.file('mine.json'), JSON.stringify(calls));
  ran.length = 0;
  await using deck = await openDeck({
    home: home.path,
    trust: false,
    tools: { look: { ...look, needsApproval: true } },
  });
  const main = await deck.session('main');
  await main.run('On', { model: `script:${home.file('mine.json')}` });
  await main.respond('call_2', { approved: true });
  await main.idle();
  expect(ran).toEqual(['look']);
  expect(await main.run('Again')).toMatchObject({ text: 'Done.' });
});

test('trust belongs to the store, for a deck with a store', async () => {
  using home = tempHome();
  using store = home.open();
  await expect(openDeck({ store, trust: false })).rejects.toMatchObject({
    code: 'SESSION_BAD_CONFIG',
    data: { field: 'trust' },
  });
});

test.skipIf(skipsGit('worktrees of homes from elsewhere'))(
  'git runs in no repository that a tape from elsewhere names, nor in one that is another than it says',
  async () => {
    using home = tempHome();
    using code = tempRepository({ 'a.txt': 'a' });
    using other = tempRepository({ 'b.txt': 'b' });
    writeFileSync(home.file('mine.json'), JSON.stringify([...script, ...script]));
    const model = `script:${home.file('mine.json')}`;
    {
      using store = home.open();
      store.sessions.open('main');
      const git = join(code.path, '.git');
      store.lineage.fork('main', { name: 'theirs', worktree: { repository: code.path, git } });
      store.lineage.fork('main', { name: 'false', worktree: { repository: other.path, git } });
    }
    const before = [code.state(), other.state()];
    {
      await using deck = await openDeck({ home: home.path, trust: false, model });
      const child = await deck.find('theirs');
      await expect(child?.run('Go')).rejects.toMatchObject({ code: 'SESSION_NO_WORKSPACE' });
    }
    {
      await using deck = await openDeck({ home: home.path, model });
      const child = await deck.find('false');
      await expect(child?.run('Go')).rejects.toMatchObject({ code: 'SESSION_NO_REPOSITORY' });
    }
    expect([code.state(), other.state()]).toEqual(before);
    expect(existsSync(join(code.path, '.git', 'worktrees'))).toBe(false);
  },
);

test('what rules allow and what was granted in another home asks here, and what they deny stays denied', async () => {
  using home = tempHome();
  {
    await using deck = await openDeck({ home: home.path });
    await deck.session('main', { rules: ['allow exec(ls)', 'deny exec(rm *)'] });
    await deck.store.entries.append('main', [
      note('permission/granted', { rule: 'allow exec(git *)' }),
      note('permission/granted', { rule: 'deny exec(make)' }),
    ]);
  }
  const tools = { run_command: { inputSchema: z.object({ command: z.string() }), command: 'command' } };
  const verdicts = async (trust: boolean) => {
    await using deck = await openDeck({ home: home.path, tools, trust });
    const main = await deck.session('main');
    const found: string[] = [];
    for (const command of ['ls', 'rm x', 'git log', 'make'])
      found.push((await main.permits({ tool: 'run_command', input: { command } })).verdict);
    return found;
  };
  expect(await verdicts(true)).toEqual(['allow', 'deny', 'allow', 'deny']);
  expect(await verdicts(false)).toEqual(['ask', 'deny', 'ask', 'deny']);
});
