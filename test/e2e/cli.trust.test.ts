import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { json, jsonError, jsonLines } from '../support/cli.ts';
import { type Project, project } from '../support/project.ts';
import { atFullSize, sized } from '../support/size.ts';

/** A configuration that shows that it was run. */
function leavesTrace(p: Project, name = 'tape.config.mts'): string {
  p.write('answers.json', [{ text: 'Hi.' }, { text: 'Hi.' }, { text: 'Hi.' }]);
  return p.write(
    name,
    `import { writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
writeFileSync(${JSON.stringify(p.file('ran'))}, '');
export default { model: 'script:answers.json' };
`,
  );
}

test('no verb runs an untrusted configuration: exit 2', async () => {
  using p = project();
  const config = leavesTrace(p);
  expect(await p.here(['new', 'main'])).toMatchObject({ code: 0 });
  for (const args of [
    ['run', 'main', 'Hi'],
    ['run', 'main', 'Hi', '--model', 'script:answers.json'],
    ['delegate', 'main', '--task', 'x'],
    ['recover'],
  ]) {
    const result = await p.tape([...args, '--json']);
    expect({ exit: result.code, ...jsonError(result) }, args.join(' ')).toEqual({
      exit: 2,
      code: 'CLI_UNTRUSTED',
      message: `cannot use '${config}': it is code, and is not trusted`,
      hint: `read it, and trust it with: tape trust ${p.path}; or run without it: --no-config`,
      data: { config, dir: p.path, changed: false },
    });
  }
  expect(existsSync(p.file('ran'))).toBe(false);
  // Going on without it does not run it either.
  expect(
    await p.inNode(['run', 'main', 'Hi', '--no-config', '--model', 'script:answers.json']),
  ).toMatchObject({ code: 0 });
  expect(existsSync(p.file('ran'))).toBe(false);
  expect(await p.here(['trust', '.'])).toMatchObject({ code: 0 });
  expect(existsSync(p.file('ran'))).toBe(false);
  expect(await p.inNode(['run', 'main', 'Hi'])).toMatchObject({ code: 0 });
  expect(existsSync(p.file('ran'))).toBe(true);
});

test('a changed or revoked configuration has to be trusted again', async () => {
  using p = project();
  const config = leavesTrace(p);
  const first = await p.here(['trust', '.']);
  expect(first).toMatchObject({
    code: 0,
    stdout: `Trusted ${config} (undo with: tape trust ${p.path} --revoke)\n`,
  });
  expect(await p.here(['trust', p.path])).toMatchObject({
    stdout: `${config} is trusted already: nothing to do\n`,
  });
  writeFileSync(config, `${readFileSync(config, 'utf8')}\n`);
  expect(await p.here(['trust', '--json'])).toMatchObject({
    stdout: expect.stringContaining('"state":"changed"'),
  });
  const refused = await p.here(['run', 'main', 'Hi', '--json']);
  expect(jsonError(refused)).toMatchObject({
    message: `cannot use '${config}': it is code, and has changed since it was trusted`,
    data: { changed: true },
  });
  expect(existsSync(p.file('ran'))).toBe(false);
  const again = await p.here(['trust', '.', '--json']);
  const sha256 = createHash('sha256').update(readFileSync(config)).digest('hex');
  expect(json(again)).toEqual({
    dir: p.path,
    config: 'tape.config.mts',
    imports: [],
    sha256,
    trusted: true,
    repeated: false,
  });
  expect(await p.tape(['run', 'main', 'Hi'])).toMatchObject({ code: 0 });
  rmSync(p.file('ran'));
  expect(json(await p.here(['trust', '.', '--revoke', '--json']))).toEqual({
    dir: p.path,
    config: 'tape.config.mts',
    imports: [],
    sha256,
    trusted: false,
    repeated: false,
  });
  expect(await p.here(['run', 'main', 'Hi'])).toMatchObject({ code: 2 });
  expect(existsSync(p.file('ran'))).toBe(false);
  expect(json(await p.here(['trust', '.', '--revoke', '--json']))).toMatchObject({
    sha256: null,
    repeated: true,
  });
});

test('trust in one file covers no other file of the directory, with the same bytes or before it in order', async () => {
  using p = project();
  const config = leavesTrace(p, 'tape.config.js');
  await p.here(['trust', '.']);
  renameSync(config, p.file('tape.config.mjs'));
  expect(await p.here(['run', 'main', 'Hi'])).toMatchObject({ code: 2 });
  renameSync(p.file('tape.config.mjs'), config);
  leavesTrace(p, 'tape.config.mts');
  expect(await p.here(['run', 'main', 'Hi'])).toMatchObject({ code: 2 });
  expect(existsSync(p.file('ran'))).toBe(false);
});

