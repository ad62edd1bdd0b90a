import { chmodSync, existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { type JsonObject, openTapeStore } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { oneCopyAnswers, oneCopyConfig } from '../support/one-copy.ts';
import { type Project, project } from '../support/project.ts';
import { isAfterTools, lastUserText, startProvider } from '../support/provider.ts';
import { entryLines } from '../support/scripted.ts';

const linesOf = ({ home }: Project, name: string): string[] => {
  using store = openTapeStore(`${home}/tape.db`, { readonly: true });
  return entryLines(store.entries.read(name));
};

/** A configuration as a user writes it: types, a tool with a schema, instructions. */
const config = (model: string) => `
import { defineDeck } from '@tapedeck/runtime';
import { tool } from 'ai';
import { z } from 'zod';

interface City { readonly name: string }

export default defineDeck({
  model: ${JSON.stringify(model)},
  instructions: 'Answer in one word.',
  tools: {
    weather: tool({
      description: 'The weather of a city',
      inputSchema: z.object({ name: z.string() }),
      execute: ({ name }: City): string => \`\${name}: sunny\`,
    }),
  },
  limits: { maxSteps: 3 },
});
`;

const asking = [{ toolCalls: [{ name: 'weather', input: { name: 'Bern' } }] }, { text: 'Sunny.' }];

async function trusted(given: Project): Promise<void> {
  expect(await given.here(['trust', '.'])).toMatchObject({ code: 0 });
}

test('run takes model, tools and instructions from the configuration', async () => {
  using p = project();
  await using provider = await startProvider((request) =>
    isAfterTools(request)
      ? { text: 'Sunny.' }
      : { calls: [{ name: 'weather', arguments: { name: 'Bern' } }] },
  );
  p.write('tape.config.mts', config('openai-compatible/test-model'));
  await trusted(p);
  const result = await p.tape(['run', 'main', 'How is Bern?'], { env: provider.env });
  expect(result).toMatchObject({ code: 0, stdout: 'Sunny.\n' });
  expect(provider.requests[0]).toMatchObject({
    model: 'test-model',
    messages: [{ role: 'system', content: 'Answer in one word.' }, { role: 'user' }],
    tools: [{ function: { name: 'weather', description: 'The weather of a city' } }],
  });
  expect(linesOf(p, 'main').some((line) => line.includes('Bern: sunny'))).toBe(true);
});

test('run keeps the output of a tool off stdout, and exits although the tool left a handle open', async () => {
  using p = project();
  p.write('answers.json', [{ toolCalls: [{ name: 'listen', input: {} }] }, { text: 'Listening.' }]);
  p.write(
    'tape.config.mts',
    `import { tool } from 'ai';
     import { z } from 'zod';
     const execute = () => {
       console.log('ready');
       setInterval(() => {}, 60_000);
       return 'well';
     };
     export default {
       model: 'script:answers.json',
       tools: { listen: tool({ inputSchema: z.object({}), execute }) },
     };`,
  );
  await trusted(p);
  const result = await p.process(['run', 'main', 'Listen', '--json']);
  expect(json(result)).toMatchObject({ text: 'Listening.', finish: 'stop' });
  expect(result).toMatchObject({ code: 0, stderr: expect.stringContaining('ready\n') });
});

test('run reports a failure on one line, however many lines its tool throws', async () => {
  using p = project();
  p.write('answers.json', [{ toolCalls: [{ name: 'fail', input: {} }] }, { text: 'Well.' }]);
  p.write(
    'tape.config.mts',
    `import { tool } from 'ai';
     import { z } from 'zod';
     const execute = () => {
       throw new Error('no\\nError: all is lost\\n' + 'x'.repeat(1_000_000));
     };
     export default {
       model: 'script:answers.json',
       tools: { fail: tool({ inputSchema: z.object({}), execute }) },
     };`,
  );
  await trusted(p);
  const { code, stderr } = await p.tape(['run', 'main', 'Go']);
  expect(code).toBe(0);
  const [told, ...others] = stderr.split('\n').filter((line) => line.includes('all is lost'));
  expect([told?.startsWith('  fail failed: no Error: all is lost x'), others]).toEqual([true, []]);
  expect(stderr.length).toBeLessThan(2_000);
});

test('a configuration and the command share one copy of the packages', async () => {
  using p = project();
  p.write('tape.config.mts', oneCopyConfig);
  p.write('answers.json', [oneCopyAnswers, oneCopyAnswers, oneCopyAnswers].flat());
  await trusted(p);
  const run = ['run', 'main', 'Whose?', '--model', 'script:answers.json'];
  for (const line of [run, [...run, '--max-steps', '3'], [...run, '--config=tape.config.mts']]) {
    expect(await p.process(line)).toMatchObject({ code: 0, stdout: 'Done.\n' });
    expect(linesOf(p, 'main').at(-2)).toContain('one copy');
  }
});

test('delegate gives the configuration to the children too', async () => {
  using p = project();
  p.write('answers.json', asking);
  p.write('tape.config.mts', config('script:answers.json'));
  await trusted(p);
  await p.here(['new', 'main']);
  const result = await p.tape(['delegate', 'main', '--task', 'Bern', '--task', 'Bern again', '--json']);
  expect(result).toMatchObject({ code: 0 });
  const { children } = json<{ children: { session: string; status: string }[] }>(result);
  expect(children).toHaveLength(2);
  for (const { session, status } of children) {
    expect(status).toBe('completed');
    expect(linesOf(p, session).some((line) => line.includes('Bern: sunny'))).toBe(true);
  }
});

test('recover resumes the children of a killed process with the configuration', async () => {
  using p = project();
  await using provider = await startProvider(() => ({ text: 'One ', hang: true }));
  p.write('tape.config.mts', config('openai-compatible/test-model'));
  p.write('answers.json', asking);
  await trusted(p);
  await p.here(['new', 'main']);
  const running = p.start(['delegate', 'main', '--task', 'Bern'], { env: provider.env });
  await expect.poll(() => provider.requests.length, { timeout: 30_000 }).toBe(1);
  running.child.kill('SIGKILL');
  await running.done;
  const result = await p.inNode(['recover', '--model', 'script:answers.json', '--json']);
  const { resumed } = json<{ resumed: string[] }>(result);
  expect(resumed).toHaveLength(1);
  expect(linesOf(p, resumed[0] ?? '').some((line) => line.includes('Bern: sunny'))).toBe(true);
});

test('instructions contain the parts that config.yaml selects; view shows them before the first model call', async () => {
  using p = project();
  mkdirSync(p.file('.git'));
  mkdirSync(p.file('app'));
  mkdirSync(p.file('skills/count'), { recursive: true });
  p.write('AGENTS.md', 'Count twice.');
  p.write('app/CONTEXT.md', 'The app counts.');
  p.write('app/CLAUDE.md', 'x'.repeat(100_000));
  p.write('skills/count/SKILL.md', '---\ndescription: How to count\n---\n');
  p.write(
    '.tape/config.yaml',
    'model: script:../answers.json\ninstructions: { Role: You keep the shop. }\nprompt: { project: true, skills: [../skills], environment: true }\n',
  );
  p.write('answers.json', [{ text: 'Seven.' }]);
  await p.here(['new', 'main']);
  const cwd = p.file('app');
  const shown = await p.here(['view', 'main', '--instructions'], { cwd });
  expect(shown.stdout).toMatch(
    /^# Role\n\nYou keep the shop\.\n.*Count twice\..*The app counts\..*- count: How to count.*- Workspace: /s,
  );
  expect(shown.stderr).toBe(`Omitted '${cwd}/CLAUDE.md': it is larger than 64 KiB\n`);
  const before = json<{ instructions: string; digest: string; sources: JsonObject[]; omitted: JsonObject[] }>(
    await p.here(['view', 'main', '--instructions', '--json'], { cwd }),
  );
  expect(before.instructions).toBe(shown.stdout.slice(0, -1));
  expect(before.omitted).toEqual([{ path: `${cwd}/CLAUDE.md`, why: 'it is larger than 64 KiB' }]);
  expect(await p.here(['run', 'main', 'How many?'], { cwd })).toMatchObject({ code: 0, stdout: 'Seven.\n' });
  using store = openTapeStore(`${p.home}/tape.db`, { readonly: true });
  const [answer] = [...store.entries.read('main', { kind: 'message', last: 1 })];
  expect(answer?.meta.instructions_digest).toBe(before.digest);
  expect(Buffer.from(store.entries.blob(before.digest)).toString()).toBe(before.instructions);
  expect(jsonError(await p.here(['view', 'main@1', '--instructions', '--json'], { cwd })).message).toContain(
    'cannot use --instructions with a point or --explain',
  );
});

test('the model comes from --model, else $TAPE_MODEL, else the file, else config.yaml', async () => {
  using p = project();
  for (const name of ['flag', 'variable', 'file', 'home']) p.write(`${name}.json`, [{ text: name }]);
  const said = async (session: string, more: string[] = [], env = {}) => {
    const { stdout, stderr } = await p.inNode(['run', session, 'Hi', ...more, '--quiet'], { env });
    return `${stdout}${stderr}`.trim();
  };
  p.write('.tape/config.yaml', 'model: script:../home.json\n');
  expect(await said('a')).toBe('home');
  p.write('tape.config.mts', `export default { model: 'script:file.json' };`);
  await trusted(p);
  expect(await said('b')).toBe('file');
  const env = { TAPE_MODEL: 'script:variable.json' };
  expect(await said('c', [], env)).toBe('variable');
  expect(await said('d', ['--model', 'script:flag.json'], env)).toBe('flag');
  expect(await said('e', ['--no-config'])).toBe('home');
});

test('limits of the file and the home combine one by one, and --max-steps overrides them', async () => {
  using p = project();
  p.write('answers.json', Array(6).fill({ toolCalls: [{ name: 'none', input: {} }] }));
  p.write('.tape/config.yaml', 'model: script:../answers.json\nlimits: { max_steps: 1, retries: 0 }\n');
  const steps = async (session: string, ...more: string[]) =>
    json(await p.tape(['run', session, 'Hi', '--json', ...more]));
  expect(await steps('a')).toMatchObject({ steps: 1, finish: 'halted' });
  p.write('tape.config.mjs', 'export default { limits: { maxSteps: 2 } };');
  await trusted(p);
  expect(await steps('b')).toMatchObject({ steps: 2, finish: 'halted' });
  expect(await steps('c', '--max-steps', '3')).toMatchObject({ steps: 3, finish: 'halted' });
  p.write('.tape/config.yaml', 'model: script:../answers.json\nlimits: { max_steps: .inf }\n');
  expect(await steps('d', '--no-config')).toMatchObject({ steps: 7, finish: 'error' });
});

test('config.yaml sets when a session is summarised, and the context window of its model', async () => {
  using p = project();
  const form = '## Goal\nShip.';
  p.write('answers.json', [
    { text: 'One.', usage: { input: 900, output: 10 } },
    { text: form },
    { text: 'Two.' },
  ]);
  p.write(
    '.tape/config.yaml',
    'model: script:../answers.json\nwindows:\n  script: { window: 1000, max_output: 100 }\n' +
      'compaction:\n  preset: at-85\n  keep: { turns: 1 }\n  smart_recovery: { drop_middle: false }\n',
  );
  await p.tape(['run', 'main', `Go. ${'And so on. '.repeat(100)}`]);
  expect(await p.tape(['run', 'main', 'Again'])).toMatchObject({
    code: 0,
    stdout: 'Two.\n',
    stderr: expect.stringContaining('the context window was nearly full'),
  });
});

test('the nearest file upward applies, or the one beside the tape home', async () => {
  using p = project();
  mkdirSync(p.file('deep/er'), { recursive: true });
  for (const name of ['above', 'below']) p.write(`${name}.json`, [{ text: name }]);
  const said = async (session: string, cwd: string) => {
    const { stdout, stderr } = await p.tape(['run', session, 'Hi', '--quiet'], {
      cwd,
      env: { TAPE_HOME: p.home },
    });
    return `${stdout}${stderr}`.trim();
  };
  p.write('tape.config.mts', `export default { model: 'script:above.json' };`);
  await trusted(p);
  expect(await said('a', p.file('deep/er'))).toBe('above');
  p.write('deep/tape.config.js', `export default { model: 'script:../below.json' };`);
  expect(await p.here(['trust', 'deep'])).toMatchObject({ code: 0 });
  expect(await said('b', p.file('deep/er'))).toBe('below');
  using elsewhere = project();
  expect(await said('c', elsewhere.path)).toBe('above');
});

test('the search stops at the home directory of the user', async () => {
  using p = project();
  p.write('answers.json', [{ text: 'Hi.' }]);
  // Beside the project, in what is HOME's parent here.
  mkdirSync(p.file('me/work'), { recursive: true });
  p.write('tape.config.mts', 'export default { nonsense: true };');
  const env = {
    HOME: p.file('me'),
    TAPE_HOME: p.file('some/where/home'),
    TAPE_MODEL: `script:${p.file('answers.json')}`,
  };
  expect(await p.tape(['run', 'a', 'Hi'], { cwd: p.file('me/work'), env })).toMatchObject({ code: 0 });
  p.write('me/tape.config.mts', 'export default {};');
  const found = await p.tape(['run', 'b', 'Hi', '--json'], { cwd: p.file('me/work'), env });
  expect(jsonError(found)).toMatchObject({
    code: 'CLI_UNTRUSTED',
    data: { config: p.file('me/tape.config.mts') },
  });
});

test('--config names a file that needs no trust, and may be a link', async () => {
  using p = project();
  p.write('answers.json', [{ text: 'Named.' }, { text: 'Linked.' }]);
  mkdirSync(p.file('configs'));
  p.write('configs/mine.mts', `export default { model: 'script:../answers.json' };`);
  p.write('tape.config.mts', 'throw new Error("not this one");');
  const named = await p.tape(['run', 'main', 'Hi', '--config', 'configs/mine.mts']);
  expect(named).toMatchObject({ code: 0, stdout: 'Named.\n' });
  symlinkSync('configs/mine.mts', p.file('mine.mts'));
  p.write('tape.config.mts', '');
  const script = `script:${p.file('answers.json')}`;
  const linked = await p.tape(['run', 'main', 'Hi', '--config', 'mine.mts', '--model', script]);
  expect(linked).toMatchObject({ code: 0, stdout: 'Linked.\n' });
});

test('verbs that run no model load no configuration, not even a trusted one', async () => {
  using p = project();
  p.write('answers.json', [{ text: 'Hi.' }]);
  p.write(
    'tape.config.mts',
    `import { writeFileSync } from 'node:fs';
writeFileSync(${JSON.stringify(p.file('ran'))}, '');
export default { model: 'script:answers.json' };`,
  );
  await trusted(p);
  for (const args of [
    ['new', 'main'],
    ['log', 'main'],
    ['anchor', 'main', 'a'],
    ['fork', 'main', '--as', 'kid'],
    ['merge', 'kid', '--result', 'x'],
    ['recover', '--abort'],
    ['verify'],
    ['trust'],
    ['doctor'],
  ])
    expect(await p.here(args), args.join(' ')).toMatchObject({ code: 0 });
  expect(existsSync(p.file('ran'))).toBe(false);
  // While a verb that runs one does.
  expect(await p.tape(['run', 'main', 'Hi'])).toMatchObject({ code: 0 });
  expect(existsSync(p.file('ran'))).toBe(true);
});

interface Refusal {
  readonly name: string;
  readonly file?: string;
  readonly text: string;
  readonly code?: string;
  readonly says: string | RegExp;
  readonly hint?: string;
  readonly data?: object;
}

const refusals: readonly Refusal[] = [
  {
    name: 'one that throws',
    text: '\n\nthrow new Error("out of\\nluck");',
    says: 'line 3: out of luck',
    data: { line: 3 },
  },
  { name: 'one that throws no error', text: 'throw 5;', says: ': 5' },
  { name: 'one that rejects', text: 'await Promise.reject(new Error("later"));', says: 'line 1: later' },
  { name: 'no default export', text: 'export const config = {};', says: 'it has no default export' },
  {
    name: 'a default export that is no object',
    text: 'export default 5;',
    code: 'SESSION_BAD_CONFIG',
    says: 'it must be an object',
  },
  {
    name: 'a promise of one',
    text: 'export default Promise.resolve(() => 1);',
    code: 'SESSION_BAD_CONFIG',
    says: '',
  },
  {
    name: 'a wrong type',
    text: 'export default { limits: { retries: "2" } };',
    code: 'SESSION_BAD_CONFIG',
    says: 'limits.retries must be a whole number',
    data: { field: 'limits.retries' },
  },
  {
    name: 'an unknown field',
    text: 'export default { modle: "x/y" };',
    code: 'SESSION_BAD_CONFIG',
    says: 'modle: unknown field',
  },
  {
    name: 'bad TypeScript',
    text: 'const a: number = 1;\nexport default {',
    says: 'line 2: ',
    data: { line: 2 },
  },
  {
    name: 'TypeScript that has to be compiled',
    text: 'enum A { B }\nexport default {};',
    says: 'enum is not supported',
  },
  {
    name: 'bad JavaScript',
    file: 'tape.config.mjs',
    text: 'export default { a b };',
    says: 'Unexpected identifier',
    hint: 'node --check',
  },
  {
    name: 'a module that is not there',
    text: 'import "./nowhere.mts";\nexport default {};',
    says: 'nowhere.mts',
  },
  {
    name: 'a fault in what it imports',
    text: 'import "./other.mts";\nexport default {};',
    says: /other\.mts line 1: deeper/,
  },
  { name: 'an empty file', text: '', says: 'it has no default export' },
  { name: 'bytes that are no text', file: 'tape.config.mjs', text: '\0\x01\x02', says: '' },
];

test.each(refusals)(
  '$name: exit 2, and nothing is written',
  async ({ file = 'tape.config.mts', text, code = 'CLI_BAD_CONFIG', says, hint, data = {} }) => {
    using p = project();
    p.write('other.mts', 'throw new Error("deeper");');
    const path = p.write(file, text);
    // The tests load a file with other error messages than Node.js has.
    const run = code === 'SESSION_BAD_CONFIG' ? p.tape : p.inNode;
    const result = await run(['run', 'main', 'Hi', '--config', file, '--model', 'script:x.json', '--json']);
    const error = jsonError(result);
    expect({ exit: result.code, ...error }).toMatchObject({ exit: 2, code, data });
    expect(error.message).toContain(`cannot use '${path}': `);
    expect(error.message).toMatch(says);
    expect(error.message).not.toContain('\n');
    if (hint !== undefined) expect(error.hint).toContain(hint);
    expect(existsSync(`${p.home}/tape.db`)).toBe(false);
  },
);

test('a package that is not installed is named; for a package of Tapedeck the hint says why', async () => {
  const refusal = async (config: string) => {
    using p = project({ installed: false });
    p.write('tape.config.mts', config);
    await trusted(p);
    return jsonError(await p.inNode(['run', 'main', 'Hi', '--json']));
  };
  const ours = `import { defineDeck } from '@tapedeck/runtime';\nexport default defineDeck({});`;
  expect(await refusal(ours)).toMatchObject({
    code: 'CLI_BAD_CONFIG',
    message: expect.stringContaining("Cannot find package '@tapedeck/runtime'"),
    hint: 'export the object without defineDeck, or install the packages beside it from a checkout of Tapedeck: pnpm -C CHECKOUT pack:all && npm install CHECKOUT/dist/tapedeck-*.tgz',
    data: { missing: '@tapedeck/runtime' },
  });
  const other = `import { tool } from 'ai';\nexport default { tools: { tool } };`;
  expect(await refusal(other)).toMatchObject({
    hint: 'install ai beside the configuration',
    data: { missing: 'ai' },
  });
});

test('--config of a path that is not a file: exit 2', async () => {
  using p = project();
  mkdirSync(p.file('folder'));
  symlinkSync('gone.mts', p.file('dangling.mts'));
  for (const [file, says] of [
    ['nothing.mts', 'no such file'],
    ['folder', 'it is a directory'],
    ['dangling.mts', 'no such file'],
    ['/dev/null', 'it is not a regular file'],
  ] as const) {
    const result = await p.here(['run', 'main', 'Hi', '--config', file, '--json']);
    expect({ exit: result.code, ...jsonError(result) }).toMatchObject({
      exit: 2,
      code: 'CLI_BAD_CONFIG',
      message: expect.stringContaining(says),
    });
  }
  for (const option of ['--config', '--model']) {
    const result = await p.here(['run', 'main', 'Hi', option, '', '--json']);
    expect({ exit: result.code, ...jsonError(result) }).toMatchObject({
      exit: 2,
      code: 'CLI_USAGE',
      message: `cannot use ${option}: it is empty`,
    });
  }
});

test.each([
  {
    name: 'an unknown field',
    yaml: 'model: a/b\n\ncolour: red\n',
    line: 3,
    says: "no such field 'colour' (the fields are model, settings, summarizer, titles, instructions, prompt, limits, builtin_tools, mcp_servers, routes, personas, compaction, windows, view, redact, record, permissions, import, remotes, alias)",
  },
  {
    name: 'a setting of another agent that stands at the top',
    yaml: 'keep_recent_tokens: 4000\n',
    line: 1,
    says: "no such field 'keep_recent_tokens'; did you mean compaction.keep_recent_tokens? (the fields are",
  },
  {
    name: 'a limit that stands at the top',
    yaml: 'max_steps: 4\n',
    line: 1,
    says: "no such field 'max_steps'; did you mean limits.max_steps?",
  },
  {
    name: 'an unknown limit',
    yaml: 'limits:\n  max_steps: 1\n  maxSteps: 2\n',
    line: 3,
    says: "no such field 'limits.maxSteps'",
  },
  { name: 'a field that is code', yaml: 'tools: {}\n', line: 1, says: "no such field 'tools'" },
  {
    name: 'a wrong number',
    yaml: 'limits:\n  tool_timeout_ms: soon\n',
    line: 2,
    says: 'limits.tool_timeout_ms must be a whole number from 1',
  },
  {
    name: 'too few steps',
    yaml: 'limits: { max_steps: 0 }',
    line: 1,
    says: 'limits.max_steps must be a whole number from 1, or .inf',
  },
  {
    name: 'a policy that contradicts itself',
    yaml: 'compaction:\n  reserve_tokens: 10\n  threshold: 0.5\n',
    line: 3,
    says: 'compaction.threshold cannot be given with reserveTokens',
  },
  {
    name: 'a part of a policy that there is not',
    yaml: 'compaction:\n  smart_recovery:\n    dropMiddle: true\n',
    line: 3,
    says: "no such field 'compaction.smart_recovery.dropMiddle'",
  },
  {
    name: 'an answer longer than its window',
    yaml: 'windows:\n  GPT-4.1:\n    window: 10\n    max_output: 10\n',
    line: 4,
    says: 'windows.GPT-4.1.max_output must be less than window',
  },
  { name: 'a missing model', yaml: '# my models\nmodel:\n', line: 2, says: 'model must be a string' },
  {
    name: 'a wrong folder',
    yaml: 'model: a/b\nprompt:\n  project: true\n  skills: [1]\n',
    line: 4,
    says: 'prompt.skills.0 must be a path',
  },
  { name: 'wrong limits', yaml: 'limits: 3\n', line: 1, says: 'limits must be an object of limits' },
  { name: 'bad YAML', yaml: 'model: a/b\ninstructions: "open\n', line: 3, says: 'Missing closing' },
  { name: 'a field given twice', yaml: 'model: a/b\nmodel: c/d\n', line: 2, says: 'must be unique' },
  { name: 'an alias of nothing', yaml: 'model: a/b\ninstructions: *none\n', line: 2, says: 'none' },
  {
    name: 'an alias of far too much',
    yaml: `model: &a [x]\ninstructions: [*a${', *a'.repeat(200)}]\n`,
    line: 2,
    says: 'alias',
  },
  { name: 'a list', yaml: '\n- model\n', line: 2, says: 'it must be a mapping' },
  { name: 'an unknown tag', yaml: 'model: !!js/function x\n', line: 1, says: 'tag' },
  {
    name: 'an inherited name',
    yaml: '__proto__: { model: x }\n',
    line: 1,
    says: "no such field '__proto__'",
  },
])('config.yaml with $name: exit 2, with the line', async ({ yaml, line, says }) => {
  using p = project();
  p.write('.tape/config.yaml', yaml);
  const result = await p.here(['run', 'main', 'Hi', '--json']);
  const error = jsonError(result);
  expect({ exit: result.code, ...error }).toMatchObject({ exit: 2, code: 'CLI_BAD_CONFIG', data: { line } });
  expect(error.message).toContain(`cannot use '${p.home}/config.yaml': line ${line}: `);
  expect(error.message).toContain(says);
  expect(existsSync(`${p.home}/tape.db`)).toBe(false);
});

test('config.yaml may be empty, and accepts every YAML form of a text', async () => {
  using p = project();
  const script = `script:${p.write('answers.json', [{ text: 'Hi.' }])}`;
  await using provider = await startProvider((request) => ({ text: lastUserText(request) }));
  const yamls = ['', '# nothing yet\n', '---\n...\n', '\uFEFFmodel: a/b'];
  for (const [i, yaml] of yamls.entries()) {
    p.write('.tape/config.yaml', yaml);
    expect(await p.here(['run', `s${i}`, 'Hi', '--model', script])).toMatchObject({ code: 0 });
  }
  p.write('.tape/config.yaml', 'model: openai-compatible/m\ninstructions: |\n  Be brief.\n  Be kind.\n');
  expect(await p.here(['run', 'other', 'Hi'], { env: provider.env })).toMatchObject({ code: 0 });
  expect(provider.requests[0]?.messages[0]).toEqual({ role: 'system', content: 'Be brief.\nBe kind.\n' });
  rmSync(`${p.home}/config.yaml`);
  mkdirSync(`${p.home}/config.yaml`);
  const directory = await p.here(['run', 'main', 'Hi', '--json']);
  expect({ exit: directory.code, ...jsonError(directory) }).toMatchObject({
    exit: 2,
    code: 'CLI_BAD_CONFIG',
  });
});

test('config.yaml belongs to a tape home: a new home opens beside it, and doctor accepts it', async () => {
  using p = project();
  mkdirSync(p.file('tapes'));
  p.write('tapes/config.yaml', 'instructions: Be brief.\n');
  chmodSync(p.file('tapes'), 0o755);
  const home = ['--home', 'tapes'];
  expect(await p.here(['new', 'main', ...home])).toMatchObject({ code: 0 });
  const { findings } = json<{ findings: { code: string }[] }>(await p.here(['doctor', '--json', ...home]));
  expect(findings.filter(({ code }) => code === 'unknown-file')).toEqual([]);
});

test('--temperature and --effort stay with the session, in processes with other defaults too', async () => {
  using p = project();
  await using provider = await startProvider(() => ({ text: 'Fine.' }));
  const { env } = provider;
  const last = () => {
    const request = provider.requests.at(-1);
    return { temperature: request?.temperature, effort: request?.reasoning_effort, user: request?.user };
  };
  p.write(
    '.tape/config.yaml',
    'model: openai-compatible/m\nsettings:\n  temperature: 1\n  provider_options: { openaiCompatible: { user: home } }\n',
  );
  expect(await p.inNode(['run', 'main', 'Hi'], { env })).toMatchObject({ code: 0 });
  expect(last()).toEqual({ temperature: 1, effort: undefined, user: 'home' });
  const named = ['run', 'main', 'Hi', '--temperature', '0.2', '--effort', 'low'];
  expect(await p.inNode(named, { env })).toMatchObject({ code: 0 });
  expect(last()).toEqual({ temperature: 0.2, effort: 'low', user: 'home' });
  p.write('.tape/config.yaml', 'model: openai-compatible/m\nsettings: { temperature: 2, effort: max }\n');
  expect(await p.inNode(['run', 'main', 'Hi'], { env })).toMatchObject({ code: 0 });
  expect(last()).toEqual({ temperature: 0.2, effort: 'low', user: undefined });
  expect(await p.inNode(['send', 'main', 'Hi', '--effort', 'high'], { env })).toMatchObject({ code: 0 });
  expect(last()).toEqual({ temperature: 0.2, effort: 'high', user: undefined });
  const made = ['new', 'second', '--model', 'openai-compatible/own', '--temperature', '0.7'];
  expect(await p.inNode(made, { env })).toMatchObject({ code: 0 });
  expect(await p.inNode(['run', 'second', 'Hi'], { env })).toMatchObject({ code: 0 });
  expect(provider.requests.at(-1)?.model).toBe('own');
  expect(last()).toEqual({ temperature: 0.7, effort: 'max', user: undefined });
  const child = ['delegate', 'main', '--task', 'Look', '--temperature', '0'];
  expect(await p.inNode(child, { env })).toMatchObject({ code: 0 });
  expect(last()).toEqual({ temperature: 0, effort: 'high', user: undefined });
});

test.each([
  [['--temperature', '3'], 'cannot use --temperature: it must be a number from 0 to 2'],
  [['--temperature', 'warm'], 'cannot use --temperature: it must be a number from 0 to 2'],
  [['--effort', 'huge'], 'huge'],
])('%j is refused before anything is written', async (options, says) => {
  using p = project();
  for (const verb of ['run', 'send']) {
    const { code, stderr } = await p.here([verb, 'main', 'Hi', '--model', 'script:none.json', ...options]);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(says) });
  }
  expect(existsSync(`${p.home}/tape.db`)).toBe(false);
});

