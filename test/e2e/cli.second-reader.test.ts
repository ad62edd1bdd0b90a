import { linkSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { assistant, type Draft, note, user } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { type Forger, forge } from '../support/forge.ts';
import { writeSchema1 } from '../support/old-schemas.ts';
import { disagreements, skipsPython } from '../support/python.ts';
import { rawDb } from '../support/raw-db.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

type Problems = readonly (Parameters<typeof disagreements>[1][number] & {
  readonly id?: string;
  readonly weight?: string;
})[];

/** What `tape check` finds damaged in what the program in Python verifies. */
async function checked(home: TempHome): Promise<{ code: number | null; problems: Problems }> {
  const { code, stdout } = await home.here(['check', '--json']);
  const { sections } = JSON.parse(stdout) as { sections: Record<string, { findings: Problems }> };
  const problems = ['integrity', 'lineage', 'graph_file'].flatMap((name) => sections[name]?.findings ?? []);
  return { code, problems: problems.filter(({ weight }) => weight === 'damage') };
}

/** Whether the command and the program in Python find the same, and its codes. */
async function verdict(home: TempHome): Promise<{ code: number | null; codes: string[] }> {
  const { code, stdout } = await home.tape(['verify', '--json']);
  const { problems } = JSON.parse(stdout) as { problems: Problems };
  expect(disagreements(home.path, problems)).toEqual([]);
  return { code, codes: [...new Set(problems.map((problem) => problem.code))] };
}

describe.skipIf(skipsPython('the verifier in Python'))('tape verify and docs/verify.py', () => {
  test('agree on the home of the demo, and on what is done to it', async () => {
    using home = tempHome();
    expect((await home.tape(['demo', '--home', home.path])).code).toBe(0);
    expect(await verdict(home)).toEqual({ code: 0, codes: [] });
    forge(home.db, (db) => db.rewrite('main', 2, (payload) => payload.replace('"', ' "')));
    expect(await verdict(home)).toMatchObject({ code: 5, codes: ['head-contradicted'] });
  });

  test('agree on the texts of children: in pieces, without some of them, halted and filtered', async () => {
    using home = tempHome();
    const cut = (text: string) => assistant(text, { partial: true });
    const texts: Readonly<Record<string, readonly Draft[]>> = {
      pieces: [cut('One, '), note('run/interrupted', {}), assistant('two.')],
      lacking: [cut('One, '), user('Go on.'), assistant('two.')],
      halted: [assistant('One.'), note('run/halted', { message: 'enough' })],
      filtered: [assistant('One', { finish: 'content-filter' })],
      mended: [assistant('One', { finish: 'content-filter' }), assistant('One, two.')],
    };
    {
      using store = home.open();
      store.sessions.open('main');
      for (const [name, entries] of Object.entries(texts)) {
        store.lineage.fork('main', { name });
        store.entries.append(name, entries);
        store.lineage.merge(name);
      }
    }
    expect(await verdict(home)).toEqual({ code: 0, codes: [] });
  });

  test.each<[string, (forger: Forger) => void]>([
    ['an archived session that was cut by five', (db) => db.cut('old', 5)],
    ['its last entry rewritten', (db) => db.rewrite('old', 7, (text) => text.replace('Line', 'Lime'))],
    ['a parent that was cut to before a merge', (db) => db.cut('main', 2)],
    ['a merged child that was cut', (db) => db.cut('child', 1)],
    ['a merged child that was edited', (db) => db.rewrite('child', 4, (text) => text.replace('blue', 'red'))],
    [
      'the message of a merge rewritten',
      (db) => db.rewrite('main', 4, (text) => text.replace('blue', 'red')),
    ],
    ['a mark without its line', (db) => db.run(`DELETE FROM lineage WHERE type = 'merge'`)],
    [
      'a mark that covers what its child does not have',
      (db) => db.rewrite('main', 3, (text) => text.replace(/"range":\[\d+/, '"range":[1')),
    ],
    [
      'a line that names no mark',
      (db) => {
        db.reline(3, (line) => line.replace('"seq":3', '"seq":2'));
        db.run('UPDATE lineage SET seq = 2 WHERE g = 3');
        db.relink();
      },
    ],
    [
      'a mark of a session that does not exist',
      (db) =>
        db.rewrite('main', 3, (text) =>
          text.replace(/"child":"\w+"/, '"child":"01JD0000000000000000000ZZZ"'),
        ),
    ],
    ['a fork without its line', (db) => db.run(`DELETE FROM lineage WHERE type = 'fork'`)],
    [
      'a fork from another parent',
      (db) => db.rewrite('child', 3, (text) => text.replace('"parent":"0', '"parent":"1')),
    ],
  ])('agree with tape check on %s, all hashes made anew', async (_, act) => {
    using home = tempHome();
    {
      using store = home.open();
      store.sessions.open('main');
      store.entries.append('main', [user('Look.')]);
      store.lineage.fork('main', { name: 'child' });
      store.entries.append('child', [assistant('The sky is blue.')]);
      store.lineage.merge('child');
      store.sessions.open('old');
      for (let n = 2; n <= 7; n += 1) store.entries.append('old', [user(`Line ${n}`)]);
      store.sessions.update('old', { lifecycle: 'archived' });
    }
    const before = await checked(home);
    expect(before.problems).toEqual([]);
    expect(disagreements(home.path, [])).toEqual([]);
    forge(home.db, act);
    const { code, problems } = await checked(home);
    expect(code).toBe(5);
    expect(disagreements(home.path, problems, { isAudited: true })).toEqual([]);
    expect((await verdict(home)).code).toBe(5);
  });

  test.each([99, 0, -1])('agree that the row of a parent %i is missing, of its session alone', async (id) => {
    for (const session of ['child', 'grand']) {
      using home = tempHome();
      {
        using store = home.open();
        store.sessions.open('main');
        store.entries.append('main', [user('Look.')]);
        store.lineage.fork('main', { name: 'child' });
        store.entries.append('child', [assistant('The sky is blue.')]);
        store.lineage.fork('child', { name: 'grand' });
        store.entries.append('grand', [assistant('Deep.')]);
        for (const name of ['grand', 'child']) store.lineage.merge(name);
      }
      forge(home.db, (db) => db.run(`UPDATE tape SET parent_id = ${id} WHERE name = '${session}'`));
      const { code, stdout } = await home.here(['verify', '--json']);
      expect(code).toBe(5);
      const { problems } = JSON.parse(stdout) as { problems: Problems };
      expect(disagreements(home.path, problems)).toEqual([]);
      const lost = problems.filter((problem) => problem.code === 'database-damaged');
      expect(lost.map((problem) => problem.session)).toEqual([session]);
    }
  });

  test.each(['null', '7', '[]', '"x"'])(
    'agree with tape check on a meta that became %s, all hashes made anew',
    async (meta) => {
      using home = tempHome();
      home.session('main', user('Look.'), assistant('The sky is blue.', { run: 'r' }));
      forge(home.db, (db) => {
        db.run(`UPDATE entry SET meta = '${meta}' WHERE seq = 3`);
        db.rewrite('main', 2, (text) => text.replace('Look', 'Lock'));
        db.relink();
      });
      expect(await verdict(home)).toEqual({ code: 5, codes: ['database-damaged'] });
      const { code, problems } = await checked(home);
      expect([code, problems]).toMatchObject([5, [{ code: 'database-damaged', session: 'main', seq: 3 }]]);
      expect(await home.here(['view', 'main'])).toMatchObject({ code: 5 });
    },
  );

  test.each(['null', '7', '[]', '{}', '{broken', '{"g":2,"type":"fork","session":"x","session_id":"y"}'])(
    'agree on a line of the lineage that became %s',
    async (line) => {
      using home = tempHome();
      {
        using store = home.open();
        store.sessions.open('main');
        store.lineage.fork('main', { name: 'child' });
      }
      forge(home.db, (db) => db.run(`UPDATE lineage SET line = '${line}' WHERE g = 2`));
      expect(await verdict(home)).toMatchObject({ code: 5, codes: ['lineage-broken', 'graph-differs'] });
      const { code, problems } = await checked(home);
      expect(code).toBe(5);
      expect(problems.map((problem) => problem.code)).not.toContain('graph-unreadable');
      const drawn = await home.here(['graph']);
      expect([drawn.code, drawn.stderr]).toEqual([
        5,
        expect.stringContaining('cannot read line 2 of the lineage'),
      ]);
    },
  );

  test('agree on a graph file that was edited, cut short, turned round or torn', async () => {
    using home = tempHome();
    {
      using store = home.open();
      store.sessions.open('main');
      store.entries.append('main', [user('Hi')]);
      store.lineage.fork('main', { name: 'child' });
      store.entries.append('child', [assistant('Hello.')]);
      store.lineage.merge('child');
    }
    const whole = readFileSync(home.graph, 'utf8');
    const [one = '', two = '', three = ''] = whole.trimEnd().split('\n');
    const same = [
      whole,
      '',
      `${one}\n`,
      `${one}\n${two}\n${three.slice(0, 50)}`,
      `${one}\n${two.slice(0, 40)}\n\n\0\0\n${two}\n`,
      `${one}\n${two}\n${three}`,
      Buffer.concat([Buffer.from(`${whole}{"v":1,"g":4,"x":"`), Buffer.from([0xe2, 0x82])]),
      `${whole}{"v":1,"g":4,"x":"${'x'.repeat(300_000)}\n`,
    ];
    const other = [
      'rubbish\n',
      `${one}\nrubbish\n${two}\n`,
      `${one}\n{"v":1}\n${two}\n`,
      whole.replaceAll('\n', '\r\n'),
      whole.replace('"child"', '"chilt"'),
      `${two}\n${one}\n`,
      `${one}\n${three}\n`,
      `${whole}${three}\n`,
      `${one}\n{"v":1,"g":2,"x":${'['.repeat(20_000)}${']'.repeat(20_000)}}\n`,
      `${whole}rubbish\n`,
      `${whole}rubbish`,
      `${whole}7`,
      `${whole}{"v":1}`,
      `${whole}${'x'.repeat(300_000)}\n`,
      Buffer.from([0x9c, 0xff, 0xfe, 0x0a, 0x80]),
      Buffer.concat([Buffer.from(whole), Buffer.from([0xff, 0xfe, 0x0a])]),
    ];
    for (const [code, texts] of [
      [0, same],
      [5, other],
    ] as const)
      for (const text of texts) {
        writeFileSync(home.graph, text);
        expect((await verdict(home)).code, text.toString('latin1').slice(-200)).toBe(code);
      }
  });

  test.each<[string, (home: TempHome) => unknown, number]>([
    ['is a link', (home) => replaceGraph(home, () => symlinkSync(home.db, home.graph)), 5],
    ['has a second name', (home) => linkSync(home.graph, home.file('second.jsonl')), 5],
    ['is a directory', (home) => replaceGraph(home, () => mkdirSync(home.graph)), 5],
    ['is missing', (home) => rmSync(home.graph), 0],
    ['has random bytes', (home) => writeFileSync(home.graph, Buffer.from([0x9c, 0xff, 0x0a, 0x80, 0x0a])), 5],
    [
      'was set aside',
      async (home) => {
        writeFileSync(home.graph, 'rubbish\n');
        await home.here(['new', 'more']);
      },
      5,
    ],
    [
      'was set aside, and that is known',
      async (home) => {
        writeFileSync(home.graph, 'rubbish\n');
        await home.here(['new', 'more']);
        const { problems } = await checked(home);
        await home.here(['check', '--acknowledge', problems[0]?.id ?? '']);
      },
      0,
    ],
    [
      'is all that is left',
      (home) => {
        for (const name of readdirSync(home.path)) if (name.startsWith('tape.db')) rmSync(home.file(name));
      },
      5,
    ],
  ])('agree with tape check on a graph file that %s', async (_, act, expected) => {
    using home = tempHome();
    home.session('main', user('Hi'));
    await act(home);
    const { code, problems } = await checked(home);
    expect([code, problems.length]).toEqual([expected, expected === 0 ? 0 : 1]);
    expect(disagreements(home.path, problems)).toEqual([]);
  });

  test.each<[string, string]>([
    ['trigger-wrong', 'DROP TRIGGER entry_update'],
    [
      'trigger-wrong',
      'DROP TRIGGER entry_delete; CREATE TRIGGER entry_delete BEFORE DELETE ON entry WHEN 0 BEGIN SELECT 1; END',
    ],
    ['index-wrong', 'DROP INDEX entry_key; CREATE INDEX entry_key ON entry (tape_id, key)'],
    ['database-damaged', 'CREATE TRIGGER more AFTER INSERT ON entry BEGIN DELETE FROM touch; END'],
    ['database-damaged', 'CREATE TABLE more (x)'],
    ['search-wrong', 'DROP TABLE entry_fts'],
  ])('agree with tape check on the schema: %s after %s', async (expected, sql) => {
    using home = tempHome();
    home.session('main', user('Hi'));
    {
      using db = rawDb(home.db);
      db.exec(sql);
    }
    const { code, problems } = await checked(home);
    expect([code, problems.map((problem) => problem.code)]).toEqual([5, [expected]]);
    expect(disagreements(home.path, problems)).toEqual([]);
  });

  test('only the program in Python verifies a home of schema 1', async () => {
    using home = tempHome();
    writeSchema1(home);
    const { code, stderr } = await home.here(['check']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('it has schema 1')]);
    expect(disagreements(home.path, [])).toEqual([]);
    forge(home.db, (db) => db.rewrite('main', 2, (payload) => payload.replace('"', ' "')));
    expect(disagreements(home.path, [])).toContainEqual(expect.stringContaining('head-contradicted'));
    {
      using db = rawDb(home.db);
      db.exec('PRAGMA user_version = 7');
    }
    expect(() => disagreements(home.path, [])).toThrow('it has schema 7');
  });
});

function replaceGraph(home: TempHome, act: () => void): void {
  rmSync(home.graph);
  act();
}
