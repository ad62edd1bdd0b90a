import { writeFileSync } from 'node:fs';
import { assistant, user } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { json } from '../support/cli.ts';
import { rawDb } from '../support/raw-db.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const item = `INSERT INTO inbox (ulid, tape_id, mode, source, key, body, queued_at)
  SELECT '01JD0000000000000000000099', id, 'queue', 'test', 'k', ?, 0 FROM tape WHERE name = 'bad'`;
const piece = `INSERT INTO stream_chunk SELECT id, '01M83DXP33ZCX0W17SX4FHE9NT', 0, ? FROM tape WHERE name = 'bad'`;

/** `bad` with a stored text that cannot be read, and two other sessions, of which one owes work. */
function damagedHome(sql: string, text: string): TempHome {
  const home = tempHome();
  home.session('bad');
  home.session('fine', user('Hi'), assistant('Hello.'));
  home.session('cut', user('Go', { run: 'r' }));
  using db = rawDb(home.db);
  db.run(sql, text);
  return home;
}

describe.each([
  ['an inbox item that is not JSON', item, '{broken', 'it is not JSON'],
  ['an inbox item without a type', item, 'null', 'it has no type'],
  ['a saved piece of an answer that is not JSON', piece, '{broken', 'it is not JSON'],
])('%s', (_, sql, text, why) => {
  test('is a finding of its session in status, audit and check, which check the others too', async () => {
    using home = damagedHome(sql, text);
    const status = await home.here(['status', '--all', '--json']);
    expect(status.code).toBe(5);
    expect(json(status)).toMatchObject([
      { session: 'cut', state: 'interrupted' },
      { session: 'fine', state: 'idle' },
      { session: 'bad', damage: expect.stringContaining(why) },
    ]);
    expect((await home.here(['status'])).stdout).toMatch(
      /^bad {2}idle {2}lifecycle active {2}damaged: cannot read /m,
    );
    expect(await home.here(['sessions', '--quiet'])).toMatchObject({ code: 0, stdout: 'cut\nfine\nbad\n' });
    const audit = await home.here(['audit', '--json']);
    expect(audit.code).toBe(5);
    expect(json(audit)).toMatchObject({
      ok: false,
      sessions: 3,
      findings: [
        { code: 'database-damaged', session: 'bad', message: expect.stringContaining(why) },
        { code: 'run-interrupted', session: 'cut' },
      ],
    });
    const { code, stdout } = await home.here(['check']);
    expect([code, stdout.match(/database-damaged/g)?.length]).toEqual([5, 1]);
    expect(stdout).toContain('run-interrupted');
  });

  test('stops no work on other sessions, and a recovery reports it', async () => {
    using home = damagedHome(sql, text);
    writeFileSync(home.file('answers.json'), JSON.stringify([{ text: 'Gone on.' }]));
    const model = ['--model', `script:${home.file('answers.json')}`];
    const named = await home.here(['recover', 'bad', ...model, '--json']);
    expect([named.code, json(named)]).toMatchObject([
      1,
      { failed: [{ session: 'bad', code: 'TAPE_CORRUPT', message: expect.stringContaining(why) }] },
    ]);
    expect(json(await home.here(['recover', ...model, '--json']))).toMatchObject({ resumed: ['cut'] });
    expect(await home.here(['run', 'fine', 'And?', ...model])).toMatchObject({ stdout: 'Gone on.\n' });
  });
});
