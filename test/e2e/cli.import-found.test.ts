import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { processOwner } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, startTape, tapeHere } from '../support/cli.ts';
import { tapeProgram } from '../support/programs.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tempHome } from '../support/temp-home.ts';

const projects = '.claude/projects';

/** A transcript of some turns, each session at a time of its own. */
function transcript(sessionId: string, turns: number, cwd = '/srv/app'): string {
  const timestamp = `2026-01-02T03:04:05.${sessionId.replace(/\D/g, '').padStart(3, '0')}Z`;
  return Array.from({ length: turns * 2 }, (_, i) => {
    const role = i % 2 === 0 ? 'user' : 'assistant';
    return `${JSON.stringify({
      ...{ type: role, uuid: `${sessionId}-${i}`, parentUuid: i === 0 ? null : `${sessionId}-${i - 1}` },
      ...{ sessionId, cwd, isSidechain: false, timestamp },
      message: { id: `${sessionId}-m${i}`, role, content: [{ type: 'text', text: `${role} ${i}` }] },
    })}\n`;
  }).join('');
}

/** A user with these files in the home directory, and a tape home. */
function userWith(files: Readonly<Record<string, string>>) {
  const dir = tempDir();
  const home = tempHome();
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(dir.file(path)), { recursive: true });
    writeFileSync(dir.file(path), content);
  }
  const env = { HOME: dir.path };
  const says = async (...args: string[]) => {
    const { code, stdout, stderr } = await home.here(args, { env });
    return { code, stdout: stdout.replaceAll(dir.path, '~'), stderr: stderr.replaceAll(dir.path, '~') };
  };
  const imports = async (...args: string[]) => json(await home.here(['import', '--json', ...args], { env }));
  return {
    ...{ dir, home, env, says, imports, file: (path: string) => dir.file(join(projects, path)) },
    [Symbol.dispose]: () => {
      home[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
}

test('without a file, what is new on this machine is imported, once, with a line for each tool', async () => {
  using user = userWith({
    [`${projects}/a/s1.jsonl`]: transcript('s1', 2),
    [`${projects}/a/s2.jsonl`]: transcript('s2', 1),
    '.codex/sessions/r.jsonl': '{"type":"session_meta","payload":{"id":"r1"}}\n',
  });
  const dry = await user.says('import', '--dry-run');
  expect(
    dry.stdout.split('\n').map((line) =>
      line
        .split('\t')
        .map((cell) => cell.trim())
        .join(' | '),
    ),
  ).toEqual([
    expect.stringMatching(
      /^Claude Code \| 2 files \| [\d.]+ KB \| since 2026-01-02 \| 2 files to read, [\d.]+ KB$/,
    ),
    expect.stringMatching(/^Codex \| 1 file \| 46 B \| since .* \| recognised, not yet read$/),
    '',
  ]);
  expect(existsSync(user.home.file('sources.jsonl'))).toBe(false);
  expect(await user.imports()).toMatchObject({
    ...{ sessions: 2, entries: 8, names: ['s1', 's2'], left_out: [], gone: [] },
    files: [
      { session: 's1', seen: 'new', entries: 5, project: '/srv/app', counts: { messages: 4 } },
      { session: 's2', seen: 'new', entries: 3 },
    ],
  });
  expect(statSync(user.home.file('sources.jsonl')).mode & 0o777).toBe(0o600);
  expect(await user.says('import')).toEqual({
    code: 0,
    stdout: 'Claude Code: nothing new in 2 files\nCodex: 1 file, recognised and not yet read\n',
    stderr: '',
  });
  writeFileSync(user.file('a/s1.jsonl'), transcript('s1', 3));
  expect((await user.says('import')).stdout).toContain('Claude Code: 2 entries from 1 of 2 files\n');
  expect((await user.says('check')).code).toBe(0);
});

test('the first import asks on a terminal, and takes nothing without a yes', async () => {
  using user = userWith({
    [`${projects}/a/s1.jsonl`]: transcript('s1', 1),
    '.codex/sessions/r.jsonl': '{"type":"session_meta","payload":{"id":"r1"}}\n',
  });
  const typed = async (stdin: string, ...args: string[]) =>
    await user.home.here(['import', ...args], {
      env: user.env,
      stdin,
      isTerminal: true,
      stdinIsTerminal: true,
    });
  const no = await typed('n\n');
  expect(no.stderr).toMatch(/Claude Code.*Import them into \S+\? \[y\/N\] Nothing was imported\n$/s);
  expect(no.stderr).toContain(`into ${dirname(user.home.db)}?`);
  expect((await typed('')).stderr).toContain('Nothing was imported');
  const size = '[\\d.]+ K?B +since 2026-\\d\\d-\\d\\d  ';
  const aligned = new RegExp(
    `Claude Code  1 file  ${size}1 file to read, .*\nCodex        1 file  ${size}recognised`,
  );
  expect([no.stderr, (await typed('', '--dry-run')).stdout]).toEqual(
    Array(2).fill(expect.stringMatching(aligned)),
  );
  const narrow = { env: user.env, isTerminal: true, columns: 50 };
  const { stdout } = await user.home.here(['import', '--dry-run'], narrow);
  expect(stdout.match(/since 2026-\d\d-\d\d /g)).toHaveLength(2);
  expect(existsSync(user.home.db)).toBe(false);
  expect((await typed('y\n')).stdout).toMatch(/^Claude Code: 3 entries from 1 of 1 file/);
  expect((await typed('')).stderr).not.toContain('Import them');
  using other = userWith({ [`${projects}/a/s1.jsonl`]: transcript('s1', 1) });
  const yes = await other.home.here(['import', '--yes'], {
    env: other.env,
    isTerminal: true,
    stdinIsTerminal: true,
  });
  expect(yes.stderr).not.toContain('Import them');
});

test('a link that leads out of the folder is named with the way to follow it, which works', async () => {
  using user = userWith({
    [`${projects}/a/s1.jsonl`]: transcript('s1', 1),
    'disk/p/s2.jsonl': transcript('s2', 1),
  });
  symlinkSync(user.dir.file('disk/p'), user.file('b'));
  const { code, stderr } = await user.says('import');
  expect([code, stderr]).toEqual([1, expect.stringContaining(`${projects}/b: it is a link that leads out`)]);
  expect(stderr).toContain('tape import PATH, or in import.roots');
  writeFileSync(user.home.file('config.yaml'), `import:\n  roots: ['${user.file('b')}']\n`);
  expect(await user.says('import')).toEqual({
    code: 0,
    stdout: 'Claude Code: 3 entries from 1 of 2 files\n',
    stderr: '',
  });
});

test('Ctrl-C ends an import behind the conversation that it is at, and says how to go on', async () => {
  const files = Array.from({ length: 300 }, (_, i) => [
    `${projects}/a/s${i + 1}.jsonl`,
    transcript(`s${i + 1}`, 9),
  ]);
  using user = userWith(Object.fromEntries(files));
  const { child, done, until } = startTape(['import'], { env: user.env });
  await until('Created the tape home');
  child.kill('SIGINT');
  const { code, stdout, stderr } = await done;
  expect([code, stdout]).toEqual([
    130,
    expect.stringMatching(/^Claude Code: \d+ entries from (\d+) of \1 files?\n$/),
  ]);
  const left = Number(/Interrupted before (\d+) files?; go on with: tape import\n$/.exec(stderr)?.[1]);
  const taken = Number(/from (\d+) of/.exec(stdout)?.[1]);
  expect(taken + left).toBe(files.length);
  const rest = await tapeHere(['import', '--json'], { env: user.env });
  expect(json(rest)).toMatchObject({ sessions: left });
});

test('a path that cannot be followed is named with the reason', async () => {
  using user = userWith({ 'a/s1.jsonl': transcript('s1', 1) });
  const link = (name: string, to: string) => {
    symlinkSync(to, user.dir.file(name));
    return user.dir.file(name);
  };
  for (const [path, code, why] of [
    [user.dir.file('none'), 3, 'no such file or directory'],
    [join(user.dir.file('a/s1.jsonl'), 'x'), 3, 'no such file or directory'],
    [link('away.jsonl', 'nowhere'), 3, 'it is a link to what is not there'],
    [link('round.jsonl', 'round.jsonl'), 1, 'its links lead in a circle'],
  ] as const)
    for (const args of [[], ['--dry-run']])
      expect(await user.says('import', path, ...args)).toMatchObject({
        ...{ code, stdout: '', stderr: expect.stringContaining(`': ${why}\n`) },
      });
});

test('a named path that is not there keeps no folder that is named beside it from being imported', async () => {
  using user = userWith({ 'a/s1.jsonl': transcript('s1', 1) });
  const [folder, none] = [user.dir.file('a'), user.dir.file('none')];
  const why = `Left out ~/none: no such file or directory\n`;
  expect(await user.says('import', folder, none, '--dry-run')).toMatchObject({ code: 1, stderr: why });
  const said = await user.says('import', none, folder);
  expect(said).toMatchObject({ code: 1, stdout: expect.stringContaining(' from 1 of 1 file') });
  expect(said.stderr).toContain(why);
  expect(await user.says('import', none, `${none}-2`, '--yes')).toMatchObject({ code: 3, stdout: '' });
});

test('a dry run of named files says what their import says, ends as it ends, and writes nothing', async () => {
  const line = (text: string) => `${JSON.stringify({ kind: 'message', text })}\n`;
  using user = userWith({
    ...Object.fromEntries(
      ['s1', 's2', 's3', 's4', 's5-draft'].map((one) => [`a/${one}.jsonl`, transcript(one, 1)]),
    ),
    'a/empty.jsonl': '',
    'a/other.jsonl': line('of no tool'),
    'a/bad.jsonl': `${transcript('s6', 2)}{"type": oops}\n`,
    'a/late.jsonl': transcript('s7', 1) + transcript('s7', 2, '/secret/app').split('\n').slice(2).join('\n'),
  });
  const at = (name: string) => user.dir.file(`a/${name}.jsonl`);
  const named = ['none', 's1', 's2', 's3', 's4', 's5-draft', 'empty', 'other', 'bad', 'late', 'late'].map(at);
  // Without a home, too.
  const first = await user.says('import', '--dry-run', at('s1'), '--quiet');
  expect([first.stdout, existsSync(user.home.db)]).toEqual(['~/a/s1.jsonl\n', false]);
  await user.imports(...['s1', 's2', 's3', 's4'].map(at));
  for (const args of [
    ['delete', 's2'],
    ['purge', 's3'],
    ['import', '--forget', 's4'],
  ])
    expect((await user.says(...args)).code).toBe(0);
  await user.says('config', 'set', 'import.exclude', '["*-draft.jsonl", "/secret/"]');
  const written = () => [user.home.db, user.home.file('sources.jsonl')].map((file) => readFileSync(file));
  const codes: number[] = [];
  for (const files of [...named.map((one) => [one]), named, named.toReversed()]) {
    const before = written();
    const dry = await user.says('import', '--dry-run', ...files);
    expect(written()).toEqual(before);
    const done = await user.says('import', ...files);
    expect([dry.code, dry.stderr]).toEqual([done.code, done.stderr]);
    codes.push(dry.code);
  }
  expect(codes).toEqual([3, 0, 4, 4, 1, 1, 1, 1, 0, 1, 1, expect.any(Number), expect.any(Number)]);
  expect((await user.says('import', '--dry-run', at('s1'), '--quiet')).stdout).toBe('');
  expect((await user.says('import', '--dry-run', at('s1'), '--as', 'x', '--quiet')).stdout).toBe(
    first.stdout,
  );
  writeFileSync(at('s1'), transcript('s1', 2));
  const { files, left_out } = json(
    await user.home.here(['import', '--dry-run', '--json', at('s1'), at('s2')], { env: user.env }),
  );
  expect([files, left_out]).toMatchObject([
    [{ file: at('s1'), new: true }],
    [{ file: at('s2'), why: expect.stringMatching(/^it was deleted here; /) }],
  ]);
});

test('a folder of import.roots that is missing is named with one exit code, in a dry run, too', async () => {
  using user = userWith({ [`${projects}/a/s1.jsonl`]: transcript('s1', 1) });
  writeFileSync(user.home.file('config.yaml'), `import:\n  roots: ['${user.dir.file('backup')}']\n`);
  const line = expect.stringMatching(/^Left out ~\/backup: .* \(import\.roots of .*\)$/m);
  for (const args of [['--dry-run'], ['--yes']])
    expect(await user.says('import', ...args)).toMatchObject({ code: 1, stderr: line });
});

test('a file that is named, and left out by an option, is said to be found, and where its session was', async () => {
  using user = userWith({ 'a/s1.jsonl': transcript('s1', 1), 'a/s2.jsonl': transcript('s2', 1) });
  const one = '1 file left out by --project: ~/a/s1.jsonl, whose session was in /srv/app\n';
  const narrow = ['--project', '/srv/other'];
  const file = user.dir.file('a/s1.jsonl');
  expect(await user.says('import', file, ...narrow)).toEqual({
    code: 0,
    stdout: 'Nothing to import\n',
    stderr: one,
  });
  expect(await user.says('import', file, ...narrow, '--dry-run')).toEqual({
    code: 0,
    stdout: one,
    stderr: '',
  });
  for (const args of [narrow, [...narrow, '--dry-run']])
    expect(await user.imports(file, ...args)).toMatchObject({
      ...{ files: [], left_out: [{ file, why: 'left out by --project: its session was in /srv/app' }] },
    });
  const both = await user.says('import', user.dir.file('a'), '--tool', 'codex', ...narrow);
  expect(both.stderr).toBe(
    '2 files left out by --tool and --project, such as ~/a/s1.jsonl, whose session was in /srv/app\n',
  );
  expect((await user.says('import', ...narrow)).stderr).toMatch(/^Looked in /);
});

test('where nothing is found, the import says where it looked, and how to name another place', async () => {
  using user = userWith({ 'backup/note.txt': '' });
  const looked = /^Looked in (.*); name another place with: tape import PATH, or import\.roots/;
  const said = await user.says('import');
  expect(said).toMatchObject({ code: 0, stdout: 'No transcripts found\n' });
  expect(looked.exec(said.stderr)?.[1]).toBe(`~/${projects}`);
  writeFileSync(user.home.file('config.yaml'), `import:\n  roots: ['${user.dir.file('backup')}']\n`);
  mkdirSync(user.file('a'), { recursive: true });
  writeFileSync(user.file('a/s1.jsonl'), transcript('s1', 1));
  const narrowed = await user.says('import', '--dry-run', '--project', '/srv/other', '--since', '2h');
  const where = `~/${projects}, ~/backup, for what --project and --since name alone`;
  expect(looked.exec(narrowed.stderr)?.[1]).toBe(where);
  expect((await user.says('check')).stderr).toContain('tape import');
});

test('the line of a tool counts the edges that were concluded, and files without content are counted', async () => {
  const [first = '', second = ''] = transcript('s1', 1).split('\n');
  const cleared = JSON.stringify({
    ...JSON.parse(first),
    uuid: 's1-9',
    timestamp: '2026-01-03T03:04:05.000Z',
  });
  using user = userWith({
    [`${projects}/a/s1.jsonl`]: `${[first, second, cleared].join('\n')}\n`,
    [`${projects}/a/s2.jsonl`]: '',
  });
  const { stdout, stderr } = await user.says('import');
  expect(stdout).toMatch(
    /^Claude Code: \d+ entries from 1 of 1 file, 1 derived edge \(tape log --derived\)\n$/,
  );
  expect(stderr).toContain('1 file without content\n');
  expect((await user.says('log', '--derived')).stdout).toContain('(clear)');
  // An option that would select entries is refused, and does not look as if it had selected edges.
  for (const option of [['--where', 'branch=x'], ['--since', '2h'], ['--oneline']])
    expect((await user.home.here(['log', '--derived', ...option])).stderr).toContain(
      `cannot use --derived with ${option[0]}`,
    );
});

test('an import counts the edges that it concludes, of one file or between several, and none of an earlier one', async () => {
  const lost = (uuid: string) =>
    transcript('s1', 1).replaceAll('s1-', uuid).replace('"parentUuid":null', '"parentUuid":"gone"');
  using user = userWith({ [`${projects}/a/s1.jsonl`]: transcript('s1', 1) + lost('s1-x') });
  const edges = async () => (await user.says('log', '--derived')).stdout.trim().split('\n').length;
  expect([await user.imports(), await edges()]).toMatchObject([{ derived: 1 }, 1]);
  appendFileSync(user.file('a/s1.jsonl'), lost('s1-y'));
  expect([await user.imports(), await edges()]).toMatchObject([{ derived: 1 }, 2]);
  writeFileSync(user.file('a/s5.jsonl'), transcript('s1', 1).replaceAll('s1', 's5'));
  expect([await user.imports(), await edges()]).toMatchObject([{ derived: 1 }, 3]);
  const title = JSON.stringify({ type: 'custom-title', customTitle: 'More', sessionId: 's1' });
  appendFileSync(user.file('a/s1.jsonl'), `${title}\n`);
  expect([await user.imports(), await edges()]).toMatchObject([{ entries: 1, derived: 0 }, 3]);
  const other = lost('s9-z').replaceAll('s1', 's9');
  const piped = async () => json(await user.home.here(['import', '-', '--json'], { stdin: other }));
  expect([await piped(), await edges()]).toMatchObject([{ derived: 1 }, 4]);
  const listed = async (...args: string[]) => (await user.says('log', '--derived', ...args)).stdout;
  const rows = (await listed()).trim().split('\n');
  for (const n of [0, 2, 9])
    expect((await listed('-n', String(n))).match(/.+/g) ?? []).toEqual(n === 0 ? [] : rows.slice(-n));
  expect(await piped()).toMatchObject({ derived: 0 });
});

test('a file that was moved, compressed or copied brings nothing twice, and one that is gone leaves its session', async () => {
  using user = userWith({
    ...{ [`${projects}/a/s1.jsonl`]: transcript('s1', 1), [`${projects}/a/s2.jsonl`]: transcript('s2', 1) },
    ...{ [`${projects}/a/s3.jsonl`]: transcript('s3', 1), [`${projects}/a/s4.jsonl`]: transcript('s4', 1) },
  });
  await user.imports();
  mkdirSync(user.file('b'));
  renameSync(user.file('a/s1.jsonl'), user.file('b/s1.jsonl'));
  writeFileSync(user.file('a/s2.jsonl.zst'), zstdCompressSync(readFileSync(user.file('a/s2.jsonl'))));
  rmSync(user.file('a/s2.jsonl'));
  cpSync(user.file('a/s3.jsonl'), user.file('b/s3.jsonl'));
  rmSync(user.file('a/s4.jsonl'));
  const after = await user.imports();
  const gone = user.file('a/s4.jsonl');
  expect(after).toMatchObject({ entries: 0, left_out: [], gone: [gone], gone_sessions: ['s4'] });
  expect(
    (after.files as { session: string; seen: string }[]).map(({ session, seen }) => [session, seen]),
  ).toEqual([
    ['s2', 'compressed'],
    ['s3', 'unchanged'],
    ['s3', 'copied'],
    ['s1', 'moved'],
  ]);
  expect((await user.says('sessions', '--quiet')).stdout.split('\n').toSorted()).toEqual([
    '',
    's1',
    's2',
    's3',
    's4',
  ]);
  expect(await user.imports()).toMatchObject({ gone: [], gone_sessions: [], entries: 0 });
});

test.each([
  ['its file is known', { isLost: false, isNamed: false }],
  ['the last import was killed before it had recorded that', { isLost: true, isNamed: false }],
  ['each file is named', { isLost: false, isNamed: true }],
])(
  'a copy shares what its source has got since the last import, whichever is found first: %s',
  async (_, { isLost, isNamed }) => {
    using at = userWith({ [`${projects}/-srv-app/s2.jsonl`]: transcript('s2', 2) });
    await at.imports('--yes');
    if (isLost) rmSync(join(at.home.path, 'sources.jsonl'));
    const grown = transcript('s2', 6);
    writeFileSync(at.file('-srv-app/s2.jsonl'), grown);
    const copied = grown
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const own = { ...copied[0], uuid: 's1-own', parentUuid: 's2-11', sessionId: 's1' };
    const copy = copied.map((one) => ({
      ...one,
      sessionId: 's1',
      forkedFrom: { sessionId: 's2', messageUuid: one.uuid },
    }));
    const text = [...copy, own].map((one) => `${JSON.stringify(one)}\n`).join('');
    writeFileSync(at.file('-srv-app/s1.jsonl'), text);
    const named = isNamed ? ['s1', 's2'].map((one) => at.file(`-srv-app/${one}.jsonl`)) : [];
    const said = await at.home.here(['import', '--json', ...named], { env: at.env });
    const all: readonly { files: readonly { session: string }[] }[] = [JSON.parse(said.stdout)].flat();
    // What is said of them has the order in which they were found, or named.
    expect(all.flatMap(({ files }) => files.map(({ session }) => session))).toEqual(['s1', 's2']);
    const shown = await at.home.here(['log', 's1', '--json'], { env: at.env });
    const entries = json(shown) as unknown as readonly {
      kind: string;
      tape: string;
      meta: { uuid: string };
    }[];
    const its = entries.filter(({ kind, tape }) => kind === 'message' && tape.endsWith(':s1'));
    expect(its.map(({ meta }) => meta.uuid)).toEqual(['s1-own']);
  },
);

test('a file in a folder that cannot be entered for a while is not said to be gone', async () => {
  using user = userWith({ [`${projects}/a/s1.jsonl`]: transcript('s1', 1) });
  await user.imports();
  renameSync(user.file('a'), user.dir.file('aside'));
  // Also for root, whom no permission keeps out.
  symlinkSync('a', user.file('a'));
  expect(await user.imports()).toMatchObject({ gone: [], gone_sessions: [] });
  unlinkSync(user.file('a'));
  expect(await user.imports()).toMatchObject({ gone_sessions: ['s1'] });
});

test('a session of which no file has anything more is marked where it is shown, until its file is back', async () => {
  using user = userWith({
    ...{ [`${projects}/a/s1.jsonl`]: transcript('s1', 1), [`${projects}/a/s2.jsonl`]: transcript('s2', 1) },
    'more/s2.jsonl': transcript('s2', 1),
  });
  await user.imports();
  await user.imports(user.dir.file('more'));
  for (const name of ['s1', 's2']) renameSync(user.file(`a/${name}.jsonl`), user.dir.file(name));
  expect(await user.imports()).toMatchObject({ gone_sessions: ['s1'] });
  const shown = async () => {
    const json = await Promise.all(
      [['sessions'], ['show', 's1'], ['graph', 's1']].map(
        async (words) => (await user.home.here([...words, '--json'], { env: user.env })).stdout,
      ),
    );
    const words = await Promise.all(
      [['sessions'], ['show', 's1'], ['graph'], ['graph', '--format', 'dot']].map(
        async (line) => (await user.says(...line)).stdout,
      ),
    );
    return { json, words: words.map((text) => text.match(/source.gone/g)?.length ?? 0) };
  };
  const { json: gone, words } = await shown();
  for (const text of gone) expect(text.split(`"source_gone":"${user.file('a/s1.jsonl')}"`)).toHaveLength(2);
  expect(words).toEqual([1, 1, 1, 1]);
  renameSync(user.dir.file('s1'), user.file('a/s1.jsonl'));
  expect(await user.imports()).toMatchObject({ entries: 0, gone: [] });
  const back = await shown();
  expect([back.json.join(''), back.words]).toEqual([
    expect.not.stringContaining('source_gone'),
    [0, 0, 0, 0],
  ]);
  // It can go again.
  rmSync(user.file('a/s1.jsonl'));
  expect(await user.imports()).toMatchObject({ gone_sessions: ['s1'] });
});

test('a subagent is marked when its own file is gone, with its transcript or without, and not with that alone', async () => {
  const about = { sessionId: 's1', cwd: '/srv/app' };
  const lines = (...records: readonly object[]) =>
    records.map((one) => `${JSON.stringify({ ...about, ...one })}\n`).join('');
  const call = { type: 'tool_use', id: 't1', name: 'Agent', input: {} };
  const result = { type: 'tool_result', tool_use_id: 't1', content: 'done' };
  const agent = (uuid: string, parentUuid: string | null, role: string) => ({
    ...{ type: role, uuid, parentUuid, isSidechain: true, agentId: 'x' },
    message: { id: uuid, role, content: uuid },
  });
  using user = userWith({
    [`${projects}/a/s1.jsonl`]: lines(
      { type: 'user', uuid: 'u1', parentUuid: null, message: { role: 'user', content: 'Go' } },
      {
        type: 'assistant',
        uuid: 'a1',
        parentUuid: 'u1',
        message: { id: 'm1', role: 'assistant', content: [call] },
      },
      { type: 'user', uuid: 'u2', parentUuid: 'a1', message: { role: 'user', content: [result] } },
    ),
    // A prompt of its own was typed anew.
    [`${projects}/a/s1/subagents/agent-x.jsonl`]: lines(
      ...[agent('x1', null, 'user'), agent('x2', 'x1', 'assistant')],
      ...['x3', 'x5'].flatMap((id) => [agent(id, 'x2', 'user'), agent(`${id}-a`, id, 'assistant')]),
    ),
  });
  const { names } = await user.imports();
  expect(names).toEqual(['s1', 'agent-x', expect.stringContaining('agent-x-')]);
  const [main, file] = [user.file('a/s1.jsonl'), user.file('a/s1/subagents/agent-x.jsonl')];
  renameSync(main, user.dir.file('s1'));
  expect(await user.imports()).toMatchObject({ gone: [main], gone_sessions: ['s1'] });
  renameSync(file, user.dir.file('x'));
  expect(await user.imports()).toMatchObject({
    gone: [file],
    gone_sessions: expect.arrayContaining((names as string[]).slice(1)),
  });
  renameSync(user.dir.file('s1'), main);
  renameSync(user.dir.file('x'), file);
  expect(await user.imports()).toMatchObject({ entries: 0, gone: [] });
  const marked = async () =>
    (await user.home.here(['sessions', '--all', '--json'], { env: user.env })).stdout.split(
      `"source_gone":"${file}"`,
    ).length - 1;
  expect(await marked()).toBe(0);
  // Its transcript says nothing of it.
  renameSync(file, user.dir.file('x'));
  const agents = { gone_sessions: expect.arrayContaining((names as string[]).slice(1)) };
  const alone = await user.imports();
  expect(alone).toMatchObject({ gone: [file], ...agents });
  expect(alone.gone_sessions).toHaveLength(2);
  expect(await marked()).toBe(2);
  const more = { type: 'user', uuid: 'u3', parentUuid: 'u2', message: { role: 'user', content: 'More' } };
  appendFileSync(main, lines(more));
  expect(await user.imports()).toMatchObject({ entries: 1, gone: [] });
  expect(await marked()).toBe(2);
  renameSync(user.dir.file('x'), file);
  expect(await user.imports()).toMatchObject({ entries: 0, gone: [] });
  expect(await marked()).toBe(0);
  expect((await user.says('sessions', '--json')).stdout).not.toContain('source_gone');
});

test('the files that stand beside a transcript count as taken with it', async () => {
  const agent = {
    sessionId: 's1',
    isSidechain: true,
    agentId: 'x',
    type: 'user',
    uuid: 'x1',
    parentUuid: null,
  };
  using user = userWith({
    [`${projects}/a/s1.jsonl`]: transcript('s1', 1),
    [`${projects}/a/s1/subagents/agent-x.jsonl`]: `${JSON.stringify({ ...agent, message: { role: 'user', content: 'Look' } })}\n`,
    [`${projects}/a/s1/subagents/agent-x.meta.json`]: '{"agentType":"x"}',
    [`${projects}/a/s1/tool-results/t.txt`]: 'output',
  });
  expect((await user.says('import')).stdout).toMatch(/^Claude Code: \d+ entries from 4 of 4 files\b/);
  expect((await user.says('import')).stdout).toBe('Claude Code: nothing new in 4 files\n');
});

test('what cannot be read is listed with its reason, keeps no other from it, and gives exit code 1', async () => {
  using user = userWith({
    [`${projects}/a/bad.jsonl`]: 'nonsense\n',
    [`${projects}/a/s1.jsonl`]: transcript('s1', 1),
    'more/.copilot/x.jsonl': '{"type":"session.start","data":{}}\n',
  });
  const said = await user.says('import');
  expect(said).toMatchObject({ code: 1, stdout: 'Claude Code: 3 entries from 1 of 1 file\n' });
  expect(said.stderr).toMatch(/Left out ~\/.claude\/projects\/a\/bad.jsonl: line 1, byte 0: /);
  // A file that the user names, of a tool that is not known, was left out too.
  expect(await user.says('import', user.dir.file('more'))).toMatchObject({
    code: 1,
    stderr: 'Left out ~/more/.copilot/x.jsonl: looks like a Copilot session: not known\n',
  });
  // So it is where it is the only one that is named.
  const alone = await user.says('import', user.dir.file('more/.copilot/x.jsonl'));
  expect([alone.code, alone.stderr]).toEqual([
    1,
    expect.stringContaining("x.jsonl': it looks like a Copilot session, which is not known\n"),
  ]);
  expect((await user.says('import', user.dir.file('none'), '--yes')).code).toBe(3);
  mkdirSync(user.dir.file('nothing'));
  expect(await user.says('import', user.dir.file('nothing'))).toMatchObject({
    ...{ code: 0, stdout: 'No transcripts found\n' },
  });
  expect((await user.says('import', '--as', 'x')).code).toBe(2);
  expect(await user.says('import', '--since', 'nonsense')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('2h or yesterday'),
  });
});

test('what an import keeps of a large transcript is part of the home, and no file that the check does not know', async () => {
  using user = userWith({ [`${projects}/a/s1.jsonl`]: transcript('s1', 800) });
  expect((await user.says('import')).code).toBe(0);
  expect(readdirSync(user.home.file('sources.jsonl.ends'))).toHaveLength(1);
  const { findings } = json<{ findings: readonly unknown[] }>(
    await user.home.here(['doctor', '--json'], { env: user.env }),
  );
  expect(findings).toEqual([]);
});

test('where that cannot be kept, a transcript is imported all the same, and when it has grown', async () => {
  using user = userWith({
    [`${projects}/a/s1.jsonl`]: transcript('s1', 1),
    [`${projects}/a/s2.jsonl`]: transcript('s2', 800),
  });
  writeFileSync(user.home.file('sources.jsonl.ends'), 'Mine');
  expect(await user.imports()).toMatchObject({ names: ['s1', 's2'], left_out: [] });
  writeFileSync(user.file('a/s2.jsonl'), transcript('s2', 801));
  expect(await user.imports()).toMatchObject({ names: ['s2'], entries: 2 });
  expect(readFileSync(user.home.file('sources.jsonl.ends'), 'utf8')).toBe('Mine');
});

test('folders and patterns of config.yaml say where to look and what to leave out', async () => {
  using user = userWith({
    [`${projects}/a/s1.jsonl`]: transcript('s1', 1, '/secret/app'),
    [`${projects}/a/s2.jsonl`]: transcript('s2', 1),
    'more/s3.jsonl': transcript('s3', 1),
  });
  for (const [key, value] of [
    ['import.roots', '["~/more"]'],
    ['import.exclude', '["/secret/"]'],
  ] as const)
    expect((await user.says('config', 'set', key, value)).code).toBe(0);
  expect(await user.imports('--dry-run')).toMatchObject({
    excluded: 1,
    files: [{ session: 's2' }, { session: 's3' }],
  });
  expect((await user.says('config', 'set', 'import.roots', '["~/mroe"]')).code).toBe(0);
  const { code, stderr: said } = await user.says('import');
  expect(code).toBe(1);
  expect(said).toContain('Left out ~/mroe: it is gone, or a link to what is not there (import.roots of /');
  expect((await user.says('config', 'set', 'import.roots', '7')).stderr).toContain(
    'it must be a list of texts',
  );
  expect((await user.says('config', 'set', 'import.files', '[]')).code).toBe(2);
});

test.each([
  ["import:\n  exclude: '*-draft.jsonl'\n", 2, 'import.exclude must be a list of texts'],
  ["import:\n  excludes: ['*-draft.jsonl']\n", 2, "no such field 'import.excludes'"],
  ['import:\n  exclude: [5]\n', 2, 'import.exclude must be a list of texts'],
  ['import:\n  exclude:\n    - a\n    - 5\n', 4, 'import.exclude must be a list of texts'],
  ['import:\n  roots: ~/backup\n', 2, 'import.roots must be a list of texts'],
  ['import:\n  exclude: [a]\n  roots:\n    - b\n    - {c: d}\n', 5, 'import.roots must be a list of texts'],
  ["import:\n  roots:\n    - ''\n", 3, 'import.roots has an empty text, which names no directory'],
  ['import:\n  rots: [~/backup]\n', 2, "no such field 'import.rots'"],
  ["import: ['*-draft.jsonl']\n", 1, 'import must be a mapping'],
  ["improt:\n  exclude: ['*-draft.jsonl']\n", 1, "no such field 'improt'"],
] as const)(
  'a mistake in what to leave out imports nothing, and is refused where it stands, as tape config does: %j',
  async (yaml, line, why) => {
    using user = userWith({ [`${projects}/a/s1-draft.jsonl`]: transcript('s1', 1) });
    user.home.session('main');
    writeFileSync(user.home.file('config.yaml'), yaml);
    const { stderr } = await user.says('config');
    expect(stderr).toContain(`line ${line}: ${why}`);
    const file = user.file('a/s1-draft.jsonl');
    for (const args of [['--yes'], ['--dry-run'], [dirname(file)], [file]])
      expect(await user.says('import', ...args)).toMatchObject({ code: 2, stdout: '', stderr });
    expect(await user.says('check', '--fix')).toMatchObject({ code: 2, stdout: '', stderr });
    expect(json(await user.says('sessions', '--json'))).toMatchObject([{ session: 'main' }]);
  },
);

test('a conversation that is forgotten loses its content, and is not taken again under any path', async () => {
  using user = userWith({
    [`${projects}/a/s1.jsonl`]: transcript('s1', 1),
    [`${projects}/a/s2.jsonl`]: transcript('s2', 1),
  });
  await user.imports();
  expect(await user.imports('--forget', user.file('a/s1.jsonl'), '--dry-run')).toMatchObject({
    entries: 2,
    names: ['s1'],
  });
  expect((await user.says('log', 's1')).stdout).toContain('user 0');
  expect(await user.imports('--forget', user.file('a/s1.jsonl'))).toEqual({
    ...{ forgotten: [user.file('a/s1.jsonl')], names: ['s1'], entries: 2 },
    ...{ quoted_by: [], log_emptied: true },
  });
  expect((await user.says('log', 's1')).stdout).not.toContain('user 0');
  writeFileSync(user.file('a/s1.jsonl'), transcript('s1', 4));
  writeFileSync(user.file('a/copy.jsonl'), transcript('s1', 4));
  expect(await user.imports()).toMatchObject({ entries: 0, files: [{ session: 's2' }] });
  expect((await user.says('log', 's2')).stdout).toContain('user 0');
  expect((await user.says('import', '--forget', 'nothing')).code).toBe(3);
});

test.skipIf(process.platform === 'win32')(
  'a session of more files than the system opens for a process is imported, and keeps no other from it',
  () => {
    const outputs = Array.from({ length: 300 }, (_, i) => [
      `${projects}/a/s1/tool-results/${i}.txt`,
      `output ${i}`,
    ]);
    using user = userWith({
      ...Object.fromEntries(outputs),
      [`${projects}/a/s1.jsonl`]: transcript('s1', 1),
      [`${projects}/a/s2.jsonl`]: transcript('s2', 1),
    });
    const words = [tapeProgram, 'import', '--quiet', '--home', user.home.path];
    const limited = ['-c', 'ulimit -n 200 && exec "$@"', 'sh', process.execPath, ...words];
    const env = { ...process.env, ...user.env };
    expect(spawnSync('sh', limited, { env, encoding: 'utf8' })).toMatchObject({
      status: 0,
      stdout: 's1\ns2\n',
    });
  },
);

test('each import counts what patterns leave out and what was forgotten, each for itself', async () => {
  const files = ['s1', 's2', 'd1', 'd2', 'd3'].map((one) => [
    `${projects}/a/${one}.jsonl`,
    transcript(one, 1),
  ]);
  using user = userWith({ ...Object.fromEntries(files), [`${projects}/.tapeignore`]: 'd*.jsonl\n' });
  const counts = async (...args: string[]) => {
    const { excluded, forgotten, left_out } = await user.imports(...args);
    return [excluded, forgotten, (left_out as object[]).length];
  };
  // The first one says what was found, too.
  expect((await user.says('import')).stderr.match(/3 left out by patterns/g)).toHaveLength(1);
  expect(await counts()).toEqual([3, 0, 0]);
  expect(await user.says('import')).toMatchObject({
    ...{ code: 0, stdout: 'Claude Code: nothing new in 2 files\n', stderr: '3 left out by patterns\n' },
  });
  await user.imports('--forget', 's1');
  const both = '3 left out by patterns\n1 file left out as forgotten\n';
  expect((await user.says('import')).stderr).toBe(both);
  expect((await user.says('import', '--dry-run')).stdout).toContain(both);
  expect(await counts()).toEqual([3, 1, 1]);
  expect(await counts('--dry-run')).toEqual([3, 1, 1]);
});

test('a file of another tool, or of none, is named as that, in the folder of Claude Code too', async () => {
  using user = userWith({
    [`${projects}/a/r.jsonl`]: '{"type":"session_meta","payload":{"id":"r1"}}\n',
    [`${projects}/a/chat.jsonl`]: '{"role":"user","content":"hi"}\n',
  });
  const [chat, rollout] = [user.file('a/chat.jsonl'), user.file('a/r.jsonl')];
  const ofNone = '1 file of no tool that is known: ~/.claude/projects/a/chat.jsonl\n';
  for (const args of [[], ['--dry-run'], [user.dir.file(projects)]])
    expect(await user.imports(...args)).toMatchObject({
      tools: [{ tool: 'codex', read: false, files: 1 }],
      unknown: [{ file: chat }],
    });
  expect(await user.says('import')).toEqual({
    ...{ code: 0, stdout: 'Codex: 1 file, recognised and not yet read\n', stderr: ofNone },
  });
  expect((await user.says('import', '--dry-run')).stdout).toMatch(/^Codex\t1 file\t.*\n/);
  expect((await user.says('import', '--dry-run')).stdout).toContain(ofNone);
  const named = await user.imports(user.dir.file(projects));
  expect(named.left_out).toEqual([
    { file: rollout, why: 'a Codex rollout: recognised, not yet read' },
    { file: chat, why: 'its records are of no tool that is known' },
  ]);
  expect((await user.says('import', user.dir.file(projects))).code).toBe(1);
});

test('a session that was deleted or is in use takes nothing, and keeps no other from it', async () => {
  const names = ['s1', 's2', 's3', 's4'];
  const files = names.map((one) => [`${projects}/a/${one}.jsonl`, transcript(one, 1)] as const);
  using user = userWith(Object.fromEntries(files));
  await user.imports();
  expect((await user.says('archive', 's1')).code).toBe(0);
  expect((await user.says('delete', 's2')).code).toBe(0);
  for (const one of names) writeFileSync(user.file(`a/${one}.jsonl`), transcript(one, 2));
  {
    using store = user.home.open();
    const lease = store.leases.acquire('s3', processOwner('holder'));
    const said = await user.says('import');
    expect(said).toMatchObject({ code: 1, stdout: 'Claude Code: 4 entries from 2 of 4 files, 2 left out\n' });
    expect(said.stderr).toMatch(/s2.jsonl: .*deleted here; bring it back with: tape undo [0-9A-Z]{26}\n/);
    expect(said.stderr).toMatch(/s3.jsonl: .*; wait until it is idle with: tape wait s3/);
    // An archived session goes on, and stays where it is.
    expect(store.sessions.find('s1')).toMatchObject({ lifecycle: 'archived' });
    store.leases.release(lease);
  }
  // What the user did to a session is no failure of an import.
  const { code, stderr } = await user.says('import');
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^Left out .*s2.jsonl: .*tape undo .*\n$/)]);
  const id = /tape undo (\w+)/.exec(stderr)?.[1] ?? '';
  expect((await user.says('undo', id)).code).toBe(0);
  expect(await user.imports()).toMatchObject({ entries: 2, left_out: [] });
});

