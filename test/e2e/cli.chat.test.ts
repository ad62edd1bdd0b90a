import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { type CliResult, json, jsonError, jsonLines } from '../support/cli.ts';
import { project } from '../support/project.ts';
import { type ChatRequest, isAfterTools, lastUserText, startProvider } from '../support/provider.ts';
import { entryLines } from '../support/scripted.ts';
import { tempDir } from '../support/temp-dir.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';
import { type Act, typeHere } from '../support/typist.ts';

const model = ['--model', 'openai-compatible/test-model'];
const echo = (request: ChatRequest) => ({ text: `${lastUserText(request)}!`, usage: [1_200, 34] as const });

const linesOf = (home: Pick<TempHome, 'open'>, name = 'main'): string[] => {
  using store = home.open();
  return entryLines(store.entries.read(name)).slice(1);
};

/** The screen without styles, as lines. */
const screen = ({ stdout }: Pick<CliResult, 'stdout'>) =>
  stripVTControlCharacters(stdout).replaceAll('\r', '').split('\n');

const leave: Act = { type: '\u0004' };

test('each line of a pipe is a prompt: answers are on stdout, all else on stderr', async () => {
  using home = tempHome();
  await using provider = await startProvider(echo);
  const said = await home.tape(['chat', 'main', ...model], {
    env: provider.env,
    stdin: 'Hi\n\nOne \\\nand two\r\n//help is a word\n/etc/motd is a path\n/anchor here\n/quit\nNever\n',
  });
  expect(said).toEqual({
    code: 0,
    stdout:
      'Hi!\nOne \nand two!\n/help is a word!\n/etc/motd is a path!\nAnchored here at main@10 (undo with: /undo @10)\n',
    stderr: 'Created session main\n',
  });
  expect(linesOf(home)).toEqual([
    'user: Hi',
    'assistant: Hi!',
    'user: One \nand two',
    'assistant: One \nand two!',
    'user: /help is a word',
    'assistant: /help is a word!',
    'user: /etc/motd is a path',
    'assistant: /etc/motd is a path!',
    'anchor here',
  ]);
});

test('--json and --jsonl print each run, and take no commands', async () => {
  using home = tempHome();
  await using provider = await startProvider(echo);
  const chat = async (stdin: string, option: string) =>
    await home.here(['chat', 'main', option, ...model], { env: provider.env, stdin });
  const run = { session: 'main', finish: 'stop', steps: 1 };
  expect(json(await chat('One\nTwo\n', '--json'))).toMatchObject([
    { ...run, text: 'One!', from: 2, to: 3 },
    { ...run, text: 'Two!', from: 4, to: 5 },
  ]);
  expect(jsonLines(await chat('Three\nFour\n', '--jsonl'))).toMatchObject([
    { ...run, text: 'Three!' },
    { ...run, text: 'Four!' },
  ]);
  const refused = await chat('/undo\n', '--json');
  expect(refused.code).toBe(2);
  expect(jsonError(refused)).toMatchObject({
    code: 'CLI_USAGE',
    message: "cannot run '/undo' with --json or --jsonl: lines are prompts there",
  });
});

test('in a pipe, a run that fails ends the conversation, and so does one that cannot start', async () => {
  using home = tempHome();
  await using provider = await startProvider((request) =>
    lastUserText(request) === 'Two' ? { status: 401, message: 'no such key' } : echo(request),
  );
  const options = { env: provider.env, stdin: 'One\nTwo\nThree\n' };
  const said = await home.tape(['chat', 'main', ...model], options);
  expect(said).toMatchObject({ code: 1, stdout: 'One!\n' });
  expect(said.stderr).toContain('no such key');
  expect(said.stderr).toContain('Stopped here: lines that follow were not sent');
  expect(linesOf(home).filter((line) => line.startsWith('user'))).toEqual(['user: One', 'user: Two']);
  expect(await home.here(['chat', 'other'], { stdin: 'Hi\n' })).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('no model was given'),
  });
  expect(await home.here(['chat', 'mian', ...model], options)).toMatchObject({ code: 3, stdout: '' });
  await home.here(['archive', 'main']);
  expect(await home.here(['chat', 'main', ...model], options)).toMatchObject({ code: 4, stdout: '' });
});

