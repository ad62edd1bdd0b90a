import { spawn, spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { allVerbs, nameOf } from '@tapedeck/cli/internal';
import { openJournal } from '@tapedeck/graph/journal';
import {
  anchor,
  assistant,
  type Draft,
  type HomeStore,
  openTapeStore,
  toolCall,
  toolResult,
  user,
} from '@tapedeck/tape';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CliResult } from '../support/cli.ts';
import { serverPlace } from '../support/postgres.ts';
import { type Provider, startProvider } from '../support/provider.ts';
import { sized } from '../support/size.ts';
import { tapeInNode } from '../support/tape-in-node.ts';
import { tempDir } from '../support/temp-dir.ts';
import { root } from './pages.ts';
import { bin, plainEnv } from './tape.ts';

/** A directory in which an example runs, with a tape home in it. */
interface Scene {
  readonly home: string;
  /** The working directory, below the home directory of the user. */
  readonly dir: string;
  readonly store: HomeStore;
  file(name: string, text: string): void;
  /** Runs another command line first. */
  first(line: string): Promise<void>;
}

const transcript = join(root, 'packages/cli/demo/transcript.jsonl');

let provider: Provider;
beforeAll(async () => {
  provider = await startProvider(() => ({ text: '## Goal\nTo plan the release.' }));
});
afterAll(async () => await provider[Symbol.asyncDispose]());

function environment({ home, address }: Place): Readonly<Record<string, string>> {
  return {
    ...provider.env,
    HOME: home,
    TAPE_TRUST_HOME: '1',
    TAPE_MODEL: 'script:answers.json',
    ...(address !== undefined && { TAPE_HOME: address }),
  };
}

const talk = (from: number, to: number): Draft[] =>
  Array.from({ length: to - from + 1 }, (_, i) =>
    (from + i) % 2 === 0
      ? user(`Plan step ${from + i}: check the invoice rounding of CHANGELOG.md`)
      : assistant(`Step ${from + i} is done. ${'All is well. '.repeat(40)}`),
  );

/** The sessions that examples name: `main` with a user message at 42, its forks, and others. */
function sessions(store: HomeStore, line: string, verb: string): void {
  const at42 = entriesAt42[line] ?? talk(42, 42);
  const { entries, lineage } = store;
  store.sessions.open('main');
  entries.append('main', [...talk(2, 5), anchor('task-start', { phase: 'build' }), ...talk(7, 7)]);
  for (const name of ['fix', 'main-fork-3fa1c2d4']) {
    if (name === 'fix' && forksFix.test(line)) continue;
    lineage.fork('main', { cut: '@6', name, intention: { nextSteps: 'Fix it.' } });
    entries.append(name, talk(8, 15));
  }
  if (!forksFix.test(line) && !['merge', 'discard'].includes(verb)) lineage.merge('fix');
  // Without work that is not finished.
  if (['check', 'audit', 'restore'].includes(verb))
    lineage.merge('main-fork-3fa1c2d4', { strategy: 'discard' });
  const { head } = store.sessions.find('main') ?? { head: 0 };
  entries.append('main', talk(head + 1, Math.min(41, 42 - at42.length)));
  if (at42.length > 0) entries.append('main', [...at42, ...talk(43, 45)]);
  store.sessions.open('other');
  if (verb !== 'unalias') store.sessions.open('dm:slack:u0142');
  else store.sessions.update('other', { alias: { name: 'dm:mom', reason: '' } });
}

/** Examples in which the session `fix` is forked, or has a worktree. */
const forksFix = /^tape (?:fork .*--as fix|merge fix --apply)/;

const call = { toolCallId: 'call_1', toolName: 'measure' };

const withOutput = `tape approve main call_1 --output '{"temperature":7}'`;
const withSchema = `tape delegate main --task "Which ports?" --schema '{"type":"object","properties":{"ports":{"type":"array"}}}'`;

async function withRemote({ home, first }: Scene): Promise<void> {
  mkdirSync(join(home, 'team'));
  await first('remote add origin ~/team/tapes');
}

