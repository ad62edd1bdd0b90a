import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import {
  type Discovery,
  discover,
  type Search,
  type Source,
  transcriptTools,
} from '@tapedeck/runtime/import';
import { afterAll, describe, expect, test, vi } from 'vitest';

const [claudeCode] = transcriptTools.filter(({ name }) => name === 'claude-code');
if (claudeCode === undefined) throw new TypeError('the tool');

const top = mkdtempSync(join(tmpdir(), 'discovery-'));
afterAll(() => rmSync(top, { recursive: true, force: true }));

/** A home directory with these files. */
function homeWith(files: Readonly<Record<string, string | Uint8Array>>): string {
  const home = mkdtempSync(join(top, 'home-'));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), content);
  }
  return home;
}

const claude = (sessionId: string, cwd = '/srv/app') =>
  `${JSON.stringify({ type: 'mode', sessionId })}\n${JSON.stringify({
    ...{ type: 'user', uuid: `${sessionId}-1`, parentUuid: null, sessionId, cwd, isSidechain: false },
    ...{ timestamp: '2026-01-02T03:04:05.000Z', message: { role: 'user', content: 'Hello' } },
  })}\n`;
const agent = (sessionId: string, agentId: string) =>
  `${JSON.stringify({
    ...{ type: 'user', uuid: `${agentId}-1`, parentUuid: null, sessionId, agentId, isSidechain: true },
    message: { role: 'user', content: 'Look' },
  })}\n`;
const rollout = `${JSON.stringify({ type: 'session_meta', payload: { id: 'r1', cwd: '/srv/app' } })}\n`;

async function found(home: string, more: Partial<Search> = {}) {
  const discovery = await discover({ place: { env: {}, home }, tools: transcriptTools, ...more });
  const paths = discovery.files.map(({ path }) => relative(home, path));
  return { ...discovery, paths };
}