test('trust covers a directory by its real path: a link to it is trusted, a copy is not', async () => {
  using p = project();
  mkdirSync(p.file('real'));
  const real = p.write('real/tape.config.mts', `export default { model: 'script:../answers.json' };`);
  p.write('answers.json', [{ text: 'Hi.' }]);
  symlinkSync('real', p.file('link'));
  expect(json(await p.here(['trust', 'link', '--json']))).toMatchObject({ dir: dirname(real) });
  expect(await p.tape(['run', 'main', 'Hi'], { cwd: p.file('real') })).toMatchObject({ code: 0 });
  mkdirSync(p.file('copy'));
  p.write('copy/tape.config.mts', readFileSync(real, 'utf8'));
  expect(await p.here(['run', 'main', 'Hi'], { cwd: p.file('copy') })).toMatchObject({ code: 2 });
});

test('a configuration that is a link, a directory or no file is neither trusted nor run', async () => {
  using p = project();
  const config = leavesTrace(p, 'elsewhere.mts');
  const refused = async (says: string) => {
    for (const args of [
      ['trust', '.'],
      ['run', 'main', 'Hi'],
    ]) {
      const result = await p.here([...args, '--json']);
      expect({ exit: result.code, ...jsonError(result) }).toMatchObject({
        exit: 2,
        code: 'CLI_BAD_CONFIG',
        message: expect.stringContaining(says),
      });
    }
    // Not rmSync, which in Node.js 24.4 leaves a link to nothing.
    await rm(p.file('tape.config.mts'), { recursive: true });
  };
  symlinkSync(config, p.file('tape.config.mts'));
  await refused('it is a symbolic link');
  symlinkSync('gone.mts', p.file('tape.config.mts'));
  await refused('it is a symbolic link');
  mkdirSync(p.file('tape.config.mts'));
  await refused('it is a directory');
  expect(existsSync(p.file('ran'))).toBe(false);
});

test.skipIf(process.getuid?.() === 0)(
  'an unreadable configuration is refused (needs a user that is not root)',
  async () => {
    using p = project();
    chmodSync(leavesTrace(p), 0);
    for (const args of [
      ['trust', '.'],
      ['run', 'main', 'Hi'],
      ['run', 'main', 'Hi', '--config', 'tape.config.mts'],
    ])
      expect(jsonError(await p.here([...args, '--json']))).toMatchObject({
        code: 'CLI_BAD_CONFIG',
        message: expect.stringContaining('EACCES'),
      });
  },
);

test('trust of an unusable path: exit 3 where it is missing, 2 where it is something else', async () => {
  using p = project();
  p.write('file', '');
  for (const [args, exit, code] of [
    [['trust', 'nowhere'], 3, 'CLI_NOT_FOUND'],
    [['trust', '.'], 3, 'CLI_NOT_FOUND'],
    [['trust', 'file'], 2, 'CLI_USAGE'],
    [['trust', '--revoke'], 2, 'CLI_USAGE'],
  ] as const) {
    const result = await p.here([...args, '--json']);
    expect([result.code, jsonError(result).code], args.join(' ')).toEqual([exit, code]);
  }
  expect(existsSync(p.trustFile)).toBe(false);
});

test('the list marks changed and missing configurations, and a missing one can be revoked', async () => {
  using p = project();
  const dirs = ['kept', 'changed', 'gone'];
  for (const name of dirs) {
    mkdirSync(p.file(name));
    p.write(`${name}/tape.config.mts`, 'export default {};');
    await p.here(['trust', name]);
  }
  p.write('changed/tape.config.mts', 'export default { };');
  rmSync(p.file('gone'), { recursive: true });
  const state = [
    ['kept', 'trusted'],
    ['changed', 'changed'],
    ['gone', 'gone'],
  ];
  const listed = json<{ dir: string; state: string }[]>(await p.here(['trust', '--json']));
  expect(listed.map(({ dir, state }) => [dir, state])).toEqual(
    state.map(([name = '', is]) => [p.file(name), is]),
  );
  expect(jsonLines(await p.here(['trust', '--jsonl']))).toEqual(listed);
  expect(await p.here(['trust', '--quiet'])).toMatchObject({
    stdout: dirs.map((name) => `${p.file(name)}\n`).join(''),
  });
  expect((await p.here(['trust'])).stdout).toMatch(/^trusted {2}\S+\/kept\/tape\.config\.mts\nchanged {2}/);
  expect(await p.here(['trust', 'gone', '--revoke'])).toMatchObject({ code: 0 });
  expect(json<unknown[]>(await p.here(['trust', '--json']))).toHaveLength(2);
});

