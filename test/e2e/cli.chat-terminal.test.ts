import { writeFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import { openTapeStore, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, startTape } from '../support/cli.ts';
import { tapeProgram } from '../support/programs.ts';
import { project } from '../support/project.ts';
import {
  type ChatRequest,
  isAfterTools,
  lastUserText,
  type Provider,
  startProvider,
} from '../support/provider.ts';
import { onTerminal, type Step, skipsTerminals } from '../support/pty.ts';
import { entryLines } from '../support/scripted.ts';
import { tempDir } from '../support/temp-dir.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const onATerminal = test.skipIf(skipsTerminals('tape chat'));
const model = ['--model', 'openai-compatible/test-model'];
const echo = (request: ChatRequest) => ({ text: `${lastUserText(request)}!`, usage: [1_200, 34] as const });
const [enter, ctrlC, ctrlD, up, left, home, backspace] = [
  '\r',
  '\u0003',
  '\u0004',
  '\u001b[A',
  '\u001b[D',
  '\u0001',
  '\u007f',
];
const prompt = (name = 'main') => ({ until: `${name}> ` });

interface Seated {
  readonly home: TempHome;
  readonly provider: Provider;
  readonly session?: string;
  readonly columns?: number;
  readonly env?: Readonly<Record<string, string>>;
}

/** What a person sees who does these steps in `tape chat`. */
async function seen({ home, provider, session = 'main', columns, env }: Seated, steps: readonly Step[]) {
  const { output, code, isRaw } = await onTerminal({
    argv: [process.execPath, tapeProgram, 'chat', session, ...model],
    env: {
      PATH: process.env.PATH ?? '',
      TAPE_HOME: home.path,
      TAPE_TRUST_HOME: '1',
      NO_COLOR: '1',
      ...provider.env,
      ...env,
    },
    ...(columns !== undefined && { columns }),
    steps,
  });
  return { output, code, isRaw, lines: stripVTControlCharacters(output).replaceAll('\r', '').split('\n') };
}

const messagesOf = (of: TempHome, name = 'main') => {
  using store = of.open();
  return entryLines(store.entries.read(name)).filter((line) => /^(?:user|assistant)/.test(line));
};

onATerminal('an answer is shown as it comes, and keys edit the line', async () => {
  using at = tempHome();
  using me = tempDir();
  await using provider = await startProvider((request, index) =>
    index > 0 ? echo(request) : { text: ['First ', 'second ', 'third'], pauseMs: 150 },
  );
  const place = { home: at, provider, env: { XDG_STATE_HOME: me.path } };
  const first = await seen(place, [
    prompt(),
    { type: `halo${left}${left}l${home}> ${enter}` },
    { until: 'First ' },
    { until: 'third' },
    { until: 'test-model · ' },
    prompt(),
    { type: `${up}${backspace}${backspace}y${enter}` },
    { until: '> haly!' },
    prompt(),
    { type: ctrlD },
  ]);
  expect(first.code).toBe(0);
  expect(first.lines).toContain('First second third');
  // A line of the day before is found again.
  const second = await seen(place, [
    prompt(),
    { type: `${up}${up}${enter}` },
    { until: '> hallo!' },
    prompt(),
    { type: ctrlC },
    { until: '(Ctrl-C again leaves)' },
    prompt(),
    { type: ctrlC },
  ]);
  expect(second.code).toBe(0);
  expect(messagesOf(at).filter((line) => line.startsWith('user'))).toEqual([
    'user: > hallo',
    'user: > haly',
    'user: > hallo',
  ]);
});

onATerminal('Ctrl-C during a turn stops it, and leaves a tape that is whole', async () => {
  using at = tempHome();
  await using provider = await startProvider((request) =>
    lastUserText(request) === 'Count' ? { text: ['One ', 'two '], hang: true } : echo(request),
  );
  const { code, output } = await seen({ home: at, provider }, [
    prompt(),
    { type: `Count${enter}` },
    { until: 'two ' },
    { type: ctrlC },
    { until: 'Hint: continue it with: /continue' },
    prompt(),
    { type: `Hi${enter}` },
    { until: 'Hi!' },
    prompt(),
    { type: ctrlD },
  ]);
  expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining('Left main@') });
  expect(messagesOf(at)).toEqual(['user: Count', 'assistant: One two', 'user: Hi', 'assistant: Hi!']);
  expect((await at.tape(['check'])).code).toBe(0);
});

