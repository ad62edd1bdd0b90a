import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { anchor, assistant, toolCall, toolResult, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonLines } from '../support/cli.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

// In each test the first command is a process of its own, as a shell has it; the others run in this one.
const transcript = fileURLToPath(new URL('../../packages/cli/demo/transcript.jsonl', import.meta.url));
const hash = expect.stringMatching(/^[0-9a-f]{64}$/);
const ulid = expect.stringMatching(/^[0-9A-HJKMNP-TV-Z]{26}$/);
const date = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

/** A session `main`: a question, an anchor, an answer with a tool. */
function withMain(): TempHome {
  const home = tempHome();
  home.session(
    'main',
    user('How many?'),
    anchor('task', { goal: 'count' }),
    assistant([{ type: 'text', text: 'Let me count.' }, toolCall('c1', 'count', { what: 'pages' })]),
    toolResult({ toolCallId: 'c1', toolName: 'count' }, 12),
    assistant('Twelve.'),
  );
  return home;
}

test('new creates a session once, and prints what it is', async () => {
  using home = tempHome();
  const created = { session: 'main', tape: 'tape:main', head: 1 };
  expect(json(await home.tape(['new', 'main', '--json']))).toEqual({ ...created, created: true });
  expect(json(await home.here(['new', 'main', '--json']))).toEqual({ ...created, created: false });
  expect(await home.here(['new', 'main', '--quiet'])).toEqual({ stdout: 'main\n', stderr: '', code: 0 });
  expect(await home.here(['new', 'main'])).toMatchObject({ code: 0, stderr: '' });
  expect(home.lines()).toHaveLength(1);
});

test('append prints positions for one line or many', async () => {
  using home = tempHome();
  const lines = '{"role":"user","content":"Hi"}\n{"kind":"event","name":"deploy","payload":{"ok":true}}\n';
  const first = await home.tape(['append', 'main', '--json'], { stdin: lines });
  expect(json(first)).toMatchObject({ session: 'main', from: 2, to: 3 });
  expect(first.stderr).toBe('Created session main\n');
  const quiet = await home.here(['append', 'main', '--quiet'], { stdin: lines });
  expect(quiet).toEqual({ stdout: '5\n', stderr: '', code: 0 });
});

test('anchor and handoff name a point', async () => {
  using home = withMain();
  const marked = await home.tape(['anchor', 'main', 'done', '--state', '{"pages":12}', '--json']);
  expect(json(marked)).toEqual({ session: 'main', seq: 7, name: 'done' });
  const handed = await home.here(['handoff', 'main', 'next', '--summary', 'Twelve pages.', '--json']);
  expect(json(handed)).toEqual({ session: 'main', seq: 8, name: 'next' });
  expect((await home.here(['anchor', 'main', 'more', '--quiet'])).stdout).toBe('main@9\n');
  const shown = json(await home.here(['show', 'main@done', '--json']));
  expect(shown).toMatchObject({ seq: 7, kind: 'anchor', payload: { state: { pages: 12 } } });
  const view = json(await home.here(['view', 'main', '--json']));
  expect(JSON.stringify(view.messages)).toContain('Twelve pages.');
  expect(JSON.stringify(view.messages)).not.toContain('How many?');
});

test('fork prints what the child inherits', async () => {
  using home = withMain();
  const whole = json(await home.tape(['fork', 'main', '--json']));
  expect(whole).toEqual({
    session: expect.stringMatching(/^main-fork-[0-9a-f]{8}$/),
    tape: `tape:${whole.session}`,
    parent: 'main',
    from_anchor: null,
    base: 6,
    range: [1, 6],
    repeated: false,
  });
  const since = ['fork', 'main', '--since', 'task', '--as', 'kid', '--task', 'Count again', '--json'];
  expect(json(await home.here(since))).toMatchObject({ session: 'kid', from_anchor: 'task', range: [4, 6] });
  expect(json(await home.here(['fork', 'main', '--from', 'task', '--json']))).toMatchObject({
    range: [4, 6],
  });
  expect(json(await home.here(['fork', 'main', '--since', '@2', '--json']))).toMatchObject({
    from_anchor: '@2',
    range: [3, 6],
  });
  expect(json(await home.here(['fork', 'main@task', '--json']))).toMatchObject({ base: 3, range: [1, 3] });
  const fresh = json(await home.here(['fork', 'main', '--inherit', 'nothing', '--json']));
  expect(fresh).toMatchObject({ range: null, from_anchor: null });
  // Between a call and its result nothing can be cut.
  const cut = json(await home.here(['fork', 'main@4', '--json']));
  expect(cut).toMatchObject({ base: 3, range: [1, 3], snapped_from: 4 });
});

