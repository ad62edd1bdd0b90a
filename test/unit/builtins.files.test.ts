import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type BuiltinName, type BuiltinOptions, builtins, type Reach } from '@tapedeck/runtime';
import { afterAll, expect, test } from 'vitest';
import { keptMemory } from '../support/kept-memory.ts';
import { atFullSize } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';

const dir = tempDir();
afterAll(() => dir[Symbol.dispose]());
let places = 0;

/** A workspace, and calls of the tools in it, as a run makes them. */
function desk({ mayReach, ...options }: BuiltinOptions & { readonly mayReach?: Reach } = {}) {
  places += 1;
  const workspace = join(realpathSync(dir.path), `${places}`);
  mkdirSync(workspace);
  const tools = builtins(options);
  const call = async (name: BuiltinName, input: object, abortSignal?: AbortSignal): Promise<unknown> =>
    await tools[name]?.execute?.(input, {
      toolCallId: 'c1',
      messages: [],
      context: { directory: workspace, ...(mayReach !== undefined && { mayReach }) },
      ...(abortSignal !== undefined && { abortSignal }),
    });
  const file = (name: string) => join(workspace, name);
  const write = (name: string, content: string | Buffer) => writeFileSync(file(name), content);
  return { workspace, call, file, write, read: (name: string) => readFileSync(file(name), 'utf8') };
}

test('a file is read in parts, each of which says how to read on', async () => {
  const { call, write } = desk({ outputBytes: 20 });
  const lines = Array.from({ length: 9 }, (_, i) => `line ${i + 1}\n`).join('');
  write('a.txt', lines);
  expect(await call('read_file', { path: 'a.txt', offset: 2, limit: 2 })).toBe(
    'line 2\nline 3\n[cut: 14 of the 63 bytes of the file are shown; read on with {"offset":4}]',
  );
  expect(await call('read_file', { path: 'a.txt', offset: 9 })).toBe('line 9\n');
  expect(await call('read_file', { path: 'a.txt', offset: 12 })).toBe(
    '[nothing there: the file has 9 lines]',
  );
  let [read, next]: [string, object] = ['', {}];
  for (;;) {
    const text = String(await call('read_file', { path: 'a.txt', ...next }));
    const note = /\n?\[cut: (\d+) of .* read on with (\{.*\})\]$/.exec(text);
    if (note === null) {
      read += text;
      break;
    }
    read += text.slice(0, Number(note[1]));
    next = JSON.parse(note[2] ?? '{}');
  }
  expect(read).toBe(lines);
});

test('a long line is read on by its bytes, and no character is torn', async () => {
  const { call, write } = desk({ outputBytes: 10 });
  write('long', 'äöü'.repeat(10));
  const first = String(await call('read_file', { path: 'long' }));
  expect(first).toBe(
    'äöüäö\n[cut: 10 of the 60 bytes of the file are shown; read on with {"offset":1,"column":11}]',
  );
  expect(await call('read_file', { path: 'long', offset: 1, column: 55 })).toBe('äöü');
});

test.runIf(atFullSize)('a huge file is read without being kept', async () => {
  const { call, write, file } = desk();
  write('huge', 'first line\n');
  truncateSync(file('huge'), 8 * 1024 ** 3);
  await expect(call('read_file', { path: 'huge' })).rejects.toMatchObject({ code: 'TOOL_BINARY_FILE' });
  write('text', `${'x'.repeat(99)}\n`.repeat(100_000));
  const before = keptMemory().arrayBuffers;
  const text = String(await call('read_file', { path: 'text', offset: 99_999 }));
  expect(text).toBe(`${'x'.repeat(99)}\n`.repeat(2));
  expect(keptMemory().arrayBuffers - before).toBeLessThan(3_000_000);
  await expect(
    call('edit_file', { path: 'huge', old_text: 'first', new_text: 'last' }),
  ).rejects.toMatchObject({
    code: 'TOOL_TOO_LARGE',
  });
});

