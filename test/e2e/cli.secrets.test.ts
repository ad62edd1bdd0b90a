import { readFileSync } from 'node:fs';
import { openTapeStore } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { type CliResult, json, jsonError } from '../support/cli.ts';
import { anyKey, leakingFiles, leaksIn } from '../support/planted.ts';
import { type Project, project } from '../support/project.ts';
import { isAfterTools, startProvider } from '../support/provider.ts';

/** Secrets that JSON, addresses and base64 write in other characters. */
const secrets = {
  OPENAI_API_KEY: 'sk-live/4f9a"8b7c+d1e2=f3',
  SEARCH_TOKEN: 'tok_2f81-99ab~c3',
  DATABASE_URL: 'p@ss w0rd-9d2c',
  CONFIGURED: 'given-by-the-configuration-77',
};

const { OPENAI_API_KEY: key, SEARCH_TOKEN: token, DATABASE_URL: password, CONFIGURED: configured } = secrets;

const env = {
  OPENAI_API_KEY: key,
  SEARCH_TOKEN: token,
  DATABASE_URL: `postgres://app:${encodeURIComponent(password)}@db.test/main`,
};

const sentence = (given: readonly (readonly [name: string, value: string])[]) =>
  given.map(([name, value]) => `${name} is ${value}`).join('; ');

/** Each secret, in a sentence; those that every command knows, from its environment; the same with the names alone. */
const all = sentence(Object.entries(secrets));
const known = sentence(Object.entries(secrets).filter(([name]) => name !== 'CONFIGURED'));
const masked = sentence(Object.keys(secrets).map((name) => [name, `[secret ${name}]`]));

const config = `
  import { z } from 'zod';
  const inputSchema = z.object({ text: z.string() });
  const all = ${JSON.stringify(all)};
  export default {
    model: 'openai-compatible/test-model',
    instructions: 'Never say ' + all,
    prompt: { project: true },
    secrets: { CONFIGURED: ${JSON.stringify(configured)} },
    tools: {
      env: { inputSchema, execute: () => ({ [all]: JSON.stringify({ all }), url: encodeURIComponent(all), bytes: btoa(all) }) },
      log: { inputSchema, execute: () => { console.log('logged: ' + all); console.error({ all }); return 'well'; } },
      fail: { inputSchema, execute: () => { throw new Error('failed: ' + all); } },
      show: { inputSchema, execute: async function* ({ text }) { yield all.slice(0, 20); yield text + ' ' + all; } },
      stray: { inputSchema, execute: () => { Promise.reject(new Error('stray: ' + all)); return 'done'; } },
    },
    limits: { retries: 1, retryDelayMs: 1 },
  };`;

interface Input {
  readonly stdin: string;
}

const done = async (result: Promise<CliResult>) => expect(await result).toMatchObject({ code: 0 });

const loading: ReadonlySet<string> = new Set(['run', 'send', 'delegate', 'merge', 'recover']);

/** Runs a command line that must not print a secret. */
async function quiet(p: Project, url: string, ...words: (string | Input)[]): Promise<CliResult> {
  const args = words.filter((word) => typeof word === 'string');
  const input = words.find((word) => typeof word !== 'string');
  const options = { ...input, env: { ...env, OPENAI_BASE_URL: url } };
  // A run is a process of its own; what else loads the configuration shares one on a push, the others this one.
  const tape = args[0] === 'run' ? p.process : loading.has(args[0] ?? '') ? p.inNode : p.here;
  const result = await tape(args, options);
  expect({ args, out: leaksIn(secrets, result.stdout) }).toEqual({ args, out: [] });
  expect({ args, err: leaksIn(secrets, result.stderr) }).toEqual({ args, err: [] });
  return result;
}

function projectOf(): Project {
  const p = project();
  p.write('tape.config.mts', config);
  p.write('AGENTS.md', `Use ${all}.`);
  return p;
}

const calls = ['env', 'log', 'fail', 'show', 'stray'].map((name) => ({
  id: `call-${name}`,
  name,
  arguments: { text: all },
}));