describe('where transcripts are', () => {
  const home = homeWith({
    '.claude/projects/-srv-app/s1.jsonl': claude('s1'),
    '.claude/projects/-srv-app/s1/subagents/agent-a1.jsonl': agent('s1', 'a1'),
    '.claude/projects/-srv-app/s1/subagents/agent-a1.meta.json': '{"agentType":"x"}',
    '.claude/projects/-srv-app/s1/subagents/workflows/w1/agent-b1.jsonl': agent('s1', 'b1'),
    '.claude/projects/-srv-app/s1/subagents/workflows/w1/journal.jsonl': '{"type":"started"}\n',
    '.claude/projects/-srv-app/s1/tool-results/t1.txt': 'output',
    '.claude/projects/-srv-app/s2.jsonl.zst': zstdCompressSync(Buffer.from(claude('s2', '/srv/other'))),
    '.claude/projects/-srv-app/empty.jsonl': '',
    '.claude/settings.json': '{}',
    '.codex/sessions/2026/01/02/rollout-1.jsonl': rollout,
    '.codex/archived_sessions/rollout-2.jsonl': rollout.replace('r1', 'r2'),
    '.pi/agent/sessions/--srv--/1_a.jsonl': `${JSON.stringify({ type: 'session', version: 3, id: 'p1', cwd: '/srv' })}\n`,
    'profiles/two/projects/x/s3.jsonl': claude('s3'),
    'backup/s4.jsonl': claude('s4'),
    'backup/notes.jsonl': '{"a":1}\n',
    'backup/.copilot/session-state/c.jsonl': '{"type":"session.start","data":{}}\n',
  });

  const others = ['rollout-1.jsonl', 'rollout-2.jsonl', '1_a.jsonl'];

  test('the folders of each tool are searched, and each file has its session, its conversation and its project', async () => {
    const { files, empty, strangers, problems } = await found(home);
    const about = files.map(({ tool, session, role, main, project }) => [
      tool.name,
      session,
      role,
      main,
      project,
    ]);
    expect(about).toEqual([
      ['claude-code', 's1/agent-a1', 'subagent', 's1', '/srv/app'],
      ['claude-code', 's1/agent-a1.meta.json', 'part', 's1', '/srv/app'],
      ['claude-code', 's1/agent-b1', 'subagent', 's1', '/srv/app'],
      ['claude-code', 's1/journal.jsonl', 'part', 's1', '/srv/app'],
      ['claude-code', 's1/t1.txt', 'part', 's1', '/srv/app'],
      ['claude-code', 's1', 'main', 's1', '/srv/app'],
      ['claude-code', 's2', 'main', 's2', '/srv/other'],
      ['codex', 'rollout-1.jsonl', 'main', 'rollout-1.jsonl', undefined],
      ['codex', 'rollout-2.jsonl', 'main', 'rollout-2.jsonl', undefined],
      ['pi', '1_a.jsonl', 'main', '1_a.jsonl', undefined],
    ]);
    expect({ empty, strangers, problems }).toEqual({ empty: 1, strangers: [], problems: [] });
  });

  test.each<[string, Record<string, string>, readonly string[]]>([
    ['CLAUDE_CONFIG_DIR', { CLAUDE_CONFIG_DIR: join(home, 'profiles/two') }, ['s3', ...others]],
    ['CODEX_HOME', { CODEX_HOME: '/nowhere', CLAUDE_CONFIG_DIR: '/nowhere' }, ['1_a.jsonl']],
    ['an empty variable', { CLAUDE_CONFIG_DIR: '', CODEX_HOME: '/nowhere' }, ['s1', 's2', '1_a.jsonl']],
    [
      'PI_CODING_AGENT_DIR',
      { PI_CODING_AGENT_DIR: '/nowhere', CODEX_HOME: '/nowhere', CLAUDE_CONFIG_DIR: '/nowhere' },
      [],
    ],
  ])("a tool's environment variable moves its folder: %s", async (_, env, sessions) => {
    const { files } = await found(home, { place: { env, home } });
    expect(files.filter(({ role }) => role === 'main').map(({ session }) => session)).toEqual(sessions);
  });

  test('further folders are searched for all tools, and what no tool knows is named', async () => {
    const roots = [join(home, 'backup'), join(home, 'profiles')];
    const { paths, strangers } = await found(home, { roots });
    expect(paths.slice(-2)).toEqual(['backup/s4.jsonl', 'profiles/two/projects/x/s3.jsonl']);
    expect(strangers).toEqual([
      { path: join(home, 'backup/.copilot/session-state/c.jsonl'), like: 'a Copilot session' },
      { path: join(home, 'backup/notes.jsonl') },
    ]);
  });

  test.each<[string, string, string, string]>([
    [
      'one object',
      '{\n  "sessionId": "g1",\n  "projectHash": "h",\n  "messages": []\n}\n',
      'gemini-cli',
      'g1',
    ],
    [
      'an old object',
      '{\n  "history": [\n  ],\n  "lastUpdated": "t",\n  "x": "\\q"\n}\n',
      'gemini-cli',
      'a.json',
    ],
    ['what the service said', '{"method":"generateContentStream","response":[]}\n', 'gemini-cli', 'a.json'],
    [
      'records without a header',
      '{"type":"user","id":"1","content":"Hi"}\n{"type":"gemini","id":"2","content":"Hi"}\n',
      ...(['gemini-cli', 'a.json'] as const),
    ],
    [
      'records of an old Codex',
      '{"created_at":"t","role":"user"}\n{"type":"world_state","payload":{}}\n',
      ...(['codex', 'a.json'] as const),
    ],
  ])('a file of a tool is known wherever it lies: %s', async (_, content, tool, session) => {
    const place = homeWith({ 'old/a.json': content, 'old/package.json': '{}\n', 'old/b.json': 'nonsense\n' });
    for (const path of ['old', 'old/a.json']) {
      const { files, strangers, problems } = await found(place, { paths: [join(place, path)] });
      expect(files.map((one) => [one.tool.name, one.session])).toEqual([[tool, session]]);
      expect([strangers, problems]).toEqual([[], []]);
    }
    const { files } = await found(place, { roots: [join(place, 'old')] });
    expect(files).toEqual([]);
  });

  test.each([
    ['old/opencode.db', 'SQLite format 3\0\n\n'],
    ['old/storage/session/p1/ses_1.json', '{"id":"ses_1","title":"a"}\n'],
    ['old/storage/message/ses_1/msg_1.json', '{\n  "id": "msg_1"\n}\n'],
    ['old/storage/part/msg_1/prt_1.json', '{"id":"prt_1"}\n'],
  ])('a file of opencode is known by its name: %s', async (file, content) => {
    const place = homeWith({ [file]: content });
    const { files } = await found(place, { paths: [join(place, file)] });
    expect(files.map(({ tool }) => tool.file)).toEqual(['a file of opencode']);
  });

  test('of the sessions of an earlier opencode one file each is counted', async () => {
    const storage = '.local/share/opencode/storage';
    const place = homeWith({
      [`${storage}/session/p1/ses_1.json`]: '{}\n',
      [`${storage}/message/ses_1/msg_1.json`]: '{}\n',
      [`${storage}/part/msg_1/prt_1.json`]: '{}\n',
    });
    const { files, strangers } = await found(place);
    expect(files.map(({ tool, session }) => [tool.name, session])).toEqual([['opencode', 'ses_1.json']]);
    expect(strangers).toEqual([]);
  });

  test('named files and folders are searched alone; tool, project and time narrow it', async () => {
    expect((await found(home, { paths: [join(home, 'backup/s4.jsonl')] })).paths).toEqual([
      'backup/s4.jsonl',
    ]);
    expect((await found(home, { tool: 'pi' })).files.map(({ session }) => session)).toEqual(['1_a.jsonl']);
    const main = async (more: Partial<Search>) =>
      (await found(home, more)).files.filter(({ role }) => role === 'main').map(({ session }) => session);
    expect(await main({ project: '/srv/app' })).toEqual(['s1']);
    expect(await main({ project: '/srv' })).toEqual(['s1', 's2']);
    expect(await main({ project: '/srv/ap' })).toEqual([]);
    const old = async (path: string) => {
      utimesSync(path, 1000, 1000);
      return await main({ tool: 'claude-code', since: 2_000_000 });
    };
    const { files } = await found(home, { project: '/srv/app' });
    const [first, ...others] = files.map(({ path }) => path).toSorted((a, b) => a.length - b.length);
    // One file that changed has its conversation read.
    expect(await old(first ?? '')).toEqual(['s1', 's2']);
    for (const path of others) await old(path);
    expect(await main({ tool: 'claude-code', since: 2_000_000 })).toEqual(['s2']);
  });
});

