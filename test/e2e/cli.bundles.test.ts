import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { assistant, user, view } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError, jsonLines } from '../support/cli.ts';
import { recordsOf, sealed } from '../support/hostile-bundle.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';
import { tokenShapes } from '../support/token-shapes.ts';

const secret = tokenShapes.find(([name]) => name === 'aws')?.[1] ?? '';

/** A home with `main`, and `idea`, which was forked before the last entry of `main`. */
function family(): TempHome {
  const home = tempHome();
  home.session('main', user('Why is the invoice rounded down?'));
  using store = home.open();
  store.lineage.fork('main', { name: 'idea' });
  store.entries.append('idea', [user('Look at money.ts.')]);
  store.entries.append('main', [assistant('The total is truncated.')]);
  return home;
}

/** Head and digest of the view of a session. */
function faceOf(home: TempHome, name: string): readonly [string | undefined, string] {
  using store = home.open();
  return [store.sessions.find(name)?.headHash, view(store.views.entries(name)).digest];
}

async function exported(home: TempHome, ...args: readonly string[]): Promise<string> {
  const { stdout, code, stderr } = await home.tape(['export', ...args]);
  expect(code, stderr).toBe(0);
  return stdout;
}

test('a session travels in a file, compressed or not, and by a pipe, and is the same there', async () => {
  using here = family();
  for (const name of ['main.tape', 'main.tape.zst', 'main.tape.gz']) {
    const file = here.file(name);
    const done = await here.tape(['export', 'main', '-o', name, '--json'], { cwd: here.path });
    expect(json(done)).toEqual({ file, session: 'main', sessions: 1, entries: 3, withheld: 0, hashed: 0 });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    // From stdin it is unpacked, too.
    for (const from of name.endsWith('.zst') ? [file, '-'] : [file]) {
      using there = tempHome();
      const stdin = from === '-' ? readFileSync(file) : '';
      expect(json(await there.tape(['import', from, '--json'], { stdin }))).toEqual({
        session: 'main',
        ...{ sessions: 1, entries: 3, filled: 0, absent: 0, names: ['main'], became: { main: 'new' } },
        ...{ aliases_taken: [], redacted_elsewhere: [] },
      });
      expect(faceOf(there, 'main')).toEqual(faceOf(here, 'main'));
      expect(there.lines()).toHaveLength(1);
    }
  }
  for (const to of [[], ['-o', '-']])
    expect(await exported(here, 'main', ...to)).toBe(readFileSync(here.file('main.tape'), 'utf8'));
  expect(readdirSync(here.path).filter((name) => name.endsWith('.part'))).toEqual([]);
});

test('--lineage and --tree take more of the family along', async () => {
  using here = family();
  using store = here.open();
  store.lineage.fork('idea', { name: 'deep' });
  const counts = async (...args: readonly string[]) => {
    using there = tempHome();
    const { sessions, entries, absent } = json(
      await there.tape(['import', '-', '--json'], { stdin: await exported(here, ...args) }),
    );
    return [sessions, entries, absent];
  };
  expect(await counts('idea')).toEqual([2, 5, 1]);
  expect(await counts('idea', '--lineage')).toEqual([2, 5, 0]);
  expect(await counts('idea', '--tree')).toEqual([3, 6, 0]);
});

test('an existing file is never replaced, and a refused export leaves none', async () => {
  using here = family();
  writeFileSync(here.file('old.tape'), 'mine');
  mkdirSync(here.file('dir'));
  const refused = async (code: number, type: string, ...args: readonly string[]) => {
    const done = await here.tape(['export', ...args, '--json'], { cwd: here.path });
    expect([args, done.code, jsonError(done).code]).toEqual([args, code, type]);
  };
  // A reader may leave the log of the database.
  const files = () => readdirSync(here.path).filter((name) => !name.startsWith('tape.db-'));
  const before = files();
  await refused(4, 'TAPE_EXISTS', 'main', '-o', 'old.tape');
  await refused(4, 'TAPE_EXISTS', 'main', '-o', 'dir');
  await refused(1, 'TAPE_CANNOT_OPEN', 'main', '-o', 'nowhere/x.tape');
  await refused(3, 'TAPE_NO_SESSION', 'mian', '-o', 'x.tape');
  await refused(2, 'CLI_USAGE', 'main', '--lineage', '--tree', '-o', 'x.tape');
  await refused(2, 'CLI_USAGE', 'main');
  expect(files()).toEqual(before);
  expect(readFileSync(here.file('old.tape'), 'utf8')).toBe('mine');
});