test('secrets that the runtime knows are replaced by their names in every file, on stdout and on stderr', async () => {
  using p = projectOf();
  await using provider = await startProvider(
    (request, index) =>
      index === 0
        ? { status: 500, message: `${all} was refused` }
        : isAfterTools(request)
          ? { text: [...all] }
          : { reasoning: all, text: [...`Calling. ${all}`], calls },
    anyKey,
  );
  const tape = async (...words: (string | Input)[]) => await quiet(p, provider.url, ...words);
  await tape('trust', '.');
  await tape('new', 'main', '--title', known);
  const first = await tape('run', 'main', `Hello. ${all}`, '--jsonl');
  expect(first.code).toBe(0);
  expect(first.stdout).toContain('[secret OPENAI_API_KEY]');
  expect(first.stderr).toContain(`logged: ${masked}`);
  const again = await tape('run', 'main', `Again. ${all}`);
  expect(again.stdout).toContain(masked);
  expect(provider.requests.length).toBeGreaterThan(3);
  // The model is sent what the tape has.
  for (const request of provider.requests) expect(leaksIn(secrets, JSON.stringify(request))).toEqual([]);
  const file = { type: 'file', mediaType: 'text/plain', data: btoa(`A file: ${known}.`) };
  const lines = [
    { role: 'user', content: [{ type: 'text', text: known }, file] },
    { kind: 'event', name: 'noted', payload: { [known]: [known] }, meta: { by: known } },
  ];
  const stdin = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  await done(tape({ stdin }, 'append', 'main', '--json'));
  await done(tape('anchor', 'main', 'here', '--state', JSON.stringify({ summary: known })));
  await done(tape('fork', 'main', '--as', 'child', '--task', known));
  await done(tape({ stdin }, 'append', 'child'));
  await done(tape('merge', 'child', '--strategy', 'summary'));
  await done(tape('delegate', 'main', '--task', known));
  await done(tape('send', 'main', `Sent. ${known}`));
  await done(tape('redact', 'main@2', '--reason', known));
  for (const verb of ['log', 'view', 'show', 'status', 'usage', 'verify', 'trace'])
    for (const form of [[], ['--json']])
      await done(tape(verb, verb === 'trace' ? 'child@fork/start' : 'main', ...form));
  for (const verb of ['sessions', 'graph', 'check']) await tape(verb, '--json');
  await done(tape('search', known, '--json'));
  // The words of a refused command line.
  for (const words of [['run', known, known, `--${key}`], ['show', `main@${key}`], ['new', key], [key]])
    for (const form of [[], ['--json']]) expect((await tape(...words, ...form)).code).toBeGreaterThan(0);
  await done(tape('verify'));
  expect(leakingFiles(p.home, secrets)).toEqual([]);
  for (const name of Object.keys(secrets)) {
    using store = openTapeStore(`${p.home}/tape.db`, { readonly: true });
    const text = JSON.stringify([...store.entries.read('main')]);
    expect(text.split(`[secret ${name}]`).length).toBeGreaterThan(10);
  }
}, 120_000);

test('the error of a provider that repeats its request has no secret, in words and as JSON', async () => {
  using p = projectOf();
  await using provider = await startProvider(
    () => ({ status: 401, message: `wrong key: Bearer ${key}, Basic ${btoa(`app:${password}`)}` }),
    anyKey,
  );
  await quiet(p, provider.url, 'trust', '.');
  const words = await quiet(p, provider.url, 'run', 'main', 'Hi');
  expect(words).toMatchObject({ code: 1, stderr: expect.stringContaining('Bearer [secret OPENAI_API_KEY]') });
  const document = await quiet(p, provider.url, 'run', 'main', 'Hi', '--json');
  expect(json({ ...document, code: 0 })).toMatchObject({
    finish: 'error',
    error: { message: expect.stringContaining('Bearer [secret OPENAI_API_KEY]') },
  });
  expect(leakingFiles(p.home, secrets)).toEqual([]);
});

test('the password of the address of a model is not in its error', async () => {
  using p = projectOf();
  await quiet(p, '', 'trust', '.');
  const hidden = { ...secrets, OPENAI_BASE_URL: 'hunter2-of-the-proxy' };
  const result = await p.process(['run', 'main', 'Hi', '--json'], {
    env: { ...env, OPENAI_BASE_URL: `http://me:${hidden.OPENAI_BASE_URL}@127.0.0.1:1/v1` },
  });
  expect(result.stdout).toContain('[secret OPENAI_BASE_URL]');
  expect(leaksIn(hidden, result.stdout + result.stderr)).toEqual([]);
  expect(leakingFiles(p.home, hidden)).toEqual([]);
});

test('a secret that arrives in pieces is in no chunk, also when the process is killed between them', async () => {
  using p = projectOf();
  const half = key.slice(0, 16);
  await using provider = await startProvider(() => ({ text: ['It is ', ...half], hang: true }), anyKey);
  await quiet(p, provider.url, 'trust', '.');
  const running = p.start(['run', 'main', 'Hi'], { env: { ...env, OPENAI_BASE_URL: provider.url } });
  await running.until('It is');
  await expect.poll(() => readFileSync(`${p.home}/tape.db-wal`).includes('It is')).toBe(true);
  // Time for the pieces that must not be saved.
  await new Promise((resolve) => setTimeout(resolve, 200));
  running.child.kill('SIGKILL');
  const killed = await running.done;
  const parts = { ...secrets, half };
  expect(leaksIn(parts, killed.stdout + killed.stderr)).toEqual([]);
  expect(leakingFiles(p.home, parts)).toEqual([]);
  await quiet(p, provider.url, 'recover', '--abort');
  expect(leakingFiles(p.home, parts)).toEqual([]);
});

test('a configuration whose secret cannot be replaced is refused, without its value', async () => {
  using p = project();
  p.write('tape.config.mts', `export default { secrets: { SHORT: 'abc-12' } };`);
  const error = jsonError(await p.process(['run', 'main', 'Hi', '--config', 'tape.config.mts', '--json']));
  expect(error).toMatchObject({ code: 'SESSION_BAD_CONFIG', data: { field: 'secrets.SHORT' } });
  expect(error.message).toContain('secrets.SHORT must have at least 8 characters');
  expect(JSON.stringify(error)).not.toContain('abc-12');
});
