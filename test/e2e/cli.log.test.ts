import { anchor, assistant, note, toolCall, toolResult, user } from '@tapedeck/tape';
import { afterAll, expect, test } from 'vitest';
import { json, jsonError, jsonLines, startTape } from '../support/cli.ts';
import { sized } from '../support/size.ts';
import { tempHome } from '../support/temp-home.ts';
import { type TerminalHome, terminalHome } from '../support/terminal-home.ts';

/** The times of the entries that a test has just written; at night, the day as well, since it is yesterday's. */
const written = /(?: {2,}| · )3 h ago$|^── [\d-]+ ──\n/gm;

/** Columns of a line: two for each ideograph, full-width form and emoji. */
const columnsOf = (row: string) => row.length + (row.match(/[\u3000-\u9fff\uff00-\uff60]/g)?.length ?? 0);

const home: TerminalHome = await terminalHome();

afterAll(() => home[Symbol.dispose]());

test('a transcript is shown as a conversation: results under their calls, no records of the program', async () => {
  expect(await home.look('log shop')).toBe(`── 2026-03-12 ──
    5   user        The totals of the shop are off by a cent. Find out     09:00
                    why, and fix it.
    7   assistant   (Rounding. The tests say which way.)        claude-x · 09:01
                    I look at the code and at the tests first.
                    Read(/home/dev/shop/src/total.ts)
                      └ export function total(lines) { … (3 lines)
                    Bash(command: npm test 2>&1 | tail -4, description: Run the…
                      └ error: FAIL total.test.ts … (3 lines)
   11   assistant   ## Cause                      claude-x · 3.0k tokens · 09:02

                    \`Math.round\` rounds **half up**; invoices round *half to
                    even*:

                    \`\`\`ts
                    … 5 more lines (tape show shop@11)
── 2026-03-13 ──
   13   user        合計は正しいですか？ 🧾 Please check the café orders   09:30
                    as well.
   14   assistant   Grep(pattern: round, path: src)             claude-x · 09:31
                      └ src/order-0.ts: Math.round … (40 lines)
   16   assistant   Forty places round half up. I list them for you.       09:32
`);
});

test('the right margin has of model and tokens what there is room for, and a result alone leaves the time its place', async () => {
  using own = tempHome();
  const meta = { model: 'claude-x', usage: { input: 1200, output: 34 } };
  own.session(
    'main',
    user('Read it.', { model: 'script:slow.json' }),
    assistant([{ type: 'text', text: 'A'.repeat(30) }, toolCall('c1', 'read', {})], meta),
    toolResult({ toolCallId: 'c1', toolName: 'read' }, `${'b'.repeat(200)}\nc`),
  );
  const log = async (columns: number, ...args: readonly string[]) => {
    const { stdout } = await own.here(['log', 'main', '--from', '2', '--no-color', ...args], {
      isTerminal: true,
      columns,
    });
    return stdout.split('\n').filter((row) => !row.startsWith('──'));
  };
  const [whole, model] = [await log(86), await log(72)];
  expect(whole[0]).toMatch(/it\. {2,}now$/);
  expect(whole[1]).toMatch(/A {2,}claude-x · 1\.2k tokens · now$/);
  expect(model[1]).toMatch(/A {2,}claude-x · now$/);
  own.session('long', assistant('word '.repeat(60), meta));
  const { stdout } = await own.here(['log', 'long', '--no-color'], { isTerminal: true, columns: 120 });
  expect(stdout).toMatch(/word {2,}claude-x · 1\.2k tokens · now$/m);
  // Where the first line has no room for it, a line below has, and the day of a release takes none.
  own.session('dated', assistant('word '.repeat(26), { ...meta, model: 'acme/claude-x-4-5-20250929' }));
  const dated = await own.here(['log', 'dated', '--no-color'], { isTerminal: true });
  expect(dated.stdout).toMatch(/word {2,}now\n(?:.*word\n)* +(?:word )+ *claude-x-4-5 · 1\.2k tokens\n$/);
  const full = await own.here(['log', 'dated', '--full', '--no-color'], { isTerminal: true, columns: 120 });
  expect(full.stdout).toContain('claude-x-4-5-20250929\n');
  const [result = '', ...below] = await log(80, '--role', 'tool');
  expect(result).toMatch(/… … \(2 lines\) {2,}now$/);
  expect([columnsOf(result), below.join('')]).toEqual([80, '']);
});

