import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openTapeStore, user } from '@tapedeck/tape';
import { onCrashPoint } from '@tapedeck/tape/crash-point';
import { homeRecord } from '@tapedeck/tape/internal';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { type CliResult, jsonError, tapeHere } from '../support/cli.ts';
import type { CreatorOrder } from '../support/creator-worker.ts';
import { type KilledWorker, startWorker } from '../support/killed-worker.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tempHome } from '../support/temp-home.ts';

/** A user with a project, whose tape home a process creates while others look for it. */
interface Desk extends Disposable {
  readonly home: string;
  readonly state: string;
  /** Starts a process that creates the home, and waits at a place of that. */
  creator(by: CreatorOrder['by'], at: CreatorOrder['at']): Promise<KilledWorker>;
  /** Lets it go on. */
  goOn(): void;
  /** The files of claims. */
  claims(): readonly string[];
  /** Runs `tape` in the project, and acts each time that it waits. */
  tape(
    args: readonly string[],
    options?: { readonly env?: Readonly<Record<string, string>>; readonly onWait?: (waits: number) => void },
  ): Promise<CliResult & { readonly waits: number }>;
}

function desk(): Desk {
  const dir = tempDir();
  const project = dir.file('project');
  const home = join(project, '.tape');
  for (const path of [dir.file('user'), project, home]) mkdirSync(path, { mode: 0o700 });
  const state = join(dir.file('user'), '.config', 'tape');
  const file = dir.file('go-on');
  return {
    home,
    state,
    creator: async (by, at) => {
      const order: CreatorOrder = { by, user: dir.file('user'), project, at, file };
      const worker = startWorker('creator-worker.ts', order);
      await worker.begun;
      return worker;
    },
    goOn: () => writeFileSync(file, ''),
    claims: () => {
      const homes = join(state, 'homes');
      const names = existsSync(homes) ? readdirSync(homes) : [];
      return names.filter((name) => name.endsWith('.claim')).map((name) => join(homes, name));
    },
    tape: async (args, { env, onWait } = {}) => {
      let waits = 0;
      onCrashPoint((point) => {
        if (point !== 'home/awaited') return;
        waits += 1;
        onWait?.(waits);
      });
      try {
        const options = { cwd: project, env: { HOME: dir.file('user'), TAPE_TRUST_HOME: '', ...env } };
        return { ...(await tapeHere(args, options)), waits };
      } finally {
        onCrashPoint(undefined);
      }
    },
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  };
}

/** What a home that began here has in its record. */
const own = { consent: 'created', elsewhere: { entries: 0, inbox: 0 } };

test.each([
  ['command', 'home/opened', []],
  ['program', 'home/opened', []],
  ['command', 'home/opened', ['--home', '.tape']],
  ['program', 'home/claimed', []],
] as const)('while a %s creates a home, at %s, another command waits: %j', async (by, place, option) => {
  using at = desk();
  // Without tapes, a directory with files looks like one that came from elsewhere, too.
  if (place === 'home/claimed') writeFileSync(join(at.home, 'config.yaml'), 'base: tape\n');
  const creator = await at.creator(by, place);
  const { code, stderr, waits } = await at.tape(['new', 'two', ...option], { onWait: at.goOn });
  expect([code, stderr]).toEqual([0, '']);
  expect(waits).toBeGreaterThan(0);
  await creator.ended;
  expect((await at.tape(['sessions', '--quiet'])).stdout.split('\n').sort()).toEqual(['', 'one', 'two']);
  expect(homeRecord(at.state, at.home)).toMatchObject(own);
  expect(at.claims()).toEqual([]);
});

test.each(['command', 'program'] as const)(
  'a %s that finds the home made and in use, which it was about to create, uses it',
  async (by) => {
    using at = desk();
    const creator = await at.creator(by, 'home/claimed');
    const first = await at.tape(['new', 'two']);
    expect([first.code, first.waits]).toEqual([0, 0]);
    at.goOn();
    await creator.ended;
    expect(homeRecord(at.state, at.home)).toMatchObject(own);
    expect((await at.tape(['sessions', '--quiet'])).stdout.split('\n').sort()).toEqual(['', 'one', 'two']);
  },
);