test('the lists of what users typed, which tools keep beside their transcripts, are passed over', async () => {
  const home = homeWith({
    'work/projects/x/s1.jsonl': claude('s1'),
    'work/history.jsonl': '{"display":"Hello","pastedContents":{},"timestamp":1,"project":"/srv/app"}\n',
    'other/history.jsonl': '{"session_id":"r1","ts":1,"text":"Hello"}\n',
    'unknown/history.jsonl': '{"title":"Hello"}\n',
  });
  const { paths, strangers } = await found(home, { paths: [home] });
  expect([paths, strangers.map(({ path }) => relative(home, path))]).toEqual([
    ['work/projects/x/s1.jsonl'],
    ['unknown/history.jsonl'],
  ]);
});

describe('what is left out', () => {
  const files = {
    '.claude/projects/a/s1.jsonl': claude('s1', '/secret/app'),
    '.claude/projects/b/s2.jsonl': claude('s2', '/srv/app'),
    '.claude/projects/b/s3.jsonl': claude('s3', '/srv/app/private'),
  };

  test.each<[string, readonly string[], readonly string[]]>([
    ['nothing', [], ['s1', 's2', 's3']],
    ['a project', ['/secret/'], ['s2', 's3']],
    ['a project and all below it', ['/srv/app'], ['s1']],
    ['a folder of transcripts', ['~/.claude/projects/b/'], ['s1']],
    ['names at each depth', ['private', 's1.jsonl'], ['s2']],
    ['several names at each depth', ['app/private/', 'projects/a'], ['s2']],
    ['all but several names', ['/srv/app/*', '!app/private/'], ['s1', 's3']],
    ['a path with a slash too many', ['//secret//', '~//.claude//projects/b/'], []],
    ['all but one', ['/srv/app/*', '!/srv/app/private/'], ['s1', 's3']],
  ])(
    'configured patterns are those of .gitignore, for paths and working directories: %s',
    async (_, exclude, sessions) => {
      const { files: left } = await found(homeWith(files), { exclude });
      expect(left.map(({ session }) => session)).toEqual(sessions);
    },
  );

  test.each([
    ['its link', 'link', 'disk'],
    ['its own path', 'disk', 'link'],
  ])(
    'a directory that a link leads to is meant by %s, whichever a session recorded',
    async (_, named, recorded) => {
      const home = homeWith({ 'disk/app/x': '', 'disk/other/x': '' });
      symlinkSync('disk', join(home, 'link'));
      mkdirSync(join(home, '.claude/projects/a'), { recursive: true });
      for (const [session, cwd] of [
        ['s1', 'app'],
        ['s2', 'app/gone'],
        ['s3', 'other'],
      ] as const)
        writeFileSync(
          join(home, `.claude/projects/a/${session}.jsonl`),
          claude(session, join(home, recorded, cwd)),
        );
      const sessionsOf = async (how: Parameters<typeof found>[1]) =>
        (await found(home, how)).files.map(({ session }) => session);
      expect(await sessionsOf({ exclude: [`~/${named}/app/`] })).toEqual(['s3']);
      expect(await sessionsOf({ exclude: [`~/${named}/*`, `!~/${named}/other/`] })).toEqual(['s3']);
      expect(await sessionsOf({ project: join(home, named, 'app') })).toEqual(['s1', 's2']);
    },
  );

  test('what lies beside a session that its working directory leaves out is left out, and counted, with it', async () => {
    const parts = {
      '-1/tool-results/t1.txt': 'output',
      '-1/subagents/agent-a1.meta.json': '{"agentType":"x"}',
    };
    const beside = Object.entries(parts).map(([path, text]) => [`.claude/projects/a/s${path}`, text]);
    const one = {
      '.claude/projects/a/s-1.jsonl': claude('s-1', '/secret/app'),
      ...Object.fromEntries(beside),
    };
    const home = homeWith({ ...one, '.claude/projects/a/s2.jsonl': claude('s2') });
    const { files: left, excluded } = await found(home, { exclude: ['/secret/'] });
    expect([left.map(({ session }) => session), excluded]).toEqual([['s2'], 3]);
    // One of the same id that went on elsewhere has what is nearer to it, and nothing else.
    const elsewhere = '.claude/projects/b/s-1';
    mkdirSync(join(home, elsewhere, 'tool-results'), { recursive: true });
    writeFileSync(join(home, `${elsewhere}.jsonl`), claude('s-1'));
    writeFileSync(join(home, elsewhere, 'tool-results/t2.txt'), 'output');
    const both = await found(home, { exclude: ['/secret/'] });
    expect([both.paths.toSorted(), both.excluded]).toEqual([
      ['.claude/projects/a/s2.jsonl', `${elsewhere}.jsonl`, `${elsewhere}/tool-results/t2.txt`],
      3,
    ]);
  });

  test('a pattern means a name in whichever form of Unicode either is written', async () => {
    const [one, other] = ['priv\u00e9', 'prive\u0301'];
    for (const [typed, recorded] of [
      [one, other],
      [other, one],
    ] as const) {
      const project = homeWith({ '.tapeignore': `${typed}/\n` });
      const home = homeWith({
        '.claude/projects/a/s1.jsonl': claude('s1', `/srv/${recorded}/app`),
        '.claude/projects/a/s2.jsonl': claude('s2', join(project, recorded)),
      });
      expect((await found(home, { exclude: [`/srv/${typed}`] })).paths).toEqual([]);
    }
  });

  test('of a session in two folders, of which one is left out by its project, each has what lies beside it', async () => {
    const of = '00000000-0000-4000-8000-000000000001';
    const below = (folder: string, project: string) => ({
      [`\u{1f600}/${folder}/${of}.jsonl`]: claude(of, project),
      [`\u{1f600}/${folder}/${of}/tool-results/1.txt`]: folder,
    });
    const home = homeWith({ ...below('a', '/secret/app'), ...below('b', '/srv/app') });
    const { paths } = await found(home, { exclude: ['/secret/'], roots: [join(home, '\u{1f600}')] });
    expect(paths.map((path) => path.split('/')[1])).toEqual(['b', 'b']);
  });

  test('with a session whose project is left out go its subagents, wherever they worked', async () => {
    const of = '00000000-0000-4000-8000-000000000001';
    const at = `.claude/projects/a/${of}`;
    const subagent = agent(of, 'x').replace('{', '{"cwd":"/tmp/worktree",');
    const home = homeWith({
      [`${at}.jsonl`]: claude(of, '/secret/app'),
      [`${at}/subagents/agent-x.jsonl`]: subagent,
      [`${at}/tool-results/1.txt`]: 'private',
    });
    const all = await found(home, { exclude: ['/secret/'] });
    expect([all.paths, all.excluded]).toEqual([[], 3]);
    const paths = [join(home, `${at}/subagents`)];
    expect((await found(home, { exclude: ['/secret/'], paths })).paths).toEqual([]);
    // So it is with the sessions of one project alone.
    expect((await found(home, { project: '/secret' })).files).toHaveLength(3);
    expect((await found(home, { project: '/tmp' })).files).toEqual([]);
    // One that was itself in a directory that is left out goes alone.
    const { files: others } = await found(home, { exclude: ['/tmp/worktree'] });
    expect(others.map(({ role }) => role).toSorted()).toEqual(['main', 'part']);
  });

  test('a .tapeignore counts for the files and the working directories below it', async () => {
    const home = homeWith({ ...files, '.claude/projects/b/.tapeignore': 's2.jsonl\n' });
    const project = homeWith({ '.tapeignore': '*\n', 'inner/x': '' });
    writeFileSync(join(home, '.claude/projects/a/s4.jsonl'), claude('s4', join(project, 'inner')));
    const { files: left, excluded } = await found(home);
    expect(left.map(({ session }) => session)).toEqual(['s1', 's3']);
    expect(excluded).toBe(2);
  });

  test('a .tapeignore that is a pipe leaves out all below it, and nothing waits', async () => {
    const home = homeWith(files);
    execFileSync('mkfifo', [join(home, '.claude/projects/b/.tapeignore')]);
    expect((await found(home)).files.map(({ session }) => session)).toEqual(['s1']);
  });
});