test('forks stand where they left, merges have their result, and what a rewind hides is one line', async () => {
  expect((await home.look('log release')).replace(written, '')).toBe(`    2   user        Plan the release.
    3   assistant   Test, tag, publish.        planner-1 · 1.2k tokens
    4   anchor      ⚓ planned {"steps":3}
        ├─ forked tests  merged  Run the tests
        ├─ forked notes  discarded  Write the notes
        ├─ forked idea  active  Try another order
    6   merge       tests 6-8 completed
                      └ All 212 tests pass. … (2 lines)
    8   discard     notes 6-7
   11   rewind      to @8, hides 2 entries (tape log release --hidden)
   12   user        Tag it.
   13   assistant   I tag it.
                    tag(version: 2.4.0, sign: true)
                      └ denied: not on a Friday
   15   event       error: cannot reach the provider: it answered 503
   16   compaction  of 2-7
                    The release is planned; the tests pass.
   17   handoff     ⚓ publish
                    Publish on Monday.
   18   user        Is it Monday?
`);
});

test('--hidden shows and marks what a rewind hides, and --all what is outside of the conversation', async () => {
  const hidden = await home.look('log release --hidden');
  expect(hidden).toMatch(/^ {3}10 × assistant {3}Published\. .*\n {3}11 × rewind {6}to @8 /m);
  expect(hidden).not.toContain('--hidden');
  const all = await home.look('log release --all --oneline');
  expect(all.split('\n').map((line) => line.slice(0, 19).trim())).toEqual([
    '1   anchor',
    '2   user',
    '3   assistant',
    '4   anchor',
    '5   event',
    '├─ forked t',
    '├─ forked n',
    '├─ forked i',
    '6   merge',
    '8   discard',
    '9 × user',
    '10 × assistant',
    '11 × rewind',
    '12   user',
    '13   assistant',
    '15   event',
    '16   compaction',
    '17   handoff',
    '18   user',
    '',
  ]);
  expect(all).toContain('merge       tests 6-8 completed: All 212 tests pass. Two are slow.\n');
});

test.each([
  ['log release -n 0', []],
  ['log release -n 1', ['18']],
  ['log release -n 8', ['8', '11', '12', '13', '15', '16', '17', '18']],
  ['log release -n 11', ['notes', 'idea', '6', '8', '11', '12', '13', '15', '16', '17', '18']],
  ['log release -n 2 --until @8', ['6', '8']],
  ['log release -n 4 --until @8', ['notes', 'idea', '6', '8']],
  ['log release --no-own', []],
  ['log release --own --until @5', ['2', '3', '4', 'tests', 'notes', 'idea']],
  ['log tests --no-own', ['2', '3', '4']],
  ['log release --since 2h', []],
  ['log release --until 2026-11-01', []],
  ['log release --since 4h --until @8', ['2', '3', '4', 'tests', 'notes', 'idea', '6', '8']],
  ['log release --role user', ['2', '12', '18']],
])('a selection has forks and rewinds as it has items, and -n counts them: %s', async (line, rows) => {
  for (const form of ['', ' --oneline']) {
    const shown = (await home.look(line + form)).matchAll(/^(?: *(\d+) [ ↑] | {8}├─ forked (\w+))/gm);
    expect([...shown].map(([, seq, fork]) => seq ?? fork)).toEqual(rows);
  }
});

