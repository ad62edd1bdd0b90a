import { anchor, assistant, note, type SqliteTapeStore, toolCall, toolResult, user } from '@tapedeck/tape';
import type { Forger } from './forge.ts';
import type { Random } from './seeded.ts';

/** A session with a child and a grandchild, both merged, an alias and a rewind; and an archived session. */
export function fillForForgeries(store: SqliteTapeStore): void {
  store.sessions.open('main');
  store.entries.append('main', [user('Look.'), anchor('task', { goal: 'x' }), assistant('Hm.')]);
  store.lineage.fork('main', { name: 'child', intention: { nextSteps: 'Go' } });
  const usage = { input: 10, output: 5, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
  store.entries.append('child', [
    assistant('The sky is blue.', { model: 'a/b', usage, cost: 0.5 }),
    note('run/x', { a: 1 }),
  ]);
  store.lineage.fork('child', { name: 'grand', inherit: { since: 'task' } });
  store.entries.append('grand', [assistant('Deep.')]);
  store.lineage.merge('grand');
  store.entries.append('child', [assistant('All.')]);
  store.lineage.merge('child');
  store.sessions.update('main', { alias: { name: 'other', reason: 'y' } });
  store.history.rewind('main', 3);
  store.entries.append('main', [user('Again', { run: 'r' })]);
  store.sessions.open('old');
  store.entries.append('old', [
    user('Line 2'),
    user('Line 3'),
    assistant([toolCall('c', 'read', {})], { usage }),
    toolResult({ toolCallId: 'c', toolName: 'read' }, 'x', { paths: { read: ['a'] } }),
  ]);
  store.sessions.update('old', { lifecycle: 'archived' });
}

const values = ['NULL', '0', '1', '3', '99', '-1', '1.5', "''", "'x'", "'[]'", "'{}'", "'null'", "x'00'"];
const sessions = ['main', 'child', 'grand', 'old'];
const found = [/"[a-z_]+":"/, /\d/, /[{[]/, /"state":\{/, /"range":\[/, /null/, /"[^"]*"/, /[a-z]/];
const put = ['', '0', 'null', '{}', '[', '"x"', '"q":"', 'é'];

/** Changes one value of one row, or a piece of one text with all hashes made anew; returns what it did. */
export function forgeAtRandom(db: Forger, random: Random): string {
  const pick = <T>(of: readonly T[]): T => of[random.below(of.length)] as T;
  const replaced = (what: string, act: (change: (text: string) => string) => void) => {
    const [from, to] = [pick(found), pick(put)];
    act((text) => text.replace(from, to));
    if (random.below(2) === 0) db.relink();
    return `${what}: ${from} to ${to}`;
  };
  const table = pick(['tape', 'lineage', 'text', 'line', 'usage', 'open_run', 'touch', 'open_calls']);
  if (table === 'text') {
    const [session, seq] = [pick(sessions), 1 + random.below(8)];
    return replaced(`${session}@${seq}`, (by) => db.rewrite(session, seq, by));
  }
  const row = 1 + random.below(8);
  if (table === 'line') return replaced(`line ${row}`, (by) => db.reline(row, by));
  const columns = db.all<{ name: string }>(`SELECT name FROM pragma_table_info('${table}')`);
  const id = table === 'tape' ? 'id' : table === 'lineage' ? 'g' : 'tape_id';
  const sql = `UPDATE ${table} SET ${pick(columns).name} = ${pick(values)} WHERE ${id} = ${row}`;
  db.run(sql);
  return sql;
}