test.runIf(atFullSize)('concurrent changes lose nothing, and every read is complete', async () => {
  using p = project();
  const names = Array.from({ length: sized(3, 4, 8) }, (_, i) => `p${i}`);
  for (const name of names) {
    mkdirSync(p.file(name));
    p.write(`${name}/tape.config.mts`, `export default {}; // ${name}`);
  }
  const given = await Promise.all([...names, ...names].map((name) => p.process(['trust', name, '--json'])));
  expect(given.map(({ code, stderr }) => `${code}${stderr}`)).toEqual(given.map(() => '0'));
  const listed = json<{ dir: string; state: string }[]>(await p.here(['trust', '--json']));
  expect(listed.map(({ dir }) => dir).sort()).toEqual(names.map((name) => p.file(name)));
  expect(listed.every(({ state }) => state === 'trusted')).toBe(true);
  await Promise.all(names.map((name) => p.process(['trust', name, '--revoke'])));
  expect(json(await p.here(['trust', '--json']))).toEqual([]);
  expect(readdirSync(dirname(p.trustFile))).toEqual(['trust.json']);
});

test('the record is private, and outside of any project', async () => {
  using p = project();
  leavesTrace(p);
  await p.here(['trust', '.']);
  expect((statSync(p.trustFile).mode & 0o777).toString(8)).toBe('600');
  expect((statSync(dirname(p.trustFile)).mode & 0o777).toString(8)).toBe('700');
  // A relative XDG_CONFIG_HOME, which would lie in the project, does not count.
  const env = { XDG_CONFIG_HOME: 'settings', HOME: p.file('me') };
  expect(await p.here(['trust', '.'], { env })).toMatchObject({ code: 0 });
  expect(existsSync(p.file('settings'))).toBe(false);
  expect(existsSync(p.file('me/.config/tape/trust.json'))).toBe(true);
});

test.each([
  { name: 'not JSON', spoil: (file: string) => writeFileSync(file, '{"v":1,'), says: 'JSON' },
  {
    name: 'something else',
    spoil: (file: string) => writeFileSync(file, '{"v":1,"trusted":[{"dir":"/"}]}'),
    says: 'tape trust did not write it',
  },
  {
    name: 'of a later form',
    spoil: (file: string) => writeFileSync(file, '{"v":2,"trusted":[]}'),
    says: 'tape trust did not write it',
  },
  {
    name: 'open to others',
    spoil: (file: string) => chmodSync(file, 0o666),
    says: 'other users can write it',
  },
])('a record that is $name trusts nothing and is not overwritten', async ({ spoil, says }) => {
  using p = project();
  leavesTrace(p);
  await p.here(['trust', '.']);
  spoil(p.trustFile);
  const before = readFileSync(p.trustFile, 'utf8');
  for (const args of [['run', 'main', 'Hi'], ['trust', '.'], ['trust']]) {
    const result = await p.here([...args, '--json']);
    expect({ exit: result.code, ...jsonError(result) }).toMatchObject({
      exit: 2,
      code: 'CLI_BAD_CONFIG',
      message: expect.stringContaining(says),
    });
  }
  expect(existsSync(p.file('ran'))).toBe(false);
  expect(readFileSync(p.trustFile, 'utf8')).toBe(before);
});

test('trust waits for a lock of another process, and takes away one that a killed process left', async () => {
  using p = project();
  leavesTrace(p);
  const lock = `${p.trustFile}.lock`;
  mkdirSync(dirname(lock), { recursive: true });
  mkdirSync(lock);
  const waiting = p.here(['trust', '.']);
  expect(await Promise.race([waiting, sleep(200, 'still waiting')])).toBe('still waiting');
  expect(existsSync(p.trustFile)).toBe(false);
  rmdirSync(lock);
  expect(await waiting).toMatchObject({ code: 0 });
  mkdirSync(lock);
  // Reading needs no lock.
  expect(await p.tape(['run', 'main', 'Hi'])).toMatchObject({ code: 0 });
  utimesSync(lock, new Date(0), new Date(0));
  expect(await p.here(['trust', '.', '--revoke'])).toMatchObject({ code: 0 });
  expect(existsSync(lock)).toBe(false);
});

