import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { assistant, processOwner, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { jsonError } from '../support/cli.ts';
import { disagreements, skipsPython } from '../support/python.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

/** What a verb prints as JSON. */
async function printed(home: TempHome, ...args: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await home.here([...args, '--json']);
  expect([args, code], stderr).toEqual([args, 0]);
  return JSON.parse(stdout) as Record<string, unknown>;
}

const idOf = async (home: TempHome, ...args: string[]) => String((await printed(home, ...args)).id);
const names = async (home: TempHome, ...args: string[]) =>
  (await home.here(['sessions', '--quiet', ...args])).stdout.split('\n').filter((line) => line !== '');

/** That all that looks for damage finds none, the program in Python too. */
async function expectSound(home: TempHome): Promise<void> {
  for (const verb of ['check', 'verify', 'audit', 'doctor'])
    expect([verb, (await home.here([verb])).code]).toEqual([verb, 0]);
  if (!skipsPython('the verifier in Python')) expect(disagreements(home.path, [])).toEqual([]);
}

test('a deleted session is in no list and under no name, and undo brings it back by its ULID', async () => {
  using home = tempHome();
  home.session('main', user('Plan the needle'), assistant('Done.'));
  {
    using store = home.open();
    store.lineage.fork('main', { name: 'kid' });
    store.sessions.update('main', { alias: { name: 'talk', reason: 'a test' } });
  }
  const { id, ...deleted } = await printed(home, 'delete', 'talk');
  expect(deleted).toEqual({
    session: 'main',
    lifecycle: 'destroyed',
    names: ['main', 'talk'],
    repeated: false,
    open_children: ['kid'],
  });
  const ulid = String(id);
  expect(await names(home)).toEqual(['kid']);
  expect(await names(home, '--all')).toEqual(['kid']);
  expect(await names(home, '--deleted')).toEqual([ulid]);
  for (const ref of ['main', 'talk', 'main~1', 'mai', ulid.slice(0, 20), 'main@2'])
    expect([ref, (await home.here(['show', ref])).code]).toEqual([ref, 3]);
  for (const name of ['main', 'talk'])
    expect(jsonError(await home.here(['log', name, '--json']))).toMatchObject({
      message: `cannot find session '${name}': it was deleted`,
      hint: `bring it back with: tape undo ${ulid}; erase it with: tape purge ${ulid}; or make a new one with: tape new ${name}`,
      data: { deleted: ulid, near: [] },
    });
  expect((await home.here(['complete', '--', 'log', 'm'])).stdout).not.toContain('main');
  // What it has is read by its id, and by its child.
  expect((await home.here(['show', `${ulid}@2`])).stdout).toContain('needle');
  expect((await home.here(['log', 'kid', '--json'])).stdout).toContain('needle');
  expect((await home.here(['lineage', 'kid'])).code).toBe(0);
  expect((await home.here(['search', 'needle', '--json'])).stdout).toContain(`"session":"${ulid}"`);
  expect(await printed(home, 'delete', ulid)).toMatchObject({ repeated: true, names: [] });
  for (const line of [
    ['append', ulid],
    ['send', ulid, 'Hi'],
    ['rename', ulid, 'new'],
    ['alias', ulid, 'new'],
    ['archive', ulid],
    ['archive', ulid, '--undo'],
    ['rewind', `${ulid}@1`],
    ['merge', 'kid', '--result', 'Done'],
  ]) {
    const refused = await home.here([...line, '--json'], { stdin: '{"role":"user","content":"More"}' });
    expect([line, jsonError(refused)]).toMatchObject([line, { code: 'TAPE_ARCHIVED' }]);
    expect(jsonError(refused)).toMatchObject({ hint: `bring it back with: tape undo ${ulid}` });
  }
  await expectSound(home);
  // The name is free, and undo is refused while another session has it.
  expect(await printed(home, 'new', 'main')).toMatchObject({ tape: 'tape:main~2', created: true });
  expect(await names(home)).toEqual(['main', 'kid']);
  const taken = await home.here(['undo', ulid, '--json']);
  expect([taken.code, jsonError(taken)]).toMatchObject([
    4,
    {
      code: 'TAPE_EXISTS',
      message: `cannot bring back '${ulid}' as 'main': another session has the name now`,
      hint: `free the name, or go on in a branch with a name of its own: tape branch ${ulid} --as NAME`,
    },
  ]);
  expect((await home.here(['branch', ulid, '--as', 'idea'])).code).toBe(0);
  const second = await idOf(home, 'delete', 'main');
  expect(await printed(home, 'undo', ulid)).toEqual({
    ...{ session: 'main', id: ulid, lifecycle: 'active' },
    names: ['main', 'talk'],
  });
  expect((await home.here(['show', 'talk'])).code).toBe(0);
  expect(await names(home, '--deleted')).toEqual([second]);
  expect((await home.here(['undo', second])).code).toBe(4);
  await expectSound(home);
});

test('no graph, overview, sum, list of children or log has a deleted session; where others hang on it, it has its ULID', async () => {
  using home = tempHome();
  home.session('main', user('One'));
  {
    using store = home.open();
    store.lineage.fork('main', { name: 'kid' });
    store.lineage.fork('kid', { name: 'grandkid' });
    store.lineage.fork('main', { name: 'gone' });
    store.entries.append('gone', [
      assistant('Done.', { model: 'm', usage: { input: 1, output: 2 }, step: { n: 1 } }),
    ]);
    store.sessions.update('gone', { task: 'completed' });
    store.sessions.open('alone');
  }
  const [gone, alone] = [await idOf(home, 'delete', 'gone'), await idOf(home, 'delete', 'alone')];
  const forms = ['lanes', 'tree', 'dot', 'mermaid', 'svg', 'json'];
  const lines = [
    ...forms.map((form) => ['graph', '--format', form]),
    ['graph', '--all'],
    ['graph', 'main'],
    ['graph', '-n', '9'],
    ['overview'],
    ['usage'],
    ['children', 'main'],
    ['log', 'main'],
    ['log', 'main', '--graph'],
    ['lineage', 'main'],
  ];
  const named = /gone|alone/;
  for (const line of lines) {
    const { code, stdout } = await home.here(line);
    expect([line, code, named.test(stdout), stdout === '']).toEqual([line, 0, false, false]);
  }
  expect((await home.here(['graph'])).stdout).not.toContain('more (--all)');
  for (const id of [gone, alone]) {
    expect((await home.here(['graph', String(id)])).stdout).toMatch(new RegExp(`${id}.* deleted`));
    expect((await home.here(['lineage', String(id)])).stdout).toContain(String(id));
  }
  // A session that is not deleted hangs on this one.
  const kid = await idOf(home, 'delete', 'kid');
  for (const line of [['graph'], ['graph', '--all'], ['graph', '--format', 'dot'], ['graph', 'grandkid']]) {
    const { stdout } = await home.here(line);
    expect(stdout.replace('grandkid', '').includes('kid ')).toBe(false);
    expect([line, stdout.includes(kid), stdout.includes('grandkid')]).toEqual([line, true, true]);
    expect(stdout).not.toContain('more (--all)');
  }
  // The graph file alone gives the same drawing.
  const drawn = (await home.here(['graph', '--all'])).stdout;
  rmSync(home.db);
  for (const suffix of ['-wal', '-shm']) rmSync(`${home.db}${suffix}`, { force: true });
  const fromFile = (await home.here(['graph', '--all'])).stdout;
  expect(fromFile.split('\n').toSorted()).toEqual(drawn.split('\n').toSorted());
});

test('an archived session that was deleted is archived again; one that is written is not deleted', async () => {
  using home = tempHome();
  home.session('main', user('One'));
  await printed(home, 'archive', 'main');
  const id = await idOf(home, 'delete', 'main');
  expect(await printed(home, 'undo', id)).toMatchObject({ lifecycle: 'archived' });
  await printed(home, 'archive', 'main', '--undo');
  using store = home.open();
  store.leases.acquire('main', processOwner('a test'));
  for (const line of [
    ['delete', 'main'],
    ['purge', 'main'],
    ['rename', 'main', 'new'],
  ])
    expect(jsonError(await home.here([...line, '--json']))).toMatchObject({ code: 'TAPE_BUSY' });
  expect(await names(home)).toEqual(['main']);
});

test('two processes that delete a session do it once, and one that deletes it again says so', async () => {
  using home = tempHome();
  home.session('main', user('One'));
  const [{ id = '' } = {}] = JSON.parse((await home.here(['sessions', '--json'])).stdout) as {
    id?: string;
  }[];
  const both = await Promise.all([home.here(['delete', id]), home.here(['delete', id])]);
  expect(both.map(({ code }) => code)).toEqual([0, 0]);
  expect(home.lines().filter(({ lifecycle }) => lifecycle === 'destroyed')).toHaveLength(1);
  expect((await home.here(['delete', 'main'])).code).toBe(3);
});

test('a rename is found and shown by its new name, and by the one that it was created with', async () => {
  using home = tempHome();
  home.session('main', user('One'));
  expect(await printed(home, 'rename', 'main', 'release')).toMatchObject({
    aliases: ['release'],
    title: 'release',
  });
  expect(await printed(home, 'rename', 'release', 'release')).toMatchObject({ repeated: true });
  expect(await printed(home, 'rename', 'release', 'final')).toMatchObject({
    aliases: ['final'],
    title: 'final',
  });
  expect((await home.here(['show', 'release'])).code).toBe(3);
  expect((await home.here(['sessions', '--format', '{session} {title}'])).stdout).toBe('main final\n');
  home.session('other', user('Two'));
  expect((await home.here(['rename', 'main', 'other'])).code).toBe(4);
  expect((await home.here(['rename', 'main', 'a b'])).code).toBe(2);
  // The name goes with the session when that is deleted, and comes back with it.
  const id = await idOf(home, 'delete', 'final');
  expect((await home.here(['rename', 'other', 'final'])).code).toBe(0);
  expect(jsonError(await home.here(['undo', id, '--json']))).toMatchObject({ data: { name: 'final' } });
  await printed(home, 'rename', 'final', 'other');
  await printed(home, 'undo', id);
  expect((await home.here(['show', 'final'])).code).toBe(0);
  await expectSound(home);
});

test('a purge leaves no text in the home, and everything sound; forks that inherit it prevent it', async () => {
  using home = tempHome();
  const bytes = Buffer.from('needle-bytes-that-are-long-enough');
  const file = { type: 'file' as const, mediaType: 'text/plain', data: new Uint8Array(bytes) };
  home.session(
    'main',
    ...Array.from({ length: 40 }, (_, i) => user(`The needle ${i} `.repeat(40))),
    user([file]),
  );
  {
    using store = home.open();
    store.sessions.open('titled', { title: 'A needle' });
    store.lineage.fork('main', { name: 'kid', intention: { nextSteps: 'Look' } });
    store.entries.append('kid', [assistant('A needle in the child.')]);
    store.lineage.merge('kid');
  }
  expect((await home.here(['search', 'needle', '--quiet'])).stdout).toContain('main@');
  const refused = await home.here(['purge', 'main', '--json']);
  expect([refused.code, jsonError(refused)]).toMatchObject([
    4,
    { code: 'TAPE_CONFLICT', data: { forks: ['kid'] }, hint: 'purge these first: tape purge kid' },
  ]);
  const would = await printed(home, 'purge', 'kid', '--dry-run');
  expect(would).toMatchObject({ session: 'kid', erased: 3, repeated: false, dry_run: true });
  expect(would.quoted_by).toEqual(['main@44', 'session_graph.jsonl:3']);
  const kid = await idOf(home, 'delete', 'kid');
  expect(jsonError(await home.here(['purge', 'main', '--json']))).toMatchObject({ data: { forks: [kid] } });
  for (const name of [kid, 'main', 'titled'])
    expect(await printed(home, 'purge', name, '--reason', 'asked for')).toMatchObject({
      repeated: false,
      wiped: true,
    });
  for (const name of readdirSync(home.path))
    expect([name, readFileSync(home.file(name)).includes('needle')]).toEqual([name, false]);
  expect((await home.here(['search', 'needle', '--quiet'])).stdout).toBe('');
  expect((await home.here(['undo', kid, '--json'])).code).toBe(4);
  // Its name is free: an interrupted purge is finished by the ULID, which the refusal of the name says.
  const gone = await home.here(['purge', 'kid', '--json']);
  expect([gone.code, jsonError(gone)]).toMatchObject([
    3,
    {
      message: "cannot find session 'kid': it was purged",
      hint: `if the purge was interrupted, finish it with: tape purge ${kid}; or make a new one with: tape new kid`,
      data: { purged: kid },
    },
  ]);
  expect(await printed(home, 'purge', kid)).toMatchObject({ erased: 0, repeated: true, wiped: true });
  expect((await home.here(['purge', kid])).stdout).toContain(
    `kid (${kid}) was purged before: nothing of it is left in the file; may still contain it: session_graph.jsonl:`,
  );
  expect((await home.here(['log', kid])).stdout).toContain('asked for');
  expect((await home.here(['sessions', '--deleted'])).stdout.match(/purged/g)).toHaveLength(3);
  expect(await printed(home, 'new', 'main')).toMatchObject({ created: true });
  await expectSound(home);
});

test('a bundle of a session that was purged names by its ULID what is still here, and what erases it', async () => {
  using home = tempHome();
  using other = tempHome();
  home.session('main', user('Plan the needle'), assistant('Done.'));
  const file = home.file('main.tape');
  await home.here(['export', 'main', '-o', file]);
  await other.here(['import', file]);
  const id = String((await printed(home, 'purge', 'main')).id);
  await home.here(['export', id, '-o', home.file('purged.tape')]);
  const { stdout, stderr } = await other.here(['import', home.file('purged.tape')]);
  expect(stdout).toContain(`it was deleted there, and is here (bring it back with: tape undo ${id})`);
  expect(stderr).toBe(
    `redacted elsewhere, and still here: ${id}@1, ${id}@2, ${id}@3; erase each with: tape redact SESSION@SEQ, or a whole session with: tape purge SESSION\n`,
  );
  expect(await names(other, '--deleted')).toEqual([id]);
  expect(await printed(other, 'purge', id)).toMatchObject({ erased: 3 });
  expect((await other.here(['undo', id])).code).toBe(4);
  await expectSound(other);
});