describe('what is no file, or there twice', () => {
  test('circles of links, links to nothing, pipes and second names', async () => {
    const home = homeWith({ '.claude/projects/a/s1.jsonl': claude('s1') });
    const at = (name: string) => join(home, '.claude/projects/a', name);
    symlinkSync('..', at('circle'));
    symlinkSync('self.jsonl', at('self.jsonl'));
    symlinkSync('/nowhere/x.jsonl', at('dangling.jsonl'));
    symlinkSync('s1.jsonl', at('second.jsonl'));
    linkSync(at('s1.jsonl'), at('third.jsonl'));
    execFileSync('mkfifo', [at('pipe.jsonl')]);
    const { paths, problems } = await found(home);
    expect(paths).toEqual(['.claude/projects/a/s1.jsonl']);
    expect(problems.map(({ path, why }) => [relative(at('.'), path), why])).toEqual([
      ['dangling.jsonl', 'it is gone, or a link to what is not there'],
      ['pipe.jsonl', 'it is a pipe'],
      ['self.jsonl', 'its links lead in a circle'],
    ]);
  });

  test.skipIf(process.platform !== 'linux')('a name that is no text is said to be one', async () => {
    const home = homeWith({ '.claude/projects/a/s1.jsonl': claude('s1') });
    const folder = Buffer.from(join(home, '.claude/projects/'));
    writeFileSync(Buffer.concat([folder, Buffer.from('a/\xff.jsonl', 'latin1')]), claude('s2'));
    mkdirSync(Buffer.concat([folder, Buffer.from([0xe4])]));
    const { paths, problems } = await found(home);
    expect(paths).toEqual(['.claude/projects/a/s1.jsonl']);
    const why = 'its path is not UTF-8: rename what has such a name';
    expect(problems.map((one) => one.why)).toEqual([why, why]);
  });

  test('a directory of the tool that a variable names from the working directory is recorded as a whole', async () => {
    const home = homeWith({ '.claude/projects/a/s1.jsonl': claude('s1') });
    const place = { env: { CLAUDE_CONFIG_DIR: relative(process.cwd(), join(home, '.claude')) }, home };
    const { files } = await found(home, { place });
    expect(files.map(({ path }) => path)).toEqual([join(home, '.claude/projects/a/s1.jsonl')]);
  });

  test.skipIf(process.getuid?.() === 0)('what may not be read is listed', async () => {
    const home = homeWith({
      '.claude/projects/a/s1.jsonl': claude('s1'),
      '.claude/projects/b/s2.jsonl': claude('s2'),
    });
    chmodSync(join(home, '.claude/projects/a/s1.jsonl'), 0);
    chmodSync(join(home, '.claude/projects/b'), 0);
    const { problems } = await found(home);
    chmodSync(join(home, '.claude/projects/b'), 0o700);
    expect(problems.map(({ why }) => why)).toEqual(['permission denied', 'permission denied']);
  });

  test('the folder of a tool that cannot be looked at is named', async () => {
    const home = homeWith({});
    symlinkSync('.claude', join(home, '.claude'));
    const { problems } = await found(home);
    expect(problems.map(({ path }) => path)).toEqual([join(home, '.claude/projects')]);
  });

  test('a link that leads out of a folder brings no file of the user; the folder may be named by one', async () => {
    const linked = homeWith({
      '.claude/projects/p/s1.jsonl': claude('s1'),
      '.claude/projects/p/s1/tool-results/own.txt': 'output',
      '.ssh/id_key': 'private',
      '.ssh/known.jsonl': claude('s2'),
      'notes.json': '{"private":true}',
      'other/agent-b1.jsonl': agent('s1', 'b1'),
    });
    const session = join(linked, '.claude/projects/p/s1');
    mkdirSync(join(session, 'subagents'));
    symlinkSync(join(linked, '.ssh/id_key'), join(session, 'tool-results/key.txt'));
    symlinkSync(join(linked, '.ssh'), join(session, 'tool-results/folder'));
    symlinkSync(join(linked, 'notes.json'), join(session, 'subagents/agent-a1.meta.json'));
    symlinkSync(join(linked, 'other/agent-b1.jsonl'), join(session, 'subagents/agent-b1.jsonl'));
    symlinkSync(join(linked, '.ssh'), join(linked, '.claude/projects/q'));
    symlinkSync(join(linked, '.ssh/known.jsonl'), join(linked, '.claude/projects/p/s2.jsonl'));
    symlinkSync(join(linked, '.claude'), join(linked, 'moved'));
    const place = { env: { CLAUDE_CONFIG_DIR: join(linked, 'moved') }, home: linked };
    const out = [...['agent-a1.meta.json', 'agent-b1.jsonl', 'folder', 'key.txt']].map((name) => [
      name,
      'it is a link that leads out of its folder',
    ]);
    const problemsOf = ({ problems }: Discovery) =>
      problems.map(({ path, why }) => [path.split('/').at(-1), why]).toSorted();
    const whole = await discover({ place, tools: transcriptTools });
    expect(whole.files.map(({ session }) => session)).toEqual(['s1/own.txt', 's1']);
    expect(whole.strangers).toEqual([]);
    expect(problemsOf(whole)).toEqual([...out, ...['q', 's2.jsonl'].map((name) => [name, out[0]?.[1]])]);
    // Who names a transcript names what lies in its folder, and not where that leads.
    const main = join(linked, 'moved/projects/p/s1.jsonl');
    const named = await discover({ place, tools: transcriptTools, paths: [main] });
    expect(named.files.map(({ session }) => session).toSorted()).toEqual(['s1', 's1/own.txt']);
    expect(problemsOf(named)).toEqual(out);
    const link = join(linked, '.claude/projects/p/s2.jsonl');
    const asked = await discover({ place, tools: transcriptTools, paths: [link] });
    expect(asked.files.map(({ session }) => session)).toEqual(['s2']);
    expect(asked.problems).toEqual([]);
  });

  test('a file in the folder of a tool that has no record is listed with line, byte and reason', async () => {
    const home = homeWith({ '.claude/projects/a/s1.jsonl': 'nonsense\n\0\0\n' });
    const { paths, problems, strangers } = await found(home);
    expect([paths, strangers]).toEqual([[], []]);
    expect(problems).toMatchObject([{ why: expect.stringMatching(/^line 1, byte \d: /) }]);
  });

  test('a journal of a workflow is the same part of its conversation when it is compressed', async () => {
    const content = '{"type":"started"}\n';
    const folder = '.claude/projects/-srv-app/s1/subagents/workflows/w1';
    const plain = await found(homeWith({ [`${folder}/journal.jsonl`]: content }));
    const small = await found(
      homeWith({ [`${folder}/journal.jsonl.zst`]: zstdCompressSync(Buffer.from(content)) }),
    );
    const about = ({ files }: Discovery) => files.map(({ role, session, main }) => [role, session, main]);
    expect(about(plain)).toEqual([['part', 's1/journal.jsonl', 's1']]);
    expect(about(small)).toEqual(about(plain));
  });

  test('a damaged compressed file is listed, and keeps no other from being found', async () => {
    const packed = zstdCompressSync(Buffer.from(claude('s1')));
    packed.fill(7, 8);
    const home = homeWith({
      '.claude/projects/a/s1.jsonl.zst': packed,
      '.claude/projects/a/s2.jsonl': claude('s2'),
    });
    const { paths, problems } = await found(home);
    expect(paths).toEqual(['.claude/projects/a/s2.jsonl']);
    expect(problems).toMatchObject([{ why: 'its zstd data is damaged or cut off' }]);
  });
});