test('at a terminal, answers come with a line of model, tokens and time, and the way back at the end', async () => {
  using home = tempHome();
  await using provider = await startProvider(echo);
  const acts = [{ until: 'main> ' }, { type: 'Hi\r' }, { until: ' s' }, { until: 'main> ' }, leave];
  const seen = await typeHere(['chat', 'main', ...model], acts, { home: home.path, env: provider.env });
  expect(seen).toMatchObject({ code: 0, stderr: 'Created session main\n' });
  const lines = screen(seen);
  expect(lines).toContain('main@1 · /help lists the commands, Ctrl-D leaves');
  const at = lines.indexOf('main> Hi');
  expect(lines.slice(at + 1, at + 3)).toEqual([
    'Hi!',
    expect.stringMatching(/^test-model · 1\.2k tokens · \d+\.\d s$/),
  ]);
  expect(lines.at(-2)).toBe('Left main@3; go on with: tape chat main');
  expect(linesOf(home)).toEqual(['user: Hi', 'assistant: Hi!']);
});

test('/fork goes on in a fork, /switch returns, /rewind offers the prompt again, and /undo undoes it', async () => {
  using home = tempHome();
  await using provider = await startProvider(echo);
  const seen = await typeHere(
    ['chat', 'main', ...model],
    [
      { until: 'main> ' },
      { type: 'One\r' },
      { until: 'main> ' },
      { type: '/fork idea\r' },
      { until: 'Return with: /switch main' },
      { until: 'idea> ' },
      { type: 'Two\r' },
      { until: 'Two!' },
      { until: 'idea> ' },
      { type: '/switch main\r' },
      { until: 'forked idea' },
      { until: 'main> ' },
      { type: '/rewind\r' },
      { until: 'hidden, none removed (undo with: /undo @' },
      { until: 'main> ' },
      { until: 'One' },
      // The text of the prompt is in the line, to be changed.
      { type: ' more\r' },
      { until: 'One more!' },
      { until: 'main> ' },
      { type: '/rewind @5\r' },
      { until: 'hidden' },
      { until: 'main> ' },
      { type: '\u0015/undo\r' },
      { until: 'Undid the rewind main@' },
      { until: 'main> ' },
      { type: '/anchor end\r' },
      { until: 'Anchored end at main@' },
      { until: 'main> ' },
      leave,
    ],
    { home: home.path, env: provider.env },
  );
  expect(seen.code).toBe(0);
  expect(linesOf(home, 'idea').filter((line) => !/^anchor|^event/.test(line))).toEqual([
    'user: One',
    'assistant: One!',
    'user: Two',
    'assistant: Two!',
  ]);
  expect((await home.here(['view', 'main'])).stdout).toContain('[user] One more\n[assistant] One more!');
});

test('an unknown command is answered with what may be meant, and /help lists all', async () => {
  using home = tempHome();
  home.session('main', user('Hi'));
  const acts = [
    '/frok',
    '/save',
    '/x1y2',
    '/switch',
    '/log -n 1 --role user',
    '/view',
    '/show @2',
    '/help',
  ].flatMap((line): Act[] => [{ type: `${line}\r` }, { until: 'main> ' }]);
  const options = { home: home.path, env: { TAPE_MODEL: `script:${home.file('none.json')}` } };
  writeFileSync(home.file('none.json'), '[]');
  const seen = await typeHere(['chat', 'main'], [{ until: 'main> ' }, ...acts, { type: '/exit\r' }], options);
  expect(seen.code).toBe(0);
  expect(seen.stderr.split('\n').filter((line) => line !== '')).toEqual([
    "Error: cannot run '/frok': no such command",
    'Hint: did you mean /fork? For a prompt that begins with a slash, write //',
    "Error: cannot run '/save': no such command",
    'Hint: did you mean /anchor? For a prompt that begins with a slash, write //',
    "Error: cannot run '/x1y2': no such command",
    'Hint: see /help; for a prompt that begins with a slash, write //',
    'Error: cannot run /switch: it needs a session',
    'Hint: see: /help',
  ]);
  const lines = screen(seen);
  expect(lines.filter((line) => line.startsWith('    2   user        Hi'))).toHaveLength(2);
  expect(lines).toContain('[user] Hi');
  expect(lines).toContain('/fork [NAME]      Fork the session here, and go on in the fork');
  expect(lines.every((line) => line.length < 100)).toBe(true);
});