test('fork prints the inherited range, or with --quiet the name alone', async () => {
  using home = withMain();
  const { stdout, stderr } = await home.tape(['fork', 'main', '--since', 'task', '--as', 'kid']);
  expect(stdout).toMatch(/^Forked kid inherits main 4-6 \(3 entries\)\n/);
  expect(stderr).toBe('');
  expect((await home.here(['fork', 'main', '--inherit', 'nothing', '--quiet'])).stdout).toMatch(
    /^main-fork-[0-9a-f]{8}\n$/,
  );
});

test('merge writes a receipt, repeats it, and checks without writing', async () => {
  using home = withMain();
  await home.tape(['fork', 'main', '--since', 'task', '--as', 'kid']);
  await home.here(['append', 'kid'], { stdin: '{"role":"assistant","content":"Thirteen."}\n' });
  const before = home.contents();
  const check = json(await home.here(['merge', 'kid', '--check', '--json']));
  expect(check).toMatchObject({ complete: true, conflicts: [] });
  expect(home.contents()).toEqual(before);
  const merged = json(await home.here(['merge', 'kid', '--json']));
  expect(merged).toEqual({
    parent: 'main',
    child: 'kid',
    state: 'merged',
    seq: 7,
    range: [7, 8],
    repeated: false,
    complete: true,
    conflicts: [],
  });
  const after = home.contents();
  expect(json(await home.here(['merge', 'kid', '--json']))).toEqual({ ...merged, repeated: true });
  expect(await home.here(['merge', 'kid', '--quiet'])).toEqual({ stdout: 'main@7\n', stderr: '', code: 0 });
  expect(home.contents()).toEqual(after);
});

test('merge takes a given result; discard leaves a receipt', async () => {
  using home = withMain();
  for (const name of ['kid', 'left']) await home.tape(['fork', 'main', '--as', name]);
  expect(await home.here(['merge', 'kid', '--result', '-'], { stdin: 'It is 13.' })).toMatchObject({
    code: 0,
  });
  const [message] = jsonLines(await home.here(['log', 'main', '-n', '1', '--jsonl']));
  expect(JSON.stringify(message?.payload)).toContain('It is 13.');
  expect(await home.here(['merge', 'kid', '--result', 'It is 14.', '--json'])).toMatchObject({ code: 4 });
  const discarded = json(await home.here(['merge', 'left', '--strategy', 'discard', '--json']));
  expect(discarded).toMatchObject({ state: 'discarded', seq: 9 });
  expect(await home.here(['merge', 'left'])).toMatchObject({ code: 4 });
});

test('merge reports a state key that both sides wrote', async () => {
  using home = withMain();
  await home.tape(['fork', 'main', '--as', 'kid']);
  await home.here(['anchor', 'kid', 'k', '--state', '{"goal":"a"}']);
  await home.here(['anchor', 'main', 'm', '--state', '{"goal":"b"}']);
  const conflicts = [{ what: 'state:goal', child: 8, parent: 7 }];
  const before = home.contents();
  const check = await home.here(['merge', 'kid', '--check', '--on-conflict', 'refuse', '--json']);
  expect(check.code).toBe(4);
  expect(json(check)).toMatchObject({ conflicts });
  expect(await home.here(['merge', 'kid', '--on-conflict', 'refuse'])).toMatchObject({ code: 4, stdout: '' });
  expect(home.contents()).toEqual(before);
  expect(json(await home.here(['merge', 'kid', '--json']))).toMatchObject({ state: 'merged', conflicts });
});