test('a hostile directory name is quoted in commands to paste', async () => {
  using p = project();
  const name = "x'; touch harm; '";
  mkdirSync(p.file(name));
  p.write(`${name}/tape.config.mts`, 'export default {};');
  const result = await p.here(['run', 'main', 'Hi', '--json'], { cwd: p.file(name) });
  expect(jsonError(result).hint).toContain(`tape trust '${p.path}/x'\\''; touch harm; '\\''';`);
});

test('trust covers the local files that a configuration imports: a changed one needs it again', async () => {
  using p = project();
  p.write('answers.json', [{ text: 'Hi.' }, { text: 'Hi.' }, { text: 'Hi.' }]);
  mkdirSync(p.file('lib'));
  const inner = p.write('lib/inner.mts', 'export const model = "script:answers.json";\n');
  p.write('lib/outer.mts', "export * from './inner.mts';\n");
  p.write('tape.config.mts', "import { model } from './lib/outer.mts';\nexport default { model };\n");
  const trusted = json(await p.here(['trust', '.', '--json']));
  expect(trusted).toMatchObject({ imports: [{ path: inner }, { path: p.file('lib/outer.mts') }] });
  expect(await p.inNode(['run', 'main', 'Hi'])).toMatchObject({ code: 0, stdout: 'Hi.\n' });
  writeFileSync(inner, 'export const model = "script:other.json";\n');
  const refused = await p.tape(['run', 'main', 'Hi', '--json']);
  expect({ exit: refused.code, ...jsonError(refused) }).toMatchObject({
    exit: 2,
    code: 'CLI_UNTRUSTED',
    message: expect.stringContaining(`'${inner}', which it imports, has changed since it was trusted`),
    data: { changed: true },
  });
  expect(jsonLines(await p.here(['trust', '--jsonl']))).toMatchObject([{ state: 'changed' }]);
  expect((await p.here(['trust', '.'])).stdout).toContain(
    'with 2 files that it imports again after a change',
  );
  writeFileSync(inner, 'export const model = "script:answers.json";\n');
  rmSync(p.file('lib/outer.mts'));
  // A file that is gone makes the import fail, and no other code run.
  expect((await p.tape(['run', 'main', 'Hi', '--json'])).code).toBe(2);
});

test.each([
  ['by a path with percent signs', 'own tools.mts', "from './own%20tools.mts'"],
  ['by a path with escapes', 'tools.mts', String.raw`from './\u0074o\x6fls.mts'`],
  ['after a comment', 'tools.mts', "from // mine\n /* all */ './tools.mts'"],
  ['by an absolute path', 'tools.mts', 'from "{dir}/tools.mts"'],
  ['by an address', 'tools.mts', "from 'file://{dir}/tools.mts'"],
  ['by the imports of package.json', 'tools.mts', "from '#tools'"],
  ['by a pattern in package.json', 'tools.mts', "from '#lib/tools'"],
])('trust covers a file that is imported %s', async (_, name, from) => {
  using p = project();
  p.write('answers.json', [{ text: 'Hi.' }]);
  p.write('package.json', {
    imports: { '#tools': { import: './tools.mts', require: './none.cjs' }, '#lib/*': './*.mts' },
  });
  const imported = p.write(name, 'export const model = "script:answers.json";\n');
  p.write(
    'tape.config.mts',
    `import { model } ${from.replace('{dir}', p.path)};\nexport default { model };\n`,
  );
  await p.here(['trust', '.']);
  expect(await p.inNode(['run', 'main', 'Hi'])).toMatchObject({ code: 0, stdout: 'Hi.\n' });
  writeFileSync(imported, 'export const model = "script:other.json";\n');
  expect(jsonError(await p.tape(['run', 'main', 'Hi', '--json'])).code).toBe('CLI_UNTRUSTED');
});

test('an imported file that cannot be read is named, with the configuration', async () => {
  using p = project();
  truncateSync(p.write('huge.mts', ''), 3 * 2 ** 30);
  const config = p.write('tape.config.mts', "import './huge.mts';\nexport default {};\n");
  const refused = await p.here(['trust', '.', '--json']);
  expect(jsonError(refused)).toMatchObject({
    code: 'CLI_BAD_CONFIG',
    message: expect.stringContaining(
      `cannot use '${config}': '${p.file('huge.mts')}', which it imports, cannot be read`,
    ),
  });
});

test('trust in a directory that has only a home names the command for the home', async () => {
  using p = project();
  const made = await p.here(['init', p.path]);
  expect(made.code).toBe(0);
  const { code, stderr } = await p.here(['trust', p.path]);
  expect([code, stderr]).toEqual([3, expect.stringContaining(`tape trust ${p.path}/.tape`)]);
});
