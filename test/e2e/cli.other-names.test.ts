import { assistant, openTapeStore, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { type Project, project } from '../support/project.ts';
import { type Provider, startProvider } from '../support/provider.ts';
import { form, isSummary, long, stateOf } from '../support/summarised.ts';

/** What every file of these tests begins with. */
const base = `model: openai-compatible/test-model
windows: { test-model: { window: 8000, max_output: 1000 } }
limits: { retry_delay_ms: 1 }
`;

/** A session of six turns, of about 300 tokens each. */
function talked(p: Project): void {
  using store = openTapeStore(`${p.home}/tape.db`);
  store.sessions.open('main');
  for (let i = 1; i <= 6; i += 1)
    store.entries.append('main', [user(long(`Question ${i}`, 600)), assistant(long(`Answer ${i}`, 600))]);
}

/** Compacts a session that was talked with, and returns the first position that stays. */
async function firstKept(provider: Provider, compaction: string): Promise<number> {
  using p = project();
  talked(p);
  p.write('.tape/config.yaml', base + compaction);
  expect(await p.here(['compact', 'main'], { env: provider.env })).toMatchObject({ code: 0 });
  using store = openTapeStore(`${p.home}/tape.db`, { readonly: true });
  return Number(stateOf([...store.entries.read('main', { kind: 'compaction' })].at(-1)).first_kept);
}

test('a compaction keeps what another agent calls its recent tokens, its tail or its ratio', async () => {
  await using provider = await startProvider(() => ({ text: form }));
  const kept: number[] = [];
  for (const names of [
    'enabled: true, reserve_tokens: 2000, keep_recent_tokens: 500',
    'keep_recent_tokens: 1000',
    'tail_turns: 1',
    'tail_turns: 3, tail_budget_pct: 0.4',
    // Of a tail that is too large, fewer turns stay.
    'tail_turns: 3, tail_budget_pct: 0.1',
    'tail_budget_pct: 0.4',
    'recent_preserve_ratio: 0.1',
  ])
    kept.push(await firstKept(provider, `compaction: { ${names} }\n`));
  expect(kept).toEqual([10, 7, 12, 8, 10, 10, 9]);
});

test('a summary is requested again as often as retry_on_transient says', async () => {
  let isUp = false;
  await using provider = await startProvider(() =>
    isUp ? { text: form } : { status: 503, message: 'come again' },
  );
  using p = project();
  talked(p);
  const asked = async (retries: string) => {
    p.write('.tape/config.yaml', `${base}compaction: { retry_on_transient: ${retries} }\n`);
    const before = provider.requests.length;
    const { code } = await p.here(['compact', 'main'], { env: provider.env });
    return [code, provider.requests.slice(before).filter(isSummary).length];
  };
  expect(await asked('2')).toEqual([1, 3]);
  expect(await asked('0')).toEqual([1, 1]);
  expect(await asked('4')).toEqual([1, 5]);
  expect(await asked('false')).toEqual([1, 1]);
  isUp = true;
  expect(await asked('2')).toEqual([0, 1]);
});

test('the level, the summarizer and the length of a summary are those of the other agent', async () => {
  await using provider = await startProvider((request) =>
    isSummary(request) ? { text: form } : { text: 'Fine.', usage: [5_000, 10] },
  );
  const summariesWith = async (compaction: string) => {
    using p = project();
    talked(p);
    p.write('.tape/config.yaml', `${base}compaction: ${compaction}\n`);
    const before = provider.requests.length;
    for (const prompt of ['Hi', 'Go'])
      expect(await p.here(['run', 'main', prompt], { env: provider.env })).toMatchObject({ code: 0 });
    return provider.requests
      .slice(before)
      .filter(isSummary)
      .map(({ model, max_tokens }) => ({ model, max_tokens }));
  };
  // 0.6 of what the longest answer leaves of the window is 4,200.
  const rules = 'summary_budget_ratio: 0.1, model: openai-compatible/small';
  expect(await summariesWith(`{ trigger_threshold: 0.6, ${rules} }`)).toEqual([
    { model: 'small', max_tokens: 4_096 },
  ]);
  expect(await summariesWith('{ trigger_threshold: 0.6, summary_budget_ratio: 0.1 }')).toEqual([
    { model: 'test-model', max_tokens: 800 },
  ]);
  expect(await summariesWith('{ trigger_threshold: 0.8, model: null }')).toEqual([]);
});

test('steps and the time of a tool are limited under the names of another agent', async () => {
  await using provider = await startProvider(() => ({ calls: [{ name: 'wait', arguments: {} }] }));
  using p = project();
  p.write(
    'tape.config.mts',
    `import { setTimeout } from 'node:timers/promises';
     import { tool } from 'ai';
     import { z } from 'zod';
     const execute = (_, { abortSignal: signal }) => setTimeout(20_000, 'late', { signal });
     export default { tools: { wait: tool({ inputSchema: z.object({}), execute }) } };`,
  );
  const names = 'max_tool_iterations: 2\nskill_timeout: 0.1\nmax_concurrent_tools: 1\n';
  p.write('.tape/config.yaml', base + names);
  const run = ['run', 'main', 'Go', '--config', 'tape.config.mts'];
  expect((await p.inNode(run, { env: provider.env })).code).toBe(1);
  expect(provider.requests).toHaveLength(2);
  expect(JSON.stringify(provider.requests[1]?.messages)).toContain('100 ms');
});

test('status and config say what each is here, what is not used, and why', async () => {
  using p = project();
  p.write(
    '.tape/config.yaml',
    `compaction:
  keep: { tokens: 500 }
  keep_recent_tokens: 20000
  retry_on_transient: 2
max_tool_iterations: 7
skill_timeout: 1.5
`,
  );
  const lines = [
    'compaction.keep_recent_tokens: 20000 is not used: compaction.keep is set, too',
    'max_tool_iterations: 7 is limits.max_steps: 7 here',
    'skill_timeout: 1.5 is limits.tool_timeout_ms: 1500 here',
    'compaction.retry_on_transient: 2 has the same name here',
  ];
  expect((await p.here(['status', '--settings'])).stdout.split('\n').slice(0, -1)).toEqual(lines);
  for (const all of [[], ['--all']]) {
    const { stderr } = await p.here(['status', ...all]);
    for (const line of lines) expect(stderr).toContain(`${line}\n`);
  }
  expect(json(await p.here(['status', '--settings', '--json']))).toEqual([
    {
      key: 'compaction.keep_recent_tokens',
      value: 20_000,
      setting: 'compaction.keep.tokens',
      here: 20_000,
      used: false,
      why: 'compaction.keep is set, too',
    },
    { key: 'max_tool_iterations', value: 7, setting: 'limits.max_steps', here: 7, used: true },
    { key: 'skill_timeout', value: 1.5, setting: 'limits.tool_timeout_ms', here: 1_500, used: true },
    {
      key: 'compaction.retry_on_transient',
      value: 2,
      setting: 'compaction.retry_on_transient',
      here: 2,
      used: true,
    },
  ]);
  expect(await p.here(['status', '--json'])).toMatchObject({ stdout: '[]\n', stderr: 'No sessions\n' });
  expect((await p.here(['status', '--settings', '--all'])).code).toBe(2);
  const from = `${p.home}/config.yaml`;
  expect((await p.here(['config', 'list', '--show-origin'])).stdout.split('\n')).toEqual([
    `${from}\tcompaction.keep.tokens\t500`,
    `${from} (not used: it has compaction.keep, too)\tcompaction.keep_recent_tokens\t20000`,
    `${from}\tcompaction.retry_on_transient\t2`,
    `${from} (as max_tool_iterations)\tlimits.max_steps\t7`,
    `${from} (as skill_timeout)\tlimits.tool_timeout_ms\t1500`,
    '',
  ]);
  expect(json(await p.here(['config', 'get', 'max_tool_iterations', '--json']))).toEqual({
    ...{ key: 'limits.max_steps', value: 7, origin: 'file', from },
    called: 'max_tool_iterations',
  });
  // Without what was set beside it, it counts, and brings its rules along.
  expect((await p.here(['config', 'unset', 'compaction.keep'])).code).toBe(0);
  expect((await p.here(['status', '--settings'])).stdout).toContain(
    'compaction.keep_recent_tokens: 20000 is compaction.keep.tokens: 20000 here, with compaction.preset: reserve-16k\n',
  );
  // Code has a compaction of its own.
  p.write('tape.config.mts', 'export default { compaction: "at-85" };');
  const config = ['config', 'list', '--show-origin', '--json', '--config', 'tape.config.mts'];
  expect(json(await p.inNode(config))).toContainEqual({
    ...{ key: 'compaction.keep_recent_tokens', value: 20_000, origin: 'file', from },
    unused: `${p.file('tape.config.mts')} has compaction`,
  });
});

test.each([
  [
    'compaction:\n  keep_recent_tokens: 0\n',
    2,
    'compaction.keep_recent_tokens must be a whole number from 1',
  ],
  ['compaction:\n  enabled: true\n  tail_budget_pct: 25\n', 3, 'compaction.tail_budget_pct must be a number'],
  ['compaction:\n  retry_on_transient: -1\n', 2, 'compaction.retry_on_transient must be true, false or a'],
  ['compaction:\n  model: haiku\n', 2, 'compaction.model must be PROVIDER/MODEL or script:FILE, not "haiku"'],
  ['max_tool_iterations: 0\n', 1, 'max_tool_iterations must be a whole number from 1, or .inf'],
  ['\nskill_timeout: 1e9\n', 2, 'skill_timeout, as limits.tool_timeout_ms, must be a whole number from 1 to'],
  [
    'compaction:\n  tail_turns: 2\n  trigger_threshold: 0.9\n',
    3,
    'compaction.tail_turns and compaction.trigger_threshold are names of two programs',
  ],
])('%j is refused with its line and its name', async (yaml, line, says) => {
  using p = project();
  p.write('.tape/config.yaml', yaml);
  const result = await p.here(['run', 'main', 'Hi', '--json']);
  expect({ exit: result.code, ...jsonError(result) }).toMatchObject({
    exit: 2,
    code: 'CLI_BAD_CONFIG',
    data: { line },
    message: expect.stringContaining(says),
  });
  // What cannot be used does not stop a look at the sessions.
  expect((await p.here(['status'])).code).toBe(0);
});