test('a bundle that is imported again adds nothing, and one that has grown adds what is new', async () => {
  using here = family();
  using there = tempHome();
  const first = await exported(here, 'main');
  await there.tape(['import', '-'], { stdin: first });
  const before = there.contents();
  const again = await there.tape(['import', '-'], { stdin: first });
  expect(again.stdout).toBe('main is here already: nothing to do\n');
  const named = await there.tape(['import', '-', '--as', 'other'], { stdin: first });
  expect(named.stderr).toContain('Hint: import it without --as; to give it that name, too: tape alias');
  expect(there.contents()).toEqual(before);
  await here.tape(['append', 'main'], { stdin: '{"role":"user","content":"Round it half up."}' });
  const more = await there.tape(['import', '-', '--json'], { stdin: await exported(here, 'main') });
  expect(json(more)).toMatchObject({ entries: 1, became: { main: 'grown' } });
  expect(faceOf(there, 'main')).toEqual(faceOf(here, 'main'));
  // The older file, which is behind now.
  expect(json(await there.tape(['import', '-', '--json'], { stdin: first }))).toMatchObject({ entries: 0 });
});

test('a session that went on in two ways is refused, or taken alongside; its copy grows, and is mixed with none', async () => {
  using here = family();
  using there = tempHome();
  await there.tape(['import', '-'], { stdin: await exported(here, 'main') });
  await there.tape(['append', 'main'], { stdin: '{"role":"user","content":"Round it down."}' });
  await here.tape(['append', 'main'], { stdin: '{"role":"user","content":"Is there a test?"}' });
  writeFileSync(here.file('both.tape'), await exported(here, 'main'));
  const before = there.contents();
  const refused = await there.tape(['import', here.file('both.tape')]);
  expect(refused).toEqual({
    code: 4,
    stdout: '',
    stderr:
      "Error: cannot import 'main': it went on in another way here: @4 is another entry\n" +
      'Hint: take it in beside the session, under another name, with: --as NAME\n',
  });
  expect(there.contents()).toEqual(before);
  const taken = await there.tape(['import', here.file('both.tape'), '--as', 'of-ann', '--json']);
  expect(json(taken)).toMatchObject({ session: 'of-ann', entries: 4, became: { 'of-ann': 'copy' } });
  expect(faceOf(there, 'of-ann')[1]).toBe(faceOf(here, 'main')[1]);
  const again = await there.tape(['import', here.file('both.tape'), '--json']);
  expect(json(again)).toMatchObject({ session: 'of-ann', entries: 0 });
  await here.tape(['append', 'main'], { stdin: '{"role":"user","content":"There is."}' });
  const more = await there.tape(['import', '-', '--json'], { stdin: await exported(here, 'main') });
  expect(json(more)).toMatchObject({ session: 'of-ann', entries: 1, became: { 'of-ann': 'grown' } });
  const words = async (name: string) => (await there.here(['log', name, '--oneline'])).stdout;
  expect(await words('main')).toContain('Round it down.');
  expect(await words('main')).not.toContain('Is there a test?');
  expect(await words('of-ann')).not.toContain('Round it down.');
  expect((await there.here(['check'])).code).toBe(0);
});

test('a name that another session has is refused, and --as gives another one', async () => {
  using here = family();
  using there = tempHome();
  there.session('main', user('Mine'));
  const bundle = await exported(here, 'main', '--tree');
  const before = there.contents();
  const refused = await there.tape(['import', '-', '--json'], { stdin: bundle });
  expect(refused.code).toBe(4);
  expect(jsonError(refused)).toMatchObject({
    code: 'TAPE_EXISTS',
    message: "cannot import 'stdin:2' as 'main': another session has this name",
    hint: 'choose another name with: --as NAME',
  });
  expect(there.contents()).toEqual(before);
  for (const [as, code] of [
    ['../x', 2],
    ['main', 4],
    ['MAIN', 4],
  ] as const)
    expect((await there.tape(['import', '-', '--as', as], { stdin: bundle })).code, as).toBe(code);
  expect(there.contents()).toEqual(before);
  const taken = await there.tape(['import', '-', '--as', 'invoice', '--json'], { stdin: bundle });
  expect(json(taken)).toMatchObject({ session: 'invoice', names: ['invoice', 'idea'] });
  expect((await there.here(['check'])).code).toBe(0);
});