test('a session that was purged here is named with the way to take it again', async () => {
  using user = userWith({ [`${projects}/a/s1.jsonl`]: transcript('s1', 1) });
  await user.imports();
  expect((await user.says('purge', 's1')).code).toBe(0);
  const file = user.file('a/s1.jsonl');
  writeFileSync(file, transcript('s1', 2));
  const hint = 'take it again under another name with: --as NAME';
  expect((await user.says('import')).stderr).toContain(`s1.jsonl: it was purged here; ${hint}\n`);
  expect((await user.says('import', file)).stderr).toContain(`it was purged here\nHint: ${hint}\n`);
  expect((await user.says('import', file, '--as', 's2')).code).toBe(0);
});

test('a branch that was purged here is named where its file is, though that has not changed since', async () => {
  const said = (uuid: string, parentUuid: string | null, role: string) =>
    `${JSON.stringify({
      ...{ type: role, uuid, parentUuid, sessionId: 's1', cwd: '/srv/app', isSidechain: false },
      message: { id: `m-${uuid}`, role, content: [{ type: 'text', text: uuid }] },
    })}\n`;
  const lines = [said('u1', null, 'user'), said('a1', 'u1', 'assistant')];
  for (const n of [2, 3]) lines.push(said(`u${n}`, 'a1', 'user'), said(`a${n}`, `u${n}`, 'assistant'));
  using user = userWith({ [`${projects}/a/s1.jsonl`]: lines.join('') });
  await user.imports();
  expect((await user.says('purge', 's1-branch-u2')).code).toBe(0);
  for (const args of [['--dry-run'], []]) {
    const { code, stderr } = await user.says('import', user.file('a/s1.jsonl'), ...args);
    expect(stderr).toMatch(/^Left out s1-branch-u2 .*it was purged here; .*--as NAME\n$/);
    expect(code).toBe(1);
  }
});