/** What an example needs beside the sessions, by its verb, or by the whole of it. */
const needs: Readonly<Record<string, (scene: Scene) => void | Promise<void>>> = {
  import: ({ home }) => {
    mkdirSync(join(home, '.claude/projects/app'), { recursive: true });
    copyFileSync(transcript, join(home, '.claude/projects/app/2f1c.jsonl'));
  },
  'tape identity unlink dm:entity_mom dm:gmail:mom@gmail.com': async ({ first }) =>
    await first('identity link dm:entity_mom dm:imessage:+1555 dm:gmail:mom@gmail.com'),
  append: ({ file }) => file('lines.jsonl', '{"content":"One"}\n{"role":"assistant","content":"Two"}\n'),
  'tape config unset instructions': async ({ first }) => await first('config set instructions Hi'),
  attest: ({ file }) => file('key.pem', keys.privateKey),
  'tape check --against heads.txt --public-key key.pem': async ({ file, first }) => {
    file('private.pem', keys.privateKey);
    file('key.pem', keys.publicKey);
    await first('attest --key private.pem -o heads.txt');
  },
  'tape check --acknowledge graph-aside:1a2b3c4d': ({ dir }) =>
    writeFileSync(join(dir, '.tape/session_graph.jsonl.aside-1a2b3c4d'), '{}\n'),
  'tape import main.tape.zst': async ({ store, first }) => {
    store.sessions.open('main');
    await first('export main -o main.tape.zst');
  },
  'tape remote remove origin': async ({ first }) => await first('remote add origin ~/team/tapes'),
  push: async (scene) => await withRemote(scene),
  pull: async (scene) => {
    await withRemote(scene);
    await scene.first('push');
  },
  clone: async (scene) => {
    await withRemote(scene);
    await scene.first('push');
  },
  restore: async ({ first }) => await first('backup ~/tapes-friday.db'),
  'tape run --continue "And the tests?"': async ({ first }) => await first('run plan Plan it.'),
  'tape link fix --undo': async ({ first }) => await first('link fix --root'),
  'tape undo main': async ({ first }) => await first('rewind main@42'),
  'tape undo main@42': async ({ first }) => await first('rewind main@40'),
  'tape fork main --as fix --workspace worktree': ({ dir }) => repository(dir),
  'tape merge fix --apply': async ({ dir, first }) => {
    repository(dir);
    await first('fork main --as fix --task Fix --workspace worktree');
    await first('run fix');
  },
  permissions: async ({ dir, file, first }) => {
    symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'));
    file(
      'tape.config.mts',
      `import { tool } from 'ai';\nimport { z } from 'zod';\nexport default { tools: { write_file: tool({ inputSchema: z.object({ path: z.string() }) }) } };\n`,
    );
    await first('trust .');
  },
  approve: async ({ dir, file, first, store }) => {
    symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'));
    file(
      'tape.config.mts',
      `import { tool } from 'ai';\nimport { z } from 'zod';\nexport default { tools: { measure: tool({ inputSchema: z.object({}), needsApproval: true, execute: async () => '7' }) } };\n`,
    );
    await first('trust .');
    file(
      'answers.json',
      JSON.stringify([{ toolCalls: [{ name: 'measure', input: {}, id: 'call_1' }] }, { text: 'Warm.' }]),
    );
    await first('run main Measure it');
    expect(store.sessions.find('main')?.head).toBeGreaterThan(47);
  },
  [withOutput]: ({ store }) => {
    store.entries.append('main', [
      user('How warm is it?'),
      assistant([toolCall(call.toolCallId, call.toolName, {})]),
      {
        kind: 'event',
        name: 'run/waiting',
        payload: { run: 'r1', calls: [{ ...call, for: 'result' }] },
      },
    ]);
  },
  delegate: ({ file }) => file('task.md', 'Count the files.\n'),
  [withSchema]: ({ file }) =>
    file('answers.json', JSON.stringify([{ text: 'Port 80.' }, { text: '{"ports":[80]}' }])),
  'tape delegate main --task "Fix the build" --workspace worktree --model openai-compatible/gpt-oss': ({
    dir,
  }) => repository(dir),
  trust: ({ file }) => file('tape.config.mts', 'export default {};\n'),
  'tape trust . --revoke': async ({ first, file }) => {
    file('tape.config.mts', 'export default {};\n');
    await first('trust .');
  },
};

const keys = generateKeyPairSync('ed25519', {
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});

/** Examples that need a home without the sessions. */
const empty = ['init', 'new', 'import'];

/** Examples that look at an entry of another kind at 42. */
const entriesAt42: Readonly<Record<string, readonly Draft[]>> = {
  // The rewind is at 42.
  'tape undo main@42': [],
  'tape show main@42 --output --bytes 0..4095': [
    assistant([toolCall(call.toolCallId, call.toolName, {})]),
    toolResult(call, { type: 'text', value: 'x'.repeat(20_000) }),
  ],
};

function repository(dir: string): void {
  const git = (...args: string[]) =>
    spawnSync('git', ['-c', 'user.name=Reader', '-c', 'user.email=reader@example.org', ...args], {
      cwd: dir,
    });
  for (const args of [
    ['init', '-q'],
    ['add', '.'],
    ['commit', '-qm', 'One'],
  ])
    git(...args);
}

/** Those that need a home on a server and run until they are stopped: see cli.worker. */
const untilStopped = ['worker'];

const examples = (await allVerbs())
  .filter((verb) => !untilStopped.includes(nameOf(verb)))
  .flatMap((verb) => verb.examples.map(([line]) => [line, nameOf(verb)] as const));

/** Commands that print until Ctrl-C. */
const follows = / --(?:follow|watch)\b|^tape ui\b/;

/** Those of a push. */
const few = examples.filter((_, i) => i % 4 === 0);