test('hints name the home only where the user has named it', async () => {
  using home = tempHome();
  home.session('main', user('line\n'.repeat(20)));
  writeFileSync(home.file('none.json'), '[]');
  const env = { TAPE_MODEL: `script:${home.file('none.json')}` };
  const acts: Act[] = [
    { until: 'main> ' },
    { type: '/log\r' },
    { until: 'more lines' },
    { until: 'main> ' },
    { type: '/exit\r' },
  ];
  const found = await typeHere(['chat', 'main'], acts, { home: home.path, env });
  expect(screen(found).join('\n')).toContain('… 14 more lines (tape show main@2)');
  const named = await typeHere(['chat', 'main', '--home', home.path], acts, { env, columns: 120 });
  expect(screen(named).join('\n')).toContain(`… 14 more lines (tape show --home ${home.path} main@2)`);
});

test('an error of the provider is shown, and the conversation goes on', async () => {
  using home = tempHome();
  await using provider = await startProvider((request, index) =>
    index === 0 ? { status: 401, message: 'no such key' } : echo(request),
  );
  const seen = await typeHere(
    ['chat', 'main', ...model],
    [
      { until: 'main> ' },
      { type: 'Hi\r' },
      { until: 'no such key' },
      { until: '/continue' },
      { until: 'main> ' },
      { type: '/continue\r' },
      { until: 'Hi!' },
      { until: 'main> ' },
      { type: '/continue\r' },
      { until: 'Nothing to continue' },
      { until: 'main> ' },
      leave,
    ],
    { home: home.path, env: provider.env },
  );
  expect(seen.code).toBe(0);
  expect(linesOf(home).filter((line) => !line.startsWith('event'))).toEqual(['user: Hi', 'assistant: Hi!']);
});

test('Ctrl-C stops a turn and keeps its answer so far; at the prompt it clears the line, and twice it leaves', async () => {
  using home = tempHome();
  await using provider = await startProvider((request) =>
    lastUserText(request) === 'Slow' ? { text: ['Word ', 'after '], hang: true } : echo(request),
  );
  const seen = await typeHere(
    ['chat', 'main', ...model],
    [
      { until: 'main> ' },
      { type: 'Slow\r' },
      { until: 'after ' },
      { interrupt: true },
      { until: 'aborted' },
      { until: 'main> ' },
      { type: 'half a line\u0003' },
      { type: 'Hi\r' },
      { until: 'Hi!' },
      { until: 'main> ' },
      { type: '\u0003' },
      { until: '(Ctrl-C again leaves)' },
      { until: 'main> ' },
      { type: '\u0003' },
    ],
    { home: home.path, env: provider.env },
  );
  expect(seen.code).toBe(0);
  const messages = linesOf(home).filter((line) => /^(?:user|assistant)/.test(line));
  expect(messages).toEqual(['user: Slow', 'assistant: Word after', 'user: Hi', 'assistant: Hi!']);
  expect(linesOf(home)).toContain('event run/aborted');
  expect((await home.here(['check'])).code).toBe(0);
});

test('what another process adds is shown before the next prompt, and a busy session is no crash', async () => {
  using home = tempHome();
  await using provider = await startProvider(() => ({ text: 'Heard.' }));
  const chat = ['chat', 'main', ...model];
  let release = () => {};
  const seen = await typeHere(
    chat,
    [
      { until: 'main> ' },
      async () => await home.here(['append', 'main'], { stdin: '{"content":"From elsewhere"}\n' }),
      { type: '/view\r' },
      { until: 'Added to main by others:' },
      { until: 'From elsewhere' },
      { until: 'main> ' },
      () => {
        const store = home.open();
        const lease = store.leases.acquire('main', { id: 'other', pid: process.pid, host: 'elsewhere' });
        release = () => {
          store.leases.release(lease);
          store.close();
        };
      },
      { type: 'Hi\r' },
      { until: 'main> ' },
      { until: 'Hi' },
      () => release(),
      { type: '\r' },
      { until: 'Heard.' },
      { until: 'main> ' },
      leave,
    ],
    { home: home.path, env: provider.env },
  );
  expect(seen.code).toBe(0);
  expect(seen.stderr).toContain('Hint: wait until it is idle');
  expect(linesOf(home).slice(-2)).toEqual(['user: Hi', 'assistant: Heard.']);
});

