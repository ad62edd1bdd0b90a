import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { configKeys } from '@tapedeck/cli/internal';
import { defaultLimits } from '@tapedeck/runtime';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { json, jsonError, jsonLines, tapeHere } from '../support/cli.ts';
import { type Project, project } from '../support/project.ts';
import { sized } from '../support/size.ts';
import { tokenShapes } from '../support/token-shapes.ts';

async function timeOf(act: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await act();
  return performance.now() - from;
}

const yamlOf = ({ home }: Project) => readFileSync(join(home, 'config.yaml'), 'utf8');

/** Sets a key, which must work. */
async function set(p: Project, key: string, value: string): Promise<void> {
  const { code, stderr } = await p.here(['config', 'set', '--', key, value]);
  expect({ key, value, code, stderr }).toEqual({ key, value, code: 0, stderr: '' });
}

async function refused(p: Project, ...args: readonly string[]) {
  const result = await p.here(['config', '--json', ...args]);
  return { exit: result.code, ...jsonError(result) };
}

describe('config set', () => {
  test('writes one line, says the way back, and get prints the value', async () => {
    using p = project();
    const file = join(p.home, 'config.yaml');
    expect(await p.here(['config', 'set', 'limits.max_steps', '20'])).toEqual({
      code: 0,
      stdout: `Set limits.max_steps to 20 in ${file} (undo with: tape config unset limits.max_steps)\n`,
      stderr: '',
    });
    const again = await p.here(['config', 'set', 'limits.max_steps', '30']);
    expect(again.stdout).toBe(
      `Set limits.max_steps to 30 in ${file} (was 20; restore it with: tape config set limits.max_steps 20)\n`,
    );
    expect(json(await p.here(['config', 'set', 'limits.max_steps', '30', '--json']))).toEqual({
      key: 'limits.max_steps',
      value: 30,
      was: 30,
      file,
      repeated: true,
    });
    expect((await p.here(['config', 'get', 'limits.max_steps'])).stdout).toBe('30\n');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const unset = await p.here(['config', 'unset', 'limits.max_steps']);
    expect(unset.stdout).toBe(
      `Unset limits.max_steps in ${file} (was 30; restore it with: tape config set limits.max_steps 30)\n`,
    );
    expect(yamlOf(p)).toBe('');
    expect(await refused(p, 'unset', 'limits.max_steps')).toMatchObject({ exit: 3, code: 'CLI_NOT_FOUND' });
  });

  test('prints a way back that a shell reads as the value was', async () => {
    using p = project();
    const odd = [
      'a b',
      "it's",
      '-x',
      '@x',
      'a\nb\n',
      '$HOME `id`',
      '\u202ex',
      'é\u{1f600}\u{e0041}',
      '\t"\\n"',
      '\u0001',
    ];
    for (const [i, text] of odd.entries()) {
      await set(p, `instructions.n${i}`, text.startsWith('@') ? `@${text}` : text);
      const { stdout } = await p.here(['config', 'unset', `instructions.n${i}`]);
      const [, command = ''] = /restore it with: tape (.*)\)\n$/.exec(stdout) ?? [];
      expect(stdout.split('\n')).toHaveLength(2);
      for (const unsafe of ['\u202e', '\u0001']) expect(stdout).not.toContain(unsafe);
      const said = execFileSync('bash', ['-c', `printf '%s\\0' ${command}`], {
        env: { ...process.env, LC_ALL: 'C.UTF-8' },
      });
      expect((await p.here(said.toString().split('\0').slice(0, -1))).code).toBe(0);
      expect(json(await p.here(['config', 'get', `instructions.n${i}`, '--json']))).toMatchObject({
        value: text,
      });
    }
    await set(p, 'instructions.long', 'x'.repeat(5_000));
    const { stdout } = await p.here(['config', 'unset', 'instructions.long']);
    expect(stdout).toContain('(was a text of 5000 characters)');
  });

  test('prints no way back to a value with a secret, which it does not show', async () => {
    using p = project();
    await set(p, 'instructions', 'Say sesame-opens-it.');
    const env = { OPENAI_API_KEY: 'sesame-opens-it' };
    const { code, stdout } = await p.here(['config', 'unset', 'instructions'], { env });
    expect(code).toBe(0);
    expect(stdout).toContain('(was Say [secret OPENAI_API_KEY]., with a secret of the environment)\n');
  });

  test('keeps comments, order, line ends and the form of the other lines', async () => {
    using p = project();
    const before = `# Of the team.

instructions: 'Be brief.'   # ask before changing

# Money
limits:   { max_steps: 4,   retries: 1 }
prompt:
    # The date helps.
    environment: true
# End
`;
    for (const eol of ['\n', '\r\n']) {
      p.write('.tape/config.yaml', before.replaceAll('\n', eol));
      await set(p, 'prompt.tools', 'false');
      await set(p, 'model', 'openai-compatible/m');
      expect(yamlOf(p).replaceAll(eol, '\n')).toBe(
        `${before.replace('    environment: true\n', '    environment: true\n    tools: false\n')}model: openai-compatible/m\n`,
      );
      expect(yamlOf(p).includes('\r')).toBe(eol === '\r\n');
      await p.here(['config', 'unset', 'model']);
      await p.here(['config', 'unset', 'prompt.tools']);
      expect(yamlOf(p)).toBe(before.replaceAll('\n', eol));
      await set(p, 'instructions', 'At length.');
      expect(yamlOf(p)).toContain('instructions: At length. # ask before changing');
    }
    p.write('.tape/config.yaml', 'prompt:\n  # Two\n  skills:\n  - a\n  - b\n  tools: true\n');
    await set(p, 'prompt.tools', 'false');
    expect(yamlOf(p)).toBe('prompt:\n  # Two\n  skills:\n  - a\n  - b\n  tools: false\n');
    p.write('.tape/config.yaml', 'instructions: Brief  # A word\n');
    await set(p, 'instructions', 'Two\nlines');
    expect(yamlOf(p)).toBe('# A word\ninstructions: |-\n  Two\n  lines\n');
  });

  test('refuses a value that the field cannot have, and writes nothing', async () => {
    using p = project();
    p.write('.tape/config.yaml', 'limits:\n  max_steps: 4\n');
    for (const [key, value, why] of [
      ['limits.max_steps', 'many', 'cannot set limits.max_steps: it must be a whole number from 1, or .inf'],
      ['limits.maxSteps', '0', 'cannot set limits.max_steps: it must be a whole number from 1, or .inf'],
      ['settings.temperature', '3', 'cannot set settings.temperature: it must be a number from 0 to 2'],
      ['settings.temperature', '', 'cannot read the value of settings.temperature: it is empty'],
      ['settings.temperature', 'null', 'cannot read the value of settings.temperature: it is empty'],
      ['prompt.skills', '[a', 'cannot read the value of prompt.skills: '],
      ['prompt.skills', '*a', 'cannot read the value of prompt.skills: '],
      ['model', 'gpt-5', 'cannot set model: it must be PROVIDER/MODEL or script:FILE, not "gpt-5"'],
      ['model', '', 'cannot set model: it must be a string PROVIDER/MODEL'],
      ['view', 'window:none', 'cannot set view: '],
      ['windows.m', '3', 'cannot set windows.m: it must be an object of window and maxOutput'],
      ['settings.provider_options.openai.apiKey', 'sk-1', "must not have 'apiKey'"],
      ['limits.max_steps.x', '3', 'cannot set '],
      ['limits', '3', 'cannot set limits: it must be an object of limits'],
    ] as const) {
      const { exit, message } = await refused(p, 'set', '--', key, value);
      expect([key, exit, message.includes(why), message]).toEqual([key, 2, true, message]);
    }
    expect(yamlOf(p)).toBe('limits:\n  max_steps: 4\n');
    expect(readdirSync(p.home).filter((name) => name.endsWith('.lock'))).toEqual([]);
  });

  test('refuses an unknown key with the nearest ones, and a text that is no key', async () => {
    using p = project();
    for (const [key, near] of [
      ['modle', 'model'],
      ['limits.max_stpes', 'limits.max_steps'],
      ['max_steps', 'limits.max_steps'],
      ['temperature', 'settings.temperature or compaction.summary.temperature'],
      ['compaction.keep.turn', 'compaction.keep.turns'],
    ] as const)
      expect((await refused(p, 'set', key, 'x')).message).toContain(`no such key; did you mean ${near}?`);
    for (const key of ['__proto__', 'constructor', 'tools', 'hooks.onMessage', 'openai.api_key', 'Model'])
      expect((await refused(p, 'set', key, 'x')).message).toContain('there is no such key');
    for (const key of ['a..b', '.a', 'a.', '.', 'a"b', '"', 'model."\\x"'])
      expect((await refused(p, 'set', key, 'x')).message).toBe(`cannot set '${key}': it is no key`);
    expect((await refused(p, 'set', 'openai.api_key', 'sk-1')).hint).toContain('tape help models');
    expect((await refused(p, 'get')).message).toBe('cannot get: the key is missing');
    expect((await refused(p, 'set', 'model')).message).toBe('cannot set model: the value is missing');
    expect((await refused(p, 'get', 'model', 'x')).message).toContain('too many arguments');
    expect(existsSync(join(p.home, 'config.yaml'))).toBe(false);
  });

  test('refuses what has the form of a secret, unless the home looks for none', async () => {
    using p = project();
    const [, token = ''] = tokenShapes.find(([name]) => name === 'github') ?? [];
    for (const [key, value] of [
      ['instructions', `Use ${token} for the API.`],
      ['alias.up', `run --model x "${token}"`],
      ['settings.provider_options.openai', `{ user: ${token} }`],
    ] as const) {
      const { exit, message, hint } = await refused(p, 'set', key, value);
      expect({ exit, message }).toEqual({
        exit: 2,
        message: `cannot set ${key}: the value has the form of a secret (github)`,
      });
      expect(hint).toContain('secrets belong in variables of the environment');
      const { stdout, stderr } = await p.here(['config', 'set', key, value]);
      expect(stdout + stderr).not.toContain(token);
    }
    expect(existsSync(join(p.home, 'config.yaml'))).toBe(false);
    await set(p, 'redact.patterns.intranet', 'itk_[0-9a-f]{8}');
    expect((await refused(p, 'set', 'instructions', 'itk_0123abcd')).message).toContain('(intranet)');
    await set(p, 'redact', 'false');
    await set(p, 'instructions', `Use ${token}`);
  });

  test('refuses a secret of the environment', async () => {
    using p = project();
    const env = { OPENAI_API_KEY: 'sk-93b1-77f2-aa' };
    const { code, stderr } = await p.here(['config', 'set', 'instructions', 'Use sk-93b1-77f2-aa'], { env });
    expect([code, stderr.includes('sk-93b1')]).toEqual([2, false]);
    expect(existsSync(join(p.home, 'config.yaml'))).toBe(false);
  });

  test('takes names with dots, texts from stdin, and values that look like others', async () => {
    using p = project();
    await set(p, 'windows.gpt-4.1.window', '1000');
    await set(p, 'windows.gpt-4.1.maxOutput', '100');
    await set(p, 'instructions."My team."', 'true');
    await set(p, 'settings.provider_options.openai."a.b"', '"123"');
    await set(p, 'limits.max_children', 'Infinity');
    const { code } = await p.here(['config', 'set', 'instructions.Long', '-'], { stdin: 'One\n\n  two\n' });
    expect(code).toBe(0);
    expect(yamlOf(p)).toBe(`windows:
  gpt-4.1:
    window: 1000
    max_output: 100
instructions:
  My team.: "true"
  Long: |-
    One

      two
settings:
  provider_options:
    openai:
      a.b: "123"
limits:
  max_children: .inf
`);
    expect((await p.here(['config'])).stdout).toBe(
      [
        'instructions."My team."\ttrue',
        'instructions.Long\t"One\\n\\n  two"',
        'limits.max_children\tInfinity',
        'settings.provider_options.openai."a.b"\t"123"',
        'windows.gpt-4.1.max_output\t100',
        'windows.gpt-4.1.window\t1000\n',
      ].join('\n'),
    );
    expect((await refused(p, 'get', 'windows.gpt-4.1')).hint).toBe(
      'list them with: tape config list windows.gpt-4.1',
    );
    expect((await p.here(['config', 'list', 'windows.gpt-4.1', '--quiet'])).stdout).toBe(
      'windows.gpt-4.1.max_output\nwindows.gpt-4.1.window\n',
    );
  });

  test('changes a file with anchors only where nothing else changes with it', async () => {
    using p = project();
    const before = 'model: &m openai-compatible/a\nsummarizer: *m\n';
    p.write('.tape/config.yaml', before);
    expect(await refused(p, 'set', 'model', 'openai-compatible/b')).toMatchObject({
      exit: 2,
      code: 'CLI_BAD_CONFIG',
    });
    expect(yamlOf(p)).toBe(before);
    await set(p, 'summarizer', 'openai-compatible/b');
    expect(yamlOf(p)).toBe('model: &m openai-compatible/a\nsummarizer: openai-compatible/b\n');
  });

  test('leaves a file alone that cannot be used, but for the field that is wrong', async () => {
    using p = project();
    p.write('.tape/config.yaml', 'modle: x\nlimits: { max_steps: 0 }\n');
    expect((await refused(p, 'set', 'instructions', 'Hi')).message).toContain(
      "line 1: no such field 'modle'",
    );
    p.write('.tape/config.yaml', 'limits: { max_steps: 0 }\n');
    expect((await refused(p, 'set', 'instructions', 'Hi')).message).toContain(
      'line 1: limits.max_steps must',
    );
    await set(p, 'limits.max_steps', '3');
    expect(yamlOf(p)).toBe('limits: { max_steps: 3 }\n');
    p.write('.tape/config.yaml', 'limits: { max_steps: 0 }\nmodel: a\n');
    expect((await p.here(['config', 'unset', 'model'])).code).toBe(0);
    expect(yamlOf(p)).toBe('limits: { max_steps: 0 }\n');
    p.write('.tape/config.yaml', 'limits: [\n');
    expect((await refused(p, 'set', 'instructions', 'Hi')).code).toBe('CLI_BAD_CONFIG');
    expect(yamlOf(p)).toBe('limits: [\n');
    writeFileSync(join(p.home, 'config.yaml'), Buffer.from([0x61, 0xff]));
    expect((await refused(p, 'set', 'instructions', 'Hi')).message).toContain('it is not UTF-8');
  });

  test('writes behind a link, keeps the mode of the file, and refuses what is no file', async () => {
    using p = project();
    const file = join(p.home, 'config.yaml');
    p.write('mine.yaml', '# mine\n');
    chmodSync(p.file('mine.yaml'), 0o640);
    symlinkSync(p.file('mine.yaml'), file);
    await set(p, 'instructions', 'Hi');
    expect(readFileSync(p.file('mine.yaml'), 'utf8')).toBe('# mine\ninstructions: Hi\n');
    expect(statSync(p.file('mine.yaml')).mode & 0o777).toBe(0o640);
    using q = project();
    symlinkSync('/nowhere/config.yaml', join(q.home, 'config.yaml'));
    expect((await refused(q, 'set', 'instructions', 'Hi')).message).toContain('a link that leads to no file');
    using r = project();
    mkdirSync(join(r.home, 'config.yaml'));
    expect((await refused(r, 'set', 'instructions', 'Hi')).message).toContain('not a regular file');
    using s = project();
    execFileSync('mkfifo', [join(s.home, 'config.yaml')]);
    expect((await refused(s, 'set', 'instructions', 'Hi')).message).toContain('not a regular file');
    expect((await s.here(['lg', 'main'])).stderr).toContain('no such verb');
  });

  test('loses nothing of two changes at the same time', async () => {
    using p = project();
    await p.here(['init']);
    const names = Array.from({ length: sized(3, 3, 60) }, (_, i) => `instructions.n${i}`);
    const results = await Promise.all(names.map((key) => p.process(['config', 'set', key, 'x'])));
    expect(results.filter(({ code }) => code !== 0)).toEqual([]);
    const listed = jsonLines<{ key: string }>(await p.here(['config', 'list', '--jsonl']));
    expect(listed.map(({ key }) => key).sort()).toEqual(names.toSorted());
  });

  test('leaves the old text or the new one where it is killed', async () => {
    using p = project();
    await p.here(['init']);
    const long = 'x'.repeat(100_000);
    await set(p, 'instructions', `0${long}`);
    const took = await timeOf(async () => await p.process(['config', 'set', 'instructions', `1${long}`]));
    const rounds = sized(3, 3, 400);
    for (let round = 2; round < rounds; round += 1) {
      const before = yamlOf(p);
      const after = `instructions: ${round}${long}\n`;
      const { child, done } = p.start(['config', 'set', 'instructions', `${round}${long}`]);
      await sleep(took * (0.5 + (round / rounds) * 0.6));
      child.kill('SIGKILL');
      await done.catch(() => {});
      expect([before, after]).toContain(yamlOf(p));
      rmSync(join(p.home, 'config.yaml.lock'), { recursive: true, force: true });
    }
    await set(p, 'instructions', 'Well');
  });

  test('takes away a lock that a killed process left, and leaves what is no lock', async () => {
    using p = project();
    await p.here(['init']);
    const lock = join(p.home, 'config.yaml.lock');
    const leave = (make: () => void) => {
      make();
      utimesSync(lock, new Date(0), new Date(0));
    };
    leave(() => mkdirSync(lock));
    await set(p, 'instructions', 'Hi');
    // An earlier version made a file.
    leave(() => writeFileSync(lock, 'instructions: H'));
    writeFileSync(join(p.home, 'config.yaml.draft'), 'instructions: H');
    await set(p, 'instructions', 'Hello');
    expect(yamlOf(p)).toBe('instructions: Hello\n');
    expect(readdirSync(p.home).filter((name) => name.startsWith('config.yaml.'))).toEqual([]);
    leave(() => {
      mkdirSync(lock);
      writeFileSync(join(lock, 'notes'), '');
    });
    expect(await refused(p, 'set', 'instructions', 'Hi')).toMatchObject({
      message: `cannot set instructions: another process has the lock '${lock}'`,
      hint: expect.stringContaining(`rm -r ${lock}`),
    });
    expect(readdirSync(lock)).toEqual(['notes']);
  });
});

