import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { note, user, view } from '@tapedeck/tape';
import Database from 'better-sqlite3';
import { expect, test, vi } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { atFullSize, sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tempHome } from '../support/temp-home.ts';
import { jsonl, person } from '../support/transcript.ts';

/** A transcript whose records follow one another, by name. */
const transcript = (...names: string[]): string =>
  names
    .map((name, i) => ({
      type: i % 2 === 0 ? 'user' : 'assistant',
      uuid: `00000000-0000-4000-8000-${Buffer.from(name).toString('hex').padStart(12, '0')}`,
      parentUuid:
        i === 0
          ? null
          : `00000000-0000-4000-8000-${Buffer.from(names[i - 1] ?? '')
              .toString('hex')
              .padStart(12, '0')}`,
      sessionId: '7d4c1f0e-52a6-4b8e-9c35-1e0f6a2b9d47',
      message: {
        id: name,
        role: i % 2 === 0 ? 'user' : 'assistant',
        content: [{ type: 'text', text: name }],
      },
    }))
    .map((record) => `${JSON.stringify(record)}\n`)
    .join('');

test('importing a transcript that has grown adds the new records; one that was rewritten forks its session', async () => {
  using home = tempHome();
  using dir = tempDir();
  const file = dir.file('transcript.jsonl');
  const importing = async (...names: string[]) => {
    writeFileSync(file, transcript(...names));
    return await home.tape(['import', file, '--as', 'main', '--json']);
  };
  expect((await importing('a', 'b')).code).toBe(0);
  expect(JSON.parse((await importing('a', 'b', 'c', 'd')).stdout)).toMatchObject({ entries: 2 });
  expect(JSON.parse((await importing('a', 'b', 'c', 'd')).stdout)).toMatchObject({ entries: 0 });
  // What is there in place of what was read becomes a session beside it, forked where the two part.
  const other = await importing('a', 'b', 'e', 'f');
  expect(JSON.parse(other.stdout)).toMatchObject({ names: ['main-2'], files: [{ seen: 'rewritten' }] });
  expect(JSON.parse((await importing('a', 'b', 'e', 'f')).stdout)).toMatchObject({ entries: 0 });
  // One that was shortened leaves its session as it is, also when it goes on in another way.
  expect(JSON.parse((await importing('a', 'b')).stdout)).toMatchObject({ entries: 0, names: ['main-2'] });
  for (const more of [['g'], ['g', 'h']])
    expect(JSON.parse((await importing('a', 'b', ...more)).stdout)).toMatchObject({ names: ['main-3'] });
  const said = async (name: string) => (await home.here(['log', name, '--oneline'])).stdout;
  expect(await said('main')).toMatch(/user +c/);
  expect(await said('main-2')).toMatch(/user +e/);
  expect(await said('main-3')).toMatch(/user +g/);
});