test('what is no text file is refused with its kind, and nothing waits for it', async () => {
  const { call, write, file, workspace } = desk();
  write('binary', Buffer.from([1, 0, 2]));
  write('latin', Buffer.from([0x66, 0xfc, 0x72]));
  execFileSync('mkfifo', [file('pipe')]);
  mkdirSync(file('sub'));
  const server = createServer().listen(file('socket'));
  try {
    for (const [path, code, why] of [
      ['binary', 'TOOL_BINARY_FILE', 'it is no text in UTF-8'],
      ['latin', 'TOOL_BINARY_FILE', 'it is no text in UTF-8'],
      ['pipe', 'TOOL_NOT_A_FILE', 'it is a pipe'],
      ['sub', 'TOOL_NOT_A_FILE', 'it is a directory'],
      ['socket', 'TOOL_NOT_A_FILE', 'it is a socket'],
      ['/dev/zero', 'TOOL_NOT_A_FILE', 'it is a device'],
      ['none', 'TOOL_NO_FILE', 'it does not exist'],
      ['binary/below', 'TOOL_NOT_A_DIRECTORY', 'a part of its path is no directory'],
      ['a\0b', 'TOOL_FILE_FAILED', 'it contains a null character'],
    ] as const)
      for (const [tool, input] of [
        ['read_file', { path }],
        ['edit_file', { path, old_text: 'a', new_text: 'b' }],
        ['copy_file', { from: path, to: 'copy' }],
      ] as const) {
        if (tool === 'copy_file' && code === 'TOOL_BINARY_FILE') continue;
        await expect(call(tool, input)).rejects.toMatchObject({
          code,
          message: expect.stringMatching(new RegExp(`${RegExp.escape(why)} \\(${code}\\)$`)),
        });
      }
    for (const path of ['pipe', 'sub', 'socket', '/dev/null'])
      await expect(call('write_file', { path, text: '' })).rejects.toMatchObject({ code: 'TOOL_NOT_A_FILE' });
  } finally {
    server.close();
  }
  expect(readdirSync(workspace).sort()).toEqual(['binary', 'latin', 'pipe', 'sub']);
});

test('a file is written with its directories, and keeps its mode', async () => {
  const { call, read, file, workspace } = desk();
  expect(await call('write_file', { path: 'a/b/run.sh', text: 'one' })).toBe('Created a/b/run.sh (3 bytes)');
  chmodSync(file('a/b/run.sh'), 0o751);
  expect(await call('write_file', { path: './a/b/run.sh', text: 'zwei ä' })).toBe(
    'Replaced ./a/b/run.sh (7 bytes)',
  );
  expect(read('a/b/run.sh')).toBe('zwei ä');
  expect(statSync(file('a/b/run.sh')).mode & 0o777).toBe(0o751);
  expect(await call('copy_file', { from: 'a/b/run.sh', to: 'c/copy.sh' })).toBe(
    'Copied a/b/run.sh to c/copy.sh (7 bytes)',
  );
  expect(statSync(file('c/copy.sh')).mode & 0o777).toBe(0o751);
  await expect(call('copy_file', { from: 'a/b/run.sh', to: 'c/copy.sh' })).rejects.toMatchObject({
    code: 'TOOL_FILE_EXISTS',
  });
  await call('write_file', { path: 'a/b/run.sh', text: 'three' });
  await call('copy_file', { from: 'a/b/run.sh', to: 'c/copy.sh', overwrite: true });
  expect(read('c/copy.sh')).toBe('three');
  expect(readdirSync(workspace, { recursive: true }).sort()).toEqual([
    'a',
    'a/b',
    'a/b/run.sh',
    'c',
    'c/copy.sh',
  ]);
});

test('an edit replaces a text that is there once, and says how often another one is', async () => {
  const { call, write, read } = desk();
  write('a.ts', 'const a = 1;\r\nconst b = 1;\r\n');
  expect(await call('edit_file', { path: 'a.ts', old_text: 'b = 1', new_text: 'b = $& 2' })).toBe(
    'Edited a.ts at line 2',
  );
  expect(read('a.ts')).toBe('const a = 1;\r\nconst b = $& 2;\r\n');
  await expect(call('edit_file', { path: 'a.ts', old_text: 'const', new_text: 'let' })).rejects.toThrow(
    "cannot edit 'a.ts': the old text is in it 2 times (lines 1, 2) (TOOL_TEXT_NOT_UNIQUE)",
  );
  await expect(call('edit_file', { path: 'a.ts', old_text: 'a = 1;\nconst', new_text: '' })).rejects.toThrow(
    "cannot edit 'a.ts': the old text is not in it: its lines end with \\r\\n (TOOL_NO_TEXT)",
  );
});