test('a model without a provider is refused with its place, and nothing is written', async () => {
  using p = project();
  const refused = async (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    jsonError(await p.here(['run', 'main', 'Hi', '--json', ...args], { env }));
  const form = 'must be PROVIDER/MODEL or script:FILE';
  for (const [modelFrom, args, env] of [
    ['--model', ['--model', 'gpt-5'], {}],
    ['$TAPE_MODEL', [], { TAPE_MODEL: 'gpt-5' }],
  ] as const)
    expect(await refused(args, env)).toMatchObject({
      code: 'SESSION_NO_MODEL',
      message: `cannot use model 'gpt-5': it ${form} (the model comes from ${modelFrom})`,
      data: { model: 'gpt-5', modelFrom },
    });
  p.write('.tape/config.yaml', 'instructions: Hi\nmodel: gpt-5\n');
  expect(await refused([])).toMatchObject({ code: 'CLI_BAD_CONFIG', data: { line: 2, field: 'model' } });
  expect((await refused([])).message).toContain(`.tape/config.yaml': line 2: model ${form}, not "gpt-5"`);
  p.write('mine.mts', `export default { model: 'gpt-5' };`);
  p.write('.tape/config.yaml', '');
  const file = await refused(['--config', 'mine.mts']);
  expect(file).toMatchObject({ code: 'SESSION_BAD_CONFIG', data: { field: 'model' } });
  expect(file.message).toMatch(/mine\.mts': model must be PROVIDER\/MODEL/);
  expect(existsSync(`${p.home}/tape.db`)).toBe(false);
});

test('a model that is unusable or fails is reported with the place that names it', async () => {
  using p = project();
  p.write('.tape/config.yaml', 'model: openai-compatible/m\n');
  const keyless = jsonError(await p.here(['run', 'main', 'Hi', '--json']));
  expect(keyless).toMatchObject({
    code: 'SESSION_NO_KEY',
    data: { modelFrom: expect.stringMatching(/config\.yaml$/) },
  });
  await using provider = await startProvider(() => ({ status: 400, message: 'no such model' }));
  const env = { ...provider.env, TAPE_MODEL: 'openai-compatible/other' };
  const failed = await p.inNode(['run', 'main', 'Hi'], { env });
  expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining('no such model') });
  expect(failed.stderr).toContain('(the model comes from $TAPE_MODEL)');
  const flagged = await p.inNode(['run', 'main', 'Hi', '--model', 'openai-compatible/third'], { env });
  expect(flagged.stderr).toContain('(the model comes from --model)');
});