test('of several files each is imported, one that fails keeps no other from it, and gives the exit code', async () => {
  using home = tempHome();
  using dir = tempDir();
  home.session('kept', user('One'));
  const [one, two, bad, bundle] = ['one.jsonl', 'two.jsonl', 'bad.jsonl', 'kept.tape'].map(dir.file);
  const of = (id: string) => transcript('a', 'b').replaceAll('7d4c1f0e', id);
  writeFileSync(String(one), of('11111111'));
  writeFileSync(String(two), of('22222222'));
  writeFileSync(String(bad), 'no transcript\n');
  expect((await home.here(['export', 'kept', '-o', String(bundle)])).code).toBe(0);
  const none = dir.file('none.jsonl');
  const files = [one, bad, bundle, none, two].map(String);
  const said = await home.here(['import', ...files]);
  expect([said.code, said.stdout.split('\n').map((line) => line.replace(/: \d.*/, ''))]).toEqual([
    1,
    [
      'Imported 11111111-52a6-4b8e-9c35-1e0f6a2b9d47',
      'kept is here already: nothing to do',
      'Imported 22222222-52a6-4b8e-9c35-1e0f6a2b9d47',
      '',
    ],
  ]);
  const errors = said.stderr.split('\n').filter((line) => line.startsWith('Error: '));
  expect(errors).toEqual([
    expect.stringContaining(`cannot import '${bad}': line 1`),
    `Error: cannot import '${none}': no such file or directory`,
  ]);
  // Programs get a list, or lines, of those that were imported, and the errors on stderr.
  const found = await home.here(['import', ...files.slice(2), '--json']);
  expect([found.code, JSON.parse(found.stderr)]).toMatchObject([3, { error: { code: 'CLI_NOT_FOUND' } }]);
  expect(JSON.parse(found.stdout)).toMatchObject([
    { file: bundle, names: ['kept'], entries: 0 },
    { file: two, names: ['22222222-52a6-4b8e-9c35-1e0f6a2b9d47'], entries: 0 },
  ]);
  const lines = await home.here(['import', String(one), String(two), '--jsonl']);
  expect([
    lines.code,
    lines.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).file),
  ]).toEqual([0, [one, two]]);
  const named = await home.here(['import', String(one), String(two), '--as', 'main']);
  expect([named.code, named.stderr]).toEqual([
    2,
    "Error: cannot import 2 files as 'main': it is the name of one session\nHint: import them without --as, or one by one\n",
  ]);
  expect((await home.here(['import', '-', '-'])).code).toBe(2);
});

test('a named file that has not changed is not opened, but where its session is not here, or an option asks what it has', async () => {
  using home = tempHome();
  using dir = tempDir();
  const file = dir.file('transcript.jsonl');
  const writing = (...names: string[]) => {
    writeFileSync(file, transcript(...names));
    utimesSync(file, 1_700_000_000, 1_700_000_000);
  };
  writing('a', 'b');
  const session = '7d4c1f0e-52a6-4b8e-9c35-1e0f6a2b9d47';
  const importing = async (...options: string[]) =>
    JSON.parse((await home.here(['import', file, ...options, '--json'])).stdout);
  expect(await importing()).toMatchObject({ entries: 3, counts: { records: 2 } });
  // Other content of the same length and time: only who opens the file can find it.
  writing('a', 'c');
  const known = await importing();
  expect(known).toMatchObject({ entries: 0, sessions: 1, names: [session], files: [{ seen: 'unchanged' }] });
  expect(known.counts).toBeUndefined();
  expect((await home.here(['import', file])).stdout).toBe(
    `${session} has all records already: nothing to do\n`,
  );
  expect((await home.here(['import', file, '--quiet'])).stdout).toBe(`${session}\n`);
  for (const option of ['--raw', '--strict']) {
    expect(await importing(option)).toMatchObject({ counts: { records: 2 } });
  }
  await home.here(['delete', session]);
  const deleted = await home.here(['import', file]);
  expect([deleted.code, deleted.stderr]).toEqual([4, expect.stringContaining('it was deleted here')]);
  expect(await importing('--as', 'other')).toMatchObject({ names: ['other'], entries: 3 });
});

test('the receipts of several files, and what is wrong with them, have the order in which they are named', async () => {
  using home = tempHome();
  using dir = tempDir();
  const of = (id: string) => transcript('a', 'b').replaceAll('7d4c1f0e', id);
  const at = (id: string) => dir.file(`${id}.jsonl`);
  // Those that are known are imported first.
  const known = ['22222222', '44444444'];
  for (const id of ['11111111', '33333333', ...known]) writeFileSync(at(id), of(id));
  expect((await home.here(['import', ...known.map(at)])).code).toBe(0);
  writeFileSync(at('44444444'), '');
  const files = [at('33333333'), dir.file('none.jsonl'), ...['44444444', '22222222', '11111111'].map(at)];
  const said = await home.here(['import', ...files, '--quiet']);
  expect(said.stdout.match(/^\w{8}/gm)).toEqual(['33333333', '22222222', '11111111']);
  expect(said.stderr.match(/(?:none|4{8})\.jsonl/g)).toEqual(['none.jsonl', '44444444.jsonl']);
  expect(said.code).toBe(3);
});