/** A project with a tool that needs approval. */
const shop = `
import { tool } from 'ai';
import { z } from 'zod';
const inputSchema = z.object({ amount: z.number(), note: z.string() });
const pay = tool({ description: 'Pay', inputSchema, needsApproval: true, execute: async ({ amount }) => 'paid ' + amount + '\\nand more' });
export default { model: 'openai-compatible/test-model', tools: { pay } };
`;

const pays = (request: ChatRequest) => {
  if (isAfterTools(request)) return { text: `So: ${JSON.stringify(request.messages.at(-1)?.content)}` };
  const call = (amount: number) => ({ name: 'pay', arguments: { amount, note: 'now\u001b[2J' } });
  const text = lastUserText(request);
  return /pay/i.test(text)
    ? { text: 'I pay.', calls: text.includes('twice') ? [call(7), call(8)] : [call(7)] }
    : echo(request);
};

test('a call that needs approval is shown with its arguments, and runs or not as the user answers', async () => {
  using p = project();
  p.write('tape.config.mts', shop);
  await using provider = await startProvider(pays);
  await p.here(['trust', '.']);
  const env = { ...provider.env, HOME: p.path, XDG_CONFIG_HOME: p.file('../settings') };
  const question = { until: 'Run it? [y]es, [n]o, n REASON, [l]ater' };
  const seen = await typeHere(
    ['chat', 'main'],
    [
      { until: 'main> ' },
      { type: 'Pay\r' },
      { until: 'I pay.\n' },
      { until: 'amount: 7' },
      { until: 'note: now\\u{1b}[2J' },
      question,
      { type: 'perhaps\r' },
      question,
      { type: 'y\r' },
      { until: ' paid 7 … (2 lines)' },
      { until: 'So: ' },
      { until: 'main> ' },
      { type: 'Pay again\r' },
      question,
      { type: 'no, not on a Friday\r' },
      { until: 'denied: not on a Friday' },
      { until: 'main> ' },
      { type: 'Pay twice\r' },
      question,
      { type: 'y\r' },
      question,
      { type: 'y\r' },
      { until: 'paid 8' },
      { until: 'main> ' },
      { type: 'Pay later\r' },
      question,
      { type: 'l\r' },
      { until: 'main> ' },
      leave,
    ],
    { env, cwd: p.path },
  );
  expect(seen.code).toBe(0);
  expect(seen.stderr).toContain('pay waits for approval: tape approve main ');
  const lines = screen(seen);
  expect(lines).toContain('pay(amount: 7, note: now\\u{1b}[2J)');
  // It asks again when the conversation continues.
  const again = await typeHere(
    ['chat', 'main'],
    [question, { type: 'y\r' }, { until: 'paid 7' }, { until: 'main> ' }, leave],
    {
      env,
      cwd: p.path,
    },
  );
  expect(again.code).toBe(0);
  const piped = await p.inNode(['chat', 'piped'], { env, stdin: 'Pay\nNever sent\n' });
  expect(piped).toMatchObject({ code: 6, stdout: 'I pay.\n' });
  expect(piped.stderr).toContain('waits for approval');
});

test('what was typed before the question is no answer to it, and is there for the next line', async () => {
  using p = project();
  p.write('tape.config.mts', shop);
  await using provider = await startProvider(async (request) => {
    await sleep(isAfterTools(request) ? 0 : 100);
    return pays(request);
  });
  await p.here(['trust', '.']);
  const env = { ...provider.env, HOME: p.path, XDG_CONFIG_HOME: p.file('../settings') };
  const seen = await typeHere(
    ['chat', 'main'],
    [
      { until: 'main> ' },
      { type: 'Pay\ry\r' },
      { until: 'Run it?' },
      { type: 'n\r' },
      { until: 'So: ' },
      { until: 'y!' },
      { until: 'main> ' },
      leave,
    ],
    { env, cwd: p.path },
  );
  expect(screen(seen).join('\n')).not.toContain('paid');
});

