import { setTimeout as sleep } from 'node:timers/promises';
import { processOwner } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { lastUserText, startProvider } from '../support/provider.ts';
import { entryLines } from '../support/scripted.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const model = ['--model', 'openai-compatible/test-model'];

const answering = async () =>
  await startProvider(async (request) => {
    if (!lastUserText(request).includes('has ended')) return { text: 'Checked.' };
    // Longer than a command waits before it reports what it waits for.
    await sleep(400);
    return { text: 'Noted.' };
  });

/** The messages of the parent, merges as their status alone. */
const mainOf = (home: TempHome): string[] => {
  using store = home.open();
  return entryLines(store.entries.read('main', { kind: 'message' })).map((line) =>
    line.includes('<merge-') ? `merge ${/status="(\w+)"/.exec(line)?.[1]}: ${line.split('\n').at(-2)}` : line,
  );
};

const ended = 'user: Session kid, which you started, has ended (completed).';

test.each([
  { deliver: ['--deliver', 'merge'], told: ['merge completed: Checked.'], says: /^Merged kid into main@2$/m },
  {
    deliver: ['--deliver', 'merge+turn'],
    told: ['merge completed: Checked.', `${ended} Its report is above.`, 'assistant: Noted.'],
    says: /^Running main for the result of kid\nmain@5 stop\nMerged kid into main@2$/m,
  },
  {
    deliver: ['--on-complete', 'notify_parent'],
    told: ['merge completed: Checked.', `${ended} Its report is above.`, 'assistant: Noted.'],
    says: /^Merged kid into main@2$/m,
  },
  {
    deliver: ['--deliver', 'notify'],
    told: [`${ended} Its result is not merged; it is on the tape of kid.`],
    says: /^Notified main of the end of kid \(completed\)$/m,
  },
])(
  'fork $deliver acts when another command has run the child, and not before',
  async ({ deliver, told, says }) => {
    using home = tempHome();
    home.session('main');
    await using provider = await answering();
    const { env } = provider;
    await home.tape(['fork', 'main', '--as', 'kid', '--task', 'Check the docs', ...deliver], { env });
    expect([mainOf(home), provider.requests]).toEqual([[], []]);
    const run = await home.tape(['run', 'kid', ...model], { env });
    expect(run).toMatchObject({ code: 0, stdout: 'Checked.\n' });
    expect(run.stderr).toMatch(says);
    expect(mainOf(home)).toEqual(told);
    // Again, the child has nothing to continue, and its parent reads no more of it.
    const before = [home.contents().rows, provider.requests.length];
    const again = await home.tape(['run', 'kid', ...model], { env });
    expect(again).toMatchObject({ code: 0, stdout: '' });
    expect(again.stderr).toContain('kid: nothing to continue');
    expect([home.contents().rows, provider.requests.length]).toEqual(before);
  },
);

test('a child whose parent is archived ends, and the command says that its result is not merged', async () => {
  using home = tempHome();
  home.session('main');
  await using provider = await answering();
  const { env } = provider;
  await home.tape(['fork', 'main', '--as', 'kid', '--task', 'Check the docs', '--deliver', 'merge+turn'], {
    env,
  });
  await home.tape(['archive', 'main']);
  const run = await home.tape(['run', 'kid', ...model], { env });
  expect(run).toMatchObject({ code: 0, stdout: 'Checked.\n' });
  expect(run.stderr).toBe('Hint: the result of kid is not in main; merge it with: tape merge kid\n');
  await home.tape(['archive', 'main', '--undo']);
  const merged = await home.tape(['merge', 'kid', ...model], { env });
  expect(merged.stderr).toMatch(/^Running main for the result of kid$/m);
});

test.each(['merge', 'merge+turn'])(
  'the result of a child with --deliver %s is posted to a parent that another process runs, and run says so',
  async (deliver) => {
    using home = tempHome();
    home.session('main');
    await using provider = await answering();
    const { env } = provider;
    await home.tape(['fork', 'main', '--as', 'kid', '--task', 'Check the docs', '--deliver', deliver], {
      env,
    });
    using store = home.open();
    const lease = store.leases.acquire('main', processOwner('other'));
    const run = await home.tape(['run', 'kid', ...model], { env });
    expect(run).toMatchObject({ code: 0, stdout: 'Checked.\n' });
    expect(run.stderr).toContain(
      `Posted the result of kid to the inbox of main: process ${process.pid} is running it, and merges it\n`,
    );
    expect(mainOf(home)).toEqual([]);
    store.inbox.drain(lease);
    expect(mainOf(home)[0]).toBe('merge completed: Checked.');
  },
);

test('a merge by hand runs the parent of a child with merge+turn, with the model that the command is given', async () => {
  using home = tempHome();
  home.session('main');
  await using provider = await answering();
  const { env } = provider;
  await home.tape(['fork', 'main', '--as', 'kid', '--deliver', 'merge+turn']);
  await home.tape(['append', 'kid'], { stdin: '{"kind":"result","payload":{"value":"By hand"}}\n' });
  const merged = await home.tape(['merge', 'kid', '--json', ...model], { env });
  expect(json<{ state: string }>(merged)).toMatchObject({ state: 'merged', repeated: false });
  expect(merged.stderr).toMatch(/^Running main for the result of kid\nmain@\d+ stop$/m);
  expect(mainOf(home)).toEqual([
    'merge completed: By hand',
    `${ended} Its report is above.`,
    'assistant: Noted.',
  ]);
  // The second merge finds nothing to do, and runs nothing.
  const again = await home.tape(['merge', 'kid', ...model], { env });
  expect(again.stdout).toContain('is already merged');
  expect(provider.requests).toHaveLength(1);
});

test('without a model the merge is done, and the message for the parent waits for its next run', async () => {
  using home = tempHome();
  home.session('main');
  await using provider = await answering();
  await home.tape(['fork', 'main', '--as', 'kid', '--deliver', 'merge+turn']);
  await home.tape(['append', 'kid'], { stdin: '{"kind":"result","payload":{"value":"By hand"}}\n' });
  const merged = await home.tape(['merge', 'kid']);
  expect(merged).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Merged kid:/) });
  expect(merged.stderr).toMatch(
    /^main has a message about kid in its inbox: .*no model.*\nHint: run it with: tape run main$/m,
  );
  expect(mainOf(home)).toEqual(['merge completed: By hand']);
  await home.tape(['run', 'main', ...model], { env: provider.env });
  expect(mainOf(home).at(-1)).toBe('assistant: Noted.');
});

test('fork refuses a delivery that does not exist or is given twice, and a repeat under its key with another one', async () => {
  using home = tempHome();
  home.session('main');
  const fork = async (...args: string[]) => await home.tape(['fork', 'main', '--json', ...args]);
  expect(jsonError(await fork('--deliver', 'tool-result')).code).toBe('CLI_USAGE');
  const both = await fork('--deliver', 'merge', '--on-complete', 'notify_parent');
  expect(jsonError(both)).toMatchObject({ code: 'CLI_USAGE' });
  await fork('--key', 'k', '--deliver', 'merge');
  expect(json(await fork('--key', 'k', '--deliver', 'merge'))).toMatchObject({ repeated: true });
  expect(jsonError(await fork('--key', 'k', '--deliver', 'notify')).code).toBe('TAPE_KEY_CONFLICT');
  using store = home.open();
  expect(store.sessions.list({ parent: 'main', all: true })).toHaveLength(1);
});