test('of many named files that have not changed, the sessions of the home are read once', async () => {
  using home = tempHome();
  using dir = tempDir();
  const files = Array.from({ length: 20 }, (_, i) => String(dir.file(`s-${i}.jsonl`)));
  for (const [i, file] of files.entries())
    writeFileSync(file, transcript('a', 'b').replaceAll('7d4c1f0e', `7d4c1f${10 + i}`));
  expect((await home.here(['import', ...files])).code).toBe(0);
  const statement: Database.Statement = Object.getPrototypeOf(new Database(':memory:').prepare('SELECT 1'));
  const all = vi.spyOn(statement, 'all');
  try {
    expect((await home.here(['import', ...files])).stdout).toContain('nothing to do\n');
    const lists = all.mock.results.filter(({ value }) => Array.isArray(value) && value.length >= 20);
    expect(lists.length).toBeLessThan(5);
  } finally {
    all.mockRestore();
  }
});

test('a named file is read for each base of a home, and its receipt names the session that has all of it', async () => {
  using home = tempHome();
  using dir = tempDir();
  const file = dir.file('transcript.jsonl');
  const importing = async (...options: string[]) =>
    JSON.parse((await home.here(['import', file, ...options, '--json'])).stdout);
  writeFileSync(file, transcript('a', 'b'));
  await importing();
  await importing('--as', 'earlier');
  writeFileSync(file, transcript('a', 'b', 'c'));
  expect(await importing()).toMatchObject({ entries: 1 });
  const session = '7d4c1f0e-52a6-4b8e-9c35-1e0f6a2b9d47';
  expect((await importing()).names).toEqual([session, 'earlier']);
  expect(await importing('--base', 'team')).toMatchObject({ names: [session], entries: 4 });
  writeFileSync(file, transcript('a', 'b', 'c', 'd'));
  expect(await importing('--base', 'team')).toMatchObject({ entries: 1 });
  expect(await importing()).toMatchObject({ entries: 1 });
});

test('of a named file that has grown the new part alone is read, and all of it is counted', async () => {
  using home = tempHome();
  using dir = tempDir();
  const file = dir.file('transcript.jsonl');
  const words = Array.from({ length: 5_000 }, (_, i) => `word-${i}`);
  writeFileSync(file, transcript(...words.slice(0, 4_998)));
  expect(statSync(file).size).toBeGreaterThan(1024 * 1024);
  const importing = async () => JSON.parse((await home.here(['import', file, '--json'])).stdout);
  expect(await importing()).toMatchObject({ counts: { records: 4_998 } });
  // What was read of the file is another record by now: only who reads it again can find it.
  const grown = transcript(...words);
  writeFileSync(file, grown.replace('"text":"word-700"', '"text":"WORD-700"'));
  expect(await importing()).toMatchObject({
    ...{ entries: 2, sessions: 1, counts: { records: 5_000, messages: 5_000 } },
    files: [{ seen: 'grown' }],
  });
});

test('the receipt of a bundle whose session was deleted says how to bring it back', async () => {
  using home = tempHome();
  using dir = tempDir();
  using other = tempHome();
  home.session('main', user('One'));
  const { id } = JSON.parse((await home.here(['delete', 'main', '--json'])).stdout) as { id: string };
  const bundles = ['deleted.tape', 'purged.tape'].map(dir.file).map(String);
  expect((await home.here(['export', id, '-o', String(bundles[0])])).code).toBe(0);
  expect((await other.here(['import', String(bundles[0])])).stdout).toBe(
    `Imported main: 2 entries; it was deleted there, and is here (bring it back with: tape undo ${id})\n`,
  );
  expect((await other.here(['undo', id])).code).toBe(0);
  await home.here(['purge', id]);
  expect((await home.here(['export', id, '-o', String(bundles[1])])).code).toBe(0);
  using third = tempHome();
  expect((await third.here(['import', String(bundles[1])])).stdout).toBe(
    'Imported main: 4 entries; it was purged there\n',
  );
});

