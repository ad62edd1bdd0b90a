import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { anchor, assistant, processOwner, toolCall, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

/** `main` with an anchor `plan` at 3, and `kid`, its child, which is done. */
function withKid(): TempHome {
  const home = tempHome();
  home.session('main', user('How many?'), anchor('plan', { goal: 'count' }), assistant('Twelve.'));
  using store = home.open();
  store.lineage.fork('main', { name: 'kid' });
  store.entries.append('kid', [anchor('k', { goal: 'a' }), assistant('Thirteen.')]);
  return home;
}

/** All bytes of a home. */
const bytes = (home: TempHome) =>
  [home.db, `${home.db}-wal`, home.graph].map((file) =>
    existsSync(file) ? readFileSync(file).toString('hex') : '',
  );

/** Runs a command that must not change a byte, and answer. */
async function unchanged(home: TempHome, args: readonly string[]) {
  const before = [bytes(home), home.contents()];
  const result = await home.here(args);
  expect([bytes(home), home.contents()], args.join(' ')).toEqual(before);
  return result;
}

test('fork --dry-run prints what the child would inherit, with or without a name', async () => {
  using home = withKid();
  const args = ['fork', 'main@4', '--since', 'plan', '--as', 'next', '--task', 'Count again.'];
  expect(json(await unchanged(home, [...args, '--dry-run', '--json']))).toEqual({
    session: 'next',
    parent: 'main',
    from_anchor: 'plan',
    base: 4,
    range: [4, 4],
    repeated: false,
    entries: [
      { seq: 5, kind: 'anchor', name: 'fork/start' },
      { seq: 6, kind: 'anchor', name: 'intention' },
    ],
    dry_run: true,
  });
  expect(await unchanged(home, [...args, '--dry-run'])).toEqual({
    stdout:
      'Would fork next, which inherits main 4-4\n  next@5 anchor fork/start\n  next@6 anchor intention\n',
    stderr: '',
    code: 0,
  });
  expect(json(await home.here([...args, '--json']))).toMatchObject({
    session: 'next',
    base: 4,
    range: [4, 4],
  });
  const unnamed = await unchanged(home, ['fork', 'main', '--inherit', 'nothing', '--dry-run', '--json']);
  expect(json(unnamed)).toMatchObject({ session: null, range: null });
  const keyed = ['fork', 'main', '--key', 'k'];
  const named = json(await unchanged(home, [...keyed, '--dry-run', '--json']));
  expect(json(await home.here([...keyed, '--json']))).toMatchObject({ session: named.session });
  expect((await unchanged(home, [...keyed, '--dry-run'])).stdout).toContain('nothing to do');
});

test('fork --dry-run refuses what fork refuses', async () => {
  using home = withKid();
  for (const [args, code] of [
    [['--as', 'kid'], 'TAPE_EXISTS'],
    [['--as', '../x'], 'TAPE_BAD_NAME'],
    [['--since', 'nowhere'], 'TAPE_NO_ANCHOR'],
  ] as const) {
    const refused = await unchanged(home, ['fork', 'main', ...args, '--dry-run', '--json']);
    const asked = await home.here(['fork', 'main', ...args, '--json']);
    expect([jsonError(refused).code, refused]).toEqual([code, asked]);
  }
});

test('merge --dry-run prints the position, range, conflicts, and message that the parent would receive', async () => {
  using home = withKid();
  await home.here(['anchor', 'main', 'm', '--state', '{"goal":"b"}']);
  const planned = json(await unchanged(home, ['merge', 'kid', '--dry-run', '--json']));
  const { entries, text, dry_run: isDry, ...receipt } = planned;
  expect(receipt).toEqual({
    parent: 'main',
    child: 'kid',
    state: 'merged',
    seq: 6,
    range: [5, 7],
    repeated: false,
    complete: true,
    conflicts: [{ what: 'state:goal', child: 6, parent: 5 }],
  });
  expect(isDry).toBe(true);
  expect(entries).toEqual([
    { seq: 6, kind: 'anchor', name: 'merge/kid' },
    { seq: 7, kind: 'message' },
  ]);
  const human = await unchanged(home, ['merge', 'kid', '--dry-run']);
  expect(human.stdout).toContain(`Would merge kid:5-7 into main@6\nboth wrote state:goal`);
  expect(human.stdout.endsWith(`\n\n${String(text)}\n`)).toBe(true);
  const refused = await unchanged(home, ['merge', 'kid', '--dry-run', '--on-conflict', 'refuse']);
  expect(refused).toMatchObject({ code: 4, stdout: '' });
  expect(json(await home.here(['merge', 'kid', '--json']))).toEqual(receipt);
  const written = json<{ payload: { content: { text: string }[] } }>(
    await home.here(['show', 'main@7', '--json']),
  );
  expect(written.payload.content[0]?.text).toBe(text);
  expect((await unchanged(home, ['merge', 'kid', '--dry-run'])).stdout).toBe(
    'kid is already merged at main@6: nothing to do\n',
  );
});

test('merge --dry-run prints the text that its strategy would write, or refuses what the merge refuses', async () => {
  using home = withKid();
  const own = ['merge', 'kid', '--strategy', 'pick', '--pick', '7'];
  const planned = json(await unchanged(home, [...own, '--dry-run', '--json']));
  expect(planned.text).toContain('kid@7 assistant: Thirteen.');
  const refused = [
    { args: ['--strategy', 'pick', '--pick', '99'], code: 'SESSION_BAD_INPUT' },
    { args: ['--strategy', 'structured'], code: 'SESSION_BAD_RESULT' },
  ];
  for (const { args, code } of refused) {
    const error = jsonError(await unchanged(home, ['merge', 'kid', ...args, '--dry-run', '--json']));
    expect(error).toMatchObject({ code });
    expect(jsonError(await home.here(['merge', 'kid', ...args, '--json']))).toEqual(error);
  }
  const summary = await unchanged(home, ['merge', 'kid', '--strategy', 'summary', '--dry-run', '--json']);
  expect(jsonError(summary)).toMatchObject({ code: 'CLI_USAGE', hint: expect.stringContaining('--check') });
  const done = json(await home.here([...own, '--json']));
  expect(done).toMatchObject({ seq: planned.seq, range: planned.range });
});

test('discard --dry-run prints a receipt, and no message', async () => {
  using home = withKid();
  expect(json(await unchanged(home, ['discard', 'kid', '--dry-run', '--json']))).toMatchObject({
    state: 'discarded',
    seq: 5,
    entries: [{ seq: 5, kind: 'anchor', name: 'merge/kid' }],
    text: null,
  });
  expect((await unchanged(home, ['discard', 'kid', '--dry-run'])).stdout).toBe(
    'Would discard kid at main@5\n  main@5 anchor merge/kid\n',
  );
});

test('--dry-run and --check leave alone what a crash left to drain', async () => {
  using home = withKid();
  {
    using store = home.open();
    // No process has that number: the next to open the home for writing does what waits here.
    store.leases.acquire('main', { ...processOwner('gone'), pid: 2 ** 22 + 1 });
    store.inbox.post('main', { body: { type: 'append', drafts: [user('later')] } });
  }
  rmSync(home.graph);
  for (const args of [
    ['merge', 'kid', '--dry-run'],
    ['merge', 'kid', '--check'],
    ['discard', 'kid', '--dry-run'],
    ['fork', 'main', '--dry-run'],
  ])
    expect(await unchanged(home, args)).toMatchObject({ code: 0 });
  expect(existsSync(home.graph)).toBe(false);
});

test('merge --dry-run reports that a busy parent would find the merge in its inbox', async () => {
  using home = withKid();
  using store = home.open();
  const lease = store.leases.acquire('main', processOwner('other-owner'));
  const { code, stdout } = await unchanged(home, ['merge', 'kid', '--dry-run', '--json']);
  expect([code, JSON.parse(stdout)]).toMatchObject([
    0,
    { parent: 'main', state: 'queued', seq: null, entries: [] },
  ]);
  store.entries.append('main', [assistant([toolCall('c1', 'read', {})])], { lease });
  store.leases.release(lease);
  expect(jsonError(await unchanged(home, ['merge', 'kid', '--dry-run', '--json']))).toMatchObject({
    code: 'TAPE_UNSETTLED',
    hint: expect.stringContaining('tape run main'),
  });
});

test('a dry run creates no home', async () => {
  using home = tempHome();
  const nowhere = home.file('nowhere');
  for (const verb of ['fork', 'merge', 'discard'])
    expect(await home.here([verb, 'x', '--dry-run', '--home', nowhere])).toMatchObject({ code: 3 });
  expect(existsSync(nowhere)).toBe(false);
});

test('an intention that no entry can hold exits with 2, dry or not, and forks no child', async () => {
  using home = withKid();
  writeFileSync(home.file('long.txt'), 'x'.repeat(16 * 1024 * 1024 + 1));
  const args = ['fork', 'main', '--as', 'next', '--task', `@${home.file('long.txt')}`, '--json'];
  for (const more of [['--dry-run'], []]) {
    const refused = await unchanged(home, [...args, ...more]);
    expect([refused.code, jsonError(refused).code]).toEqual([2, 'TAPE_BAD_ENTRY']);
  }
});

test.each([
  { name: 'a tool that there is not', args: ['--tool', 'raed'] },
  {
    name: 'a worktree of no repository',
    args: ['--workspace', 'worktree', '--repository', '/nowhere'],
  },
  { name: 'no step', args: ['--max-steps', '0'] },
  { name: 'a script that there is not', args: ['--model', 'script:nowhere.json'] },
  { name: 'a model without a provider', args: ['--model', 'small'] },
])('delegate --dry-run refuses what delegate refuses: $name', async ({ args }) => {
  using home = tempHome();
  writeFileSync(home.file('answers.json'), '[{ "text": "Done." }]');
  home.session('main', user('Hi'));
  const command = [
    'delegate',
    'main',
    '--task',
    'Look',
    '--model',
    `script:${home.file('answers.json')}`,
    ...args,
  ];
  const given = args[0] === '--model' ? command.toSpliced(4, 2) : command;
  const refused = jsonError(await unchanged(home, [...given, '--dry-run', '--json']));
  expect(refused.code).toMatch(/^(?:SESSION|CLI)_/);
  expect(jsonError(await home.here([...given, '--json']))).toEqual(refused);
  expect(json(await home.here(['sessions', '--all', '--json']))).toHaveLength(1);
});

test('redact --dry-run says what it would erase and what quotes it, and changes no byte', async () => {
  using home = withKid();
  expect((await home.here(['merge', 'kid'])).code).toBe(0);
  const redact = ['redact', 'kid@7', '--reason', 'a secret'];
  const { stdout } = await unchanged(home, [...redact, '--dry-run']);
  expect(stdout).toBe('Would erase kid@7, a message, which cannot be undone; may still contain it: main@6\n');
  const found = json(await unchanged(home, [...redact, '--dry-run', '--json']));
  expect(found).toEqual({
    session: 'kid',
    seq: 7,
    kind: 'message',
    repeated: false,
    quoted_by: ['main@6'],
    dry_run: true,
  });
  expect(
    jsonError(await unchanged(home, ['redact', 'kid@99', '--reason', 'x', '--dry-run', '--json'])).code,
  ).toBe('TAPE_NO_SEQ');
  expect(json(await home.here([...redact, '--json']))).toMatchObject({ seq: 7, quoted_by: ['main@6'] });
  expect((await unchanged(home, [...redact, '--dry-run'])).stdout).toContain('was redacted before');
});