test.each(['s1', 's1-branch-u2'])(
  'a file whose session %s was deleted is read when it changes or that is back, and named each time',
  async (name) => {
    const said = (uuid: string, parentUuid: string | null, role: string) =>
      `${JSON.stringify({
        ...{ type: role, uuid, parentUuid, sessionId: 's1', cwd: '/srv/app', isSidechain: false },
        message: { id: `m-${uuid}`, role, content: [{ type: 'text', text: uuid }] },
      })}\n`;
    const turn = (n: number, parent: string | null) =>
      said(`u${n}`, parent, 'user') + said(`a${n}`, `u${n}`, 'assistant');
    const text = turn(1, null) + turn(2, 'a1') + turn(3, 'a1');
    using user = userWith({ [`${projects}/a/s1.jsonl`]: text });
    await user.imports();
    expect((await user.says('delete', name)).code).toBe(0);
    writeFileSync(user.file('a/s1.jsonl'), text + turn(4, 'a3'));
    const imported = async (...args: string[]) => {
      const { files, left_out } = await user.imports(...args);
      return [Object.keys((files as object[])[0] ?? {}).includes('counts'), left_out];
    };
    const out = { session: name, why: expect.stringMatching(/^it was deleted here; bring it back with/) };
    // It takes the branches with it.
    const all = expect.arrayContaining([expect.objectContaining(out)]);
    expect(await imported()).toEqual([true, all]);
    for (const args of [[], ['--dry-run'], []]) expect(await imported(...args)).toEqual([false, all]);
    const { code, stderr } = await user.says('import', '--dry-run');
    expect([code, stderr]).toEqual([0, (await user.says('import')).stderr]);
    expect((await user.says('import', '--dry-run')).stdout).toContain('0 files to read');
    const folder = user.file('a');
    for (const args of [[folder, '--dry-run'], [folder]])
      expect((await user.says('import', ...args)).code).toBe(1);
    expect((await user.says('undo', /tape undo (\w+)/.exec(stderr)?.[1] ?? '')).code).toBe(0);
    expect(await imported('--dry-run')).toEqual([false, []]);
    expect(await imported()).toEqual([true, []]);
    expect(await imported()).toEqual([false, []]);
  },
);