describe('a line that is longer than what says what a file is', () => {
  /** A prompt of so many bytes, in which every text has what ends or escapes one. */
  const prompt = (bytes: number, id = 's1', part = 'x"\\\\\u0001é') => {
    const content = part.repeat(Math.ceil(bytes / Buffer.byteLength(JSON.stringify(part))));
    return `${JSON.stringify({
      ...{ parentUuid: null, isSidechain: false, type: 'user', message: { role: 'user', content } },
      ...{ uuid: `${id}-0`, sessionId: id, cwd: '/srv/app', timestamp: '2026-01-02T03:04:05.000Z' },
    })}\n`;
  };
  const mode = `${JSON.stringify({ type: 'mode', sessionId: 's1' })}\n`;
  const queued = (bytes: number) =>
    `${JSON.stringify({ type: 'queue-operation', operation: 'enqueue', sessionId: 's1', content: 'y'.repeat(bytes) })}\n`;
  const many = JSON.stringify({
    type: 'queue-operation',
    content: Array.from({ length: 3_000_000 }, (_, i) => i),
  });

  test.each<[string, () => string]>([
    ['is the first one', () => `${prompt(24_000_000)}${claude('s1')}`],
    ['is the first one, and has over 64 MB', () => `${queued(66_000_000)}${claude('s1')}`],
    ['is the only one', () => prompt(24_000_000)],
    ['is the only one, and has no end of a line', () => prompt(24_000_000).trimEnd()],
    ['is behind a byte order mark', () => `\ufeff${prompt(17_500_000)}`],
    ['is behind empty lines', () => `\r\n\n${prompt(17_500_000)}`],
    ['is behind many blanks', () => `${' '.repeat(17_500_000)}${prompt(17)}`],
    ['is behind a longer line of blanks', () => `${' '.repeat(17_500_000)}\n${prompt(17_500_000)}`],
    ['is the second one', () => `${mode}${prompt(24_000_000)}${claude('s1')}`],
    ['comes twice', () => `${queued(18_000_000)}${queued(18_000_000)}${claude('s1')}`],
    ['is a list of many values', () => `${many}\n${claude('s1')}`],
  ])('leaves it a transcript of its tool, wherever it is found, where it %s', async (_, content) => {
    const home = homeWith({ '.claude/projects/a/s1.jsonl': content(), 'backup/s1.jsonl': content() });
    const { paths, files, strangers, problems } = await found(home, { roots: [join(home, 'backup')] });
    expect([strangers, problems]).toEqual([[], []]);
    expect(paths).toEqual(['.claude/projects/a/s1.jsonl', 'backup/s1.jsonl']);
    for (const file of files)
      expect(file).toMatchObject({ session: 's1', role: 'main', project: '/srv/app' });
  });

  test('makes a file of another program none of a tool', async () => {
    const home = homeWith({
      'data/a.jsonl': `${JSON.stringify({ rows: 'z'.repeat(18_000_000) })}\n{"rows":""}\n`,
    });
    const { paths, strangers } = await found(home, { roots: [join(home, 'data')] });
    expect([paths, strangers]).toEqual([[], [{ path: join(home, 'data/a.jsonl') }]]);
  });
});