test('a bundle that brings nothing since its session was deleted or purged here says so', async () => {
  using home = tempHome();
  using dir = tempDir();
  home.session('main', user('One'));
  const bundle = dir.file('main.tape');
  await home.here(['export', 'main', '-o', bundle]);
  const importing = async () => (await home.here(['import', bundle])).stdout;
  expect(await importing()).toBe('main is here already: nothing to do\n');
  const { id } = JSON.parse((await home.here(['delete', 'main', '--json'])).stdout) as { id: string };
  expect(await importing()).toBe(
    `main was deleted here: nothing was imported (bring it back with: tape undo ${id})\n`,
  );
  await home.here(['purge', id]);
  expect(await importing()).toBe('main was purged here, and stays so: nothing was imported\n');
});

test.runIf(atFullSize)('a message that no entry can hold says how large it was, and is counted', async () => {
  using home = tempHome();
  using dir = tempDir();
  const file = dir.file('large.jsonl');
  writeFileSync(file, transcript('a', 'b').replace('"text":"b"', `"text":"${'x'.repeat(17 * 1024 * 1024)}"`));
  const importing = async () =>
    JSON.parse((await home.here(['import', file, '--as', 'main', '--json'])).stdout);
  expect(await importing()).toMatchObject({ entries: 3, omitted: 1, counts: { messages: 2 } });
  expect(await importing()).toMatchObject({ entries: 0, omitted: 0 });
  expect((await home.here(['log', 'main'])).stdout).toContain('[17825792 characters, too many for an entry]');
});

test.runIf(atFullSize)('so it is with a saved output that is too large to keep', async () => {
  using home = tempHome();
  using dir = tempDir();
  const session = dir.file('7d4c1f0e-52a6-4b8e-9c35-1e0f6a2b9d47');
  mkdirSync(`${session}/tool-results`, { recursive: true });
  writeFileSync(`${session}.jsonl`, transcript('a', 'b'));
  writeFileSync(`${session}/tool-results/1.txt`, Buffer.alloc(65 * 1024 * 1024, 'x'));
  const { stdout } = await home.here(['import', `${session}.jsonl`, '--json']);
  expect(JSON.parse(stdout)).toMatchObject({ entries: 4, omitted: 1 });
});

test('a dash reads the transcript from stdin', async () => {
  using home = tempHome();
  const imported = await home.tape(['import', '-', '--as', 'main', '--json'], {
    stdin: transcript('a', 'b'),
  });
  expect(JSON.parse(imported.stdout)).toMatchObject({ names: ['main'], entries: 3 });
  const more = await home.tape(['import', '-', '--as', 'main', '--json'], {
    stdin: transcript('a', 'b', 'c'),
  });
  expect(JSON.parse(more.stdout)).toMatchObject({ entries: 1 });
  const other = await home.tape(['import', '-'], { stdin: '{"type":"entry","payload":{}}\n' });
  expect(other).toMatchObject({ code: 1, stdout: '' });
  expect(other.stderr).toBe(
    "Error: cannot import 'stdin': it contains no record of Claude Code or of a session.jsonl, and is no saved session of NEXUS3\n" +
      'Hint: transcripts of Claude Code are in ~/.claude/projects\n',
  );
});

