import { writeFileSync } from 'node:fs';
import { assistant, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonLines } from '../support/cli.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

/** An answer as a run would have recorded it. */
const answer = (input: number, meta: object = {}) =>
  assistant('Hi', { model: 'small', usage: { input, output: 1, cacheRead: 10 }, ...meta });

/** `main` with two models, `child` of it and `grandchild` of that, and `other`, archived; some calls have a cost. */
function withTree(): TempHome {
  const home = tempHome();
  using store = home.open();
  for (const name of ['main', 'other']) store.sessions.open(name);
  store.entries.append('main', [user('Go'), answer(100, { cost: 0.1 }), answer(200, { model: 'large' })]);
  store.lineage.fork('main', { name: 'child' });
  store.entries.append('child', [answer(1000, { cost: 0.2 })]);
  store.lineage.fork('child', { name: 'grandchild' });
  store.entries.append('grandchild', [answer(5), user('On'), answer(6)]);
  store.history.rewind('grandchild', 5);
  store.entries.append('other', [answer(70)]);
  store.sessions.update('other', { lifecycle: 'archived' });
  return home;
}

const sum = (steps: number, input: number) => ({
  steps,
  input,
  output: steps,
  reasoning: 0,
  cache_read: 10 * steps,
  cache_write: 0,
  total: input + 11 * steps,
});

test('usage NAME prints the usage of the session’s own calls, by model, as JSON', async () => {
  using home = withTree();
  expect(json(await home.tape(['usage', 'main', '--json']))).toEqual({
    session: 'main',
    ...sum(2, 300),
    cost: 0.1,
    window: 211,
    models: [
      { model: 'small', ...sum(1, 100), cost: 0.1 },
      { model: 'large', ...sum(1, 200) },
    ],
  });
  expect(json(await home.here(['usage', 'grandchild', '--json']))).toMatchObject({
    ...sum(2, 11),
    window: 17,
  });
  expect((await home.here(['usage', 'main', '--quiet'])).stdout).toBe('322\n');
});

test('usage NAME --tree includes forks of forks, and counts each call once', async () => {
  using home = withTree();
  const tree = json(await home.tape(['usage', 'main', '--tree', '--json']));
  expect(tree).toMatchObject({
    ...sum(2, 300),
    children: [
      {
        session: 'child',
        ...sum(1, 1000),
        children: [{ session: 'grandchild', ...sum(2, 11), children: [], tree: sum(2, 11) }],
        tree: sum(3, 1011),
      },
    ],
    tree: sum(5, 1311),
  });
  expect((await home.here(['usage', 'main', '--tree', '--quiet'])).stdout).toBe('1366\n');
});

test('usage lists every session, archived ones too, and their total', async () => {
  using home = withTree();
  const { sessions, total } = json<{ sessions: { session: string }[]; total: unknown }>(
    await home.tape(['usage', '--json']),
  );
  expect(sessions.map(({ session }) => session).sort()).toEqual(['child', 'grandchild', 'main', 'other']);
  expect(total).toMatchObject(sum(6, 1381));
  const lines = jsonLines(await home.here(['usage', '--jsonl']));
  expect(lines).toEqual(sessions);
  const trees = json<{ sessions: { session: string }[]; total: unknown }>(
    await home.here(['usage', '--tree', '--json']),
  );
  expect(trees.sessions.map(({ session }) => session).sort()).toEqual(['main', 'other']);
  expect(trees.total).toEqual(total);
});

test('usage prints a table with a heading, tabs in a pipe, and a cost where one is known', async () => {
  using home = withTree();
  expect((await home.tape(['usage', 'main', '--tree'])).stdout.split('\n')).toEqual([
    'session\tsteps\tinput\toutput\treasoning\tcache read\tcache write\ttotal\twindow\tcost',
    'main\t2\t300\t2\t0\t20\t0\t322\t211\t0.1',
    '  child\t1\t1000\t1\t0\t10\t0\t1011\t1011\t0.2',
    '    grandchild\t2\t11\t2\t0\t20\t0\t33\t17\t',
    'total\t5\t1311\t5\t0\t50\t0\t1366\t\t0.3',
    '',
  ]);
  expect((await home.here(['usage', 'main'])).stdout.split('\n').slice(2, 4)).toEqual([
    '  small\t1\t100\t1\t0\t10\t0\t111\t\t0.1',
    '  large\t1\t200\t1\t0\t10\t0\t211\t\t',
  ]);
  const [heading = '', other] = (await home.here(['usage', 'other'])).stdout.split('\n');
  expect(heading).not.toContain('cost');
  expect(other).toBe('other\t1\t70\t1\t0\t10\t0\t81\t81');
});