test.each(sized(few, examples, examples))(
  'the example works: %s',
  { timeout: 180_000 },
  async (line, verb) => {
    using temp = tempDir();
    const place = { home: temp.path, dir: join(temp.path, 'project') };
    mkdirSync(join(place.dir, '.tape'), { recursive: true, mode: 0o700 });
    {
      using store = openTapeStore(join(place.dir, '.tape/tape.db'), {
        journal: openJournal(join(place.dir, '.tape/session_graph.jsonl')),
        durability: 'fast',
      });
      await prepare(line, verb, { store, place });
    }
    const result = await runExample(line, place);
    expect({ code: result.code, stderr: result.code === 0 ? '' : result.stderr }).toEqual({
      code: 0,
      stderr: '',
    });
  },
);

/**
 * Examples about the file of a home, or about the graph file beside it, which a server does not have; and those that write
 * the home into a file for another program, which are refused for an address with a password.
 */
const aboutFiles =
  /^tape (?:backup|restore|raw checkpoint|check --acknowledge|import --install|(?:trust|copy) \.tape)\b/;

const onServer = examples.filter(([line]) => !aboutFiles.test(line));

const fewOnServer = onServer.filter((_, i) => i % 16 === 0);

test.each(sized([], fewOnServer, onServer))(
  'the example works with a home on a server: %s',
  { timeout: 180_000 },
  async (line, verb) => {
    using temp = tempDir();
    await using server = await serverPlace();
    const place = { home: temp.path, dir: join(temp.path, 'project'), address: server.url };
    mkdirSync(place.dir, { recursive: true, mode: 0o700 });
    {
      using store = await server.openHome();
      await prepare(line, verb, { store, place });
    }
    const result = await runExample(line, place);
    expect({ code: result.code, stderr: result.code === 0 ? '' : result.stderr }).toEqual({
      code: 0,
      stderr: '',
    });
    expect(`${result.stdout}${result.stderr}`).not.toContain('not%20a%20secret');
    expect(`${result.stdout}${result.stderr}`).not.toContain('not a secret');
  },
);

/** Makes what an example needs. */
async function prepare(
  line: string,
  verb: string,
  { store, place }: { readonly store: HomeStore; readonly place: Place },
): Promise<void> {
  const { home, dir } = place;
  writeFileSync(
    join(dir, 'answers.json'),
    JSON.stringify(Array.from({ length: 9 }, () => ({ text: 'Done.' }))),
  );
  if (!empty.includes(verb)) sessions(store, line, verb);
  await (needs[line] ?? needs[verb])?.({
    ...{ home, dir, store },
    file: (name, text) => writeFileSync(join(dir, name), text),
    first: async (words) => {
      const result = await run(`tape ${words}`, place);
      expect([0, 1, 6], result.stderr).toContain(result.code);
    },
  });
}

async function runExample(line: string, place: Place): Promise<CliResult> {
  return follows.test(line) ? await interrupted(line, place) : await run(line, place);
}

interface Place {
  readonly home: string;
  readonly dir: string;
  /** The home on a server. */
  readonly address?: string;
}

/** Runs a line: a plain one in the process of many, any other in a shell. */
async function run(line: string, place: Place): Promise<CliResult> {
  const { home, dir } = place;
  const env = environment(place);
  const quoted = /'[^']*'|"[^"]*"/g;
  if (/[|<>*]/.test(line.replace(quoted, ''))) return inShell(line, place);
  const words = (line.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? []).map((word) =>
    word.replace(/^~/, home).replace(quoted, (text) => text.slice(1, -1)),
  );
  return await tapeInNode(words.slice(1), { env, cwd: dir });
}

function inShell(line: string, place: Place): CliResult {
  const { home, dir } = place;
  // Not every machine has Graphviz.
  const shell = `tape() { "${process.execPath}" "${bin}" "$@"; }\ncommand -v dot >/dev/null || dot() { grep -c '^digraph'; }\nset -o pipefail\n${line}\n`;
  const { status, stdout, stderr } = spawnSync('bash', ['-c', shell], {
    cwd: dir,
    env: plainEnv(home, environment(place)),
    encoding: 'utf8',
  });
  return { code: status ?? 1, stdout, stderr };
}

/** Runs a line until it has printed something, and then interrupts it, which is how it ends. */
async function interrupted(line: string, place: Place): Promise<CliResult> {
  const { home, dir } = place;
  const child = spawn(process.execPath, [bin, ...line.split(' ').slice(1)], {
    cwd: dir,
    env: plainEnv(home, environment(place)),
  });
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      said[name] += text;
    });
  await Promise.race([once(child.stdout, 'data'), once(child, 'close')]);
  child.kill('SIGINT');
  if (child.exitCode === null && child.signalCode === null) await once(child, 'close');
  // A shell calls both the same: 130.
  const isInterrupted = child.exitCode === 130 || child.signalCode === 'SIGINT';
  return { ...said, code: isInterrupted && said.stdout !== '' ? 0 : (child.exitCode ?? 1) };
}

test('the test covers every verb', () => {
  expect(examples.length).toBeGreaterThan(80);
  const names = new Set(examples.map(([, verb]) => verb));
  expect(
    Object.keys(needs).filter((name) => !names.has(name) && !examples.some(([line]) => line === name)),
  ).toEqual([]);
});