test('a bundle is imported with --yes as without it, and named where transcripts are searched for', async () => {
  using from = tempHome();
  using home = tempHome();
  using dir = tempDir();
  from.session('main', user('Hello'));
  const file = dir.file('main.tape');
  await from.here(['export', 'main', '-o', file]);
  writeFileSync(dir.file('t.jsonl'), transcript('a', 'b'));
  const why = `Left out ${file}: a bundle; import it with: tape import ${file}\n`;
  for (const args of [['--dry-run'], ['--tool', 'claude-code'], ['--since', '2h', '--yes']]) {
    const { stdout, stderr } = await home.here(['import', file, ...args]);
    expect([stdout.includes('Imported'), stderr]).toEqual([false, why]);
  }
  const { code, stdout, stderr } = await home.here(['import', dir.path, file, '--json']);
  expect([code, stderr]).toEqual([1, why]);
  expect(JSON.parse(stdout)).toMatchObject({ entries: 3, unknown: [], left_out: [{ file }] });
  expect(json(await home.here(['import', file, '--yes', '--json']))).toMatchObject({ session: 'main' });
  const both = await home.here(['import', '--yes', file, '-'], { stdin: transcript('c', 'd') });
  expect(both).toMatchObject({ code: 0, stdout: expect.stringContaining('main is here already') });
});

test('what a pipe gives is unpacked, and named as the tool has it where it is not read', async () => {
  using home = tempHome();
  const says = async (stdin: string | Uint8Array, ...args: string[]) =>
    await home.here(['import', '-', ...args], { stdin });
  const packed = { zstd: zstdCompressSync(transcript('a', 'b')), gzip: gzipSync(transcript('c', 'd')) };
  for (const [as, bytes] of Object.entries(packed))
    expect(json(await says(bytes, '--as', as, '--json'))).toMatchObject({ names: [as], entries: 3 });
  const twice = Buffer.concat([zstdCompressSync(transcript('e')), zstdCompressSync(transcript('e', 'f'))]);
  expect(json(await says(twice, '--as', 'twice', '--json'))).toMatchObject({ names: ['twice'] });
  expect((await says(packed.zstd.subarray(0, 60))).stderr).toBe(
    "Error: cannot read 'stdin': its zstd data is damaged or cut off\n",
  );
  const spread = JSON.stringify({ sessionId: 's', projectHash: 'p', messages: [] }, null, 2);
  for (const [stdin, what] of [
    ['{"type":"session_meta","payload":{"id":"x"}}\n', 'it is a Codex rollout, which is recognised and not'],
    [gzipSync('{"type":"session_meta","payload":{"id":"x"}}\n'), 'it is a Codex rollout'],
    [spread, 'it is a Gemini CLI session'],
    ['{"type":"session.start","data":{"producer":"copilot"}}\n', 'it looks like a Copilot session'],
  ] as const)
    expect((await says(stdin)).stderr).toContain(`Error: cannot import 'stdin': ${what}`);
  // The user says what it is.
  expect((await says('{"type":"session_meta","payload":{}}\n', '--format', 'claude-code')).stderr).toContain(
    'it contains no record of format claude-code',
  );
});

test.each([
  ['compressed with bzip2', 'BZh91AY&SY'],
  ['compressed with xz', '\u{fd}7zXZ\0\0'],
  ['compressed with lz4', '\u{4}"M\u{18}'],
  ['a zip archive', 'PK\u{3}\u{4}'],
  ['a 7z archive', '7z\u{bc}\u{af}\u{27}\u{1c}'],
  ['a tar archive', `${'t.jsonl'.padEnd(257, '\0')}ustar`],
])('what has to be unpacked first is named, and not read as damaged lines: %s', async (what, head) => {
  using home = tempHome();
  using dir = tempDir();
  const bytes = Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(`\n${transcript('a', 'b')}`)]);
  const why = `it is ${what}, which is not read: unpack it first`;
  const file = dir.file('t.jsonl');
  writeFileSync(file, bytes);
  for (const stdin of [bytes, gzipSync(bytes)]) {
    const { code, stderr } = await home.here(['import', '-'], { stdin });
    expect([code, stderr]).toEqual([1, `Error: cannot read 'stdin': ${why}\n`]);
  }
  expect((await home.here(['import', file])).stderr).toBe(`Error: cannot read '${file}': ${why}\n`);
  const { code, stderr } = await home.here(['import', dir.path]);
  expect([code, stderr]).toEqual([1, `Left out ${file}: ${why}\n`]);
});