test('log prints entries as JSON lines, one document, or lines for people', async () => {
  using home = withMain();
  const entries = jsonLines(await home.tape(['log', 'main', '--jsonl']));
  expect(entries.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6]);
  expect(entries[1]).toEqual({
    session: 'main',
    tape: 'tape:main',
    seq: 2,
    kind: 'message',
    payload: { role: 'user', content: [{ type: 'text', text: 'How many?' }] },
    meta: {},
    at: date,
    hash,
  });
  expect(entries[2]).toMatchObject({ kind: 'anchor', mark: 'anchor', name: 'task' });
  expect(json(await home.here(['log', 'main', '--json']))).toEqual(entries);
  const seqs = async (...args: string[]) =>
    (await home.here(['log', 'main', '--quiet', ...args])).stdout.split('\n');
  expect(await seqs('-n', '2')).toEqual(['5', '6', '']);
  expect(await seqs('--from', '2', '--to', '3')).toEqual(['2', '3', '']);
  expect(await seqs('--since', 'task')).toEqual(['4', '5', '6', '']);
  expect(await seqs('--since', '@task', '-n', '1')).toEqual(['6', '']);
  expect(await seqs('--kind', 'tool-call')).toEqual(['4', '']);
  expect(await seqs('--kind', 'message', '-n', '2')).toEqual(['4', '6', '']);
  const human = await home.here(['log', 'main', '--oneline', '--all']);
  // A result is on the line of its call.
  expect(human.stdout.split('\n')).toHaveLength(6);
  expect(human.stdout).toContain('How many?');
});

test('log marks inherited entries, and can omit them', async () => {
  using home = withMain();
  await home.tape(['fork', 'main', '--as', 'kid']);
  const own = jsonLines(await home.here(['log', 'kid', '--own', '--jsonl']));
  expect(own.map(({ seq, tape }) => [seq, tape])).toEqual([[7, 'tape:kid']]);
  const all = jsonLines(await home.here(['log', 'kid', '--jsonl']));
  expect(all.map(({ session }) => session)).toEqual(Array(7).fill('kid'));
  expect(all.map(({ tape }) => tape)).toEqual([...Array(6).fill('tape:main'), 'tape:kid']);
  expect((await home.here(['log', 'kid', '-n', '2'])).stdout).toMatch(/^ {4}6 ↑ .*\n {4}7 {3}/);
});

test('view prints messages, their digest, and why each entry is in or out', async () => {
  using home = withMain();
  const view = json(await home.tape(['view', 'main', '--json']));
  expect(view).toEqual({
    messages: expect.any(Array),
    digest: hash,
    tokens: expect.any(Number),
    from: 1,
    to: 6,
  });
  const explained = json<{ explain: object[] }>(await home.here(['view', 'main', '--explain', '--json']));
  expect(explained).toMatchObject({ digest: view.digest });
  expect(explained.explain).toHaveLength(6);
  expect(explained.explain[1]).toEqual({ seq: 2, in: true, why: expect.any(String) });
  expect((await home.here(['view', 'main', '--quiet'])).stdout).toBe(`${view.digest}\n`);
  expect(json(await home.here(['view', 'main@2', '--json']))).toMatchObject({ to: 2 });
  const fromAnchor = json(await home.here(['view', 'main', '--policy', 'from-anchor:task', '--json']));
  expect(JSON.stringify(fromAnchor.messages)).not.toContain('How many?');
});

test('sessions and children print arrays with the documented fields', async () => {
  using home = withMain();
  await home.tape(['fork', 'main', '--since', 'task', '--as', 'kid']);
  await home.here(['merge', 'kid', '--force']);
  const kid = {
    session: 'kid',
    id: ulid,
    kind: 'subagent',
    lifecycle: 'active',
    delivery: 'merged',
    parent: 'main',
    from_anchor: 'task',
    merged_at: date,
    head: 7,
    updated_at: date,
    message_count: 0,
  };
  expect(json(await home.here(['children', 'main', '--json']))).toEqual([{ ...kid, text: '(no result)' }]);
  const all = json<object[]>(await home.here(['sessions', '--json']));
  const none = { all: 0, open: 0, merged: 0 };
  expect(all).toContainEqual({ ...kid, children: none, tokens: 0 });
  expect(all).toContainEqual({
    session: 'main',
    title: 'How many?',
    id: ulid,
    kind: 'session',
    lifecycle: 'active',
    head: 8,
    updated_at: date,
    last_message_at: date,
    message_count: 3,
    children: { ...none, all: 1, merged: 1 },
    tokens: 0,
  });
  expect(jsonLines(await home.here(['ls', '--jsonl']))).toEqual(all);
  expect((await home.here(['sessions', '--quiet', '-n', '1'])).stdout.split('\n')).toHaveLength(2);
  expect(json(await home.here(['children', 'kid', '--json']))).toEqual([]);
});