test('a branch that was deleted here is named, takes nothing, and has no check warn of its file', async () => {
  const record = (uuid: string, parentUuid: string | null, role: string) =>
    `${JSON.stringify({
      ...{ type: role, uuid, parentUuid, sessionId: 's1', cwd: '/srv/app', isSidechain: false },
      message: { id: `m-${uuid}`, role, content: [{ type: 'text', text: uuid }] },
    })}\n`;
  const turn = (user: string, answer: string, parent: string | null) =>
    record(user, parent, 'user') + record(answer, user, 'assistant');
  const text = turn('u1', 'a1', null) + turn('u2', 'a2', 'a1') + turn('u3', 'a3', 'a1');
  using user = userWith({ [`${projects}/a/s1.jsonl`]: text });
  expect(await user.imports()).toMatchObject({ names: ['s1', 's1-branch-u2'] });
  expect((await user.says('delete', 's1-branch-u2')).code).toBe(0);
  const old = Date.now() / 1000 - 40 * 86_400;
  writeFileSync(user.file('a/s1.jsonl'), text + turn('u4', 'a4', 'a3'));
  utimesSync(user.file('a/s1.jsonl'), old, old);
  const out =
    'Left out s1-branch-u2 of ~/.claude/projects/a/s1.jsonl: it was deleted here; bring it back with: ';
  for (const stdout of [
    'Claude Code: 2 entries from 1 of 1 file\n',
    'Claude Code: nothing new in 1 file\n',
  ]) {
    const said = await user.says('import');
    expect(said).toEqual({ code: 0, stdout, stderr: expect.stringMatching(/^Left out .*\n$/) });
    expect(said.stderr).toContain(out);
    expect(json(await user.says('check', '--json')).imports).toMatchObject({ transcripts: 1, expiring: [] });
  }
  expect(await user.imports()).toMatchObject({
    left_out: [{ session: 's1-branch-u2', why: expect.stringMatching(/^it was deleted/) }],
  });
  // As a file that is named, of which the user wants all, it is left out in part.
  const file = user.file('a/s1.jsonl');
  writeFileSync(file, text + turn('u4', 'a4', 'a3') + turn('u5', 'a5', 'a4'));
  const named = await user.says('import', file);
  expect([named.code, named.stdout]).toEqual([1, expect.stringMatching(/^Imported s1: 2 entries /)]);
  expect(named.stderr).toContain(out);
  const again = await user.says('import', file, '--quiet');
  expect([again.code, again.stdout]).toEqual([1, 's1\n']);
  expect(json(await user.says('import', file, '--json'))).toMatchObject({
    left_out: [{ session: 's1-branch-u2', why: expect.stringMatching(/^it was deleted/) }],
  });
  const { stderr } = await user.says('import');
  expect((await user.says('undo', /tape undo (\w+)/.exec(stderr)?.[1] ?? '')).code).toBe(0);
  expect(await user.imports()).toMatchObject({ left_out: [] });
});