test('a transcript that ends with a call is an idle session: nothing is to do, and a run may continue it', async () => {
  using home = tempHome();
  using dir = tempDir();
  const file = dir.file('pending.jsonl');
  const records = [
    { type: 'user', message: { content: 'Read auth.ts' } },
    {
      type: 'assistant',
      message: { content: [{ type: 'tool_use', id: 't1', name: 'Read', input: { file_path: 'auth.ts' } }] },
    },
  ];
  writeFileSync(file, records.map((record) => `${JSON.stringify(record)}\n`).join(''));
  expect(await home.tape(['import', file, '--as', 'old', '--json'])).toMatchObject({ code: 0 });
  expect((await home.here(['import', file, '--as', 'again'])).stdout).toContain(
    '(0 beside the conversation, 0 compactions, 1 call without a result; undo with: tape archive again)',
  );
  expect((await home.tape(['status', 'old'])).stdout).toMatch(/^old +idle +lifecycle active\n$/);
  expect((await home.tape([])).stdout).not.toContain('nterrupted');
  for (const verb of ['audit', 'check', 'verify'])
    expect(await home.tape([verb, '--json'])).toMatchObject({ code: 0 });
  expect(await home.tape(['recover', '--dry-run'])).toMatchObject({
    code: 0,
    stdout: 'Nothing to recover\n',
  });

  const answers = dir.file('answers.json');
  writeFileSync(answers, JSON.stringify([{ text: 'It was not read.' }]));
  expect(await home.tape(['run', 'old', '--model', `script:${answers}`])).toMatchObject({
    code: 0,
    stdout: 'It was not read.\n',
  });
  expect((await home.tape(['verify'])).code).toBe(0);
});

test('records of a session.jsonl become a session, which grows with the file and keeps what a compaction keeps', async () => {
  using home = tempHome();
  using dir = tempDir();
  const file = dir.file('session.jsonl');
  const message = (seq: number, role: string, text: string) => ({
    ...{ recordType: 'message', schemaVersion: 1, seq, role, content: [{ type: 'text', text }] },
    timestamp: '2026-11-21T10:00:00Z',
  });
  const first = [
    message(1, 'user', 'Plan.'),
    message(2, 'assistant', 'Planned.'),
    message(3, 'user', 'Test.'),
  ];
  const compaction = {
    ...{ recordType: 'compaction', schemaVersion: 1, seq: 4, firstKeptSeq: 3, summary: 'There is a plan.' },
    ...{ tokensBefore: 9, readFiles: ['a'], modifiedFiles: [], timestamp: '2026-11-21T10:00:01Z' },
  };
  const importing = async (records: readonly object[]) => {
    writeFileSync(file, records.map((record) => `${JSON.stringify(record)}\n`).join(''));
    return await home.tape(['import', file, '--as', 'main', '--json']);
  };
  const shown = () => {
    using store = home.open();
    return view(store.views.entries('main')).messages.map(({ content }) =>
      content.map(({ text }) => String(text)).join(' '),
    );
  };
  expect(JSON.parse((await importing(first)).stdout)).toMatchObject({ entries: 4, names: ['main'] });
  {
    // Entries of this home are between those of the file.
    using store = home.open();
    store.entries.append('main', [note('reviewed', {})]);
  }
  expect(JSON.parse((await importing([...first, compaction])).stdout)).toMatchObject({ entries: 1 });
  expect(shown()).toEqual([expect.stringMatching(/There is a plan\.[\s\S]*Test\./)]);
  expect(shown()[0]).not.toContain('Planned.');
  // A file that begins in another way is another session, whose name is taken.
  expect(JSON.parse((await importing([message(1, 'user', 'Other.')])).stdout).names).toEqual(['main-2']);

  // A bad disk or a crash leaves a line that is not JSON: it is left out, and named.
  const bad = dir.file('bad.jsonl');
  const [one, two, three] = first.map((record) => JSON.stringify(record));
  writeFileSync(bad, `${one}\n${two?.slice(0, 50)}\u0000\n${three}\n`);
  const named = await home.tape(['import', bad, '--as', 'less']);
  expect([named.code, named.stderr]).toEqual([
    0,
    expect.stringMatching(/^Left out of .*bad\.jsonl: line 2 \(byte \d+\): the line ends inside a record\n$/),
  ]);
  expect(JSON.parse((await home.tape(['import', bad, '--as', 'less', '--json'])).stdout)).toMatchObject({
    ...{ entries: 0, counts: { records: 2, skipped: 1 } },
    bad_lines: [{ line: 2, offset: expect.any(Number), why: 'the line ends inside a record' }],
  });
});