test('prompts are kept for the user and the home, privately and without secrets, and the arrow keys find them', async () => {
  using home = tempHome();
  using other = tempHome();
  using me = tempDir();
  await using provider = await startProvider(echo);
  const env = { ...provider.env, XDG_STATE_HOME: me.path, MY_API_KEY: 'sk-very-secret-0123456789' };
  const type = async (at: string, ...acts: Act[]) =>
    await typeHere(['chat', 'main', ...model], [{ until: 'main> ' }, ...acts], { home: at, env });
  await type(
    home.path,
    { type: 'First\r' },
    { until: 'First!' },
    { until: 'main> ' },
    {
      type: 'Key sk-very-secret-0123456789\r',
    },
    { until: 'main> ' },
    leave,
  );
  const file = me.file('tape/prompts.jsonl');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, 'utf8')).not.toContain('sk-very-secret');
  const again = await type(
    home.path,
    { type: '\u001b[A\u001b[A\u001b[D\u001b[D\u001b[Dx\r' },
    { until: 'Fixrst!' },
    { until: 'main> ' },
    leave,
  );
  expect(again.code).toBe(0);
  await type(other.path, { type: '\u001b[AElse\r' }, { until: 'Else!' }, { until: 'main> ' }, leave);
  expect(linesOf(other)[0]).toBe('user: Else');
});

test('a paste of several lines is one prompt, and presses no keys', async () => {
  using home = tempHome();
  await using provider = await startProvider(echo);
  const seen = await typeHere(
    ['chat', 'main', ...model],
    [
      { until: 'main> ' },
      { type: '\u001b[200~one\r\ttwo\u0003\u001b[A\nthree\u001b[20' },
      { type: '1~' },
      { until: 'three' },
      { type: ' four\r' },
      { until: 'four!' },
      { until: 'main> ' },
      { type: 'five\\\r' },
      { until: '… ' },
      { type: 'six\r' },
      { until: 'six!' },
      { until: 'main> ' },
      leave,
    ],
    { home: home.path, env: provider.env },
  );
  expect(seen.code).toBe(0);
  expect(linesOf(home).filter((line) => line.startsWith('user'))).toEqual([
    'user: one\n\ttwo[A\nthree four',
    'user: five\nsix',
  ]);
});

test('Tab completes commands, sessions and points', async () => {
  using home = tempHome();
  home.session('main', user('Hi'));
  home.session('release-notes', user('Hi'));
  writeFileSync(home.file('none.json'), '[]');
  const options = { home: home.path, env: { TAPE_MODEL: `script:${home.file('none.json')}` } };
  const seen = await typeHere(
    ['chat', 'main'],
    [
      { until: 'main> ' },
      { type: '/sw\trel\t\r' },
      { until: '/switch release-notes' },
      { until: 'release-notes> ' },
      { type: '/rew\t\t' },
      { until: '@2' },
      { type: '\u0015' },
      leave,
    ],
    options,
  );
  expect(seen.code).toBe(0);
});

test('a new session whose name is nearly that of another is asked about', async () => {
  using home = tempHome();
  home.session('main', user('Hi'));
  await using provider = await startProvider(echo);
  const options = { home: home.path, env: provider.env };
  const question = { until: 'Use main [y], create mian [c], or stop [Enter]? ' };
  const answer = async (text: string, ...more: Act[]) =>
    await typeHere(['chat', 'mian', ...model], [question, { type: text }, ...more], options);
  expect((await answer('y\r', { until: 'main> ' }, leave)).code).toBe(0);
  expect((await answer('q\r')).code).toBe(3);
  expect((await answer('n\r')).code).toBe(3);
  expect((await answer('\r')).code).toBe(3);
  expect((await answer('c\r', { until: 'mian> ' }, leave)).code).toBe(0);
  expect(existsSync(home.graph)).toBe(true);
});

