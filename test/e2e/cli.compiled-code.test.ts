import { spawnSync } from 'node:child_process';
import { cpSync, globSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { user } from '@tapedeck/tape';
import { beforeAll, describe, expect, test } from 'vitest';
import { root } from '../support/imports.ts';
import { tapeProgram } from '../support/programs.ts';
import { type TempDir, tempDir } from '../support/temp-dir.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const cli = dirname(dirname(tapeProgram));
const bundle = join(cli, 'bundle');

/** Says on stderr which files the command compiles itself, whether V8 takes their code, and where `exit` is awaited. */
const spy = `data:text/javascript,${encodeURIComponent(`
  const vm = process.getBuiltinModule('node:vm');
  const say = (text) => process.stderr.write(text + '\\n');
  vm.Script = class extends vm.Script {
    constructor(text, options) {
      super(text, options);
      const code = options.cachedData === undefined ? 'none' : this.cachedDataRejected ? 'refused' : 'taken';
      say('code of ' + options.filename.split(/[\\\\/]/).at(-1) + ': ' + code);
    }
  };
  const once = process.once;
  process.once = function (...args) {
    if (args[0] === 'exit') say(new Error('here').stack);
    return once.apply(this, args);
  };
`)}`;

let home: TempHome;
/** A copy of the package, whose files of code tests replace. */
let copy: TempDir;
beforeAll(() => {
  home = tempHome();
  home.session('main', user('Hello'));
  copy = tempDir();
  for (const part of ['bin', 'bundle', 'package.json'])
    cpSync(join(cli, part), copy.file(part), { recursive: true });
  symlinkSync(join(root, 'node_modules'), copy.file('node_modules'));
  return () => {
    home[Symbol.dispose]();
    copy[Symbol.dispose]();
  };
});

/** Runs `tape log main` of a package. */
function log(from: string, node: readonly string[] = [], more: NodeJS.ProcessEnv = {}) {
  const { NODE_OPTIONS, NODE_V8_COVERAGE, ...env } = process.env;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', spy, ...node, join(from, 'bin/tape.js'), 'log', 'main', '--home', home.path],
    { encoding: 'utf8', env: { ...env, TAPE_TRUST_HOME: '1', ...more } },
  );
  const code = [...stderr.matchAll(/^code of (.*): (.*)$/gm)].map(([, file, what]) => `${file} ${what}`);
  const stack = [...stderr.matchAll(/(bundle[\\/].*\.cjs:\d+:\d+)/g)].map(([, at]) => at);
  return { status, stdout, code, stack };
}

/** Replaces the code in the copy by what `change` makes of that in the package. */
function withCode(change: (code: Buffer, file: string) => Buffer): string {
  for (const file of globSync('*.code', { cwd: bundle }))
    writeFileSync(copy.file(join('bundle', file)), change(readFileSync(join(bundle, file)), file));
  return copy.path;
}

test('V8 takes the code of each file that a verb loads, and the process writes none', () => {
  const before = readdirSync(bundle);
  const { status, code } = log(cli);
  expect(status).toBe(0);
  expect(code).toEqual(expect.arrayContaining(['start.cjs taken', 'log.cjs taken', 'shared.cjs taken']));
  expect(code.filter((file) => !file.endsWith(' taken'))).toEqual([]);
  expect(readdirSync(bundle)).toEqual(before);
});

test('stack traces name the same places as without code', () => {
  const { stack } = log(cli);
  expect(stack.length).toBeGreaterThan(1);
  expect(stack).toEqual(log(withCode(() => Buffer.alloc(0))).stack);
});

describe('the command does the same', () => {
  const mark = ` ${process.version} `;
  let expected: string;
  beforeAll(() => {
    expected = log(withCode(() => Buffer.alloc(0))).stdout;
    expect(expected).toContain('Hello');
  });

  test('where no code was shipped, or that of another file', () => {
    for (const code of [Buffer.alloc(0), Buffer.from('short'), readFileSync(join(bundle, 'log.cjs.code'))])
      expect(log(withCode(() => code))).toMatchObject({ status: 0, stdout: expected, code: [] });
  });

  test('under another version of Node.js, or on another processor', () => {
    for (const [here, there] of [
      [mark, ' v24.99.0 '],
      [` ${process.arch} `, ' other '],
    ] as const) {
      const elsewhere = (code: Buffer) => Buffer.from(code.toString('latin1').replace(here, there), 'latin1');
      expect(log(withCode(elsewhere))).toMatchObject({ status: 0, stdout: expected, code: [] });
    }
  });

  test('where V8 refuses the code, as with other flags', () => {
    const ran = log(
      withCode((code) => code),
      ['--stack-size=900'],
    );
    expect(ran).toMatchObject({ status: 0, stdout: expected });
    expect(ran.code).toEqual(expect.arrayContaining(['start.cjs refused', 'log.cjs refused']));
  });

  test('where the code was cut off or damaged', () => {
    const endOf = (code: Buffer) => code.lastIndexOf(mark) - 8;
    const flipped = (code: Buffer) => {
      const copied = Buffer.from(code);
      copied.writeUInt8(copied.readUInt8(endOf(code) >> 1) ^ 4, endOf(code) >> 1);
      return copied;
    };
    const cut = (code: Buffer) =>
      Buffer.concat([code.subarray(0, endOf(code) / 2), code.subarray(endOf(code))]);
    const zeros = (code: Buffer) => Buffer.from(code).fill(0, endOf(code) >> 2, endOf(code) >> 1);
    for (const damage of [cut, zeros, flipped])
      expect(log(withCode(damage))).toMatchObject({ status: 0, stdout: expected, code: [] });
    const one = log(withCode((code, file) => (file === 'log.cjs.code' ? flipped(code) : code)));
    expect(one).toMatchObject({ status: 0, stdout: expected });
    expect(one.code).toEqual(expect.arrayContaining(['start.cjs taken', 'log.cjs none']));
  });

  test('where a file has no code beside files that have some', () => {
    const ran = log(withCode((code, file) => (file === 'log.cjs.code' ? Buffer.alloc(0) : code)));
    expect(ran).toMatchObject({ status: 0, stdout: expected });
    expect(ran.code).toEqual(expect.arrayContaining(['start.cjs taken', 'log.cjs none']));
  });

  test('where Node.js maps the sources or measures their coverage: it compiles the files itself', () => {
    const same = { status: 0, stdout: expected, code: [] };
    expect(log(cli, ['--enable-source-maps'])).toMatchObject(same);
    expect(log(cli, [], { NODE_V8_COVERAGE: copy.file('coverage') })).toMatchObject(same);
    expect(readdirSync(copy.file('coverage'))).toHaveLength(1);
  });
});