test.skipIf(process.platform === 'win32')('a file that cannot be opened is a typed error', async () => {
  using home = tempHome();
  const server = createServer().listen(home.file('socket'));
  await once(server, 'listening');
  const refused = await home.here(['import', home.file('socket'), '--json']);
  server.close();
  expect([refused.code, jsonError(refused)]).toEqual([
    1,
    expect.objectContaining({
      code: 'IMPORT_CANNOT_READ',
      data: expect.objectContaining({ file: home.file('socket') }),
    }),
  ]);
});

test.skipIf(process.platform === 'win32')('a pipe is read once, from its first byte', async () => {
  using home = tempHome();
  using dir = tempDir();
  const pipe = dir.file('pipe');
  execFileSync('mkfifo', [pipe]);
  const [, { code, stdout, stderr }] = await Promise.all([
    writeFile(pipe, transcript('a', 'b')),
    home.tape(['import', pipe, '--as', 'main', '--json']),
  ]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ names: ['main'], counts: { records: 2 } });
  expect(stderr).toContain(`Reading ${pipe}, a pipe, until the program ends that writes to it\n`);
});

test('the name of a session that is no import is not taken, unless another one beside it will do', async () => {
  using home = tempHome();
  const saved = { schema_version: 1, agent_id: 'main', permission_level: 'yolo', session_allowances: {} };
  home.session('main', user('Mine'));
  const file = home.file('other.json');
  writeFileSync(file, JSON.stringify({ ...saved, messages: [{ role: 'user', content: 'Theirs' }] }));
  const named = await home.here(['import', file, '--as', 'main', '--json']);
  expect([named.code, jsonError(named)]).toMatchObject([
    4,
    { code: 'TAPE_EXISTS', hint: 'choose another name with: --as NAME' },
  ]);
  const other = await home.here(['import', file, '--json']);
  expect([other.code, JSON.parse(other.stdout)]).toMatchObject([0, { names: ['main-2'], entries: 3 }]);
});

test('of many files with something wrong in them an import names the first, and says how many others there are', async () => {
  using home = tempHome();
  using dir = tempDir();
  for (let i = 1; i <= 25; i += 1) {
    const record = person({ uuid: `u${i}` }, 'Hello', { sessionId: `s-${i}` });
    writeFileSync(dir.file(`s-${i}.jsonl`), jsonl([record, record]));
  }
  const { stderr, code } = await home.tape(['import', dir.path, '--yes']);
  const lines = stderr.trimEnd().split('\n');
  const named = lines.filter((line) =>
    /^Irregular in .*: line 2 \(byte \d+\): its id was used before, kept beside the conversation$/.test(line),
  );
  expect([code, named.length, lines.at(-1)]).toEqual([0, 20, '… and 5 other such lines; --json has all']);
});