test('lineage and graph print the origin of each session', async () => {
  using home = withMain();
  await home.tape(['fork', 'main', '--since', 'task', '--as', 'kid']);
  await home.here(['fork', 'kid', '--as', 'grandkid']);
  expect(json(await home.here(['lineage', 'kid', '--json']))).toMatchObject({
    session: 'kid',
    parent: 'main',
    from_anchor: 'task',
    ancestors: ['main'],
    children: [{ session: 'grandkid', parent: 'kid' }],
  });
  expect(json(await home.here(['graph', '--format', 'json']))).toMatchObject([
    { session: 'main', children: [{ session: 'kid', children: [{ session: 'grandkid' }] }] },
  ]);
  for (const format of ['lanes', 'tree', 'dot', 'mermaid'])
    expect((await home.here(['graph', '--format', format])).stdout).toContain('grandkid');
  expect((await home.here(['log', 'main', '--graph'])).stdout).toContain('kid');
});

test('show prints one entry, or the facts of a session', async () => {
  using home = withMain();
  expect(json(await home.tape(['show', 'main@6', '--json']))).toMatchObject({
    seq: 6,
    kind: 'message',
    hash,
  });
  expect(json(await home.here(['show', 'main@head', '--json']))).toMatchObject({ seq: 6 });
  const info = json(await home.here(['show', 'main', '--json']));
  expect(info).toMatchObject({ session: 'main', id: ulid, tape: 'tape:main', head: 6, base: 0, hash });
  expect(json(await home.here(['show', String(info.id), '--json']))).toMatchObject({ session: 'main' });
  expect((await home.here(['show', 'main@6'])).stdout).toContain('Twelve.');
});

test('verify reports a clean home, and damage in the graph file', async () => {
  using home = withMain();
  await home.tape(['fork', 'main', '--as', 'kid']);
  expect(json(await home.here(['verify', '--json']))).toEqual({
    ok: true,
    sessions: 2,
    entries: 7,
    problems: [],
  });
  expect(json(await home.here(['verify', 'kid', '--json']))).toMatchObject({ ok: true, sessions: 2 });
  expect(await home.here(['verify', '--quiet'])).toEqual({ stdout: 'ok\n', stderr: '', code: 0 });
  writeFileSync(home.graph, home.contents().graph.replace('"session_id":"kid"', '"session_id":"kit"'));
  const damaged = await home.here(['verify', '--json']);
  expect(damaged.code).toBe(5);
  expect(json(damaged)).toMatchObject({ ok: false, problems: [{ code: expect.any(String), seq: null }] });
});

test('import stores a transcript once, whatever name it was given', async () => {
  using home = tempHome();
  const first = json(await home.tape(['import', transcript, '--as', 'main', '--json']));
  const names = ['main', 'main-branch-c0ffee13'];
  expect(first).toMatchObject({ sessions: 2, entries: 17, repaired: 0, derived: 0, names });
  expect(json(await home.here(['import', transcript, '--as', 'main', '--json']))).toMatchObject({
    entries: 0,
  });
  const own = await home.here(['import', transcript, '--quiet']);
  expect(own).toEqual({ code: 0, stderr: '', stdout: 'main\n' });
});

test('demo shows the main job offline, in about a second', async () => {
  using home = tempHome();
  const first = await home.process(['demo', '--home', home.path]);
  expect(first).toMatchObject({ code: 0, stderr: '' });
  expect(first.stdout).toMatch(/completed, merged into main@\d+\n.*completed, merged into main@\d+\n/);
  expect(first.stdout).toContain('all hashes match');
  expect(await home.here(['demo', '--home', home.path])).toMatchObject({ code: 4 });
});

test('help covers the whole command, and each verb', async () => {
  using home = tempHome();
  const help = await home.tape(['help', '--all']);
  expect(help).toMatchObject({ code: 0, stderr: '' });
  const [all = ''] = help.stdout.split('\nTopics:');
  const verbs = [...all.matchAll(/^ {2}([a-z]+) {2,}/gm)].map(([, verb = '']) => verb);
  expect(verbs.length).toBeGreaterThan(40);
  const pages = await Promise.all(verbs.map((verb) => home.here([verb, '--help'])));
  for (const page of pages) {
    expect(page.code).toBe(0);
    expect(page.stdout).toMatch(/^tape [a-z]+/);
    expect(page.stdout).toContain('Examples:');
  }
  expect(await home.here(['--version'])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^\d+\.\d+/),
  });
  expect(await home.here([])).toMatchObject({ code: 2 });
});
