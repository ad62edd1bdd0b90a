import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { assistant, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError, startTape } from '../support/cli.ts';
import { tempHome } from '../support/temp-home.ts';
import { tokenShapes } from '../support/token-shapes.ts';

const forms = [
  ...['tape', 'ui-message', 'openai-chat', 'markdown', 'html'],
  ...['session-jsonl', 'nexus3', 'claude-code', 'pi'],
];
const secret = tokenShapes.find(([name]) => name === 'aws')?.[1] ?? '';

test('a session is written in the form of another program, to a new file or to stdout', async () => {
  using home = tempHome();
  home.session('main', user(`The key is ${secret}.`), assistant('Noted.'));
  const options = { cwd: home.path };
  const file = home.file('main.json.zst');
  const done = await home.tape(
    ['export', 'main', '--format', 'ui-message', '-o', 'main.json.zst', '--json'],
    options,
  );
  expect(json(done)).toEqual({ file, session: 'main', format: 'ui-message', items: 2, withheld: 1 });
  expect(done.stderr).toContain('--raw');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(JSON.parse(zstdDecompressSync(readFileSync(file)).toString())).toMatchObject([
    { role: 'user', parts: [{ text: 'The key is [secret aws].' }] },
    { role: 'assistant' },
  ]);
  const raw = await home.tape(['export', 'main', '--format', 'openai-chat', '--raw'], options);
  expect(JSON.parse(raw.stdout).messages[0].content).toBe(`The key is ${secret}.`);

  const refused = async (code: number, type: string, ...args: readonly string[]) => {
    const said = await home.tape(['export', 'main', '--json', ...args], options);
    const error = jsonError(said);
    expect([args, said.code, error.code]).toEqual([args, code, type]);
    return JSON.stringify(error);
  };
  await refused(4, 'TAPE_EXISTS', '--format', 'markdown', '-o', 'main.json.zst');
  expect(await refused(2, 'CLI_USAGE', '--format', 'markdown', '--tree', '-o', 'x')).toContain('--format');
  expect(await refused(2, 'CLI_USAGE', '--format', 'word', '-o', 'x')).toContain('markdown');
});

test('what would steer a terminal is an escape there, which is the same JSON; a pipe has what a file has', async () => {
  using home = tempHome();
  home.session('main', user('\u{9b}2J\u{202e}'), assistant('\u{7f}Noted.'));
  const exported = async (format: string, output: string, isTerminal = false) =>
    (await home.here(['export', 'main', '--format', format, '-o', output], { cwd: home.path, isTerminal }))
      .stdout;
  for (const format of forms) {
    const shown = await exported(format, '-', true);
    expect([format, shown.match(/(?!\n)[\p{Cc}\p{Cf}]/gu)]).toEqual([format, null]);
  }
  const lines = (text: string) =>
    text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
  const piped = await exported('tape', '-');
  expect(lines(await exported('tape', '-', true))).toEqual(lines(piped));
  expect(piped).toContain('\u{9b}2J\u{202e}');
  await exported('tape', 'main.tape');
  expect(piped).toBe(readFileSync(home.file('main.tape'), 'utf8'));
});

test('a directory of records is appended to, a cut line completed, and another file left as it is', async () => {
  using home = tempHome();
  home.session('main', user('Plan.'), assistant('Planned.'));
  const args = ['export', 'main', '--format', 'session-jsonl', '-o', home.file('sessions'), '--json'];
  const { file: folder, ...rest } = json(await home.tape(args));
  expect(rest).toEqual({ session: 'main', format: 'session-jsonl', items: 2, withheld: 0 });
  const file = join(String(folder), 'session.jsonl');
  const whole = readFileSync(file, 'utf8');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(JSON.parse(readFileSync(join(String(folder), 'metadata.json'), 'utf8'))).toMatchObject({
    ...{ name: 'main', messageCount: 2 },
  });
  truncateSync(file, whole.length - 9);
  expect(json(await home.tape(args))).toMatchObject({ items: 2 });
  expect(readFileSync(file, 'utf8')).toBe(whole);

  // A mirror grows with the session, and is written anew where a rewind takes back what it has.
  const { child, done } = startTape([...args.slice(0, -1), '--follow'], { home: home.path });
  const holds = async (text: string) => await expect.poll(() => readFileSync(file, 'utf8')).toContain(text);
  {
    using store = home.open();
    store.entries.append('main', [user('Too fast.')]);
    await holds('Too fast.');
    expect(readFileSync(file, 'utf8').startsWith(whole)).toBe(true);
    store.history.rewind('main', 3);
    store.entries.append('main', [user('Slower.')]);
    await holds('Slower.');
  }
  child.kill('SIGINT');
  expect((await done).code).toBe(130);
  expect(readFileSync(file, 'utf8')).not.toContain('Too fast.');

  writeFileSync(file, `${whole}mine\n`);
  const refused = await home.tape(args);
  expect([refused.code, jsonError(refused).code]).toEqual([4, 'TAPE_EXISTS']);
  expect(readFileSync(file, 'utf8')).toBe(`${whole}mine\n`);
});

test('a transcript is written to where its program looks for it, once, and the command is printed', async () => {
  using home = tempHome();
  home.session('main', user('Plan.'), assistant('Planned.'));
  const options = { cwd: home.path, env: { CLAUDE_CONFIG_DIR: home.file('claude') } };
  const args = ['export', 'main', '--format', 'claude-code'];
  const said = await home.tape(args, options);
  const [, file = '', , id = ''] =
    /to (\S+): 2 messages\nContinue with: (cd \S+ && claude --resume (\S+))/.exec(said.stdout) ?? [];
  expect(file).toBe(
    join(home.file('claude/projects'), home.path.replace(/[^a-zA-Z0-9]/g, '-'), `${id}.jsonl`),
  );
  const whole = readFileSync(file, 'utf8');
  expect(statSync(file).mode & 0o777).toBe(0o600);

  const again = await home.tape(args, options);
  expect([again.code, again.stderr]).toEqual([4, expect.stringContaining(`claude --resume ${id}`)]);
  const printed = await home.tape([...args, '-o', '-'], options);
  expect(printed.stdout).toBe(whole);
  const earlier = json(await home.tape(['export', 'main@2', ...args.slice(2), '--json'], options));
  expect(earlier).toMatchObject({
    items: 1,
    transcript: { project: home.path, resume: ['claude', '--resume', expect.not.stringMatching(id)] },
  });
  // The home has all of it: an import need not read it, and no check calls it lost.
  const imported = json<{ files: object[] }>(await home.tape(['import', '--json'], options));
  expect(imported.files).toMatchObject([{ seen: 'unchanged' }, { seen: 'unchanged' }]);
  const away = await home.tape([...args, '--project', 'to/be made', '-o', 'x.jsonl'], options);
  expect(away.stdout).not.toContain('Continue with');
  const made = await home.tape([...args, '--project', 'to/be made'], options);
  expect(made.stdout).toContain(`Continue with: mkdir -p '${home.file('to/be made')}' && cd `);
  const refused = await home.tape(['export', 'main', '--project', '.'], options);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('--format claude-code')]);
  writeFileSync(home.file('no-folder'), '');
  const nowhere = { ...options, env: { CLAUDE_CONFIG_DIR: home.file('no-folder') } };
  expect(jsonError(await home.tape([...args, '--json'], nowhere))).toMatchObject({
    code: 'TAPE_IO',
    message: expect.stringMatching(/^cannot export 'main' to '.*no-folder.*\.jsonl': not a directory$/),
  });
});