test('an import names what a session is beside that has not the name of its transcript', async () => {
  using home = tempHome();
  using dir = tempDir();
  const write = (name: string, ...texts: readonly string[]) => {
    // Names that differ by case alone may be one file.
    const folder = name.toLowerCase() === name ? 'small' : 'capitals';
    mkdirSync(dir.file(folder), { recursive: true });
    const records = texts.map((text, i) =>
      person({ uuid: `${name}${i}`, parent: i === 0 ? null : `${name}${i - 1}` }, text, { sessionId: name }),
    );
    const file = dir.file(`${folder}/${name}.jsonl`);
    writeFileSync(file, jsonl(records));
    return file;
  };
  const importing = async (...words: string[]) =>
    (await home.tape(['import', ...words])).stdout.trimEnd().split('\n').slice(1);
  home.session('taken', user('Mine'));
  expect(await importing(write('taken', 'Theirs'))).toEqual([
    'taken-2 is new beside taken, another session of that name',
  ]);
  const file = write('s-1', 'Hello');
  expect(await importing(file)).toEqual([]);
  {
    using store = home.open();
    store.entries.append('s-1', [user('Said here')]);
  }
  write('s-1', 'Hello', 'Said there');
  expect(await importing(file)).toEqual(['s-1-2 is new beside s-1, which goes on in another way']);
  expect(await importing(file)).toEqual([]);
  expect(await importing(write('S-1', 'In capitals'))).toEqual([
    'S-1-3 is new beside s-1, whose name differs by case or Unicode form alone',
  ]);
  for (const name of ['ta', 'tb', 'tc', 'td', 'te']) {
    home.session(name, user('Mine'));
    write(name, 'Theirs');
  }
  const all = await importing(dir.path, '--yes');
  expect(all.slice(0, 3)).toEqual(
    all.slice(0, 3).map(() => expect.stringContaining('another session of that name')),
  );
  expect(all.slice(3)).toEqual(['… and 2 other sessions']);
  expect(await importing(dir.path, '--yes')).toEqual([]);
});

test('a compressed file that a user names is refused for what it holds, and read where it is a session', async () => {
  using home = tempHome();
  using dir = tempDir();
  const says = async (bytes: Uint8Array) => {
    writeFileSync(dir.file('x.jsonl.gz'), bytes);
    const { code, stderr, stdout } = await home.here([
      'import',
      dir.file('x.jsonl.gz'),
      '--as',
      'x',
      '--json',
    ]);
    return code === 0 ? stdout : (JSON.parse(stderr) as { error: { code: string; message: string } }).error;
  };
  expect(await says(gzipSync('{"a":1}\n'))).toMatchObject({ code: 'IMPORT_UNKNOWN_FORMAT' });
  expect(await says(gzipSync('hello\n'))).toMatchObject({
    code: 'IMPORT_BAD_JSON',
    message: expect.stringMatching(/line 1, byte 0: not JSON$/),
  });
  expect(await says(zstdCompressSync('hello\n'))).toMatchObject({ code: 'IMPORT_BAD_JSON' });
  expect(await says(Buffer.from([0x1f, 0x8b, 0x08, 1, 2, 3]))).toMatchObject({
    code: 'IMPORT_CANNOT_READ',
    message: expect.stringContaining('gzip data is damaged or cut off'),
  });
  // Little compressed, and still more than is kept in memory.
  const large = gzipSync(Buffer.alloc(65 * 1024 * 1024, 'ab\n'.repeat(1000)), { level: 1 });
  expect(await says(large)).toMatchObject({ code: 'IMPORT_TOO_LARGE' });
  const content = [{ type: 'text', text: 'Hello' }];
  const record = { ...{ recordType: 'message', schemaVersion: 1, seq: 1, role: 'user' }, content };
  expect(await says(gzipSync(`${JSON.stringify(record)}\n`))).toContain('"x"');
});

test.runIf(sized(false, true, true))('a pipe without end is refused once it has given too much', async () => {
  using home = tempHome();
  const { code, stderr } = await home.tape(['import', '-', '--as', 'main', '--json'], {
    stdin: Buffer.alloc(513 * 1024 * 1024),
  });
  expect(code).toBe(1);
  expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'IMPORT_TOO_LARGE', data: { file: 'stdin' } } });
});