test('a file of more bad lines than records is left out, and says that', async () => {
  const bad = Array.from({ length: 5 }, (_, i) => `no record ${i}\n`).join('');
  using user = userWith({ [`${projects}/a/s1.jsonl`]: transcript('s1', 2) + bad });
  const { stderr } = await user.says('import');
  expect(stderr).toContain(
    'Left out ~/.claude/projects/a/s1.jsonl: it has more bad lines (5) than records (4); the first is line 5, byte ',
  );
  expect((await user.says('import', user.file('a/s1.jsonl'))).stderr).toContain('more bad lines (5)');
});

test('a session that was in a directory that is left out is left out as a whole; so are tape homes', async () => {
  using user = userWith({
    [`${projects}/a/s1.jsonl`]:
      transcript('s1', 1) + transcript('s1', 2, '/secret/app').split('\n').slice(2).join('\n'),
    [`${projects}/a/s2.jsonl`]: transcript('s2', 1),
    'home/tape.db': '',
    'home/s3.jsonl': transcript('s3', 1),
  });
  await user.says('config', 'set', 'import.roots', `[${JSON.stringify(user.dir.path)}]`);
  await user.says('config', 'set', 'import.exclude', '["/secret/"]');
  const said = await user.imports();
  expect(said).toMatchObject({
    names: ['s2'],
    left_out: [{ file: user.file('a/s1.jsonl'), why: expect.stringContaining("in '/secret/app'") }],
  });
});

test('with --strict a transcript with a bad line is left out, and no other', async () => {
  using user = userWith({
    [`${projects}/a/s1.jsonl`]: `${transcript('s1', 1)}{"type": oops}\n${transcript('s1', 2).split('\n').slice(2).join('\n')}`,
    [`${projects}/a/s2.jsonl`]: transcript('s2', 1),
  });
  const strict = await user.says('import', '--strict');
  expect(strict.code).toBe(1);
  expect(strict.stderr).toMatch(/Left out ~.*s1.jsonl: line 3, byte \d+: /);
  expect((await user.says('sessions', '--quiet')).stdout).toBe('s2\n');
  const one = await user.says('import', user.file('a/s1.jsonl'), '--strict');
  expect([one.code, one.stderr]).toEqual([
    1,
    expect.stringMatching(/line 3, byte \d+[\s\S]*without: --strict/),
  ]);
  expect(await user.imports()).toMatchObject({ names: ['s1'], files: [{ bad_lines: [{ line: 3 }] }, {}] });
});