test('an entry with a secret travels as a hash; a bundle with --raw fills it in', async () => {
  using here = tempHome();
  here.session('main', user(`The key is ${secret} for now.`), assistant('Noted.'));
  const said = await here.tape(['export', 'main', '-o', here.file('main.tape')]);
  expect(said.stderr).toBe(
    '1 entry with a secret: only the hashes were exported; to export all, add --raw\n',
  );
  expect(readFileSync(here.file('main.tape'), 'utf8')).not.toContain(secret);
  using there = tempHome();
  const got = await there.tape(['import', here.file('main.tape')]);
  expect(got.stderr).toContain('the content of 1 entry is not here: a later bundle can add it\n');
  expect(faceOf(there, 'main')[0]).toBe(faceOf(here, 'main')[0]);
  expect(faceOf(there, 'main')[1]).not.toBe(faceOf(here, 'main')[1]);
  expect((await there.here(['log', 'main'])).stdout).toContain('(not here)');
  const verified = await there.here(['verify', '--json']);
  expect([verified.code, json(verified)]).toMatchObject([0, { not_here: [{ session: 'main', seq: 2 }] }]);
  const raw = await exported(here, 'main', '--raw');
  const hint = await there.tape(['import', '-', '--raw', '--json'], { stdin: raw });
  expect([hint.code, jsonError(hint).hint]).toEqual([
    2,
    'export it with --raw, and import it again: what was left out is added',
  ]);
  const filled = await there.tape(['import', '-', '--json'], { stdin: raw });
  expect(json(filled)).toMatchObject({ entries: 0, filled: 1, absent: 0, became: { main: 'same' } });
  expect(faceOf(there, 'main')).toEqual(faceOf(here, 'main'));
  expect(json(await there.here(['verify', '--json'])).not_here).toBeUndefined();
});

test('a file that is no whole bundle is refused at its line, and leaves nothing', async () => {
  using here = family();
  using there = tempHome();
  there.session('other');
  const bundle = await exported(here, 'main');
  const file = here.file('bad.tape');
  const before = there.contents();
  const refused = async (text: string, line: number | null, more: readonly string[] = []) => {
    writeFileSync(file, text);
    const done = await there.tape(['import', file, ...more, '--json']);
    expect([done.code, jsonError(done)]).toMatchObject([
      1,
      { code: 'TAPE_BAD_BUNDLE', data: { file, line } },
    ]);
    return jsonError(done).message;
  };
  const lines = bundle.split('\n');
  await refused(bundle.slice(0, -30), lines.length - 1);
  await refused(bundle.replace('rounded', 'founded'), lines.length - 1);
  await refused('', null, ['--format', 'bundle']);
  await refused('{"role":"user"}\n', 1, ['--format', 'bundle']);
  const records = recordsOf(bundle);
  expect(await refused(sealed([{ ...records[0], v: 3 }, ...records.slice(1)]), 1)).toContain(
    'its format has version 3, and this build reads up to 2',
  );
  const at = records.findLastIndex((record) => 'e' in record);
  const entry = records[at]?.e as unknown[];
  await refused(sealed(records.with(at, { e: entry.with(9, '{"role":"user","content":"Other"}') })), at + 1);
  expect(there.contents()).toEqual(before);
  expect(readdirSync(there.path).filter((name) => name.includes('.part'))).toEqual([]);
  expect((await there.tape(['import', here.file('none.tape')])).code).toBe(3);
  expect(existsSync(here.file('none.tape'))).toBe(false);
});

test('a session that is being written here is not added to', async () => {
  using here = family();
  using there = tempHome();
  await there.tape(['import', '-'], { stdin: await exported(here, 'main') });
  await here.tape(['append', 'main'], { stdin: '{"role":"user","content":"More."}' });
  const more = await exported(here, 'main');
  using store = there.open();
  const lease = store.leases.acquire('main', { id: 'editor' });
  const refused = await there.tape(['import', '-', '--json'], { stdin: more });
  expect([refused.code, jsonError(refused)]).toMatchObject([
    4,
    { code: 'TAPE_BUSY', hint: expect.stringContaining('tape wait main') },
  ]);
  store.leases.release(lease);
  expect(json(await there.tape(['import', '-', '--json'], { stdin: more }))).toMatchObject({ entries: 1 });
});

test('the log of an imported session can be appended to another one, but for what is not here', async () => {
  using here = tempHome();
  here.session('main', user('One'), assistant('Two'), user(`The key is ${secret} for now.`));
  using there = tempHome();
  await there.tape(['import', '-'], { stdin: await exported(here, 'main') });
  const log = await there.here(['log', 'main', '--jsonl', '--own']);
  expect(jsonLines(log).map(({ adopted, absent }) => [adopted, absent])).toEqual([
    [true, undefined],
    [true, undefined],
    [true, undefined],
    [true, true],
  ]);
  const refused = await there.tape(['append', 'copy', '--json'], { stdin: log.stdout });
  expect([refused.code, jsonError(refused).message]).toEqual([
    2,
    'cannot append: line 4: its content is not here: a bundle did not bring it',
  ]);
  const stdin = log.stdout.split('\n').slice(0, 3).join('\n');
  expect((await there.tape(['append', 'copy'], { stdin })).code).toBe(0);
  const copied = jsonLines(await there.here(['log', 'copy', '--jsonl', '--own']));
  expect(copied.map(({ payload, adopted }) => [payload, adopted]).slice(1)).toEqual(
    jsonLines(log)
      .slice(1, 3)
      .map(({ payload }) => [payload, undefined]),
  );
});