test('a file that is known and has not changed is not opened', async () => {
  const home = homeWith({ '.claude/projects/a/s1.jsonl': claude('s1') });
  const [file] = (await found(home)).files;
  if (file === undefined) throw new Error('it was not found');
  const { tool, facts, ...rest } = file;
  const read = { line: 1, offset: 0, digest: { size: 0, blocks: [], tail: '' } };
  const source: Source = { ...rest, ...facts, tool: tool.name, session: 'as recorded', read, at: 1 };
  const { files } = await found(home, { known: (path) => (path === file.path ? source : undefined) });
  expect(files.map(({ session }) => session)).toEqual(['as recorded']);
  // A microsecond later is another time, though the file has the same size.
  const later = facts.modified - 0.001;
  const changed = await found(home, { known: () => ({ ...source, modified: later }) });
  expect(changed.files).toMatchObject([{ session: 's1', facts }]);
  // As where a number would lose digits.
  const other = await found(home, { known: () => ({ ...source, inode: '9007199254740993' }) });
  expect(other.files).toMatchObject([{ session: 's1', facts }]);
});

const samples = join(import.meta.dirname, '../../../shared/samples');

test.skipIf(!existsSync(samples))('every real file is known as what it is', async () => {
  const { files, strangers, problems } = await discover({
    place: { env: {}, home: top },
    tools: transcriptTools,
    paths: [samples],
  });
  const ofTool = Object.groupBy(files, ({ tool }) => tool.name);
  for (const [name, list = []] of Object.entries(ofTool))
    expect(list.map(({ path }) => relative(samples, path).split('/')[0])).toEqual(list.map(() => name));
  expect([problems, strangers]).toEqual([[], []]);
  // In their folder, and each by itself.
  const all = readdirSync(samples, { recursive: true, encoding: 'utf8' }).filter((path) =>
    /\.jsonl?$/.test(path),
  );
  expect(files.map(({ path }) => relative(samples, path)).toSorted()).toEqual(all.toSorted());
  for (const path of all) {
    const [one] = (await found(top, { paths: [join(samples, path)] })).files;
    expect([path, one?.tool.name]).toEqual([path, path.split('/')[0]]);
  }
});

test('a tool says once for all files of a search what lies beside them, whatever their number', async () => {
  const names = Array.from({ length: 20 }, (_, i) => `s${i}.jsonl`);
  const home = homeWith({
    ...Object.fromEntries(names.map((name) => [`copied/${name}`, claude(name.slice(0, -6))])),
    'copied/agent-a1.jsonl': agent('s1', 'a1'),
  });
  const beside = vi.fn(claudeCode.beside);
  const tools = transcriptTools.map((tool) => (tool === claudeCode ? { ...tool, beside } : tool));
  const some = names.slice(0, 10).map((name) => join(home, 'copied', name));
  const { paths } = await found(home, { tools, paths: some });
  expect(beside).toHaveBeenCalledTimes(1);
  expect(beside.mock.calls[0]?.[0].map(({ path }) => path)).toEqual(some);
  expect(paths.toSorted()).toEqual(
    ['copied/agent-a1.jsonl', ...some.map((path) => relative(home, path))].toSorted(),
  );
});