onATerminal.for([
  { signal: 'SIGHUP', exit: 129 },
  { signal: 'SIGTERM', exit: 143 },
] as const)('$signal ends the conversation, and leaves the terminal as it was', async ({ signal, exit }) => {
  using at = tempHome();
  at.session('main', user('hello'));
  await using provider = await startProvider(echo);
  const { code, isRaw, output } = await seen({ home: at, provider }, [
    prompt(),
    { type: 'half a line' },
    { until: 'line' },
    { signal },
  ]);
  expect([code, isRaw]).toEqual([exit, false]);
  expect(output.lastIndexOf('\u001b[?2004l')).toBeGreaterThan(output.lastIndexOf('\u001b[?2004h'));
});

onATerminal('/log shows a long session in the pager, which has the keys while it is there', async () => {
  using at = tempHome();
  at.session('main', ...Array.from({ length: 200 }, (_, i) => user(`line ${i}`)));
  await using provider = await startProvider(echo);
  const { code } = await seen({ home: at, provider, env: { TAPE_PAGER: 'less -X' } }, [
    { until: 'line 199' },
    prompt(),
    { type: `/log -n 150${enter}` },
    { until: 'line 50' },
    { type: 'q' },
    prompt(),
    { type: `Still here${enter}` },
    { until: 'Still here' },
    { until: 'test-model' },
    prompt(),
    { type: ctrlD },
  ]);
  expect(code).toBe(0);
});

onATerminal(
  'a paste of several lines is one prompt, on a narrow terminal that grows, in wide characters',
  async () => {
    using at = tempHome();
    await using provider = await startProvider(echo);
    const session = 'a-session-with-a-name';
    const { code, lines } = await seen({ home: at, provider, session, columns: 24 }, [
      { until: '…> ' },
      { type: `\u001b[200~合計は正しいですか？\r二行目です\u001b[201~` },
      { until: '二行目です' },
      { type: `${left}${left}${backspace}の🧾${enter}` },
      { until: '二行の🧾です!' },
      { until: '…> ' },
      { rows: 24, columns: 100 },
      { type: 'wide' },
      { until: 'wide' },
      { type: `${enter}` },
      { until: 'wide!' },
      { until: `${session}> ` },
      { type: ctrlD },
    ]);
    expect(code).toBe(0);
    expect(lines.some((line) => line.startsWith('a-sessi…> '))).toBe(true);
    expect(messagesOf(at, session).filter((line) => line.startsWith('user'))).toEqual([
      'user: 合計は正しいですか？\n二行の🧾です',
      'user: wide',
    ]);
  },
);

onATerminal('/fork, /rewind and /anchor work, and an approval is given or denied', async () => {
  using p = project();
  p.write(
    'tape.config.mts',
    `import { tool } from 'ai';
import { z } from 'zod';
const inputSchema = z.object({ amount: z.number() });
const pay = tool({ description: 'Pay', inputSchema, needsApproval: true, execute: async ({ amount }) => 'paid ' + amount });
export default { model: 'openai-compatible/test-model', tools: { pay } };
`,
  );
  await p.process(['trust', '.']);
  await using provider = await startProvider((request) => {
    if (isAfterTools(request)) return { text: 'So be it.' };
    return lastUserText(request).startsWith('Pay')
      ? { text: ['Wait', ' for it.'], pauseMs: 300, calls: [{ name: 'pay', arguments: { amount: 7 } }] }
      : echo(request);
  });
  const question = { until: 'Run it? [y]es, [n]o, n REASON, [l]ater' };
  const { output, code } = await onTerminal({
    argv: [process.execPath, tapeProgram, 'chat', 'main'],
    env: {
      ...provider.env,
      PATH: process.env.PATH ?? '',
      HOME: p.path,
      XDG_CONFIG_HOME: p.file('../settings'),
      NO_COLOR: '1',
    },
    cwd: p.path,
    steps: [
      prompt(),
      { type: `Pay${enter}` },
      { until: 'amount: 7' },
      question,
      { type: `y${enter}` },
      { until: ' paid 7' },
      { until: 'So be it.' },
      prompt(),
      { type: `/anchor paid${enter}` },
      { until: 'Anchored paid at main@' },
      prompt(),
      { type: `/fork idea${enter}` },
      { until: 'Return with: /switch main' },
      prompt('idea'),
      { type: `Pay more${enter}` },
      { until: 'Wait' },
      // What is typed before the question waits for the next prompt.
      { type: `y${enter}` },
      question,
      { type: `n too dear${enter}` },
      { until: 'denied: too dear' },
      { until: 'So be it.' },
      prompt('idea'),
      { until: 'y!' },
      prompt('idea'),
      { type: `/rewind @head${enter}` },
      { until: 'idea> ' },
      { type: `/rewind${enter}` },
      { until: '(undo with: /undo @' },
      prompt('idea'),
      { until: 'y' },
      { type: `${ctrlC}/quit${enter}` },
    ],
  });
  expect({ code, output }).toMatchObject({ code: 0 });
  const { stdout } = await p.process(['status', '--all']);
  expect(stdout).not.toContain('waiting');
});