test('usage on a terminal aligns numbers in columns', async () => {
  using home = withTree();
  const { stdout } = await home.here(['usage', 'main', '--tree'], { isTerminal: true, columns: 100 });
  expect(stdout).toMatchInlineSnapshot(`
    "session         steps  input  output  reasoning  cache read  cache write  total  window  cost
    main                2    300       2          0          20            0    322     211   0.1
      child             1   1000       1          0          10            0   1011    1011   0.2
        grandchild      2     11       2          0          20            0     33      17
    total               5   1311       5          0          50            0   1366           0.3
    "
  `);
});

test('usage escapes control sequences in a model’s name, and names a missing session', async () => {
  using home = tempHome();
  expect((await home.here(['usage'])).code).toBe(3);
  home.session('main', answer(1), answer(2, { model: 'x\u001b[2J\nmain\t9' }));
  expect((await home.here(['usage', 'main'])).stdout).toContain('\n  x\\u{1b}[2J main 9\t1\t2\t');
  expect(await home.here(['usage', 'mian'])).toMatchObject({
    code: 3,
    stdout: '',
    stderr: expect.stringContaining("did you mean 'main'?"),
  });
});

test('usage counts what a transcript reports for its calls, each message once', async () => {
  using home = tempHome();
  const record = (uuid: number, parent: number | null, message: object) => ({
    type: (message as { role: string }).role,
    uuid: `00000000-0000-4000-8000-${String(uuid).padStart(12, '0')}`,
    parentUuid: parent === null ? null : `00000000-0000-4000-8000-${String(parent).padStart(12, '0')}`,
    sessionId: '7d4c1f0e-52a6-4b8e-9c35-1e0f6a2b9d47',
    message,
  });
  const said = (id: string, text: string, output: number) => ({
    id,
    role: 'assistant',
    model: 'claude',
    content: [{ type: 'text', text }],
    usage: {
      input_tokens: 3,
      cache_read_input_tokens: 50,
      cache_creation_input_tokens: 7,
      output_tokens: output,
    },
  });
  const records = [
    record(1, null, { role: 'user', content: 'Go' }),
    // One message over two records, whose usage grew.
    record(2, 1, said('a', 'One', 1)),
    record(3, 2, said('a', 'Two', 12)),
    record(4, 3, { role: 'user', content: 'On' }),
    record(5, 4, said('b', 'Three', 20)),
  ];
  const file = home.file('transcript.jsonl');
  writeFileSync(file, records.map((r) => `${JSON.stringify(r)}\n`).join(''));
  for (let again = 0; again < 2; again += 1)
    expect(await home.here(['import', file, '--as', 'main'])).toMatchObject({ code: 0 });
  const counts = { input: 6, output: 32, reasoning: 0, cache_read: 100, cache_write: 14, total: 152 };
  expect(json(await home.here(['usage', 'main', '--json']))).toEqual({
    session: 'main',
    steps: 2,
    ...counts,
    window: 80,
    models: [{ model: 'claude', steps: 2, ...counts }],
  });
});

test('usage prints fractional token counts as reported, and they fit the contract', async () => {
  using home = tempHome();
  writeFileSync(home.file('answers.json'), '[{"text":"Hi","usage":{"input":1.5,"output":2.25}}]');
  const model = `script:${home.file('answers.json')}`;
  const run = await home.tape(['run', 'main', 'Go', '--model', model, '--json']);
  expect(json(run)).toMatchObject({ usage: { input: 1.5, output: 2.25 } });
  const usage = { steps: 1, input: 1.5, output: 2.25, total: 3.75 };
  expect(json(await home.tape(['usage', 'main', '--json']))).toMatchObject(usage);
});

test('usage prints sums of fractions without the errors of adding them', async () => {
  using home = tempHome();
  home.session(
    'main',
    assistant('One.', { usage: { input: 0.1 } }),
    assistant('Two.', { usage: { input: 0.2 } }),
  );
  const { stdout } = await home.tape(['usage', 'main']);
  expect(stdout).toMatch(/\b0\.3\b/);
  expect(stdout).not.toContain('0.30000');
});
