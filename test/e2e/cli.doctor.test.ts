import {
  appendFileSync,
  chmodSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { assistant, processOwner, toolCall, user } from '@tapedeck/tape';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const examined = async (home: TempHome, ...options: string[]) => {
  const { stdout, code } = await home.tape(['doctor', '--json', ...options]);
  return {
    code,
    ...(JSON.parse(stdout) as {
      ok: boolean;
      problems: { code: string }[];
      findings: { code: string }[];
      fixed: string[];
    }),
  };
};

function homeWithFork(): TempHome {
  const home = tempHome();
  using store = home.open();
  store.sessions.open('main');
  store.entries.append('main', [user('hello')]);
  store.lineage.fork('main', { name: 'child' });
  return home;
}

describe('tape doctor', () => {
  test('finds nothing in a sound home, and changes nothing', async () => {
    using home = homeWithFork();
    const before = home.contents();
    expect(await examined(home)).toMatchObject({ code: 0, ok: true, problems: [], findings: [] });
    expect(home.contents()).toEqual(before);
  });

  test.each([
    ['a forged line', (home: TempHome) => appendFileSync(home.graph, '{"v":1,"g":3,"type":"fork"}\n')],
    ['a changed line', (home: TempHome) => rewrite(home, (text) => text.replace('"child"', '"thief"'))],
    ['a missing line', (home: TempHome) => rewrite(home, (text) => text.slice(text.indexOf('\n') + 1))],
  ])('moves a graph file with %s aside unchanged, and rewrites it byte for byte', async (_what, damage) => {
    using home = homeWithFork();
    const right = home.contents().graph;
    damage(home);
    const wrong = home.contents().graph;
    expect(await examined(home)).toMatchObject({ code: 5, ok: false });
    expect(home.contents().graph).toBe(wrong);
    expect(await examined(home, '--fix')).toMatchObject({ code: 0, ok: true });
    expect(home.contents().graph).toBe(right);
    const aside = readdirSync(home.path).filter((name) => name.includes('.aside-'));
    expect(aside.map((name) => readFileSync(home.file(name), 'utf8'))).toEqual([wrong]);
  });

  test('rewrites a missing graph file', async () => {
    using home = homeWithFork();
    const right = home.contents().graph;
    rmSync(home.graph);
    expect((await examined(home)).findings.map(({ code }) => code)).toEqual(['graph-behind']);
    expect(await examined(home, '--fix')).toMatchObject({ code: 0, findings: [] });
    expect(home.contents().graph).toBe(right);
  });

  test('releases the lease of a dead process, and drains its inbox', async () => {
    using home = homeWithFork();
    {
      using store = home.open();
      store.leases.acquire('main', { ...processOwner('gone'), pid: 2 ** 22 - 1, pidStart: '1' });
    }
    const raw = new Database(home.db);
    raw
      .prepare(
        `INSERT INTO inbox (ulid, tape_id, mode, source, key, body, queued_at) SELECT '01JD0000000000000000000099', id, 'queue', 'test', 'k', ?, 0 FROM tape WHERE name = 'main'`,
      )
      .run(JSON.stringify({ type: 'append', drafts: [user('left behind')] }));
    raw.close();
    expect((await examined(home)).findings.map(({ code }) => code)).toContain('stale-lease');
    expect(await examined(home, '--fix')).toMatchObject({ code: 0, findings: [] });
    using store = home.open();
    expect([...store.entries.read('main', { kind: 'message' })]).toHaveLength(2);
    expect(store.inbox.list('main')).toEqual([]);
  });

  test('reports a message that waits for a run, and leaves it in the inbox', async () => {
    using home = homeWithFork();
    await home.tape(['send', 'main', 'later']);
    const left = { code: 0, findings: [{ code: 'inbox-waiting', fixable: false }] };
    expect(await examined(home)).toMatchObject(left);
    expect(await examined(home, '--fix')).toMatchObject({ ...left, fixed: [] });
    using store = home.open();
    expect(store.inbox.list('main')).toHaveLength(1);
  });

  test('rebuilds the table of open calls', async () => {
    using home = homeWithFork();
    {
      using store = home.open();
      store.entries.append('main', [assistant([toolCall('c1', 'read', {})])]);
    }
    const raw = new Database(home.db);
    const rows = () => raw.prepare('SELECT from_seq, to_seq, calls FROM open_calls').all();
    const right = rows();
    raw.exec('DELETE FROM open_calls');
    expect(await examined(home)).toMatchObject({ code: 5, problems: [{ code: 'open-calls-differ' }] });
    expect(await examined(home, '--fix')).toMatchObject({ code: 0, problems: [], findings: [] });
    expect(rows()).toEqual(right);
    raw.close();
  });

  test('closes files that other users can read', async () => {
    using home = homeWithFork();
    chmodSync(home.graph, 0o644);
    expect((await examined(home)).findings.map(({ code }) => code)).toEqual(['open-to-others']);
    expect(await examined(home, '--fix')).toMatchObject({ code: 0, findings: [] });
    expect(statSync(home.graph).mode & 0o777).toBe(0o600);
  });

  test('recognises backups and its own copies, and reports foreign files', async () => {
    using home = homeWithFork();
    for (const name of ['tape.db.0123456789ab.part', 'session_graph.jsonl.aside-x', 'tape.db.schema-0'])
      writeFileSync(home.file(name), '', { mode: 0o600 });
    expect((await examined(home)).findings).toEqual([]);
    writeFileSync(home.file('notes.part'), '', { mode: 0o600 });
    expect((await examined(home)).findings.map(({ code }) => code)).toEqual(['unknown-file']);
  });

  test('reports damaged entries, which it cannot repair', async () => {
    using home = homeWithFork();
    const raw = new Database(home.db);
    const trigger = raw.prepare(`SELECT sql FROM sqlite_schema WHERE name = 'entry_update'`).pluck().get();
    raw.exec('DROP TRIGGER entry_update');
    raw.exec(`UPDATE entry SET payload = replace(payload, 'hello', 'hullo') WHERE seq = 2`);
    raw.exec(String(trigger));
    raw.close();
    const found = { code: 5, ok: false, problems: [{ code: 'entry-changed', session: 'main', seq: 2 }] };
    expect(await examined(home)).toMatchObject(found);
    expect(await examined(home, '--fix')).toMatchObject(found);
  });

  test('reports a missing trigger, even before any entry is changed', async () => {
    using home = homeWithFork();
    const raw = new Database(home.db);
    raw.exec('DROP TRIGGER entry_update');
    raw.close();
    const problem = { code: 'trigger-wrong', message: 'trigger entry_update is missing' };
    expect(await examined(home)).toMatchObject({ code: 5, problems: [problem] });
    expect(await examined(home, '--fix')).toMatchObject({ code: 0, problems: [], fixed: [problem.message] });
  });
});

function rewrite(home: TempHome, change: (text: string) => string): void {
  const text = change(readFileSync(home.graph, 'utf8'));
  rmSync(home.graph);
  appendFileSync(home.graph, text, { mode: 0o600 });
}