onATerminal(
  'a conversation that was killed says so when it continues, and is recovered as a run is',
  async () => {
    using at = tempHome();
    await using provider = await startProvider((request, index) =>
      index === 0 ? { text: ['word0 ', 'word1 ', 'word2 ', 'word3 '], hang: true } : echo(request),
    );
    const options = { home: at.path, env: provider.env };
    const running = startTape(['chat', 'main', ...model], options);
    running.child.stdin?.write('Count\n');
    await running.until('word3 ');
    running.child.kill('SIGKILL');
    await running.done;
    const again = await seen({ home: at, provider }, [
      { until: 'its last run was cut off (/continue continues it)' },
      prompt(),
      { type: ctrlD },
    ]);
    expect(again.code).toBe(0);
    const recovered = await at.process(['recover', ...model, '--json'], { env: provider.env });
    expect(json(recovered)).toMatchObject({ resumed: ['main'], failed: [] });
    expect((await at.process(['check'])).code).toBe(0);
  },
);

onATerminal('tape run asks about calls that rules ask about, and an answer counts for good', async () => {
  using p = project();
  const [config, answers] = [p.file('desk.mjs'), p.file('answers.json')];
  writeFileSync(
    config,
    `import { tool } from 'ai';
import { z } from 'zod';
const inputSchema = z.object({ command: z.string() });
const run_command = { ...tool({ inputSchema, execute: async ({ command }) => 'ran ' + command }), command: 'command' };
export default { permissions: 'trusted', tools: { run_command } };
`,
  );
  const run = (id: string, command: string) => ({
    toolCalls: [{ id, name: 'run_command', input: { command } }],
  });
  writeFileSync(
    answers,
    JSON.stringify([
      run('c1', 'git log'),
      run('c2', 'git status'),
      run('c3', 'make'),
      run('c4', 'echo \u001b]52;c;aGk=\u0007\u202e'),
      { text: 'All looked at.' },
    ]),
  );
  const question = { until: 'Run it? [y]es, [n]o, n REASON, [l]ater, 1-2 always: ' };
  const { output, code } = await onTerminal({
    argv: [
      process.execPath,
      tapeProgram,
      'run',
      'main',
      'Look',
      '--config',
      config,
      '--model',
      `script:${answers}`,
    ],
    env: { PATH: process.env.PATH ?? '', TAPE_HOME: p.file('home'), TAPE_TRUST_HOME: '1', NO_COLOR: '1' },
    cwd: p.path,
    steps: [
      { until: '2: always exec(git *)' },
      question,
      { type: `2${enter}` },
      { until: '1: always exec(make)' },
      question,
      { type: `n not now${enter}` },
      { until: 'command: echo ' },
      { until: 'Run it? [y]es, [n]o, n REASON, [l]ater: ' },
      { type: `1${enter}` },
      { until: 'Run it? [y]es, [n]o, n REASON, [l]ater: ' },
      { type: `n${enter}` },
      { until: 'All looked at.' },
    ],
  });
  expect(code, output).toBe(0);
  // Names and arguments write nothing to the terminal but their letters.
  expect(output).not.toContain('\u001b]52');
  expect(output).not.toContain('\u202e');
  using store = openTapeStore(p.file('home/tape.db'));
  const granted = [...store.entries.read('main', { name: 'permission/granted' })].map(
    ({ payload }) => payload,
  );
  expect(granted).toEqual([{ rule: 'allow exec(git *)', toolCallId: 'c1' }]);
  expect(entryLines(store.entries.read('main')).join('\n')).toContain('run_command c2 → text ran git status');
});