test('a prompt that is too long for a line is not offered again, and a dumb terminal gets no marks', async () => {
  using home = tempHome();
  home.session('main', user('x'.repeat(20_000)));
  await using provider = await startProvider(echo);
  const seen = await typeHere(
    ['chat', 'main', ...model],
    [
      { until: 'main> ' },
      { type: '/rewind\r' },
      { until: 'hidden, none removed' },
      { until: 'main> ' },
      { type: 'Hi\r' },
      { until: 'Hi!' },
      { until: 'main> ' },
      leave,
    ],
    { home: home.path, env: { ...provider.env, TERM: 'dumb' } },
  );
  expect(seen.code).toBe(0);
  expect(seen.stderr).toContain('Its text is too long to be edited here: tape show main@2');
  expect(seen.stdout).not.toContain('\u001b[?2004');
});

test('an answer does not steer the terminal', async () => {
  using home = tempHome();
  await using provider = await startProvider(() => ({
    text: ['\u001b]0;title\u0007', '\u001b[2Jred\u202e', '\rover'],
  }));
  const seen = await typeHere(
    ['chat', 'main', ...model],
    [{ until: 'main> ' }, { type: 'Hi\r' }, { until: 'over' }, { until: 'main> ' }, leave],
    { home: home.path, env: provider.env },
  );
  expect(seen.code).toBe(0);
  expect(seen.stdout).toContain('\\u{1b}]0;title\\u{7}\\u{1b}[2Jred\\u{202e}\\u{d}over');
});

test('of calls that wait at once, an answer counts although another call is left', async () => {
  using p = project();
  p.write('tape.config.mts', shop);
  const calls = [7, 8].map((amount) => ({
    name: 'pay',
    arguments: { amount, note: 'now', _parallel: true },
  }));
  await using provider = await startProvider((request) =>
    lastUserText(request) === 'Pay' ? { calls } : { text: 'Well.' },
  );
  await p.here(['trust', '.']);
  const env = { ...provider.env, HOME: p.path, XDG_CONFIG_HOME: p.file('../settings') };
  const question = { until: 'Run it?' };
  const seen = await typeHere(
    ['chat', 'main'],
    [
      { until: 'main> ' },
      { type: 'Pay\r' },
      question,
      { type: 'y\r' },
      question,
      { type: 'l\r' },
      { until: 'paid 7' },
      { until: 'main> ' },
      leave,
    ],
    { env, cwd: p.path },
  );
  expect(seen.code).toBe(0);
  expect(seen.stdout).not.toContain('paid 8');
  expect((await p.here(['status', 'main'])).stdout).toContain('waits for approval');
});

test('a call whose arguments are too long to be shown is not approved unseen', async () => {
  using p = project();
  p.write('tape.config.mts', shop);
  const call = { name: 'pay', arguments: { amount: 7, note: 'x '.repeat(500_000) } };
  await using provider = await startProvider((request) =>
    lastUserText(request) === 'Pay' ? { calls: [call] } : { text: 'Left.' },
  );
  await p.here(['trust', '.']);
  const env = { ...provider.env, HOME: p.path, XDG_CONFIG_HOME: p.file('../settings') };
  const seen = await typeHere(
    ['chat', 'main'],
    [
      { until: 'main> ' },
      { type: 'Pay\r' },
      { until: 'The arguments of pay are too long to be shown here: see /show' },
      { until: 'main> ' },
      { type: 'Then leave it\r' },
      { until: 'Left.' },
      { until: 'main> ' },
      leave,
    ],
    { env, cwd: p.path },
  );
  expect(seen.code).toBe(0);
  expect(seen.stderr).toContain('pay waits for approval: tape approve main ');
});

test('each result of calls that run at once is below its call', async () => {
  using p = project();
  p.write(
    'tape.config.mts',
    `import { tool } from 'ai';
import { z } from 'zod';
const inputSchema = z.object({ ms: z.number() });
const wait = tool({ description: 'Wait', inputSchema, execute: async ({ ms }) => { await new Promise((done) => setTimeout(done, ms)); return 'waited ' + ms; } });
export default { model: 'openai-compatible/test-model', tools: { wait } };
`,
  );
  const calls = [300, 1].map((ms) => ({ name: 'wait', arguments: { ms, _parallel: true } }));
  await using provider = await startProvider((request) =>
    isAfterTools(request) ? { text: 'Done.' } : { calls },
  );
  await p.here(['trust', '.']);
  const env = { ...provider.env, HOME: p.path, XDG_CONFIG_HOME: p.file('../settings') };
  const seen = await typeHere(
    ['chat', 'main'],
    [{ until: 'main> ' }, { type: 'Go\r' }, { until: 'Done.' }, { until: 'main> ' }, leave],
    { env, cwd: p.path },
  );
  const lines = screen(seen);
  expect(lines.slice(lines.indexOf('main> Go') + 1, lines.indexOf('Done.'))).toEqual([
    'wait(ms: 300, _parallel: true)',
    'wait(ms: 1, _parallel: true)',
    'wait(ms: 1, _parallel: true)',
    '  └ waited 1',
    'wait(ms: 300, _parallel: true)',
    '  └ waited 300',
  ]);
});

