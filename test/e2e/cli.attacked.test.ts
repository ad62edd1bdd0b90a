import { mkdirSync, rmSync } from 'node:fs';
import { anchor, assistant, processOwner, toolCall, toolResult, user } from '@tapedeck/tape';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const change = (home: TempHome, sql: string) => {
  const raw = new Database(home.db);
  raw.exec(sql);
  raw.close();
};

test('verify reports damaged entries even when it cannot read the graph file', async () => {
  using home = tempHome();
  home.session('main', user('hello'));
  change(
    home,
    `DROP TRIGGER entry_update; UPDATE entry SET payload = replace(payload, 'hello', 'hellp') WHERE seq = 2`,
  );
  rmSync(home.graph);
  mkdirSync(home.graph);
  const { stdout, code } = await home.tape(['verify', '--json']);
  const { problems } = JSON.parse(stdout) as {
    problems: { code: string; session: string | null; seq: number | null }[];
  };
  expect(code).toBe(5);
  expect(problems.map((p) => [p.code, p.session, p.seq])).toEqual([
    ['entry-changed', 'main', 2],
    ['graph-unreadable', null, null],
  ]);
});

test('verify checks the other sessions when it cannot read one', async () => {
  using home = tempHome();
  home.session('first', user('hello'));
  home.session('second', user('hello'));
  change(
    home,
    `DROP TRIGGER entry_update;
     UPDATE entry SET payload = 'no JSON, "type":"blob"', body_hash = hash WHERE seq = 2 AND tape_id = 1;
     UPDATE entry SET payload = replace(payload, 'hello', 'hellp') WHERE seq = 2 AND tape_id = 2`,
  );
  const { stdout, code } = await home.tape(['verify', '--json']);
  const { problems } = JSON.parse(stdout) as { problems: { session: string; seq: number }[] };
  expect(code).toBe(5);
  expect(problems.map((p) => [p.session, p.seq])).toEqual([
    ['first', 2],
    ['second', 2],
  ]);
});

test('two calls of one id keep the batch open until both have a result', () => {
  using home = tempHome();
  using store = home.open();
  store.sessions.open('main');
  store.entries.append('main', [assistant([toolCall('same', 'read', {}), toolCall('same', 'read', {})])]);
  const result = toolResult({ toolCallId: 'same', toolName: 'read' }, 'text');
  store.entries.append('main', [result]);
  expect(store.sessions.find('main')?.settled).toBe(1);
  expect(store.lineage.fork('main', { name: 'child' })).toMatchObject({ base: 1, snappedFrom: 3 });
  store.entries.append('main', [result]);
  expect(store.sessions.find('main')?.settled).toBe(4);
});

test('no title, state key or tool name controls the terminal', async () => {
  using home = tempHome();
  const nasty = '\u001b]0;owned\u0007\u202e';
  {
    using store = home.open();
    store.sessions.open('main', { title: nasty });
    store.lineage.fork('main', { name: 'child' });
    for (const session of ['main', 'child']) store.entries.append(session, [anchor('a', { [nasty]: 1 })]);
  }
  for (const args of [
    ['show', 'main'],
    ['merge', 'child', '--check'],
    ['merge', 'child'],
  ]) {
    const { stdout, stderr, code } = await home.tape(args);
    expect(code, args.join(' ')).toBe(0);
    for (const control of nasty.replace(/[^\p{C}]/gu, ''))
      expect(stdout + stderr, args.join(' ')).not.toContain(control);
  }
});

test.each(['--no-key', '--no-since', '--no-model', '--no-n', '--no-such'])(
  '%s is wrong usage',
  async (option) => {
    using home = tempHome();
    home.session('main');
    const before = home.contents();
    expect(await home.tape(['fork', 'main', option])).toMatchObject({ code: 2, stdout: '' });
    expect(home.contents()).toEqual(before);
  },
);

test('errors in a draft name its line: names, keys, numbers, fields', async () => {
  using home = tempHome();
  home.session('main');
  const before = home.contents();
  const good = '{"content":"good"}';
  for (const line of [
    '{"content":"a","key":"k\\u0000"}',
    '{"kind":"event","name":"\\ud83d","payload":1}',
    '{"kind":"event","name":"n","payload":9007199254740993}',
    '{"kind":"event","name":"n","payload":1e400}',
    '{"content":"a","mark":"boundary"}',
    '{"content":"a","payload":{"role":"user","content":"b"}}',
  ]) {
    const { stderr, code } = await home.tape(['append', 'main', '--json'], { stdin: `${good}\n${line}\n` });
    expect(code, line).toBe(2);
    expect(JSON.parse(stderr), line).toMatchObject({ error: { data: { line: 2 } } });
  }
  expect(home.contents()).toEqual(before);
  const nothing = await home.tape(['append', 'main'], {
    stdin: '{"kind":"event","name":"n","payload":null}\n',
  });
  expect(nothing.code).toBe(0);
});

test('a merge that waits for open calls of a dead owner is queued, not refused', async () => {
  using home = tempHome();
  {
    using store = home.open();
    store.sessions.open('main');
    store.lineage.fork('main', { name: 'child' });
    const lease = store.leases.acquire('main', processOwner('holder'));
    store.entries.append('main', [assistant([toolCall('c1', 'read', {})])], { lease });
    const merging = home.tape(['merge', 'child', '--result', 'done', '--json', '--wait', '2']);
    while (store.inbox.list('main').length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    change(home, 'UPDATE lease SET pid = 4194303');
    const { stdout, code } = await merging;
    expect(code).toBe(6);
    expect(JSON.parse(stdout)).toMatchObject({ state: 'queued', seq: null });
  }
});

test('log --no-own prints inherited entries alone, and the lanes show anchors at their positions', async () => {
  using home = tempHome();
  home.session('main', user('one'), anchor('start'), user('two'));
  await home.tape(['fork', 'main', '--as', 'child']);
  const seqs = async (...options: string[]) =>
    (await home.tape(['log', 'child', '--quiet', ...options])).stdout.trim().split('\n').map(Number);
  expect(await seqs('--no-own')).toEqual([1, 2, 3, 4]);
  expect(await seqs('--own')).toEqual([5]);
  expect((await home.tape(['log', 'main', '--graph'])).stdout.split('\n')).toEqual([
    '○  main active',
    '├─○  child [subagent] active, from main 1-4',
    '╰─·  ⚓ start at main@3',
    '',
  ]);
});