test('an edit is refused when the file was replaced or changed meanwhile', async () => {
  const { call, write, read, file } = desk({
    // Asked after the file was read, and before it is written.
    mayReach: (kind) => {
      if (kind === 'write') change();
      return true;
    },
  });
  let change = () => {};
  write('a.txt', 'old');
  for (const meanwhile of [
    () => write('a.txt', 'new'),
    () => {
      write('other', 'old');
      renameSync(file('other'), file('a.txt'));
    },
  ]) {
    write('a.txt', 'old');
    change = meanwhile;
    await expect(
      call('edit_file', { path: 'a.txt', old_text: 'old', new_text: 'edited' }),
    ).rejects.toMatchObject({
      code: 'TOOL_FILE_CHANGED',
    });
    expect(read('a.txt')).not.toBe('edited');
  }
});

test('a link that leads elsewhere after the rules have decided leads nowhere', async () => {
  const outside = desk();
  outside.write('secret', 'the secret');
  let swap = () => {};
  const { call, file, workspace, write } = desk({
    mayReach: (_, path) => {
      swap();
      return path.startsWith(`${workspace}/`);
    },
  });
  write('a.txt', 'mine');
  mkdirSync(file('sub'));
  write('sub/a.txt', 'mine');
  await expect(call('read_file', { path: outside.file('secret') })).rejects.toMatchObject({
    code: 'TOOL_NOT_ALLOWED',
  });
  symlinkSync(outside.workspace, file('link'));
  await expect(call('read_file', { path: 'link/secret' })).rejects.toMatchObject({
    code: 'TOOL_NOT_ALLOWED',
  });
  await expect(call('write_file', { path: 'link/new', text: '' })).rejects.toMatchObject({
    code: 'TOOL_NOT_ALLOWED',
  });
  await expect(call('write_file', { path: 'link/new/deep', text: '' })).rejects.toMatchObject({
    code: 'TOOL_NOT_ALLOWED',
  });
  await expect(call('list_directory', { path: 'link' })).rejects.toMatchObject({ code: 'TOOL_NOT_ALLOWED' });
  await expect(call('search_files', { path: 'link', pattern: 'secret' })).rejects.toMatchObject({
    code: 'TOOL_NOT_ALLOWED',
  });
  // The directory becomes a link once it is open: the write stays where it was decided on.
  swap = () => {
    swap = () => {};
    renameSync(file('sub'), file('moved'));
    symlinkSync(outside.workspace, file('sub'));
  };
  await call('write_file', { path: 'sub/secret', text: 'overwritten' });
  expect(outside.read('secret')).toBe('the secret');
  expect(readdirSync(outside.workspace)).toEqual(['secret']);
  expect(readFileSync(file('moved/secret'), 'utf8')).toBe('overwritten');
});

test('a directory is listed in pages, with what its names are', async () => {
  const { call, write, file } = desk();
  expect(await call('list_directory', {})).toBe('[the directory is empty]');
  write('b.txt', 'four');
  write('new\nline', '');
  mkdirSync(file('a'));
  symlinkSync('b.txt', file('z'));
  execFileSync('mkfifo', [file('pipe')]);
  expect(await call('list_directory', {})).toBe(
    ['a/', 'b.txt (4 bytes)', '"new\\nline" (0 bytes)', 'pipe (pipe)', 'z -> b.txt'].join('\n'),
  );
  for (let i = 0; i < 510; i += 1) write(`a/${1000 + i}`, '');
  const page = String(await call('list_directory', { path: 'a' })).split('\n');
  expect(page.at(-1)).toBe('[cut: 500 of 510 names are shown; read on with {"offset":501}]');
  expect(String(await call('list_directory', { path: 'a', offset: 501 })).split('\n')).toHaveLength(10);
  await expect(call('list_directory', { path: 'b.txt' })).rejects.toMatchObject({
    code: 'TOOL_NOT_A_DIRECTORY',
  });
});