test.skipIf(!existsSync('/proc'))(
  'a home whose creator was killed before it was recorded needs trust, and no one waits for it',
  async () => {
    using at = desk();
    const creator = await at.creator('command', 'home/opened');
    const left = await at.tape(['new', 'two', '--json'], { onWait: () => creator.kill() });
    await creator.ended;
    expect(left.code).toBe(2);
    expect(jsonError(left)).toMatchObject({
      code: 'CLI_FOREIGN_HOME',
      message: expect.stringMatching(/process \d+ on \S+ \(ended\) began to create it/),
      hint: expect.stringContaining('tape trust'),
      data: { home: at.home, creator: { state: 'ended' } },
    });
    const again = await at.tape(['new', 'two']);
    expect([again.code, again.waits]).toEqual([2, 0]);
    expect(await at.tape(['trust', '.tape'])).toMatchObject({ code: 0 });
    expect(await at.tape(['new', 'two'])).toMatchObject({ code: 0, waits: 0 });
    // The next claim removes what it left.
    expect(at.claims()).toHaveLength(1);
    expect(await at.tape(['init', 'other'])).toMatchObject({ code: 0 });
    expect(at.claims()).toEqual([]);
  },
);

test('a home that came with a repository is refused without a wait', async () => {
  using at = desk();
  {
    using store = openTapeStore(join(at.home, 'tape.db'));
    store.sessions.open('main');
    store.entries.append('main', [user('Go')]);
  }
  const refused = await at.tape(['new', 'two']);
  expect([refused.code, refused.waits]).toEqual([2, 0]);
});

test('a claim of a process of which nothing is known counts until it is old', async () => {
  using at = desk();
  const creator = await at.creator('command', 'home/opened');
  const [file = ''] = at.claims();
  const claim = JSON.parse(readFileSync(file, 'utf8'));
  const say = (more: object) => writeFileSync(file, JSON.stringify({ ...claim, ...more }));
  // Its number is that of another process now.
  say({ pidStart: '1' });
  expect(await at.tape(['new', 'two'])).toMatchObject({ code: 2, waits: 0 });
  say({ host: 'a-container', pidNamespace: '1' });
  const age = (waits: number) => waits === 3 && utimesSync(file, 1, 1);
  const refused = await at.tape(['new', 'two', '--json'], { onWait: age });
  expect([refused.code, refused.waits]).toEqual([2, 3]);
  expect(jsonError(refused)).toMatchObject({
    message: expect.stringContaining(
      'on a-container (unknown) began to create it, and has not recorded that',
    ),
    hint: expect.stringMatching(/^resume or end the named process, and try again; or .*tape trust/),
  });
  at.goOn();
  await creator.ended;
  expect(await at.tape(['new', 'two'])).toMatchObject({ code: 0, waits: 0 });
});

test.each([
  ['a user without a home directory', { HOME: '/nonexistent' }, 2],
  ['one who trusts every home', { TAPE_TRUST_HOME: '1' }, 0],
])('%s claims and records none', async (_, env, code) => {
  using at = desk();
  expect(await at.tape(['new', 'one'], { env })).toMatchObject({ code: 0, waits: 0 });
  expect(await at.tape(['new', 'two'], { env })).toMatchObject({ code, waits: 0 });
  expect(existsSync(at.state)).toBe(false);
});

test.each([
  ['before it wrote', () => {}],
  [
    'before it made tables',
    (db: string) => {
      const opened = new Database(db);
      opened.pragma('journal_mode = WAL');
      opened.close();
    },
  ],
])('a home whose process was killed %s has no tapes yet, and the next one makes it', async (_, write) => {
  using home = tempHome();
  for (const name of ['tape.db', 'session_graph.jsonl']) writeFileSync(home.file(name), '');
  write(home.file('tape.db'));
  expect(jsonError(await home.here(['check', '--json']))).toMatchObject({ data: { empty: true } });
  expect(await home.here(['sessions'])).toMatchObject({ code: 0, stdout: '' });
  // With a lineage, its tapes are gone.
  writeFileSync(home.file('session_graph.jsonl'), '{}\n');
  expect(jsonError(await home.here(['log', 'main', '--json']))).toMatchObject({ code: 'TAPE_NOT_A_TAPE' });
  writeFileSync(home.file('session_graph.jsonl'), '');
  expect(await home.here(['new', 'main'])).toMatchObject({ code: 0 });
  expect((await home.here(['check'])).code).toBe(0);
});
