import { linkSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { assistant, user } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { rawDb } from '../support/raw-db.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

interface Section {
  readonly ok: boolean;
  readonly findings: readonly {
    readonly id: string;
    readonly code: string;
    readonly weight: string;
    readonly next: string | null;
  }[];
}

function homeWithFork(): TempHome {
  const home = tempHome();
  home.session('main', user('hello'));
  using store = home.open();
  store.lineage.fork('main', { name: 'child', intention: { nextSteps: 'Do it.' } });
  return home;
}

async function checked(home: TempHome, ...options: string[]) {
  const { code, stdout, stderr } = await home.here(['check', '--json', ...options]);
  const { sections, ...rest } = JSON.parse(stdout) as {
    ok: boolean;
    sections: Record<string, Section>;
    fixed: string[];
    acknowledged: string[];
  };
  const ids = Object.values(sections).flatMap(({ findings }) => findings.map(({ id }) => id));
  return { code, stderr, ids, sections, ...rest };
}

/** Changes a row that a trigger protects. */
function tamper(home: TempHome, trigger: string, sql: string): void {
  using db = rawDb(home.db);
  const [row] = db.all<{ sql: string }>(`SELECT sql FROM sqlite_schema WHERE name = '${trigger}'`);
  db.exec(`DROP TRIGGER ${trigger}`);
  db.exec(sql);
  db.exec(row?.sql ?? '');
}

describe('tape check', () => {
  test('finds nothing in a sound home, and changes nothing', async () => {
    using home = homeWithFork();
    const before = home.contents();
    expect(await checked(home)).toMatchObject({ code: 0, ok: true, ids: [], stderr: '' });
    expect((await home.here(['check'])).stdout).toBe(
      'home: ok\nintegrity: ok\nlineage: ok\ngraph file: ok\ncompleteness: ok\n2 sessions, 4 entries\n',
    );
    expect(home.contents()).toEqual(before);
  });

  test('exits 1 for unfinished work alone, and 5 for damage beside it', async () => {
    using home = homeWithFork();
    {
      using store = home.open();
      store.entries.append('child', [assistant('Done.')]);
    }
    const open = await checked(home);
    expect(open).toMatchObject({ code: 1, ok: false, ids: ['fork-not-merged:child@5'] });
    expect(open.sections.completeness).toMatchObject({ ok: false, findings: [{ next: 'tape merge child' }] });
    expect(open.sections.integrity?.ok).toBe(true);
    tamper(home, 'entry_update', `UPDATE entry SET payload = replace(payload, 'hello', 'hullo')`);
    const damaged = await checked(home);
    expect(damaged).toMatchObject({ code: 5, ids: ['entry-changed:main@2', 'fork-not-merged:child@5'] });
    expect((await home.here(['check', '--quiet'])).stdout).toBe('damaged\n');
    // Of one session: what it inherits, too, and the work below it.
    expect(await checked(home, 'child')).toMatchObject({ code: 5, ids: damaged.ids });
  });

  test('notes are shown, and exit 0', async () => {
    using home = homeWithFork();
    writeFileSync(home.file('notes.txt'), '', { mode: 0o600 });
    writeFileSync(home.graph, '');
    const { code, ok, sections } = await checked(home);
    expect([code, ok]).toEqual([0, true]);
    expect(sections.home).toMatchObject({
      ok: true,
      findings: [{ id: 'unknown-file:notes.txt', weight: 'note' }],
    });
    expect(sections.graph_file).toMatchObject({ ok: true, findings: [{ code: 'graph-behind' }] });
  });

  test('agrees with verify, audit and doctor about each damage of the graph file', async () => {
    using home = homeWithFork();
    const right = readFileSync(home.graph, 'utf8');
    for (const wrong of [
      'rubbish',
      `${right}rubbish\n`,
      right.replaceAll('\n', '\r\n'),
      right.replace('"child"', '"chile"'),
      right.split('\n').toReversed().join('\n'),
    ]) {
      writeFileSync(home.graph, wrong);
      const { code, sections } = await checked(home);
      const codes = sections.graph_file?.findings.map((found) => found.code);
      for (const verb of ['verify', 'doctor']) {
        const answer = await home.here([verb, '--json']);
        expect([verb, answer.code]).toEqual([verb, 5]);
        const { problems } = JSON.parse(answer.stdout) as { problems: { code: string }[] };
        expect(problems.map((found) => found.code)).toEqual(codes);
      }
      expect((await home.here(['graph'])).code).toBe(5);
      expect([code, codes?.length === 0]).toEqual([5, false]);
    }
  });

  test('a graph file that was set aside is a finding until it is acknowledged', async () => {
    using home = homeWithFork();
    writeFileSync(home.graph, 'rubbish');
    expect((await home.here(['new', 'more'])).code).toBe(0);
    const { code, ids, sections } = await checked(home);
    const [id = ''] = ids;
    expect([code, ids]).toEqual([5, [expect.stringMatching(/^graph-aside:[0-9a-f]{8}$/)]]);
    expect(sections.graph_file?.findings[0]?.next).toBe(`tape check --acknowledge ${id}`);
    expect((await home.here(['check', '--acknowledge', 'graph-aside:none'])).code).toBe(3);
    expect((await home.here(['check', '--acknowledge', 'entry-changed:main@2'])).code).toBe(2);
    expect((await home.here(['check', '--acknowledge', 'none'])).stderr).toContain(
      "it is not 'graph-aside:…'",
    );
    expect(await checked(home, '--acknowledge', id)).toMatchObject({ code: 0, ids: [], acknowledged: [id] });
    expect(await checked(home, '--acknowledge', id)).toMatchObject({ code: 0 });
    expect(await checked(home)).toMatchObject({ code: 0, ids: [] });
    // The evidence stays, and the same damage again is a new finding.
    writeFileSync(home.graph, 'rubbish');
    await home.here(['new', 'again']);
    expect((await checked(home)).ids).toEqual([`${id}.2`]);
    expect(readdirSync(home.path).filter((name) => name.includes('.aside-'))).toHaveLength(2);
  });

  test('--fix leaves a link in the place of the graph file, and repairs the rest', async () => {
    using home = homeWithFork();
    rmSync(home.graph);
    writeFileSync(home.file('config.yaml'), '', { mode: 0o644 });
    symlinkSync(home.file('config.yaml'), home.graph);
    const { code, ids, fixed } = await checked(home, '--fix');
    expect([code, fixed.length]).toEqual([5, 1]);
    expect(ids).toContain('graph-unreadable');
    expect(readFileSync(home.file('config.yaml'), 'utf8')).toBe('');
  });

  test('--fix rebuilds what can be rebuilt, and keeps the finding of the file that it sets aside', async () => {
    using home = homeWithFork();
    const right = home.contents().graph;
    writeFileSync(home.graph, right.replace('"child"', '"chile"'));
    tamper(home, 'entry_delete', 'DROP INDEX entry_turn');
    expect((await checked(home)).code).toBe(5);
    const { code, ids, fixed } = await checked(home, '--fix');
    const aside = expect.stringMatching(/^graph-aside:[0-9a-f]{8}$/);
    expect([code, ids, fixed.length]).toEqual([5, [aside], 2]);
    expect(home.contents().graph).toBe(right);
    expect(await checked(home)).toMatchObject({ code: 5, ids });
    expect(await checked(home, '--acknowledge', ids[0] ?? '')).toMatchObject({ code: 0, ids: [] });
  });

  test('a lost database is damage, and its graph file stays as it is', async () => {
    using home = homeWithFork();
    const { graph } = home.contents();
    for (const name of readdirSync(home.path)) if (name.startsWith('tape.db')) rmSync(home.file(name));
    expect((await home.here(['new', 'another'])).code).toBe(5);
    expect(readdirSync(home.path).filter((name) => name.startsWith('tape.db'))).toEqual([]);
    for (const more of [[], ['--fix']]) {
      const { code, ids, sections } = await checked(home, ...more);
      expect([code, ids]).toEqual([5, ['database-missing']]);
      expect(sections.integrity?.findings[0]?.next).toBe('tape restore BACKUP DIR');
    }
    expect((await home.here(['graph'])).stdout).toContain('child');
    rmSync(home.graph);
    expect((await home.here(['check'])).code).toBe(3);
    // A database without sessions says no more than none.
    home.open().close();
    writeFileSync(home.graph, graph, { mode: 0o600 });
    for (const verb of ['check', 'doctor'])
      expect(await home.here([verb, '--fix'])).toMatchObject({
        code: 5,
        stdout: expect.stringContaining('database-missing'),
      });
    expect(readFileSync(home.graph, 'utf8')).toBe(graph);
    expect(readdirSync(home.path).filter((name) => name.includes('.aside-'))).toEqual([]);
  });

  test('a graph file with a second name is reported, and not called fixed', async () => {
    using home = homeWithFork();
    const second = home.file('second.jsonl');
    linkSync(home.graph, second);
    const before = readFileSync(home.graph, 'utf8');
    const made = await home.here(['fork', 'main', '--as', 'more']);
    expect(made).toMatchObject({ code: 0, stderr: expect.stringContaining('cannot be written now') });
    const fixed = await home.here(['check', '--fix', '--json']);
    expect(fixed.code).toBe(5);
    expect(JSON.parse(fixed.stdout).fixed).toEqual([]);
    const { sections } = await checked(home);
    expect(sections.graph_file?.findings).toContainEqual(
      expect.objectContaining({
        id: 'graph-unreadable',
        message: expect.stringContaining('it has 2 names; move it away'),
      }),
    );
    expect(readFileSync(home.graph, 'utf8')).toBe(before);
    rmSync(second);
    expect(JSON.parse((await home.here(['check', '--fix', '--json'])).stdout).fixed).toHaveLength(1);
    expect(await checked(home)).toMatchObject({ code: 0 });
  });

  test('findings that no command ends have no next command, and say what to do', async () => {
    using home = homeWithFork();
    rmSync(home.graph);
    symlinkSync(home.db, home.graph);
    writeFileSync(home.file('heads.txt'), 'hello\n', { mode: 0o600 });
    const { code, sections } = await checked(home, '--against', home.file('heads.txt'));
    expect(code).toBe(5);
    expect(sections.graph_file?.findings).toEqual([
      expect.objectContaining({
        id: 'graph-unreadable',
        next: null,
        message: expect.stringContaining('move it'),
      }),
    ]);
    expect(sections.attestation?.findings).toEqual([
      expect.objectContaining({
        id: 'attestation-invalid',
        next: null,
        message: expect.stringContaining('compare'),
      }),
    ]);
  });

  test('wrong options are named', async () => {
    using home = homeWithFork();
    expect(await home.here(['check', '--against', home.path])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('it is a directory'),
    });
    expect(await home.here(['check', '--public-key', 'key.pem'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--public-key needs --against'),
    });
  });
});