test('a record that an import kept beside the conversation is listed with its type first', async () => {
  using own = tempHome();
  own.session('main', user('Go'));
  {
    using store = own.open();
    const beside = [
      { parentUuid: 'u0', type: 'progress', data: { type: 'hook_progress' } },
      { parentUuid: 'u1', type: 'system', subtype: 'turn_duration' },
      { parentUuid: 'u2', type: 'attachment', attachment: { type: 'hook_success' } },
      { mode: 'plan' },
    ];
    store.entries.append(
      'main',
      beside.map((payload) => ({ kind: 'x-claude-code', payload })),
    );
  }
  for (const form of [[], ['--oneline']]) {
    const { stdout } = await own.here(['log', 'main', '--kind', 'x-claude-code', ...form]);
    expect(stdout.match(/(?<=x-claude-code )\S+/g)).toEqual([
      'progress/hook_progress',
      'system/turn_duration',
      'attachment/hook_success',
      expect.stringMatching(/^\{"mode"/),
    ]);
  }
});

test('the day of the conversation is said once; what is out of its order says the day, what has no time none', async () => {
  const rows = (await home.look('log shop --all')).split('\n');
  expect(rows.filter((row) => row.startsWith('──') && !row.includes('ago'))).toEqual([
    '── 2026-03-12 ──',
    '── 2026-03-13 ──',
  ]);
  expect(rows.filter((row) => row.includes('x-claude-code') && /\d\d:\d\d$|ago$/.test(row))).toEqual([]);
  for (const row of rows) expect(columnsOf(row)).toBeLessThanOrEqual(80);
  using own = tempHome();
  const at = (day: string) => ({ source: 'import', timestamp: `2026-03-${day}:00.000Z` });
  const days = ['02T23:58', '03T00:01', '02T23:59', '03T00:02'];
  own.session('night', ...days.map((day) => user(`At ${day}`, at(day))));
  const { stdout } = await own.here(['log', 'night'], {
    isTerminal: true,
    columns: 60,
    env: { NO_COLOR: '1' },
  });
  expect(stdout).toBe(`── 2026-03-02 ──
    2   user        At 02T23:58                        23:58
── 2026-03-03 ──
    3   user        At 03T00:01                        00:01
    4   user        At 02T23:59             2026-03-02 23:59
    5   user        At 03T00:02                        00:02
`);
});

test('a rewind says what it undoes, and a discard why', async () => {
  using own = tempHome();
  own.session('main', user('Go'));
  const text = async (...args: string[]) => {
    const { stdout, stderr, code } = await own.here(args);
    if (code !== 0) throw new Error(stderr);
    return stdout.replace(/ {2,}\d{4}-\d\d-\d\dT.*Z$/gm, '');
  };
  await text('anchor', 'main', 'plan');
  await text('undo', 'main@3');
  await text('fork', 'main', '--as', 'kid', '--task', 'Look.');
  await text('merge', 'kid', '--result', 'Seen.');
  await text('undo', 'main@5');
  expect(await text('log', 'main')).toBe(`    2   user        Go
    4   rewind      undoes the anchor @3 (tape log main --hidden)
        ├─ forked kid  active
    7   rewind      undoes the merge @5 (tape log main --hidden)
`);
  await text('undo', 'main');
  await text('undo', 'main');
  await text('discard', 'kid', '--reason', 'not wanted');
  expect(await text('log', 'main', '--hidden')).toContain(`    7 × rewind      undoes the merge @5
    8 × rewind      undoes the rewind @7
    9 × rewind      undoes the rewind @8
   10   discard     kid 5-6: not wanted
`);
});

test('inherited entries keep their mark, and the beginning of a fork says what it inherits', async () => {
  expect((await home.look('log tests')).replace(written, '')).toBe(`    2 ↑ user        Plan the release.
    3 ↑ assistant   Test, tag, publish.        planner-1 · 1.2k tokens
    4 ↑ anchor      ⚓ planned {"steps":3}
    6   fork        from release, inherits 1-5
    7   intention   Run all tests, twice.
    8   result      All 212 tests pass.
                    Two are slow.
`);
  expect(await home.look('log tests --own --oneline')).not.toContain('↑');
});

test('every line fits the terminal, whatever its width', async () => {
  for (const columns of [60, 80, 120])
    for (const line of [
      'log shop',
      'log parser',
      'log main',
      'log release',
      'log shop --full',
      'log shop --oneline',
    ])
      for (const row of (await home.look(line, { columns })).split('\n'))
        expect({ line, row, fits: columnsOf(row) <= columns || row.includes('(tape ') }).toMatchObject({
          fits: true,
        });
});

test('--full shows whole texts, each argument on a line, whole results and whole times', async () => {
  const shown = await home.look('log shop --full');
  expect(shown).toContain(`                    Bash
                      command: npm test 2>&1 | tail -4
                      description: Run the tests
                      └ error: FAIL total.test.ts
                          expected 10.12
                          received 10.13
`);
  expect(shown).toContain('src/order-39.ts: Math.round');
  expect(shown).toContain('- 10.135 is 10.14');
  expect(shown).toContain('2026-03-13T09:32:00Z');
  expect(shown).not.toContain('more lines');
});

test('a pipe gets whole lines and whole times', async () => {
  const shown = await home.look('log shop', { isTerminal: false });
  expect(shown).toContain(
    'The totals of the shop are off by a cent. Find out why, and fix it.  2026-03-12T09:00:00Z\n',
  );
  expect(await home.look('log shop --times relative', { isTerminal: false })).toContain('── 2026-03-12 ──\n');
});

test.each([
  ['log shop --role user', ['5', '13']],
  ['log shop --role assistant', ['7', '11', '14', '16']],
  ['log shop --role tool', ['8', '9', '15']],
  ['log shop --tool Bash', ['7']],
  ['log shop --grep HALF', ['11', '16']],
  ['log shop --grep order-39', ['15']],
  ['log shop --until 2026-03-12T09:01', ['5', '7']],
  ['log shop --since 2026-03-12T09:02 --until 2026-03-13', ['11']],
  ['log shop --since @11 --until @14', ['13', '14']],
  ['log shop --since @-3', ['14', '16']],
  ['log shop --since @-3 --until @-1', ['14']],
  ['log shop -n 2', ['14', '16']],
  ['log shop -n 1 --grep round', ['16']],
  ['log shop -n 3 --role tool', ['8', '9', '15']],
  ['log shop --kind tool-call -n 1', ['14']],
  ['log release --by tests', ['6']],
  ['log release --until planned', ['2', '3', '4']],
  ['log release --kind rewind', ['11']],
  ['log release --kind event', ['5', '15']],
  ['log release --since 30min', []],
])('a filter selects what is shown: %s', async (line, seqs) => {
  const rows = (await home.look(line)).matchAll(/^ *(\d+) [ ×] (?!rewind {6}to @8, hides)/gm);
  expect([...rows].map(([, seq]) => seq)).toEqual(seqs);
});

test('what is looked for is shown, also where it is not at the beginning', async () => {
  expect(await home.look('log shop --grep order-39')).toContain(
    '└ Grep: src/order-39.ts: Math.round … (40 lines)',
  );
  expect(await home.look('log shop --grep 10.135')).toContain('   11   assistant   - 10.135 is 10.14');
});

test('programs get all entries of a selection, whatever people see of it', async () => {
  const seqs = async (...words: string[]) =>
    jsonLines<{ seq: number }>(await home.here(['log', ...words, '--jsonl'])).map(({ seq }) => seq);
  expect(await seqs('release')).toEqual(Array.from({ length: 18 }, (_, i) => i + 1));
  expect(await seqs('release', '-n', '2', '--role', 'user')).toEqual([12, 18]);
  expect(await seqs('release', '--by', 'tests')).toEqual([6, 7]);
  expect(await seqs('shop', '--tool', 'Bash')).toEqual([7, 9]);
  expect(await seqs('shop', '--grep', 'math.ROUND')).toEqual([8, 11, 15]);
  expect(await seqs('release', '--since', 'planned', '--until', '@7')).toEqual([5, 6, 7]);
  expect(jsonError(await home.here(['log', 'release', '--until', 'nowhere', '--json']))).toMatchObject({
    code: 'TAPE_NO_ANCHOR',
  });
  expect(jsonError(await home.here(['log', 'release', '--by', 'nobody', '--json']))).toMatchObject({
    code: 'TAPE_NO_SESSION',
  });
});

test('--stat sums up what is selected, and the children', async () => {
  expect(await home.look('log shop --stat')).toBe(`entries   16
messages  2 user, 4 assistant
calls     Read ×1, Bash ×1, Grep ×1
tokens    12550
time      2026-03-12T09:00:00Z to 2026-03-13T09:32:00Z (25 h)
`);
  expect(json(await home.here(['log', 'release', '--stat', '--json']))).toMatchObject({
    session: 'release',
    entries: 18,
    messages: { user: 4, assistant: 3, merge: 1 },
    tools: [{ tool: 'tag', calls: 1 }],
    tokens: 1234,
    children: { merged: 1, discarded: 1, active: 1 },
    complete: true,
  });
  expect(json(await home.here(['log', 'shop', '--stat', '--json', '--role', 'user']))).toMatchObject({
    entries: 2,
    tokens: 0,
  });
});

test('a log without a conversation says where its entries are', async () => {
  using empty = tempHome();
  empty.session('main');
  const { stdout, stderr } = await empty.here(['log', 'main']);
  expect([stdout, stderr]).toEqual([
    '',
    'Nothing of the conversation is selected: list all entries with tape log main --all\n',
  ]);
});

test('results that come in another order are below their own calls, however many calls there are', async () => {
  using many = tempHome();
  const names = Array.from({ length: 100 }, (_, i) => `call-${i}`);
  const call = (id: string) => toolCall(id, 'read', { id });
  const back = (id: string) => toolResult({ toolCallId: id, toolName: 'read' }, `result of ${id}`);
  many.session('main', user('Go'), assistant(names.map(call)), ...names.toReversed().map(back), user('Next'));
  const { stdout } = await many.here(['log', 'main', '-n', '2']);
  const rows = stdout.split('\n').filter((row) => /read|└/.test(row));
  expect(rows.map((row) => /call-\d+/.exec(row)?.[0])).toEqual(names.flatMap((name) => [name, name]));
});

test('many children that left at one place are counted', async () => {
  using forked = tempHome();
  forked.session('main', ...Array.from({ length: 10 }, (_, i) => user(`prompt ${i}`)));
  const children = sized(60, 200, 1500);
  {
    using store = forked.open();
    for (let i = 0; i < children; i += 1)
      store.lineage.fork('main', { name: `child-${i}`, cut: i < 50 ? '@5' : `@${6 + (i % 3)}` });
  }
  const { stdout } = await forked.here(['log', 'main']);
  expect(stdout).toContain('├─ forked child-4  active\n        ├─ 45 more (tape children main)\n');
  expect(stdout.split('\n').length).toBeLessThan(40);
  expect((await forked.here(['log', 'main', '-n', '2'])).stdout.split('\n')).toHaveLength(3);
});

test('a child has its whole name, as long as any line has room for it', async () => {
  using forked = tempHome();
  forked.session('main', user('Go'));
  const name = 'a-child-with-a-name-of-forty-five-characterss';
  {
    using store = forked.open();
    store.lineage.fork('main', { name, title: 'Its title' });
  }
  const rows = async (columns: number) => {
    const { stdout } = await forked.here(['log', 'main', '--no-color'], { isTerminal: true, columns });
    const lines = stdout.split('\n');
    return lines.slice(
      lines.findIndex((line) => line.includes('├─')),
      -1,
    );
  };
  expect(await rows(90)).toEqual([`        ├─ forked ${name}  active  Its title`]);
  expect(await rows(68)).toEqual([`        ├─ forked ${name}`, '        │         active']);
  expect(await rows(56)).toEqual(['        ├─ forked  active', `        │  ${name}`]);
  expect(await rows(50)).toEqual(['  ├─ forked  active', `  │  ${name}`]);
  expect(await rows(40)).toEqual(['  ├─ forked  active', '  │  a-child-with-a-name-of-…characterss']);
});

test('--follow shows calls as they are made, and their results as they come', async () => {
  using followed = tempHome();
  followed.session('main', user('Go'));
  const following = startTape(['log', 'main', '--follow', '--times', 'relative'], { home: followed.path });
  await following.until('Go');
  const call = toolCall('c1', 'read', { path: 'a.ts' });
  {
    using store = followed.open();
    store.entries.append('main', [assistant([call]), note('app/note', { message: 'unseen' })]);
    await following.until('read(a.ts)');
    store.entries.append('main', [
      toolResult({ toolCallId: 'c1', toolName: 'read' }, 'one\ntwo'),
      anchor('done'),
    ]);
  }
  await following.until('done');
  following.child.kill('SIGINT');
  const { code, stdout } = await following.done;
  expect(code).toBe(130);
  expect(stdout.replace(/ {2,}(?:now|\d+ s ago)$/gm, '')).toBe(`    2   user        Go
    3   assistant   read(a.ts)
    5   tool        └ read: one … (2 lines)
    6   anchor      ⚓ done
`);
});

test('notes of runs, titles and answers to calls are in words, and other events as they are', async () => {
  using own = tempHome();
  const run = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
  own.session(
    'notes',
    user('Go'),
    note('session/title', { title: 'Release 2.4.0' }),
    note('run/retrying', { run, attempt: 1, message: 'overloaded', delay_ms: 500 }),
    note('run/interrupted', { run }),
    assistant([toolCall('c1', 'publish', { version: '2.4.0' })]),
    note('run/waiting', { run, calls: [{ toolCallId: 'c1', toolName: 'publish', for: 'approval' }] }),
    note('call/answered', { toolCallId: 'c1', approved: false, reason: 'not on a Friday' }),
    note('run/begun', { run, calls: [{ toolCallId: 'c1' }] }),
    note('run/aborted', { run, reason: 'interrupted', unbegun: [] }),
    note('run/halted', { run, limit: 'steps', message: 'the run reached 5 steps' }),
    note('build/started', { commit: 'a1b2c3d' }),
  );
  const events = async (...args: string[]) =>
    (await own.here(['log', 'notes', '--oneline', ...args])).stdout
      .split('\n')
      .flatMap((row) => / event +(.*)/.exec(row)?.[1] ?? []);
  expect(await events('--all')).toEqual([
    'title: Release 2.4.0',
    'retrying: overloaded',
    'interrupted',
    'waiting: publish (approval)',
    'denied c1: not on a Friday',
    'begun: c1',
    'aborted: interrupted',
    'halted: the run reached 5 steps',
    'build/started {"commit":"a1b2c3d"}',
  ]);
  expect(await events()).toEqual(['aborted: interrupted', 'halted: the run reached 5 steps']);
});

test('after an undo a log hides nothing, and a rewind hides as many entries as its receipt says', async () => {
  using own = tempHome();
  own.session('main', user('Idea'), assistant('Done.'));
  const hidden = async () =>
    (await own.here(['log', 'main'])).stdout.split('\n').filter((row) => row.includes('hides'));
  const told = async (...args: string[]) => (await own.here(args)).stdout;
  for (let i = 0; i < 3; i += 1) {
    const receipt = i === 0 ? await told('rewind', 'main@2') : await told('undo', 'main');
    expect(receipt).toMatch(/\b2 (?:entries )?hidden/);
    expect(await hidden()).toEqual([
      expect.stringMatching(/rewind +to @1, hides 2 entries \(tape log main --hidden\)$/),
    ]);
    expect(await told('undo', 'main')).toContain('2 entries shown again');
    expect(await hidden()).toEqual([]);
  }
});

test('a tool that the session does not call is answered with those that it calls', async () => {
  for (const more of [[], ['--oneline'], ['--all'], ['-n', '3']]) {
    const { stdout, stderr, code } = await home.here(['log', 'shop', '--tool', 'Bsah', ...more]);
    expect({ stdout, code }).toEqual({ stdout: '', code: 0 });
    expect(stderr).toBe('No calls of Bsah are selected: the session calls Read, Bash, Grep\n');
  }
  expect(await home.here(['log', 'shop', '--tool', 'Bsah', '--jsonl'])).toMatchObject({
    stdout: '',
    stderr: '',
    code: 0,
  });
  using own = tempHome();
  own.session('main', user('Hi'));
  expect((await own.here(['log', 'main', '--tool', 'Bash'])).stderr).toBe(
    'No calls of Bash are selected: the session calls no tool\n',
  );
});

test('a line for each item has what was said first, then each call with its result', async () => {
  using own = tempHome();
  own.session(
    'main',
    user('Go'),
    assistant([{ type: 'reasoning', text: 'Hm.' }, toolCall('c1', 'publish', { version: '2.4.0' })]),
    toolResult({ toolCallId: 'c1', toolName: 'publish' }, 'published\nat once'),
    assistant([{ type: 'text', text: 'Done.' }, toolCall('c2', 'wait', { text: 'x'.repeat(500) })]),
    toolResult({ toolCallId: 'c2', toolName: 'wait' }, 'waited'),
    assistant([{ type: 'reasoning', text: 'Cut off' }]),
  );
  {
    using store = own.open();
    store.lineage.fork('main', { name: 'kid', intention: { nextSteps: 'Look again' } });
  }
  expect((await own.here(['log', 'kid', '--oneline'])).stdout).toBe(`    2 ↑ user        Go
    3 ↑ assistant   publish(2.4.0) → published
    5 ↑ assistant   Done. wait(${'x'.repeat(54)}… → waited
    7 ↑ assistant   (reasoning: Cut off)
    8   fork        from main, inherits 1-7
    9   intention   Look again
`);
});

test('what a log tells to type names the home that the user named', async () => {
  using own = tempHome();
  own.session('main', user('one\n'.repeat(30)), user('hidden'));
  await own.here(['rewind', 'main@3']);
  const here = ['log', 'main', '--home', own.path];
  const { stdout } = await own.here(here);
  expect(stdout).toContain(`(tape show --home ${own.path} main@2)`);
  expect(stdout).toContain(`(tape log --home ${own.path} main --hidden)`);
  expect((await own.here([...here, '--grep', 'nothing'])).stderr).toContain(
    `tape log --home ${own.path} main --all`,
  );
});

test('a call looks the same in every verb', async () => {
  using own = tempHome();
  own.session(
    'main',
    user('Go'),
    assistant([toolCall('c1', 'publish', { version: '2.4.0' }), toolCall('c2', 'restart', {})]),
    toolResult({ toolCallId: 'c1', toolName: 'publish' }, 'published'),
    toolResult({ toolCallId: 'c2', toolName: 'restart' }, 'restarted'),
  );
  {
    using store = own.open();
    store.lineage.fork('main', { name: 'other', cut: 2 });
  }
  const lines = [
    ['log', 'main'],
    ['log', 'main', '--oneline'],
    ['blame', 'main'],
    ['diff', 'other', 'main'],
  ];
  for (const words of lines) {
    const { stdout } = await own.here(words);
    expect(stdout, words.join(' ')).toContain('publish(2.4.0)');
    expect(stdout, words.join(' ')).toContain('restart()');
  }
  // A name of an argument that is not shown is found, too.
  expect((await own.here(['log', 'main', '--grep', 'version'])).stdout).toContain('publish(2.4.0)');
});

test('a search shows an anchor and an event in words, unless what is found is elsewhere in them', async () => {
  using own = tempHome();
  own.session('main', user('Plan'), note('run/aborted', { run: 'r1', reason: 'interrupted', unbegun: [] }));
  {
    using store = own.open();
    const { session } = store.lineage.fork('main', { name: 'idea', intention: { nextSteps: 'Look at it' } });
    store.entries.append(session, [assistant('Seen.')]);
    store.lineage.merge('idea');
  }
  const found = async (text: string) => (await own.here(['search', text])).stdout;
  expect(await found('merge/idea')).toMatch(/^main@\d+ anchor: ⚓ merge\/idea \d+-\d+ result, completed$/m);
  expect(await found('fork/start')).toMatch(/^idea@\d+ anchor: ⚓ fork\/start from main, inherits 1-3$/m);
  expect(await found('Look at')).toMatch(/^idea@\d+ anchor: ⚓ intention Look at it$/m);
  expect(await found('interrupted')).toBe('main@3 event (seen by 2 sessions): aborted: interrupted\n');
  const [merge] = json<{ hits: { snippet: string }[] }>(
    await own.here(['search', 'merge/idea', '--json']),
  ).hits;
  const id = /[0-9A-Z]{26}/.exec(merge?.snippet ?? '')?.[0] ?? '';
  expect(await found(id)).toContain(id);
});

test('show has the names of the tools that a model was sent, and their definitions with --full', async () => {
  using home = tempHome();
  const tools = [{ name: 'look', description: 'Look it up', schema: { type: 'object' } }];
  home.session('main', user('Plan.'), { ...assistant('Planned.'), meta: { tools } });
  const shown = async (...args: string[]) => (await home.here(['show', 'main@3', ...args])).stdout;
  expect(await shown()).toContain('meta  {"tools":["look"]}');
  expect(await shown('--full')).toContain('Look it up');
  expect(await shown('--json')).toContain('Look it up');
});
