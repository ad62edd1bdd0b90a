import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { json } from '../support/cli.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tempHome } from '../support/temp-home.ts';

/** A transcript of a turn, with what else its records have. */
function transcript(sessionId: string, more: object = {}, text = 'Hello'): string {
  const shared = {
    sessionId,
    cwd: '/srv/app',
    isSidechain: false,
    timestamp: '2026-01-02T03:04:05.000Z',
    ...more,
  };
  const content = [
    { type: 'text', text: `Answer to ${text}` },
    { type: 'tool_use', id: 'toolu_1', name: 'Read', input: {}, ...('tool' in more && { name: more.tool }) },
  ];
  return [
    {
      ...shared,
      type: 'user',
      uuid: `${sessionId}-1`,
      parentUuid: null,
      message: { role: 'user', content: text },
    },
    {
      ...shared,
      type: 'assistant',
      uuid: `${sessionId}-2`,
      parentUuid: `${sessionId}-1`,
      message: { id: 'm1', role: 'assistant', content },
    },
  ]
    .map((record) => `${JSON.stringify(record)}\n`)
    .join('');
}

function userWith(files: Readonly<Record<string, string | Uint8Array>>) {
  const dir = tempDir();
  const home = tempHome();
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(dir.file(path)), { recursive: true });
    writeFileSync(dir.file(path), content);
  }
  const env = { HOME: dir.path };
  return {
    ...{ dir, home, env },
    run: async (...args: string[]) => await home.here(args, { env }),
    imports: async (...args: string[]) => json(await home.here(['import', '--json', ...args], { env })),
    [Symbol.dispose]: () => {
      home[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
}

/** All below a directory: kinds, modes, sizes, times and bytes. */
function stateOf(path: string): readonly unknown[] {
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => {
      const { mode, mtimeNs, ctimeNs, ino } = lstatSync(join(path, name), { bigint: true });
      const bytes = statSync(join(path, name)).isFile() ? readFileSync(join(path, name), 'base64') : '';
      return [name, mode, mtimeNs, ctimeNs, ino, bytes];
    });
}

const p = '.claude/projects/p';

test('an import, a check and forgetting leave all that they read as it was, and nothing beside it', async () => {
  using user = userWith({
    [`${p}/s1.jsonl`]: transcript('s1'),
    [`${p}/s1/subagents/agent-x.jsonl`]: transcript('s1', { isSidechain: true, agentId: 'x' }),
    [`${p}/s1/subagents/agent-x.meta.json`]: '{"agentType":"x"}',
    [`${p}/s1/tool-results/t.txt`]: 'output',
    [`${p}/bad.jsonl`]: 'nonsense\n',
    [`${p}/s2.jsonl.gz`]: gzipSync(transcript('s2')),
    '.codex/sessions/r.jsonl': '{"type":"session_meta","payload":{"id":"r1"}}\n',
    '.local/share/opencode/opencode.db': 'SQLite format 3\0',
  });
  symlinkSync('s1.jsonl', user.dir.file(`${p}/link.jsonl`));
  const old = Date.parse('2026-01-02') / 1000;
  utimesSync(user.dir.file(`${p}/s1.jsonl`), old, old);
  const before = stateOf(user.dir.path);
  for (const args of [
    ['import', '--dry-run'],
    ['import'],
    ['import'],
    ['check'],
    ['import', '--forget', 's1'],
  ])
    await user.run(...args);
  expect(stateOf(user.dir.path)).toEqual(before);
});

test('a home that an import makes is its owner\u2019s alone', async () => {
  using user = userWith({ [`${p}/s1.jsonl`]: transcript('s1') });
  const home = user.dir.file('new/home');
  await user.run('import', '--home', home);
  expect(statSync(home).mode & 0o777).toBe(0o700);
  for (const file of readdirSync(home))
    expect([file, statSync(join(home, file)).mode & 0o077]).toEqual([file, 0]);
});

test('secrets are replaced in messages, titles and records, and counted; --raw keeps them', async () => {
  const key = `sk-ant-api03-${'Ab1'.repeat(31)}AA`;
  const title = `${JSON.stringify({ type: 'custom-title', customTitle: `Use ${key}`, sessionId: 's1' })}\n`;
  const names = `${JSON.stringify({ type: 'mode', sessionId: 's1', [key]: 1, [`${key}`.replace('Ab1', 'Xy2')]: 2 })}\n`;
  using user = userWith({ [`${p}/s1.jsonl`]: transcript('s1', {}, `The key is ${key}`) + title + names });
  const { redacted, files } = await user.imports();
  expect(redacted).toBeGreaterThanOrEqual(4);
  expect((await user.run('log', 's1', '--all', '--json')).stdout).toMatch(/(\[secret \S+\])":1,"\1 2":2/);
  expect((files as { redacted?: number }[])[0]?.redacted).toBe(redacted);
  const inHome = () =>
    readdirSync(user.home.path).filter((file) => readFileSync(user.home.file(file)).includes(key));
  expect(inHome()).toEqual([]);
  await user.imports(user.dir.file(`${p}/s1.jsonl`), '--raw', '--as', 'raw');
  expect(inHome()).not.toEqual([]);
});

test('a .tapeignore counts for all below it, whatever stands in another, or in the paths and links that lead around it', async () => {
  using user = userWith({
    'secret/.tapeignore': '*\n',
    'secret/deep/.tapeignore': '!*\n',
    [`${p}/a.jsonl`]: '',
    'backup/.tapeignore': '# notes\n\nprivate-*.jsonl\r\nold/\n',
    'backup/private-1.jsonl': transcript('s3'),
    'backup/old/s4.jsonl': transcript('s4'),
    'backup/s5.jsonl': transcript('s5'),
  });
  const secret = user.dir.file('secret');
  for (const [session, cwd] of [
    ['a', secret],
    ['b', `${secret}/deep/er`],
    ['c', `${secret}/gone/../x/`],
    ['d', user.dir.file('other')],
  ] as const)
    writeFileSync(user.dir.file(`${p}/${session}.jsonl`), transcript(session, { cwd }));
  symlinkSync('old/s4.jsonl', user.dir.file('backup/around.jsonl'));
  const taken = await user.imports('--dry-run', user.dir.file('.claude'), user.dir.file('backup'));
  expect((taken.files as { session: string }[]).map(({ session }) => session).toSorted()).toEqual([
    'd',
    's5',
  ]);
  for (const named of ['backup/private-1.jsonl', 'backup/around.jsonl', `${p}/b.jsonl`]) {
    const { code, stderr } = await user.run('import', user.dir.file(named));
    expect([named, code, stderr.includes('leaves it out')]).toEqual([named, 1, true]);
  }
  expect(existsSync(user.home.db)).toBe(false);
});

test('of a session that came to a directory which is left out, no file counts as imported', async () => {
  using user = userWith({ 'secret/.tapeignore': '*\n', [`${p}/s2.jsonl`]: transcript('s2') });
  const [begun, came] = transcript('s1').trim().split('\n');
  const there = { ...JSON.parse(came ?? ''), cwd: user.dir.file('secret') };
  writeFileSync(user.dir.file(`${p}/s1.jsonl`), `${begun}\n${JSON.stringify(there)}\n`);
  mkdirSync(user.dir.file(`${p}/s1/subagents`), { recursive: true });
  const agent = transcript('s1', { isSidechain: true, agentId: 'x' });
  writeFileSync(user.dir.file(`${p}/s1/subagents/agent-x.jsonl`), agent);
  const { stdout } = await user.run('import', '--dry-run', '--quiet');
  expect(stdout.trim().split('\n')).toHaveLength(3);
  const done = await user.run('import');
  expect([done.code, done.stdout]).toEqual([0, expect.stringContaining('from 1 of 3 files')]);
  expect(await user.imports()).toMatchObject({ names: [], excluded: 2 });
});

test('the sessions of a project that is removed with its .tapeignore stay left out, until the user takes the pattern back', async () => {
  using user = userWith({
    'all/.tapeignore': 'secret/\n',
    'all/secret/app/x': '',
    'work/.tapeignore': '*\n',
    'other/x': '',
  });
  const at = (path: string) => user.dir.file(path);
  const write = (session: string, cwd: string) =>
    writeFileSync(at(`${p}/${session}.jsonl`), transcript(session, { cwd: at(cwd) }));
  mkdirSync(at(p), { recursive: true });
  for (const [session, cwd] of [
    ['s1', 'work'],
    ['s2', 'all/secret/app'],
    ['s3', 'other'],
  ] as const)
    write(session, cwd);
  const names = async () => (await user.imports()).names;
  expect(await names()).toEqual(['s3']);
  for (const one of ['work', 'all', 'other']) rmSync(at(one), { recursive: true });
  write('s4', 'work');
  utimesSync(at(`${p}/s4.jsonl`), new Date(0), new Date(0));
  expect(await names()).toEqual([]);
  expect((await user.run('check', '--json')).stdout).not.toContain('s4.jsonl');
  // Named, what nothing leaves out any more is taken.
  expect((await user.run('import', at(`${p}/s4.jsonl`))).code).toBe(0);
  for (const one of ['work', 'all/secret/app']) mkdirSync(at(one), { recursive: true });
  writeFileSync(at('all/.tapeignore'), '');
  expect(await names()).toEqual(['s1', 's2']);
});

test('nothing is printed or kept of what is no transcript, or lies where a link leads out of the folder', async () => {
  const secret = 'root:sesame:0\n{"a":sesame}\n"sesame"\n';
  using user = userWith({
    'elsewhere/secret.txt': secret,
    'elsewhere/agent-y.jsonl': transcript('s1', { isSidechain: true, agentId: 'y' }, 'sesame'),
    [`${p}/s1.jsonl`]: transcript('s1'),
    [`${p}/plain.jsonl`]: secret,
    [`${p}/s1/subagents/agent-z.jsonl`]: secret,
    [`${p}/s1/tool-results/own.txt`]: 'Output',
  });
  const out = [`${p}/s1/tool-results/x.txt`, `${p}/s1/subagents/agent-x.jsonl`];
  for (const link of out) symlinkSync(user.dir.file('elsewhere/secret.txt'), user.dir.file(link));
  symlinkSync(user.dir.file('elsewhere/agent-y.jsonl'), user.dir.file(`${p}/s1/subagents/agent-y.jsonl`));
  const said = [];
  for (const args of [[], ['--json'], ...[...out, `${p}/plain.jsonl`].map((file) => [user.dir.file(file)])])
    said.push(await user.run('import', ...args));
  expect(said.map(({ stdout, stderr }) => `${stdout}${stderr}`).join('')).not.toContain('sesame');
  expect(said.map(({ code }) => code)).toEqual([1, 1, 1, 1, 1]);
  for (const link of out)
    expect(said[0]?.stderr).toContain(`${link}: it is a link that leads out of its folder`);
  const kept = readdirSync(user.home.path).filter((file) =>
    readFileSync(user.home.file(file)).includes('sesame'),
  );
  expect(kept).toEqual([]);
});

test('a line end in the name of a file begins no line', async () => {
  const evil = 'a\nClaude Code: nothing new in 9 files\t';
  using user = userWith({
    [`${p}/${evil}.jsonl`]: 'nonsense\n',
    [`${p}/b${evil}.jsonl`]: `${transcript('s9')}nonsense\n`,
  });
  const { stderr } = await user.home.here(['import'], { env: user.env });
  expect(stderr).toContain('Left out of ');
  expect(stderr.split('\n').filter((line) => /^Left out .*nothing new in 9 files/.test(line))).toHaveLength(
    2,
  );
  expect(stderr).not.toMatch(/^Claude Code: nothing new/m);
});

test('no field of a transcript steers the terminal', async () => {
  const evil = '\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}\r\u{8}';
  const record = { cwd: `/srv/${evil}`, gitBranch: evil, version: evil, slug: evil, tool: `Read${evil}` };
  const title = `${JSON.stringify({ type: 'custom-title', customTitle: `Title ${evil}`, sessionId: evil })}\n`;
  using user = userWith({
    [`${p}${evil}/${evil}.jsonl`]: transcript(evil, record, evil) + title,
    [`${p}/s1.jsonl`]: transcript('s1', record, evil) + title,
    [`${p}/s1/subagents/agent-${evil}.jsonl`]: transcript(
      's1',
      { ...record, isSidechain: true, agentId: evil },
      evil,
    ),
    [`${p}/s1/subagents/agent-${evil}.meta.json`]: JSON.stringify({
      agentType: evil,
      description: evil,
      toolUseId: 'toolu_1',
    }),
    [`${p}/bad${evil}.jsonl`]: `nonsense ${evil}\n`,
    [`${p}/worse.jsonl`]: `${transcript('s9')}nonsense ${evil}\n`,
    [`.codex/sessions/${evil}.jsonl`]: `{"type":"session_meta","payload":{"id":"${'r'}"}}\n`,
  });
  const lines = [
    ['import', '--dry-run'],
    ['import', '--dry-run', '--quiet'],
    ['import', user.dir.file(`${p}/bad${evil}.jsonl`)],
    ['import', user.dir.file(`none${evil}`)],
    ['import'],
    ['import'],
    ['import', '--json'],
    ['import', '--jsonl'],
    ['import', user.dir.file('.codex')],
    ['import', user.dir.file(`${p}/s1.jsonl`), '--as', 'again'],
    ['check'],
    ['sessions'],
    ['graph'],
    ['children', 's1'],
    ['log', 's1'],
    ['log', 's1', '--oneline'],
    ['view', 's1'],
    ['usage'],
    ['search', 'Answer'],
    ['import', '--forget', evil, '--dry-run'],
    ['import', '--forget', user.dir.file(`${p}/s1.jsonl`)],
    ['import', '--install', '--home', user.dir.file(evil)],
  ];
  for (const args of lines)
    for (const isTerminal of [false, true]) {
      const env = { ...user.env, NO_COLOR: '1' };
      const { stdout, stderr } = await user.home.here(args, { env, isTerminal });
      const steering = `${stdout}${stderr}`.match(/(?![\n\t])[\p{Cc}\p{Cf}]/gu) ?? [];
      expect({ args, isTerminal, steering }).toEqual({ args, isTerminal, steering: [] });
    }
});