describe('where a value comes from', () => {
  test('rules of both files hold, and get shows both', async () => {
    using p = project();
    p.write('tape.config.mts', "export default { permissions: ['deny write(**)', 'ask exec(git *)'] };");
    await set(p, 'permissions', '[allow read(**)]');
    const [file, code] = [join(p.home, 'config.yaml'), p.file('tape.config.mts')];
    const get = async (...args: readonly string[]) =>
      await p.inNode(['config', 'get', 'permissions', ...args]);
    expect((await get('--no-config')).stdout).toBe('["allow read(**)"]\n');
    expect((await p.here(['trust', '.'])).code).toBe(0);
    expect((await get()).stdout).toBe('["deny write(**)","ask exec(git *)"]\n["allow read(**)"]\n');
    expect((await get('--show-origin')).stdout).toBe(
      `${code}\t["deny write(**)","ask exec(git *)"]\n${file}\t["allow read(**)"]\n`,
    );
    expect(json(await get('--json'))).toEqual({
      key: 'permissions',
      value: ['deny write(**)', 'ask exec(git *)', 'allow read(**)'],
      origin: 'code',
      from: code,
      places: [
        { value: ['deny write(**)', 'ask exec(git *)'], origin: 'code', from: code },
        { value: ['allow read(**)'], origin: 'file', from: file },
      ],
    });
  });

  test('a variable comes before code, code before the file, and the file before a default', async () => {
    using p = project();
    p.write('answers.json', []);
    p.write(
      'tape.config.mts',
      `export default {
        model: 'script:answers.json', limits: { maxSteps: 5 }, prompt: { tools: true }, settings: { temperature: 1 },
        compaction: { threshold: 0.5, countTokens: () => 1 },
      };`,
    );
    p.write(
      '.tape/config.yaml',
      'model: openai-compatible/m\nlimits: { max_steps: 3, retries: 1 }\nprompt: { environment: true }\nsettings: { effort: low }\n',
    );
    const [file, code] = [join(p.home, 'config.yaml'), p.file('tape.config.mts')];
    const list = async (...args: readonly string[]) =>
      (await p.inNode(['config', 'list', '--show-origin', ...args])).stdout.trimEnd().split('\n');
    const own = [
      `${file}\tlimits.max_steps\t3`,
      `${file}\tlimits.retries\t1`,
      `${file}\tmodel\topenai-compatible/m`,
      `${file}\tprompt.environment\ttrue`,
      `${file}\tsettings.effort\tlow`,
    ];
    const untrusted = await p.inNode(['config', 'list', '--show-origin']);
    expect(untrusted.stdout.trimEnd().split('\n')).toEqual(own);
    expect(untrusted.stderr).toBe(
      `Left out ${code}: it is code, and is not trusted (read it, and trust it with: tape trust ${p.path})\n`,
    );
    expect((await p.here(['trust', '.'])).code).toBe(0);
    const all = [
      `${code}\tcompaction.threshold\t0.5`,
      `${code}\tlimits.max_steps\t5`,
      `${file}\tlimits.retries\t1`,
      `${code}\tmodel\tscript:${p.file('answers.json')}`,
      `${code}\tprompt.tools\ttrue`,
      `${file}\tsettings.effort\tlow`,
      `${code}\tsettings.temperature\t1`,
    ];
    expect(await list()).toEqual(all);
    expect(await list('--no-config')).toEqual(own);
    expect(await list('--all')).toContain('default\tlimits.max_depth\t3');
    const get = async (key: string, env: Readonly<Record<string, string>> = {}) =>
      json(await p.inNode(['config', 'get', key, '--json'], { env }));
    expect(await get('model', { TAPE_MODEL: 'a/b' })).toEqual({
      key: 'model',
      value: 'a/b',
      origin: 'environment',
      from: '$TAPE_MODEL',
    });
    expect(await get('model')).toMatchObject({ origin: 'code', from: code });
    expect(await get('limits.retries')).toMatchObject({ value: 1, origin: 'file', from: file });
    expect(await get('limits.concurrent_calls')).toMatchObject({
      value: 'Infinity',
      origin: 'default',
      from: null,
    });
    const told = await p.here(['config', 'set', 'model', 'c/d'], { env: { TAPE_MODEL: 'a/b' } });
    expect(told.stderr).toBe('$TAPE_MODEL is set, and has precedence\n');
  });

  test('the keys are those of limits and of other fields that the file takes', async () => {
    const limits = Object.keys(defaultLimits).map(
      (name) => `limits.${name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`)}`,
    );
    expect(configKeys.filter((key) => /^limits\.\w+$/.test(key)).sort()).toEqual(limits.sort());
    const values: Readonly<Record<string, string>> = {
      model: 'a/b',
      summarizer: 'a/b',
      titles: 'a/b',
      view: 'window:3',
      'settings.effort': 'low',
      'settings.provider_options.*': '{ a: 1 }',
      'prompt.skills': '[a]',
      compaction: 'at-85',
      redact: 'all',
      'redact.in': 'all',
      record: 'raw',
      'alias.*': 'log',
      permissions: 'sandboxed',
      builtin_tools: '[read_file]',
      'compaction.preset': 'at-85',
      'compaction.keep.over': 'split',
      'compaction.prune': 'false',
      'compaction.smart_recovery': 'false',
      'compaction.prune.protect': '[a]',
      'import.roots': '[a]',
      'import.exclude': '[a]',
      'mcp_servers.*.args': '[a]',
      'mcp_servers.*.url': 'http://a/mcp',
      routes: '[{ name: a, session: { key: "dm:a" } }]',
      'personas.*.model': 'a/b',
      'personas.*.settings.effort': 'low',
      'personas.*.settings.provider_options': '{ a: {} }',
      'personas.*.tools': '[a]',
      'personas.*.uses': '[a]',
      'personas.*.permissions': 'sandboxed',
    };
    const share = /threshold|share|ratio|temperature/;
    const isFlag = /^prompt\.|enabled|retry_on|tool_outputs|chunked|drop_/;
    for (const key of configKeys) {
      using p = project();
      if (/keep\.(share|over)/.test(key)) await set(p, 'compaction.keep.turns', '3');
      if (key === 'windows.*.max_output') await set(p, 'windows.m.window', '30');
      const server = /^mcp_servers\.\*\.(?:args|cwd|env|timeout|(headers))/.exec(key);
      if (server !== null)
        await set(p, `mcp_servers.m.${server[1] === undefined ? 'command' : 'url'}`, 'http://a');
      const usual = /^instructions/.test(key)
        ? 'Hi'
        : isFlag.test(key)
          ? 'true'
          : share.test(key)
            ? '0.5'
            : '3';
      await set(p, key.replace('*', 'm'), values[key] ?? usual);
    }
  });

  test('set and get return the same text for any value', async () => {
    using p = project();
    await p.here(['init']);
    const odd = [
      '',
      ' ',
      'true',
      'null',
      '~',
      '0x1f',
      '1e3',
      '.inf',
      '- a',
      'a: b',
      '# c',
      '&a',
      '*a',
      '!t x',
      '|',
      '>-',
      '%a',
      "'",
      '"',
      '{',
      '---',
      '...',
      '<<',
      '@@x',
      'é\u{1f600}',
      '\u2028',
      'x\ufeffy',
      '\u0085',
      '\t',
      'a\tb ',
      'a\r\nb',
      '\n',
      ' a\n b',
      'a\n\n',
      '__proto__',
    ];
    const text = fc
      .oneof(
        fc.constantFrom(...odd),
        fc.string({ unit: 'binary', maxLength: 30 }),
        fc.array(fc.constantFrom(...odd), { maxLength: 4 }).map((parts) => parts.join('')),
      )
      // A mark of the byte order at the start of stdin is no text, nor is the line end at its end.
      .filter((one) => one !== '' && one.isWellFormed() && !/^\ufeff|\r$/.test(one));
    const name = fc
      .oneof(
        fc.constantFrom('__proto__', 'a.b', '1', 'true', 'x y', '#', "'", '? a', '- b', 'é'),
        fc.stringMatching(/^[\w.-]{1,9}$/),
      )
      .filter((one) => !/^\.|\.$|\.\./.test(one));
    const value = fc.oneof(
      text.map((one) => JSON.stringify(one)),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => JSON.stringify(n)),
      fc.json({ maxDepth: 2 }),
    );
    const given = fc.oneof(
      fc.tuple(
        name.map((one) => `instructions.${one}`),
        text,
        fc.constant(true),
      ),
      fc.tuple(
        name.map((one) => `settings.provider_options.m.${JSON.stringify(one)}`),
        value,
        fc.constant(false),
      ),
    );
    await fc.assert(
      fc.asyncProperty(given, async ([key, typed, isText]) => {
        p.write('.tape/config.yaml', '');
        // On stdin, one line end is that of the editor.
        const result = await p.here(['config', 'set', '--json', '--', key, '-'], { stdin: `${typed}\n` });
        if (result.code !== 0) {
          expect([isText, result.stderr]).toEqual([
            false,
            expect.stringMatching(/it is empty|must not have|must be an object of JSON/),
          ]);
          return;
        }
        const wanted: unknown = isText ? typed : JSON.parse(typed);
        const written = json<{ key: string; value: unknown }>(result);
        expect(written.value).toEqual(wanted);
        const listed = jsonLines<{ key: string; value: unknown }>(
          await p.here(['config', 'list', '--jsonl']),
        );
        if (typeof wanted === 'object' && wanted !== null && !Array.isArray(wanted))
          expect(listed.length).toBeLessThan(200);
        else expect(listed.find((one) => one.key === written.key)?.value).toEqual(wanted);
        const shown = await p.here(['config', 'unset', '--json', '--', written.key]);
        expect(json<{ was: unknown }>(shown).was).toEqual(wanted);
        expect(yamlOf(p).trim()).toBe('');
      }),
      { numRuns: sized(10, 15, 5000) },
    );
  }, 600_000);
});

test('what a trusted configuration calls a secret is not printed', async () => {
  using p = project();
  p.write(
    'tape.config.mts',
    `export default { instructions: 'Use kx-93b1-77f2', secrets: { SEARCH_KEY: 'kx-93b1-77f2' } };`,
  );
  await p.here(['trust', '.']);
  expect((await p.inNode(['config'])).stdout).toBe('instructions\tUse [secret SEARCH_KEY]\n');
});

describe('a home that is not the user’s', () => {
  const mine = (p: Project) => ({ env: { TAPE_TRUST_HOME: '', HOME: dirname(p.path) } });

  /** Copies the home of a project, as a repository would bring it. */
  async function shipped(p: Project, yaml: string): Promise<void> {
    await p.here(['new', 'main'], mine(p));
    p.write('.tape/config.yaml', yaml);
    copyFileSync(join(p.home, 'tape.db'), p.file('copy.db'));
    renameSync(p.file('copy.db'), join(p.home, 'tape.db'));
  }

  test('is not written, and its file stays trusted after a change of our own', async () => {
    using p = project();
    await shipped(p, 'instructions: Hi\n');
    expect(await p.here(['config', 'get', 'instructions'], mine(p))).toMatchObject({
      code: 0,
      stdout: 'Hi\n',
    });
    const no = await p.here(['config', 'set', 'instructions', 'Mine', '--json'], mine(p));
    expect(jsonError(no)).toMatchObject({
      code: 'CLI_FOREIGN_HOME',
      hint: expect.stringContaining('tape trust'),
    });
    expect((await p.here(['trust', '.tape'], mine(p))).code).toBe(0);
    p.write('answers.json', [{ text: 'Hi.' }]);
    expect((await p.here(['config', 'set', 'model', 'script:answers.json'], mine(p))).code).toBe(0);
    const { stdout, stderr } = await p.here(['config', 'get', 'model'], mine(p));
    expect([stdout, stderr]).toEqual(['script:answers.json\n', '']);
    p.write('.tape/config.yaml', 'model: script:evil.json\n');
    const changed = await p.here(['config', 'get', 'model'], mine(p));
    expect(changed.code).toBe(3);
    expect(changed.stderr).toContain('Ignored model of');
  });

  test('is not written through a link that came with it', async () => {
    using p = project();
    await shipped(p, '');
    writeFileSync(p.file('mine'), '');
    rmSync(join(p.home, 'config.yaml'));
    symlinkSync(p.file('mine'), join(p.home, 'config.yaml'));
    const at = ['--home', p.home];
    expect((await p.here([...at, 'config', 'set', 'instructions', 'Hi'], mine(p))).stderr).toContain(
      'is a link that came with the home',
    );
    expect(readFileSync(p.file('mine'), 'utf8')).toBe('');
  });

  test('with scripts of others, takes no change until they are gone', async () => {
    using p = project();
    await shipped(p, 'model: script:evil.json\nprompt:\n  skills: [evil]\n');
    await p.here(['trust', '.tape'], mine(p));
    const set = async (...args: readonly string[]) =>
      await p.here(['config', 'set', ...args, '--json'], mine(p));
    expect(jsonError(await set('instructions', 'Mine'))).toMatchObject({
      code: 'CLI_FOREIGN_HOME',
      message: expect.stringContaining('came with the home, with model, prompt.skills'),
      hint: expect.stringContaining('tape config unset model'),
    });
    expect((await p.here(['config', 'unset', 'prompt.skills'], mine(p))).code).toBe(0);
    expect((await p.here(['config', 'get', 'model'], mine(p))).code).toBe(3);
    expect((await set('model', 'script:mine.json')).code).toBe(0);
    expect((await p.here(['config', 'get', 'model'], mine(p))).stdout).toBe('script:mine.json\n');
  });
});

test('a home is created for a first setting, and none for a look', async () => {
  using p = project();
  const home = p.file('new-home');
  expect(await tapeHere(['config'], { home })).toEqual({
    code: 0,
    stdout: '',
    stderr: 'Nothing is set (see defaults with: tape config list --all)\n',
  });
  expect(existsSync(home)).toBe(false);
  expect((await tapeHere(['config', 'set', 'instructions', 'Hi'], { home })).code).toBe(0);
  expect(existsSync(join(home, 'tape.db'))).toBe(true);
  expect((await tapeHere(['run', 'main', 'x', '--json'], { home })).stderr).toContain('no model was given');
});