test('Ctrl-C ends a command, and the error of the next one is shown', async () => {
  using home = tempHome();
  home.session('main', user('Hi'));
  await using provider = await startProvider(echo);
  const seen = await typeHere(
    ['chat', 'main', ...model],
    [
      { until: 'main> ' },
      { type: '/log --follow\r' },
      { until: 'Hi' },
      { interrupt: true },
      { until: 'main> ' },
      { type: '/rewind @99\r' },
      { until: 'main> ' },
      { type: 'Hello\r' },
      { until: '!' },
      { until: 'main> ' },
      leave,
    ],
    { home: home.path, env: provider.env },
  );
  expect(seen.code).toBe(0);
  expect(seen.stderr).toContain('main@99');
  expect(seen.stderr).not.toContain('Interrupted');
});

test('a turn shows the children that its model starts, and Ctrl-C ends the wait for those in the background', async () => {
  using p = project();
  p.write(
    'tape.config.mts',
    "import { delegationTools } from '@tapedeck/runtime';\nexport default { model: 'openai-compatible/test-model', tools: delegationTools() };\n",
  );
  const asked = (text: string) => ({
    tasks: [{ task: text.includes('slow') ? 'Check slow' : 'Check a' }],
    background: true,
    trigger_on_complete: 'notify_parent',
    inherit: 'nothing',
  });
  await using provider = await startProvider((request) => {
    const said = lastUserText(request);
    if (said.includes('has ended')) return { text: 'Noted.' };
    if (said.includes('Check'))
      return said.includes('slow') ? { text: ['Hm'], hang: true } : { text: 'Checked.' };
    return request.messages.at(-1)?.role === 'tool'
      ? { text: 'Started.' }
      : /Go/.test(said)
        ? { calls: [{ name: 'delegate', arguments: asked(said) }] }
        : { text: 'Well.' };
  });
  await p.here(['trust', '.']);
  const env = { ...provider.env, HOME: p.path, XDG_CONFIG_HOME: p.file('../settings') };
  const seen = await typeHere(
    ['chat', 'main'],
    [
      { until: 'main> ' },
      { type: 'Go\r' },
      { until: 'Started.' },
      { until: 'Noted.' },
      { until: 'main> ' },
      { type: 'Go slow\r' },
      { until: 'Started.' },
      { told: 'Waiting for the background children of main' },
      { interrupt: true },
      { until: 'main> ' },
      { type: 'How are you?\r' },
      { until: '.' },
      { interrupt: true },
      { until: 'main> ' },
      leave,
    ],
    { env, cwd: p.path },
  );
  expect(seen.code).toBe(0);
  expect(seen.stderr).toContain('Waiting for the background children of main');
  const text = screen(seen).join('\n');
  expect(text).toMatch(/^ {2}main-check-a-\w+ started$/m);
  expect(text).toMatch(/^ {2}main-check-a-\w+ completed, 1 step, \d+ tokens$/m);
  // Leaving ends the child, and its parent has the news.
  expect((await p.here(['audit'])).stdout).toMatch(/^message-unanswered: .*\n1 finding in 3 sessions\n$/);
  const acts = [
    { until: '1 message in its inbox (/continue takes them)' },
    { until: 'main> ' },
    { type: '/continue\r' },
    { until: 'Noted.' },
    { until: 'main> ' },
    leave,
  ];
  expect((await typeHere(['chat', 'main'], acts, { env, cwd: p.path })).code).toBe(0);
  expect((await p.here(['audit', '--quiet'])).stdout).toBe('ok\n');
});
