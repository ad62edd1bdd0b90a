import { writeFileSync } from 'node:fs';
import { openTapeStore } from '@tapedeck/tape';
import { isUlid } from '@tapedeck/tape/store';
import { expect, test } from 'vitest';
import { writeSchema1 } from '../support/old-schemas.ts';
import { disagreements } from '../support/python.ts';
import { facts, rawDb } from '../support/raw-db.ts';
import { tempHome } from '../support/temp-home.ts';

/** What the tables of facts have in the columns of schema 1. */
function factsOf(path: string): unknown[] {
  using db = rawDb(path);
  return [
    db.all(
      `SELECT id, ulid, realm, name, incarnation, kind, parent_id, spawn_key, hex(request_hash), floor_seq, base_seq, head_seq,
         hex(head_hash), settled_seq, lifecycle, task, delivery, created_at, updated_at FROM tape ORDER BY id`,
    ),
    db.all('SELECT * FROM entry ORDER BY id'),
    db.all('SELECT * FROM lineage ORDER BY g'),
    db.all('SELECT alias, tape_id, reason, g FROM alias ORDER BY alias'),
  ];
}

test('a home of schema 1 is upgraded without changing a fact, and kept as it was', async () => {
  using home = tempHome();
  writeSchema1(home);
  const before = factsOf(home.db);
  {
    using store = home.open();
    expect([...store.verify()]).toEqual([]);
    expect([...store.verifyDatabase()]).toEqual([]);
    // Its answers recorded views by the rules of their time.
    expect([...store.examine()].map(({ code, session }) => [code, session])).toEqual(
      ['main-fork-0994fba7', 'main-fork-9ec6a380', 'shop'].map((session) => ['views-unproved', session]),
    );
    expect(disagreements(home.path, [])).toEqual([]);
  }
  expect(factsOf(home.db)).toEqual(before);
  expect(factsOf(home.file('tape.db.schema-1'))).toEqual(before);
  for (const verb of ['verify', 'doctor'])
    expect({ verb, ...(await home.here([verb])) }).toMatchObject({ verb, code: 0 });
  // What its sessions still owe, and nothing that the upgrade did.
  const { stdout } = await home.here(['audit', '--json']);
  expect((JSON.parse(stdout) as { findings: { code: string }[] }).findings.map(({ code }) => code)).toEqual([
    'fork-not-merged',
    'call-waiting',
  ]);
  using db = rawDb(home.db);
  expect(isUlid(db.all<{ value: string }>(`SELECT value FROM home WHERE key = 'id'`)[0]?.value ?? '')).toBe(
    true,
  );
  expect(facts(db)).toContain('main-fork-0994fba7');
});

test('a home of schema 1 keeps working', async () => {
  using home = tempHome();
  writeSchema1(home);
  using store = home.open();
  // Names of that time stay, and a repeated request finds its child by the key.
  expect(store.sessions.find('release')).toMatchObject({ session: 'main' });
  const step = ['fork', 'main', '--since', 'task-start', '--key', 'step-1', '--next-steps', 'Do step one'];
  expect((await home.here([...step, '--quiet'])).stdout).toBe('main-fork-0994fba7\n');
  expect(store.lineage.fork('main')).toMatchObject({ repeated: false });
  for (const name of ['Notes', 'notes', 'worker:01JD0000000000000000000099'])
    expect(store.sessions.open(name)).toMatchObject({ session: name, created: false });
  expect(
    store.entries.append('notes', [{ kind: 'message', payload: { role: 'user', content: 'small' } }]),
  ).toMatchObject({
    from: 2,
  });
  expect([...store.verify()]).toEqual([]);
  using other = openTapeStore(home.db, { base: 'bub' });
  expect(other.sessions.find('s1')).toMatchObject({ tape: 'bub:s1' });
  // An alias of another base does not exist here.
  expect(other.sessions.find('release')).toBeUndefined();
});

test('a call that waited in a home of schema 1 is answered, and its run continues', async () => {
  using home = tempHome();
  writeSchema1(home);
  const waiting = (await home.here(['status', 'shop', '--json'])).stdout;
  // Reading does not upgrade; the first command that writes does.
  expect(waiting).toBe('');
  expect(await home.here(['raw', 'checkpoint'])).toMatchObject({ code: 0 });
  expect((await home.here(['status', 'shop', '--json'])).stdout).toContain('"for":"approval"');
  const model = home.file('paid.json');
  writeFileSync(model, '[{"text":"I pay."},{"text":"Not paid, then."}]');
  const denied = await home.here(['approve', 'shop', 'p1', '--deny', '--model', `script:${model}`]);
  expect([denied.code, denied.stderr]).toEqual([0, expect.any(String)]);
  using store = home.open();
  const [last] = store.entries.read('shop', { kind: 'message', last: 1 });
  expect(JSON.stringify(last?.payload)).toContain('Not paid, then.');
  // New children of old sessions have names by the new rule.
  const { session } = store.lineage.fork('main', { intention: { nextSteps: 'Tag it' } });
  expect(session).toMatch(/^main-tag-it-[0-9a-f]{8}$/);
  expect((await home.here(['verify'])).code).toBe(0);
});
