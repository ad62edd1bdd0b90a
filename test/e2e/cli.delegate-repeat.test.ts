import { expect, test } from 'vitest';
import { json, jsonError, startTape } from '../support/cli.ts';
import { lastUserText, startProvider } from '../support/provider.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const model = ['--model', 'openai-compatible/test-model'];
const given = ['--inherit', 'nothing', ...model];
const twoTasks = ['delegate', 'main', '--task', 'Check the docs', '--task', 'Run the tests', ...given];

interface Told {
  readonly children: readonly {
    session: string;
    status: string;
    merged: boolean;
    repeated: boolean;
    seq: number | null;
    text: string;
    usage: unknown;
  }[];
}

/** How often each child of `main` is merged, in order of creation. */
const mergesOf = (home: TempHome): number[] => {
  using store = home.open();
  const lines = [...store.lineage.read({ types: ['merge'] })];
  return store.sessions
    .list({ parent: 'main', all: true })
    .map(({ id }) => lines.filter(({ session }) => session === id).length);
};

/** A provider that answers with what was asked of it, and never answers what `hangs` says. */
const providing = async (hangs: () => RegExp | undefined) =>
  await startProvider(async (request) => {
    const text = lastUserText(request);
    if (hangs()?.test(text) === true) await new Promise(() => {});
    return { text: text.replace('Your task', 'Done') };
  });

test('after a kill the same command finds its children, runs the open ones and merges each once; so does --again', async () => {
  using home = tempHome();
  home.session('main');
  let hanging: RegExp | undefined;
  await using provider = await providing(() => hanging);
  const { env } = provider;
  const asked = (text: string) =>
    provider.requests.filter((one) => JSON.stringify(one).includes(text)).length;
  for (const [round, more] of [
    [1, []],
    [2, ['--again']],
  ] as const) {
    hanging = /tests/;
    const killed = startTape([...twoTasks, ...more], { home: home.path, env });
    await killed.until('Merged main-check');
    killed.child.kill('SIGKILL');
    await killed.done;
    hanging = undefined;
    const before = asked('Check the docs');
    const done = await home.tape([...twoTasks, ...more, '--json'], { env });
    expect(done.code).toBe(0);
    expect(json<Told>(done).children).toMatchObject([
      { status: 'completed', merged: true, repeated: true, text: 'Done: Check the docs', usage: null },
      { status: 'completed', merged: true, repeated: true, text: 'Done: Run the tests' },
    ]);
    // The child that had ended was not asked again; the other one's request names both.
    expect(asked('Check the docs')).toBe(before);
    expect(mergesOf(home)).toEqual(Array.from({ length: 2 * round }, () => 1));
  }
});

test('a repeat of a finished command runs nothing and says how to do the tasks anew', async () => {
  using home = tempHome();
  home.session('main');
  await using provider = await providing(() => undefined);
  const { env } = provider;
  const first = json<Told>(await home.tape([...twoTasks, '--json'], { env }));
  expect(first.children.map(({ repeated }) => repeated)).toEqual([false, false]);
  const again = await home.tape(twoTasks, { env });
  expect(again.code).toBe(0);
  const [docs, tests] = first.children.map(({ session }) => session);
  expect(again.stderr).toContain(
    `Hint: ${docs}, ${tests} had ended before; do such a task anew with --again`,
  );
  expect(again.stdout).toContain(`${docs} completed, merged before into main@`);
  expect(provider.requests).toHaveLength(2);
  // One task of the command, and one more.
  const mixed = ['delegate', 'main', '--task', 'Check the docs', '--task', 'Tag it', '--json', ...given];
  expect(json<Told>(await home.tape(mixed, { env })).children).toMatchObject([
    { session: docs, repeated: true, usage: null },
    { repeated: false, text: 'Done: Tag it' },
  ]);
  const anew = json<Told>(await home.tape([...twoTasks, '--again', '--json'], { env }));
  expect(anew.children.map(({ repeated }) => repeated)).toEqual([false, false]);
  // Without --again a task means its newest child.
  expect(json<Told>(await home.tape([...twoTasks, '--json'], { env })).children).toMatchObject(
    anew.children.map(({ session }) => ({ session, repeated: true })),
  );
  expect(mergesOf(home)).toEqual([1, 1, 1, 1, 1]);
});

test('one --key is one command, whatever else has its tasks; other tasks or options under it are refused', async () => {
  using home = tempHome();
  home.session('main');
  await using provider = await providing(() => undefined);
  const { env } = provider;
  const delegate = async (...args: string[]) =>
    await home.tape(['delegate', 'main', '--json', ...args, ...given], { env });
  const sessions = async (...args: string[]) =>
    json<Told>(await delegate(...args)).children.map(({ session }) => session);
  const [plain] = await sessions('--task', 'Look');
  const [keyed] = await sessions('--task', 'Look', '--key', 'nightly');
  expect(await sessions('--task', 'Look', '--key', 'nightly')).toEqual([keyed]);
  expect(await sessions('--task', 'Look')).toEqual([plain]);
  expect(keyed).not.toBe(plain);
  // A text that occurs twice is two tasks.
  const [same, other] = await sessions('--task', 'Look', '--task', 'Look');
  expect([same, other === plain]).toEqual([plain, false]);
  const requests = provider.requests.length;
  for (const [args, says, data] of [
    [
      ['--task', 'Look away', '--key', 'nightly'],
      `cannot delegate "Look away" of 'main' under key "nightly": child '${keyed}' was forked for it with another task or other options`,
      { parent: 'main', session: keyed, task: 'Look away', key: 'nightly' },
    ],
    [
      ['--task', 'Look', '--budget', 'steps=2'],
      `cannot delegate "Look" of 'main': child '${plain}' was forked for it with other options`,
      { parent: 'main', session: plain, task: 'Look' },
    ],
  ] as const)
    expect(jsonError(await delegate(...args))).toMatchObject({
      code: 'TAPE_KEY_CONFLICT',
      message: says,
      data,
      hint: expect.stringMatching(/^repeat the command with the options that main-look-.* --again$/),
    });
  expect((await delegate('--task', 'Look', '--key', '')).code).toBe(2);
  expect(provider.requests).toHaveLength(requests);
  expect(mergesOf(home)).toEqual([1, 1, 1]);
});

test('--dry-run shows the children that the command would find and make', async () => {
  using home = tempHome();
  home.session('main');
  await using provider = await providing(() => undefined);
  const { env } = provider;
  const look = ['delegate', 'main', '--task', 'Look', ...given];
  const shown = async (...args: string[]) =>
    json<Told>(await home.tape([...look, ...args, '--dry-run', '--json'], { env })).children;
  const [before] = await shown();
  const [made] = json<Told>(await home.tape([...look, '--json'], { env })).children;
  expect(before).toMatchObject({ session: made?.session, repeated: false });
  expect(await shown()).toMatchObject([{ session: made?.session, repeated: true, entries: [] }]);
  expect(await shown('--again')).toMatchObject([{ repeated: false }]);
});
