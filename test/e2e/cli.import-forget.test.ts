import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  conversationsIn,
  discover,
  importConversation,
  Origins,
  parseJsonLines,
  planClaudeCode,
  reconcile,
  SourceTable,
  transcriptTools,
} from '@tapedeck/runtime/import';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { wrapStore } from '@tapedeck/tape/store';
import Database from 'better-sqlite3';
import { expect, test, vi } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { script, tapeProgram } from '../support/programs.ts';
import { rawDb } from '../support/raw-db.ts';
import { timesRun } from '../support/statements-run.ts';
import { skipsTracing } from '../support/strace.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tempHome } from '../support/temp-home.ts';
import { calls } from '../support/transcript.ts';

const secretWord = 'aardvark';

/** The id of a record: of a session, by its number, as Claude Code gives one that no other record has. */
const uuid = (session: string, n: number) =>
  `${session}${String(n).padStart(8 - session.length, '0')}-0000-4000-8000-000000000000`;

/** Turns by the letter of their session and their number: `a0 a1`. */
const turns = (list: string) => list.split(' ').map(([of = '', n]) => [of, Number(n)] as const);

/** Records of a session: a turn for each number; a copy has those of another session first. */
function records(sessionId: string, turns: readonly (readonly [of: string, n: number, parent?: number])[]) {
  return turns.flatMap(([of, n, parent = n - 1]) => {
    const shared = {
      sessionId,
      cwd: `/srv/${sessionId}`,
      isSidechain: false,
      timestamp: '2026-01-02T03:04:05.000Z',
    };
    const [asked, said, before] = [uuid(of, 2 * n), uuid(of, 2 * n + 1), uuid(of, 2 * parent + 1)];
    const copied = of === sessionId ? {} : { forkedFrom: { sessionId: of } };
    return [
      {
        ...shared,
        ...copied,
        type: 'user',
        uuid: asked,
        parentUuid: n === 0 ? null : before,
        message: { role: 'user', content: `${secretWord} ${of} ${n}` },
      },
      {
        ...shared,
        ...copied,
        type: 'assistant',
        uuid: said,
        parentUuid: asked,
        message: { id: `m-${said}`, role: 'assistant', content: [{ type: 'text', text: `said ${of} ${n}` }] },
      },
    ];
  });
}

/** Records that have no ids, a prompt for each text. */
const plain = (...texts: string[]) =>
  texts.map((content) => ({ type: 'user', message: { role: 'user', content: `${secretWord} ${content}` } }));

const titled = (sessionId: string) => ({
  type: 'custom-title',
  customTitle: `${secretWord} title`,
  sessionId,
});

function user() {
  const dir = tempDir();
  const home = tempHome();
  const env = { HOME: dir.path };
  const file = (path: string) => dir.file(`.claude/projects/p/${path}`);
  const write = (path: string, lines: readonly object[]) => {
    mkdirSync(dirname(file(path)), { recursive: true });
    writeFileSync(file(path), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  };
  const run = async (...args: string[]) => await home.here(args, { env });
  return {
    ...{ dir, home, env, file, write, run },
    imports: async (...args: string[]) => json(await run('import', ...args, '--json')),
    /** Whether a text is anywhere in the files of the home. */
    holds: (text: string) =>
      ['tape.db', 'session_graph.jsonl', 'sources.jsonl'].filter(
        (name) => existsSync(home.file(name)) && readFileSync(home.file(name)).includes(text),
      ),
    [Symbol.dispose]: () => {
      home[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
}

test('a word that is the name of one session and the id of another is refused', async () => {
  using at = user();
  at.write('a.jsonl', records('a', turns('a0')));
  await at.imports();
  await at.run('rename', 'a', 'b');
  at.write('b.jsonl', records('b', turns('b0')));
  await at.imports();
  const refused = await at.run('import', '--forget', 'b');
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(at.file('b.jsonl'))]);
  const [, id = ''] = /other one: (\w+)/.exec(refused.stderr) ?? [];
  expect(await at.imports('--forget', id)).toMatchObject({ names: ['a'] });
  expect(await at.imports('--forget', at.file('b.jsonl'))).toMatchObject({ names: ['b-2'] });
});

test('an empty word forgets nothing: it is no name of the working directory', async () => {
  using at = user();
  at.write('a.jsonl', records('a', turns('a0')));
  await at.imports();
  mkdirSync(at.home.file('work'));
  copyFileSync(at.file('a.jsonl'), at.home.file('work/a.jsonl'));
  for (const words of [['--forget', ''], [''], ['--project', '']]) {
    const refused = await at.home.here(['import', ...words], { env: at.env, cwd: at.home.file('work') });
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringMatching(/empty|names no file/)]);
  }
  expect(at.holds(secretWord)).toContain('tape.db');
});

test('a word that is the name of a session and of a folder with transcripts is refused', async () => {
  using at = user();
  at.write('a.jsonl', records('a', turns('a0')));
  await at.imports();
  await at.run('rename', 'a', 'app');
  const work = at.home.file('work');
  mkdirSync(`${work}/app`, { recursive: true });
  writeFileSync(`${work}/app/b.jsonl`, readFileSync(at.file('a.jsonl'), 'utf8').replaceAll('"a"', '"b"'));
  const forget = async (word: string) =>
    await at.home.here(['import', '--forget', word, '--dry-run', '--json'], { env: at.env, cwd: work });
  const refused = await forget('app');
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(`${work}/app`)]);
  expect(json(await forget('./app'))).toMatchObject({ forgotten: [`${work}/app/b.jsonl`] });
  expect(json(await forget('a'))).toMatchObject({ forgotten: [at.file('a.jsonl')] });
});

test('a folder is forgotten with what was read of it and is gone, left out, or has another session now', async () => {
  using at = user();
  const paths = [
    'p/gone.jsonl',
    'p/kept.jsonl',
    'p/other.jsonl',
    'q/moved.jsonl',
    'q/r/last.jsonl',
    'pq.jsonl',
  ];
  for (const [i, path] of paths.entries()) at.write(path, records(`${i}`, turns(`${i}0`)));
  await at.imports();
  rmSync(at.file('p/gone.jsonl'));
  at.write('p/other.jsonl', records('7', turns('70')));
  writeFileSync(at.file('p/.tapeignore'), 'kept.jsonl\n');
  symlinkSync(at.file('p'), at.home.file('link'));
  const forget = async (...words: string[]) =>
    ((await at.imports('--forget', ...words)).names as string[]).sort();
  expect(await forget(at.home.file('link'), '--dry-run')).toEqual(['0', '1', '2']);
  expect(await forget(at.file('p'))).toEqual(['0', '1', '2']);
  // What was read at a path, and is elsewhere by now, did not go with the folder.
  mkdirSync(at.file('kept'));
  copyFileSync(at.file('q/moved.jsonl'), at.file('kept/moved.jsonl'));
  await at.imports();
  for (const dir of ['q', 'p/other.jsonl']) rmSync(at.file(dir), { recursive: true });
  expect(await forget(at.file('q'))).toEqual(['4']);
  for (const n of [0, 1, 2, 4, 7]) expect(at.holds(`${secretWord} ${n} 0`)).toEqual([]);
  for (const n of [3, 5]) expect(at.holds(`${secretWord} ${n} 0`)).toEqual(['tape.db']);
});

test.each([
  ['a path', '/etc/passwd'],
  ['with a space', 'my chat'],
  ['of signs alone', '😀'],
  ['like one of a session here', '01J0000000000000000000000A'],
])('a session is imported and forgotten whose id is no name here: %s', async (_, id) => {
  using at = user();
  at.write('a.jsonl', records(id, [[id, 0]]));
  at.write('b.jsonl', records('b', turns('b0')));
  const { names } = await at.imports();
  expect(names).toEqual([expect.stringMatching(/^claude-code-/), 'b']);
  const name = (names as string[])[0] ?? '';
  expect(await at.imports('--forget', at.file('a.jsonl'))).toMatchObject({ names: [name], entries: 2 });
  expect(at.holds(`${secretWord} ${id}`)).toEqual([]);
  await at.imports();
  expect(at.holds(secretWord)).toEqual(['tape.db']);
  // One that was never imported, too.
  at.write('c.jsonl', records(`${id}2`, [[`${id}2`, 0]]));
  expect(await at.imports('--forget', at.file('c.jsonl'))).toMatchObject({ entries: 0 });
  expect((await at.run('import')).stderr).toContain('2 files left out as forgotten');
});

test('the file and its search index are written anew once for all sessions of a folder', async () => {
  using at = user();
  for (const one of ['a', 'b', 'c']) at.write(`p/${one}.jsonl`, records(one, turns(`${one}0`)));
  await at.imports();
  expect(json(await at.run('search', '--all', secretWord, '--json')).hits).toHaveLength(3);
  const acts = vi.spyOn(Database.prototype, 'exec');
  const forget = async () =>
    expect(await at.imports('--forget', at.file('p'))).toMatchObject({ entries: 6, log_emptied: true });
  try {
    expect(await timesRun(`'optimize'`, forget)).toBe(1);
    expect(acts.mock.calls.filter(([sql]) => sql === 'VACUUM')).toHaveLength(1);
  } finally {
    acts.mockRestore();
  }
  expect(at.holds(secretWord)).toEqual([]);
});

/** Forgets a source, and is killed at a point of that. */
const killedForget = `
  import { main, nodeIo } from '@tapedeck/cli';
  import { onCrashPoint } from '@tapedeck/tape/crash-point';
  const [point, ...words] = process.argv.slice(1);
  onCrashPoint((at) => {
    if (at === point) process.kill(process.pid, 'SIGKILL');
  });
  await main(words, nodeIo());
`;

test.each(['redact/before-checkpoint', 'wipe/words'])(
  'forgetting that is killed at %s is known to a check, and leaves nothing in the file once it is repeated',
  async (point) => {
    using at = user();
    for (const one of ['a', 'b']) at.write(`p/${one}.jsonl`, records(one, turns(`${one}0`)));
    await at.imports();
    expect(json(await at.run('search', '--all', secretWord, '--json')).hits).toHaveLength(2);
    const words = ['import', '--forget', at.file('p')];
    const { args, cwd } = script(killedForget);
    const child = spawn(process.execPath, [...args, point, ...words, '--home', at.home.path], {
      cwd,
      env: { ...process.env, ...at.env },
      stdio: 'inherit',
    });
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
    expect((await at.run('check')).stdout).toContain('content-left');
    expect(at.holds(secretWord)).toContain('tape.db');
    expect(await at.imports('--forget', at.file('p'))).toMatchObject({ log_emptied: true });
    expect(at.holds(secretWord)).toEqual([]);
    expect((await at.run('check')).code).toBe(0);
  },
);

test('of a folder, the tape also remembers the sessions that were never imported', async () => {
  using at = user();
  for (const name of ['a', 'b']) at.write(`${name}.jsonl`, records(name, turns(`${name}0`)));
  await at.imports(at.file('a.jsonl'));
  await at.imports('--forget', at.file('.'));
  rmSync(at.home.file('sources.jsonl'));
  await at.imports();
  expect(at.holds(secretWord)).toEqual([]);
  const refused = await at.run('import', '--forget', '/');
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('all files of the machine')]);
});

test('all of a conversation is erased: branches, subagents, titles, copies, and what the home knows of its files', async () => {
  using at = user();
  at.write('a.jsonl', [
    ...records('a', [
      ['a', 0],
      ['a', 1],
      ['a', 2, 0],
    ]),
    titled('a'),
  ]);
  at.write(
    'a/subagents/agent-x.jsonl',
    records('a', [['a', 7, 3]]).map((one) => ({ ...one, isSidechain: true, agentId: 'x' })),
  );
  at.write('b.jsonl', records('b', turns('b0')));
  await at.imports();
  at.write('c.jsonl', records('c', turns('a0 a1 c2')));
  await at.imports();
  expect(at.holds(secretWord)).not.toEqual([]);
  const dry = await at.imports('--forget', at.file('a.jsonl'), '--dry-run');
  expect(await at.imports('--forget', at.file('a.jsonl'))).toMatchObject({
    entries: dry.entries,
    names: dry.names,
  });
  const { stdout } = await at.run('search', secretWord, '--all', '--quiet');
  const texts = await Promise.all(
    stdout
      .trim()
      .split('\n')
      .map(async (one) => (await at.run('show', one)).stdout),
  );
  expect(texts.filter((text) => !/aardvark [bc] /.test(text))).toEqual([]);
  expect(at.holds(`${secretWord} a `)).toEqual([]);
  expect(at.holds(`${secretWord} title`)).toEqual([]);
  expect(at.holds('/srv/a')).toEqual([]);
  expect((await at.run('check')).code).toBe(0);
  // What is forgotten stays so when it grows, and its copy goes on.
  at.write('a.jsonl', [...records('a', turns('a0 a1 a3')), titled('a')]);
  at.write('c.jsonl', records('c', turns('a0 a1 c2 c3')));
  await at.imports();
  expect(at.holds(`${secretWord} a `)).toEqual([]);
  expect(at.holds(`${secretWord} c 3`)).toEqual(['tape.db']);
});

test.each([
  // Both have a title that says what they begin with.
  ['before', ['c', 'a'], 6],
  ['after', ['a', 'c'], 4],
] as const)(
  'a copy that was imported %s its source is forgotten with what both have, and nothing else',
  async (_, order, entries) => {
    using at = user();
    // Both work in one directory, and no record says which of them is the source.
    const file = (of: string, list: string) =>
      records(of, turns(list)).map((one) => ({
        ...one,
        ...{ cwd: '/srv', forkedFrom: undefined },
        ...(one.uuid === uuid(of, 2) && { parentUuid: uuid('a', 1) }),
      }));
    for (const one of order) {
      at.write(`${one}.jsonl`, file(one, `a0 ${one}1`));
      await at.imports();
    }
    const dry = await at.imports('--forget', 'c', '--dry-run');
    expect(dry).toMatchObject({ entries });
    expect(await at.imports('--forget', 'c')).toMatchObject({ entries: dry.entries, names: dry.names });
    const held = ['a 0', 'c 1', 'a 1'].map((text) => at.holds(`${secretWord} ${text}`));
    expect(held).toEqual([[], [], ['tape.db']]);
    // The source goes on, and brings nothing of that back.
    at.write('a.jsonl', file('a', 'a0 a1 a2'));
    expect(await at.imports()).toMatchObject({ names: ['a'], entries: 2 });
    expect(at.holds(`${secretWord} a 0`)).toEqual([]);
    expect((await at.run('check')).code).toBe(0);
  },
);

test('a copy that comes after its source was forgotten does not bring it back', async () => {
  using at = user();
  at.write('a.jsonl', records('a', turns('a0 a1')));
  await at.imports();
  await at.imports('--forget', 'a');
  at.write('c.jsonl', records('c', turns('a0 a1 c2')));
  await at.imports();
  expect(at.holds(`${secretWord} a `)).toEqual([]);
  expect(at.holds(`${secretWord} c 2`)).toEqual(['tape.db']);
});

/** A source that was compacted, and a copy of it that begins with the compaction, as those of `--fork-session` do. */
function compactedCopy() {
  const boundary = uuid('a', 90);
  const [early, late] = [records('a', turns('a0 a1')), records('a', turns('a5'))];
  const shared = { sessionId: 'a', cwd: '/srv/a', isSidechain: false, timestamp: '2026-01-02T03:05:05.000Z' };
  const compacted = [
    {
      ...{ ...shared, type: 'system', subtype: 'compact_boundary', uuid: boundary, parentUuid: null },
      ...{ logicalParentUuid: uuid('a', 3), compactMetadata: { trigger: 'manual', preTokens: 9 } },
    },
    {
      ...{ ...shared, type: 'user', uuid: uuid('a', 91), parentUuid: boundary, isCompactSummary: true },
      message: { role: 'user', content: `${secretWord} summary` },
    },
    ...late.map((one, n) => (n === 0 ? { ...one, parentUuid: uuid('a', 91) } : one)),
  ];
  const own = records('c', turns('c9')).map((one, n) =>
    n === 0 ? { ...one, parentUuid: uuid('a', 11) } : one,
  );
  const copied = compacted.map((one) => ({ ...one, sessionId: 'c' }));
  return { source: [...early, ...compacted], copy: [...copied, ...own] };
}

test('a summary goes from a copy under other ids that begins at a later compaction', async () => {
  using at = user();
  const { source } = compactedCopy();
  const shared = { sessionId: 'a', cwd: '/srv/a', isSidechain: false, timestamp: '2026-01-02T03:06:06.000Z' };
  const again = [
    {
      ...{ ...shared, type: 'system', subtype: 'compact_boundary', uuid: uuid('a', 92), parentUuid: null },
      ...{ logicalParentUuid: uuid('a', 11), compactMetadata: { trigger: 'manual', preTokens: 9 } },
    },
    {
      ...{ ...shared, type: 'user', uuid: uuid('a', 93), parentUuid: uuid('a', 92), isCompactSummary: true },
      message: { role: 'user', content: `${secretWord} second summary` },
    },
  ];
  at.write('a.jsonl', [...source, ...again]);
  const copied = again.map((one, n) => ({ ...one, sessionId: 'c', uuid: uuid('c', n), parentUuid: null }));
  const own = records('c', turns('c9')).map((one, n) =>
    n === 0 ? { ...one, parentUuid: uuid('c', 1) } : one,
  );
  at.write('c.jsonl', [...copied, ...own]);
  await at.imports();
  await at.imports('--forget', 'a');
  expect(at.holds('summary')).toEqual([]);
  expect(at.holds(`${secretWord} c 9`)).toEqual(['tape.db']);
});

test.each(['source', 'copy'] as const)(
  'of the source of a copy that begins with a compaction, what precedes that stays; the %s came first',
  async (first) => {
    using at = user();
    const files = compactedCopy();
    const write = {
      source: () => at.write('a.jsonl', files.source),
      copy: () => at.write('c.jsonl', files.copy),
    };
    for (const one of first === 'source' ? (['source', 'copy'] as const) : (['copy', 'source'] as const)) {
      write[one]();
      await at.imports();
    }
    for (const dry of [['--dry-run'], []]) {
      expect(await at.imports('--forget', at.file('c.jsonl'), ...dry)).toMatchObject({ names: ['c', 'a'] });
    }
    for (const lost of ['summary', 'a 5', 'c 9']) expect(at.holds(`${secretWord} ${lost}`)).toEqual([]);
    for (const kept of ['a 0', 'a 1']) expect(at.holds(`${secretWord} ${kept}`)).toEqual(['tape.db']);
    expect((await at.run('check')).code).toBe(0);
  },
);

test('a title goes that a copy has of what its source was copied from, where it has nothing else of that', async () => {
  using at = user();
  const { source, copy } = compactedCopy();
  at.write('c.jsonl', copy);
  await at.imports();
  at.write(
    'x.jsonl',
    records('a', turns('a0')).map((one) => ({ ...one, sessionId: 'x' })),
  );
  await at.imports();
  at.write('a.jsonl', source);
  await at.imports();
  const title = `${secretWord} a 0`;
  expect(json(await at.run('sessions', '--json'))).toContainEqual(
    expect.objectContaining({ session: 'c', title, link: expect.objectContaining({ parent: 'a' }) }),
  );
  await at.imports('--forget', 'x');
  expect(at.holds(title)).toEqual([]);
  expect(at.holds(`${secretWord} c 9`)).toEqual(['tape.db']);
});

test('what a tool notes of a session that was cleared goes with a copy of what follows', async () => {
  using at = user();
  const begun = records('a', turns('a0'));
  const cleared = {
    ...begun[0],
    uuid: uuid('a', 50),
    parentUuid: null,
    message: { role: 'user', content: '<command-name>/clear</command-name>' },
  };
  const behind = records('a', turns('a7')).map((one, n) =>
    n === 0 ? { ...one, parentUuid: cleared.uuid } : one,
  );
  const prompt = `${secretWord} a 7`;
  at.write('a.jsonl', [
    ...begun,
    { type: 'last-prompt', lastPrompt: `${secretWord} a 0`, leafUuid: uuid('a', 1), sessionId: 'a' },
    cleared,
    {
      type: 'queue-operation',
      operation: 'enqueue',
      content: prompt,
      sessionId: 'a',
      timestamp: '2026-01-02T03:04:06.000Z',
    },
    ...behind,
    { type: 'last-prompt', lastPrompt: prompt, leafUuid: uuid('a', 15), sessionId: 'a' },
  ]);
  const copied = [cleared, ...behind].map((one) => ({
    ...one,
    sessionId: 'c',
    forkedFrom: { sessionId: 'a', messageUuid: one.uuid },
  }));
  at.write('c.jsonl', copied);
  await at.imports();
  await at.imports('--forget', at.file('c.jsonl'));
  expect(at.holds(prompt)).toEqual([]);
  expect(at.holds(`${secretWord} a 0`)).toEqual(['tape.db']);
});

test.each(['imported', 'not imported'])(
  'an exported session keeps what a forgotten continuation of it began with, which was %s',
  async (was) => {
    using at = user();
    at.write('a.jsonl', records('a', turns('a0 a1')));
    await at.imports();
    const { file } = json(
      await at.run('export', 'a', '--format', 'claude-code', '--project', at.dir.path, '--json'),
    );
    const lines = readFileSync(String(file), 'utf8').trim().split('\n');
    const last = JSON.parse(lines.findLast((line) => line.includes('"uuid"')) ?? '');
    const own = records('b', turns('b5')).map((one, n) => ({
      ...{ ...one, sessionId: last.sessionId, forkedFrom: undefined },
      ...(n === 0 && { parentUuid: last.uuid }),
    }));
    writeFileSync(String(file), `${[...lines, ...own.map((one) => JSON.stringify(one))].join('\n')}\n`);
    if (was === 'imported') await at.imports();
    expect(at.holds(`${secretWord} b 5`)).toEqual(was === 'imported' ? ['tape.db'] : []);
    await at.imports('--forget', String(file));
    expect(at.holds(`${secretWord} b 5`)).toEqual([]);
    for (const kept of ['a 0', 'a 1']) expect(at.holds(`${secretWord} ${kept}`)).toEqual(['tape.db']);
  },
);

test('what was never imported goes from its copies, and does not come with later ones', async () => {
  using at = user();
  const copy = (list: string) => at.write('c.jsonl', records('c', turns(list)));
  copy('a0 c3');
  at.write('d.jsonl', records('d', turns('d0')));
  await at.imports();
  const agent = records('a', [['a', 7, 3]]).map((one) => ({ ...one, isSidechain: true, agentId: 'x' }));
  at.write('a.jsonl', [...records('a', turns('a0 a1 a2')), titled('a')]);
  at.write('a/subagents/agent-x.jsonl', agent);
  const dry = await at.imports('--forget', at.file('a.jsonl'), '--dry-run');
  expect(at.holds(`${secretWord} a 0`)).toEqual(['tape.db']);
  expect(dry).toMatchObject({ entries: 2, names: ['c'] });
  expect(await at.imports('--forget', at.file('a.jsonl'))).toMatchObject({ entries: 2, names: ['c'] });
  expect(at.holds(`${secretWord} a`)).toEqual([]);
  // The copy goes on, and another one comes, and one of the subagent.
  copy('a0 a1 c3 c4');
  at.write('e.jsonl', records('e', turns('a0 a1 a2 e3')));
  at.write(
    'e/subagents/agent-x.jsonl',
    agent.map((one) => ({ ...one, sessionId: 'e' })),
  );
  await at.imports();
  expect(at.holds(`${secretWord} a`)).toEqual([]);
  for (const own of ['c 3', 'c 4', 'd 0', 'e 3'])
    expect(at.holds(`${secretWord} ${own}`)).toEqual(['tape.db']);
  expect((await at.run('sessions', '--quiet')).stdout).not.toMatch(/^a$/m);
  expect((await at.run('check')).code).toBe(0);
});

test('a title goes that a copy under other ids has of what was never imported', async () => {
  using at = user();
  const id = (of: string, n: number) => `${of}${String(n).padStart(7, '0')}-0000-4000-8000-000000000000`;
  /** Two turns of the source under some ids, and as many of a session's own. */
  const file = (sessionId: string, ids: string, more: object = {}) =>
    [1, 2, 3, 4, 5, 6, 7, 8].map((n) => {
      const of = n > 4 ? sessionId : ids;
      const isAnswer = n % 2 === 0;
      const text = `${n > 4 ? sessionId : `${secretWord} a`} says ${n}`;
      return {
        ...{ sessionId, cwd: '/srv', isSidechain: false, timestamp: `2026-01-02T03:04:0${n}.500Z` },
        ...{ uuid: id(of, n), parentUuid: n === 1 ? null : id(n > 5 ? sessionId : ids, n - 1) },
        ...(isAnswer
          ? { type: 'assistant', requestId: `r-${n > 4 ? sessionId : 'a'}-${n}` }
          : { type: 'user' }),
        message: isAnswer
          ? {
              ...{ id: `m-${n > 4 ? sessionId : 'a'}-${n}`, role: 'assistant' },
              ...{ content: [{ type: 'text', text }], usage: { input_tokens: 3, output_tokens: 2 } },
            }
          : { role: 'user', content: text },
        ...(n < 5 && more),
      };
    });
  at.write('d.jsonl', file('d', 'a', { forkedFrom: { sessionId: 'a' } }));
  await at.imports();
  at.write('c.jsonl', file('c', 'cf').slice(0, 6));
  await at.imports();
  expect(at.holds(secretWord)).toEqual(['tape.db']);
  at.write('a.jsonl', file('a', 'a').slice(0, 4));
  await at.imports('--forget', at.file('a.jsonl'));
  expect(at.holds(secretWord)).toEqual([]);
  for (const kept of ['c says 5', 'd says 5']) expect(at.holds(kept)).toEqual(['tape.db']);
});

test('a title that ends as that of a branch goes from a copy, too, where it is that of what is forgotten', async () => {
  using at = user();
  const title = `${secretWord} plan (Branch)`;
  const named = (id: string) => ({ type: 'custom-title', customTitle: title, sessionId: id });
  at.write('a.jsonl', [...records('a', turns('a0')), named('a')]);
  at.write(
    'b.jsonl',
    [...records('a', turns('a0')), named('b')].map((one) => ({ ...one, sessionId: 'b' })),
  );
  await at.imports();
  await at.imports('--forget', 'a');
  expect(at.holds(`${secretWord} plan`)).toEqual([]);
});

test('the same title in a session that has nothing else of what is forgotten stays', async () => {
  using at = user();
  const named = (id: string) => ({ type: 'custom-title', customTitle: 'Explore the code', sessionId: id });
  at.write('a.jsonl', [...records('a', turns('a0')), named('a')]);
  at.write('b.jsonl', [...records('b', turns('b0')), named('b')]);
  await at.imports();
  const forgotten = await at.imports('--forget', 'a');
  expect(forgotten).toMatchObject({ names: ['a'] });
  const sessions = json(await at.run('sessions', '--json'));
  expect(sessions).toContainEqual(expect.objectContaining({ session: 'b', title: 'Explore the code' }));
});

test('what a source got since it was imported goes from its copies, too', async () => {
  using at = user();
  at.write('a.jsonl', records('a', turns('a0')));
  await at.imports();
  at.write('a.jsonl', records('a', turns('a0 a1 a2')));
  at.write('c.jsonl', records('c', turns('a0 a1 c3')));
  await at.imports(at.file('c.jsonl'));
  await at.imports('--forget', 'a');
  expect(at.holds(`${secretWord} a`)).toEqual([]);
  at.write('c.jsonl', records('c', turns('a0 a1 a2 c3')));
  await at.imports();
  expect(at.holds(`${secretWord} a`)).toEqual([]);
  expect(at.holds(`${secretWord} c 3`)).toEqual(['tape.db']);
  expect((await at.run('check')).code).toBe(0);
});

test('a source is forgotten in the middle of an answer that got another call since it was imported', async () => {
  using at = user();
  const [asked = {}] = records('a', turns('a0'));
  const called = (n: number) => ({
    ...{ ...asked, type: 'assistant', uuid: `c${n}`, parentUuid: n === 1 ? uuid('a', 0) : 'c1' },
    timestamp: `2026-01-02T03:04:0${5 + n}.000Z`,
    message: { id: 'm', role: 'assistant', content: [calls(`t${n}`, 'Read', { path: secretWord })] },
  });
  at.write('a.jsonl', [asked, called(1)]);
  await at.imports();
  at.write('a.jsonl', [asked, called(1), called(2)]);
  expect(await at.run('import', '--forget', at.file('a.jsonl'))).toMatchObject({ code: 0 });
  expect(at.holds(secretWord)).toEqual([]);
  expect((await at.run('check')).code).toBe(0);
});

test('of a source that cannot be read, what its copies have stays, and the command says so', async () => {
  using at = user();
  at.write('a.jsonl', records('a', turns('a0')));
  at.write('c.jsonl', records('c', turns('a0 c1')));
  await at.imports(at.file('c.jsonl'));
  writeFileSync(at.file('a.jsonl'), `${JSON.stringify(records('a', turns('a0'))[0])}\n{\n{\n{\n`);
  const said = await at.run('import', '--forget', at.file('a.jsonl'));
  expect([said.code, said.stderr]).toEqual([0, expect.stringContaining('is not known, and stays')]);
});

test('a file that cannot be opened as a transcript is named, since nothing of it is forgotten', async () => {
  using at = user();
  at.write('a.jsonl', records('a', turns('a0')));
  await at.imports();
  const damaged = at.file('b.jsonl.gz');
  writeFileSync(damaged, Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0]));
  const said = await at.run('import', '--forget', dirname(damaged));
  expect([said.code, said.stderr]).toEqual([0, expect.stringContaining(`Left out ${damaged}: `)]);
  expect(said.stderr).toContain('; nothing of it is forgotten');
});

test.each(['imported', 'not imported'])(
  'nor does a copy of an old `--resume` of one that was %s, whose records have other ids',
  async (was) => {
    using at = user();
    const file = (sessionId: string, last: number) =>
      records(
        sessionId,
        [...Array(last).keys()].map((n) => ['a', n] as const),
      ).map((one, n) => ({
        ...one,
        ...{ uuid: `${sessionId}${one.uuid}`, parentUuid: one.parentUuid && `${sessionId}${one.parentUuid}` },
        ...{ forkedFrom: undefined, timestamp: `2026-01-02T03:04:0${n}.000Z` },
        ...(one.type === 'assistant' && { requestId: `req_${n}` }),
      }));
    at.write('a.jsonl', file('a', 2));
    if (was === 'imported') await at.imports();
    await at.imports('--forget', at.file('a.jsonl'));
    at.write('c.jsonl', file('c', 3));
    expect(await at.imports()).toMatchObject({ names: ['c'] });
    const held = [0, 1, 2].map((n) => at.holds(`${secretWord} a ${n}`));
    expect(held).toEqual([[], [], ['tape.db']]);
    expect((await at.run('check')).code).toBe(0);
  },
);

test('a copy is known by what its records say: in another directory, under other ids, and where it is quoted', async () => {
  using at = user();
  const at1 = (n: number) => `2026-01-02T03:04:0${n}.000Z`;
  const said = (sessionId: string, id: string, texts: readonly string[]) =>
    texts.map((text, n) => ({
      ...{ type: 'user', sessionId, cwd: `/srv/${sessionId}`, isSidechain: false, timestamp: at1(n) },
      uuid: `${id}${n}`,
      parentUuid: n === 0 ? null : `${id}${n - 1}`,
      message: { role: 'user', content: text },
    }));
  const first = [`${secretWord} one`, `${secretWord} two`];
  const quote = { type: 'last-prompt', lastPrompt: first[1] };
  const untimed = (sessionId: string) => said(sessionId, 'm', first).map(({ timestamp: _, ...rest }) => rest);
  at.write('a.jsonl', [...said('a', 'r', first), ...untimed('a'), titled('a')]);
  // As `--fork-session`, an old `--resume`, and a program that gives no times leave copies.
  at.write('b.jsonl', [...said('b', 'r', [...first, 'own b']), { ...quote, sessionId: 'b' }, titled('b')]);
  at.write('c.jsonl', said('c', 'x', [...first, 'own c']));
  at.write('d.jsonl', [...untimed('d'), { ...quote, sessionId: 'd' }]);
  // Another one says the same of its own.
  const alike = said('e', 'y', first).map((one, n) => ({ ...one, timestamp: at1(n + 5) }));
  at.write('e.jsonl', [...alike, { ...quote, sessionId: 'e' }]);
  await at.imports();
  const viewOf = async (session: string) => (await at.run('view', session)).stdout;
  const before = await viewOf('e');
  await at.imports('--forget', 'a');
  for (const session of ['b', 'c', 'd']) expect(await viewOf(session)).not.toContain(secretWord);
  for (const session of ['b', 'c']) expect(await viewOf(session)).toContain(`own ${session}`);
  expect(await viewOf('e')).toBe(before);
  expect(at.holds(`${secretWord} title`)).toEqual([]);
  at.write('b.jsonl', [...said('b', 'r', [...first, 'own b', 'later']), titled('b')]);
  await at.imports();
  expect(await viewOf('b')).not.toContain(secretWord);
  expect(at.holds(`${secretWord} title`)).toEqual([]);
  await at.imports('--forget', 'e');
  expect(at.holds(secretWord)).toEqual([]);
});

test('what was redacted in a source before it is forgotten goes from its copies, too, with what quotes it', async () => {
  using at = user();
  const said = (sessionId: string, id: string, texts: readonly string[]) =>
    texts.map((text, n) => ({
      ...{
        type: 'user',
        sessionId,
        cwd: '/srv',
        isSidechain: false,
        timestamp: `2026-01-02T03:04:05.00${n + 1}Z`,
      },
      uuid: `${id}${n}`,
      parentUuid: n === 0 ? null : `${id}${n - 1}`,
      message: { role: 'user', content: text },
    }));
  const both = ['one', 'two'].map((text) => `${secretWord} ${text} of both`);
  at.write('a.jsonl', said('a', 'r', both));
  at.write('c.jsonl', [
    ...said('c', 'x', [...both, 'own c']),
    { type: 'last-prompt', lastPrompt: both[1], sessionId: 'c' },
  ]);
  // Another one said something at the same time.
  at.write('e.jsonl', said('e', 'y', ['own e', 'else e']));
  // Each is imported before it could be known as a copy.
  for (const one of ['c', 'e']) await at.imports(at.file(`${one}.jsonl`));
  await at.imports(at.file('a.jsonl'), '--as', 'a');
  const { stdout } = await at.run('search', 'two', '--quiet');
  const place = stdout.split('\n').find((one) => one.startsWith('a@'));
  expect((await at.run('redact', String(place), '--reason', 'private')).code).toBe(0);
  expect(at.holds('two of both')).toEqual(['tape.db']);
  await at.imports('--forget', 'a');
  expect(at.holds('of both')).toEqual([]);
  for (const text of ['own c', 'own e', 'else e']) expect(at.holds(text)).toEqual(['tape.db']);
  expect((await at.run('check')).code).toBe(0);
});

test('a copy of records without ids is known by its beginning, under any name; so is one that was never imported', async () => {
  using at = user();
  at.write('one.jsonl', plain('1', '2'));
  at.write('two.jsonl', plain('3'));
  await at.imports(at.file('one.jsonl'));
  await at.imports('--forget', at.file('one.jsonl'));
  await at.imports('--forget', at.file('two.jsonl'));
  at.write('q/copy.jsonl', plain('1', '2', '4'));
  at.write('q/again.jsonl', plain('3'));
  at.write('q/other.jsonl', plain('1', '5'));
  expect(await at.imports()).toMatchObject({ names: ['other'] });
  expect((await at.run('import')).stdout).not.toContain('entries');
  expect(jsonError(await at.run('import', at.file('q/copy.jsonl'), '--json'))).toMatchObject({
    code: 'IMPORT_FORGOTTEN',
  });
});

test('the tape remembers it: without the table, for a named file, and in another home', async () => {
  using at = user();
  at.write('a.jsonl', [...records('a', turns('a0')), titled('a')]);
  await at.imports();
  await at.imports('--forget', 'a');
  const grown = records('a', turns('a0 a1'));
  at.write('a.jsonl', grown);
  rmSync(at.home.file('sources.jsonl'));
  expect(jsonError(await at.run('import', at.file('a.jsonl'), '--json'))).toMatchObject({
    code: 'IMPORT_FORGOTTEN',
  });
  const said = await at.run('import');
  expect(said).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('1 file left out as forgotten'),
  });
  // Now the table knows it again.
  expect(await at.imports()).toMatchObject({ entries: 0, files: [] });
  await at.run('export', 'a', '-o', at.dir.file('a.tape'));
  using other = user();
  copyFileSync(at.dir.file('a.tape'), other.dir.file('a.tape'));
  await other.imports(other.dir.file('a.tape'));
  other.write('a.jsonl', grown);
  await other.imports();
  expect([...at.holds(secretWord), ...other.holds(secretWord)]).toEqual([]);
});

test('what was never imported is remembered, too; a name of its own takes it again', async () => {
  using at = user();
  at.write('a.jsonl', records('a', turns('a0')));
  expect(await at.imports('--forget', at.file('a.jsonl'))).toMatchObject({ entries: 0, names: [] });
  rmSync(at.home.file('sources.jsonl'));
  await at.imports();
  expect(at.holds(secretWord)).toEqual([]);
  expect((await at.run('sessions', '--quiet')).stdout).toBe('');
  expect(await at.imports(at.file('a.jsonl'), '--as', 'again')).toMatchObject({ names: ['again'] });
  expect((await at.run('view', 'again')).stdout).toContain(secretWord);
  expect((await at.run('import')).stdout).not.toContain('entries');
});

test('a session is forgotten by its name here too, and also where the home knows no file of it', async () => {
  using at = user();
  at.write('a.jsonl', records('a', turns('a0')));
  at.write('b.jsonl', records('b', turns('b0')));
  await at.imports();
  await at.run('rename', 'a', 'kept');
  await at.run('new', 'own');
  expect(await at.imports('--forget', 'kept')).toMatchObject({
    forgotten: [at.file('a.jsonl')],
    names: ['a'],
  });
  rmSync(at.home.file('sources.jsonl'));
  rmSync(at.file('b.jsonl'));
  expect(await at.imports('--forget', 'b')).toMatchObject({ forgotten: [], names: ['b'] });
  expect(at.holds(secretWord)).toEqual([]);
  for (const [named, why] of [
    ['own', 'it is no file, and no session that was imported'],
    [at.file('empty'), 'no transcript is found in it'],
  ] as const) {
    if (named !== 'own') writeFileSync(named, '');
    const { code, stderr } = await at.run('import', '--forget', named);
    expect({ code, stderr }).toMatchObject({ code: 3, stderr: expect.stringContaining(why) });
    expect(stderr).toContain('tape sessions');
  }
});

test.each([
  ['its file', (at: ReturnType<typeof user>) => at.file('a.jsonl')],
  ["the tool's id of it", () => 'a'],
])(
  'what an import left that was killed before its session appeared is erased, too, by %s',
  async (_, named) => {
    using at = user();
    at.write('a.jsonl', [...records('a', turns('a0 a1')), titled('a')]);
    // What both have is in the middle of the other one: that is no fork.
    at.write('b.jsonl', records('b', turns('b0 a1 b2')));
    const words = named(at);
    {
      using own = at.home.open();
      const killed = new Error('killed');
      const store = wrapStore(own, ({ method, act }) => {
        if (method === 'imports.publish') throw killed;
        return act();
      }) as SqliteTapeStore;
      for (const id of ['a', 'b'])
        expect(() => {
          const { records: lines } = parseJsonLines([readFileSync(at.file(`${id}.jsonl`))]);
          reconcile(store, planClaudeCode({ name: id, lines }), {});
        }).toThrow(killed);
    }
    if (words === 'a') rmSync(at.file('a.jsonl'));
    expect(at.holds(`${secretWord} a `)).toEqual(['tape.db']);
    const { left } = await unfinishedIn(at);
    expect(left).toEqual(['a', 'b']);
    const dry = await at.imports('--forget', words, '--dry-run');
    expect(at.holds(`${secretWord} a `)).toEqual(['tape.db']);
    expect(dry).toMatchObject({ names: ['a'] });
    expect(dry.entries).toBeGreaterThan(4);
    expect(await at.imports('--forget', words)).toMatchObject({ entries: dry.entries, names: ['a'] });
    expect(at.holds(`${secretWord} a `)).toEqual([]);
    expect(at.holds(`${secretWord} title`)).toEqual([]);
    // What was left of another source may have a copy, and is needed by none.
    expect(at.holds(`${secretWord} b `)).toEqual([]);
    expect(await unfinishedIn(at)).toMatchObject({ left: [], problems: [] });
    at.write('b.jsonl', records('b', turns('b0')));
    await at.imports();
    expect(at.holds(`${secretWord} a `)).toEqual([]);
    expect(at.holds(`${secretWord} b `)).toEqual(['tape.db']);
    expect(await unfinishedIn(at)).toMatchObject({ left: [], problems: [] });
  },
);

/** The names under which imports left something, and the problems that verifying the home finds. */
async function unfinishedIn({ home }: ReturnType<typeof user>) {
  using store = home.open();
  return { left: store.imports.unfinished().map(({ session }) => session), problems: [...store.verify()] };
}

test('forgetting one conversation erases nothing of what says that another one was forgotten', async () => {
  using at = user();
  at.write('a.jsonl', records('a', turns('a0')));
  at.write('b.jsonl', records('b', turns('b0')));
  await at.imports();
  expect(await at.imports('--forget', 'a')).toMatchObject({ names: ['a'], entries: 2 });
  expect(await at.imports('--forget', 'b')).toMatchObject({ names: ['b'], entries: 2 });
  expect(await at.imports('--forget', 'a')).toMatchObject({ names: ['a'], entries: 0 });
  const { stdout, stderr } = await at.run('import', at.file('a.jsonl'));
  expect([stdout, stderr]).toEqual(['', expect.stringContaining('--as NAME')]);
});

test('what was redacted in a session stays so when its file grows', async () => {
  using at = user();
  at.write('a.jsonl', records('a', turns('a0 a1')));
  await at.imports();
  const { stdout } = await at.run('search', `${secretWord} a 0`, '--quiet');
  await at.run('redact', stdout.trim(), '--reason', 'pasted');
  at.write('a.jsonl', records('a', turns('a0 a1 a2')));
  expect(await at.imports()).toMatchObject({ names: ['a'], entries: 2 });
  expect(at.holds(`${secretWord} a 0`)).toEqual([]);
  expect((await at.run('sessions', '--quiet')).stdout).toBe('a\n');
});

test('a session of which all was redacted goes on when its file grows, and is forgotten with what came since', async () => {
  using at = user();
  at.write('a.jsonl', records('a', turns('a0 a1')));
  await at.imports();
  const refused = await at.run('redact', 'a@2', '--reason', 'private');
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('tape import --forget a')]);
  expect(json(await at.run('redact', 'a@1..6', '--reason', 'private', '--json')).entries).toHaveLength(5);
  // The prompt a1 is typed anew, so that the old one is a branch.
  at.write('a.jsonl', [...records('a', turns('a0 a1')), ...records('a', [['a', 2, 0]])]);
  expect(await at.imports()).toMatchObject({ names: ['a', 'a-branch-a0000002'] });
  const names = expect.arrayContaining(['a', 'a-branch-a0000002']);
  expect(json(await at.run('import', '--forget', 'a', '--json'))).toMatchObject({ names });
  expect(at.holds(`${secretWord} a`)).toEqual([]);
});

/** Records of a session, each said at its own time, as a copy under other ids has them. */
const timed = (sessionId: string, prefix: string, texts: readonly string[], parent: string | null = null) =>
  texts.map((text, i) => ({
    ...{ type: i % 2 === 0 ? 'user' : 'assistant', uuid: `${prefix}${i}`, sessionId },
    parentUuid: i === 0 ? parent : `${prefix}${i - 1}`,
    timestamp: new Date(Date.UTC(2026, 1, 1, 1, 1, text.length, text.charCodeAt(0))).toISOString(),
    message: { role: i % 2 === 0 ? 'user' : 'assistant', content: text },
  }));

test.each([
  ['forgotten', 'import', '--forget', 'a'],
  ['redacted', 'redact', 'a', '3..6', '--reason', 'private'],
])(
  'a large file that grows by what was %s elsewhere, under other ids, brings nothing of it',
  async (_, ...words) => {
    using at = user();
    const said = ['a', 'bb', 'ccc', 'dddd'].map((one) => `${one} ${secretWord}`);
    at.write('a.jsonl', timed('a', 'a-', said));
    const own = timed('c', 'c-', ['own', 'mine '.repeat(60_000), 'ours', 'theirs']);
    at.write('c.jsonl', own);
    await at.imports();
    expect((await at.run(...words)).code).toBe(0);
    expect(at.holds(secretWord)).toEqual([]);
    at.write('c.jsonl', [...own, ...timed('c', 'd-', said, 'c-3')]);
    await at.imports();
    expect(at.holds(secretWord)).toEqual([]);
  },
);

/** A store that forgets a source in another process, just before it does the nth of some acts for the first time. */
function forgetting(
  store: SqliteTapeStore,
  { group, act, nth }: { readonly group: string; readonly act: string; readonly nth: number },
  forget: () => void,
): SqliteTapeStore {
  let count = 0;
  const through = (target: object, of: (name: string, value: unknown) => unknown) =>
    new Proxy(target, {
      get: (_, name) => {
        const value: unknown = Reflect.get(target, name, target);
        const own: unknown = typeof value === 'function' ? value.bind(target) : value;
        return of(String(name), own);
      },
    });
  const counted =
    (real: (...args: unknown[]) => unknown) =>
    (...args: unknown[]) => {
      count += 1;
      if (count === nth) forget();
      return real(...args);
    };
  return through(store, (name, value) =>
    name === group
      ? through(value as object, (one, own) => (one === act ? counted(own as () => unknown) : own))
      : value,
  ) as SqliteTapeStore;
}

test.each([
  ['its session appears', 'imports', 'publish', 1, ''],
  ['a branch is forked', 'lineage', 'fork', 1, ''],
  ['a branch of a session that was there is forked', 'lineage', 'fork', 1, 'a0 a1'],
  ['a session that was there goes on', 'entries', 'append', 1, 'a0 a1'],
  ['a title is written', 'entries', 'append', 2, 'a0 a1'],
])(
  'an import leaves nothing of a source that is forgotten just before %s',
  async (_, group, act, nth, had) => {
    using at = user();
    at.write('b.jsonl', records('b', turns('b0')));
    if (had !== '') at.write('a.jsonl', records('a', turns(had)));
    await at.imports();
    const branched = records('a', [
      ['a', 0],
      ['a', 1],
      ['a', 2, 0],
    ]);
    at.write('a.jsonl', [...branched, titled('a')]);
    const forget = () => {
      const args = [tapeProgram, 'import', '--forget', at.file('a.jsonl'), '--home', at.home.path];
      execFileSync(process.execPath, args, { env: { ...process.env, ...at.env } });
    };
    using own = at.home.open();
    const store = forgetting(own, { group, act, nth }, forget);
    const origins = new Origins(store);
    // An import of all that was found reads the home once.
    expect(origins.findDeleted('another')).toBeUndefined();
    const { records: lines } = parseJsonLines([readFileSync(at.file('a.jsonl'))]);
    const done = reconcile(store, planClaudeCode({ name: 'a', lines }), { origins });
    expect(done.map(({ refused }) => refused?.code)).toEqual(done.map(() => 'IMPORT_FORGOTTEN'));
    const sessions = own.sessions.list({ all: true });
    const left = sessions.flatMap(({ id }) => [...own.entries.read(id, { own: true })]);
    expect(JSON.stringify([sessions, left])).not.toMatch(new RegExp(`${secretWord} (?:a|title)`));
    expect(await at.imports()).toMatchObject({ entries: 0 });
  },
);

test.each([
  ['appears', 'imports', 'publish', ''],
  ['goes on', 'entries', 'append', 'c0'],
])(
  'a copy that %s while its source is forgotten, behind the last look at what is there, has nothing of that',
  async (_, group, act, had) => {
    using at = user();
    const quoted = { type: 'custom-title', customTitle: `${secretWord} a 1`, sessionId: 'c' };
    at.write('a.jsonl', records('a', turns('a0 a1')));
    if (had !== '') at.write('c.jsonl', records('c', turns(had)));
    await at.imports();
    // What both have is in the middle of the copy: that is no fork.
    at.write('c.jsonl', [...records('c', turns('c0 a1 c2')), quoted]);
    const forget = () => {
      const args = [tapeProgram, 'import', '--forget', at.file('a.jsonl'), '--home', at.home.path];
      execFileSync(process.execPath, args, { env: { ...process.env, ...at.env } });
    };
    using own = at.home.open();
    const store = forgetting(own, { group, act, nth: 1 }, forget);
    const { records: lines } = parseJsonLines([readFileSync(at.file('c.jsonl'))]);
    const done = reconcile(store, planClaudeCode({ name: 'c', lines }));
    expect(done.map(({ session, refused }) => [session, refused])).toEqual([['c', undefined]]);
    const sessions = own.sessions.list({ all: true });
    const left = sessions.flatMap(({ id }) => [...own.entries.read(id, { own: true })]);
    const said = JSON.stringify([sessions, left]);
    expect(said).not.toContain(`${secretWord} a `);
    for (const n of [0, 2]) expect(said).toContain(`${secretWord} c ${n}`);
    expect(at.holds(`${secretWord} a `)).toEqual([]);
    // Nor does the next import bring it back.
    const { records: again } = parseJsonLines([readFileSync(at.file('c.jsonl'))]);
    reconcile(own, planClaudeCode({ name: 'c', lines: again }));
    expect(at.holds(`${secretWord} a `)).toEqual([]);
    expect([...own.verify()]).toEqual([]);
  },
);

test.each([
  ['appears', 'imports', 'publish', ''],
  ['goes on', 'entries', 'append', 'c0'],
])(
  'a copy that %s while its source is forgotten has nothing of that, also where the import is killed right behind its commit',
  async (_, group, act, had) => {
    using at = user();
    at.write('a.jsonl', records('a', turns('a0 a1')));
    if (had !== '') at.write('c.jsonl', records('c', turns(had)));
    await at.imports();
    at.write('c.jsonl', records('c', turns('c0 a1 c2')));
    {
      using own = at.home.open();
      let isKilled = false;
      const store = forgetting(own, { group, act, nth: 1 }, () => {
        const args = [tapeProgram, 'import', '--forget', at.file('a.jsonl'), '--home', at.home.path];
        execFileSync(process.execPath, args, { env: { ...process.env, ...at.env } });
      });
      const mortal = wrapStore(store, ({ method, act: does }) => {
        if (isKilled) throw new Error('killed');
        try {
          return does();
        } finally {
          isKilled ||= method === `${group}.${act}`;
        }
      });
      const { records: lines } = parseJsonLines([readFileSync(at.file('c.jsonl'))]);
      expect(() => reconcile(mortal, planClaudeCode({ name: 'c', lines }))).toThrow('killed');
    }
    await at.imports();
    expect(at.holds(`${secretWord} a `)).toEqual([]);
    const { stdout } = await at.run('view', 'c');
    for (const n of [0, 2]) expect(stdout).toContain(`${secretWord} c ${n}`);
    expect((await at.run('check')).code).toBe(0);
  },
);

test.each(['active', 'archived', 'destroyed'] as const)(
  'a copy of records without ids is not taken where its source, which is %s, is forgotten while it is imported',
  async (lifecycle) => {
    using at = user();
    at.write('one.jsonl', plain('1', '2'));
    at.write('q/copy.jsonl', plain('1', '2', '4'));
    await at.imports(at.file('one.jsonl'));
    if (lifecycle !== 'active') {
      using home = at.home.open();
      home.sessions.update('one', { lifecycle });
    }
    const place = { env: at.env, home: at.dir.path };
    const { files } = await discover({ place, tools: transcriptTools, paths: [at.file('q/copy.jsonl')] });
    const table = SourceTable.open(at.home.file('sources.jsonl'));
    const [copy] = conversationsIn(files);
    if (copy === undefined) throw new Error('the copy is found');
    using own = at.home.open();
    const commit = lifecycle === 'active' ? ['lineage', 'fork'] : ['imports', 'publish'];
    const [group = '', act = ''] = commit;
    let isForgotten = false;
    const store = forgetting(own, { group, act, nth: 1 }, () => {
      isForgotten = true;
      const args = [tapeProgram, 'import', '--forget', at.file('one.jsonl'), '--home', at.home.path];
      execFileSync(process.execPath, args, { env: { ...process.env, ...at.env } });
    });
    const [brought] = await importConversation(store, copy, { table });
    expect(isForgotten).toBe(true);
    expect(brought).toMatchObject({ error: { code: 'IMPORT_FORGOTTEN' } });
    expect(at.holds(`${secretWord} 1`)).toEqual([]);
    expect(own.sessions.list().map(({ session }) => session)).not.toContain('copy');
  },
);

test('a source that is forgotten again leaves nothing in the file of what an act could not wipe that was killed', async () => {
  using at = user();
  at.write('a.jsonl', records('a', turns('a0')));
  await at.imports();
  writeFileSync(at.home.file('tape.db.schema-2'), 'a copy from before a change of the format');
  const first = await at.run('import', '--forget', 'a', '--json');
  expect(json(first)).toMatchObject({ entries: 2, log_emptied: true, quoted_by: ['tape.db.schema-2'] });
  {
    using raw = rawDb(at.home.file('tape.db'));
    raw.run(`INSERT INTO home (key, value) VALUES ('erased', '2026-03-01T10:00:00.000Z')`);
  }
  expect((await at.run('check')).code).toBe(1);
  expect(await at.imports('--forget', 'a')).toMatchObject({ entries: 0, log_emptied: true });
  expect((await at.run('check')).code).toBe(0);
});

/** Imports a file, and is killed before its session appears. */
const killedImport = `
  import { readFileSync } from 'node:fs';
  import { parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
  import { openTapeStore } from '@tapedeck/tape';
  import { wrapStore } from '@tapedeck/tape/store';
  const [db, file] = process.argv.slice(1);
  const mortal = wrapStore(openTapeStore(db), ({ method, act }) => {
    if (method === 'imports.publish') process.kill(process.pid, 'SIGKILL');
    return act();
  });
  const { records } = parseJsonLines([readFileSync(file)]);
  reconcile(mortal, planClaudeCode({ name: 'c', lines: records }));
`;

test.each([
  ['redact', ['redact', 'a@2..3', '--reason', 'private']],
  ['redact of another session', ['redact', 'b@3', '--reason', 'private']],
  ['purge', ['purge', 'b', '--reason', 'private']],
])('what an import staged that was killed is erased by the next %s', async (act, words) => {
  using at = user();
  at.write('a.jsonl', records('a', turns('a0')));
  at.write('b.jsonl', records('b', turns('b0')));
  await at.imports();
  at.write('q/c.jsonl', records('c', turns('c0 a0 c1')));
  using store = at.home.open();
  const staged = () => store.imports.unfinished().reduce((sum, { entries }) => sum + entries, 0);
  const { args, cwd } = script(killedImport);
  const child = spawn(process.execPath, [...args, at.home.file('tape.db'), at.file('q/c.jsonl')], { cwd });
  expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
  expect(staged()).toBeGreaterThan(0);
  expect((await at.run(...words)).code).toBe(0);
  expect(store.imports.unfinished()).toEqual([]);
  expect(at.holds(`${secretWord} c 1`)).toEqual([]);
  store.close();
  expect((await at.run('check')).code).toBe(0);
  await at.imports();
  expect(at.holds(`${secretWord} c 1`)).toEqual(['tape.db']);
  expect(at.holds(`${secretWord} a 0`)).toEqual(act === 'redact' ? [] : ['tape.db']);
});

test.skipIf(skipsTracing('a source that is forgotten while its session appears'))(
  'a source is forgotten whose session appears behind the first look of the process that forgets it',
  async () => {
    using at = user();
    at.write('b.jsonl', records('b', turns('b0')));
    await at.imports();
    at.write('a.jsonl', records('a', turns('a0')));
    const table = at.home.file('sources.jsonl');
    const log = at.dir.file('strace.log');
    // It writes the table first, and waits a second before it does.
    const calls = ['-e', 'trace=openat,write', '-e', 'inject=write:delay_enter=1000000:when=1'];
    const late = ['-f', '-qq', '-o', log, '-P', table, ...calls];
    const words = ['import', '--forget', at.file('a.jsonl'), '--home', at.home.path];
    const child = spawn('strace', [...late, process.execPath, tapeProgram, ...words], {
      env: { ...process.env, ...at.env },
    });
    const ended = once(child, 'close');
    while (!existsSync(log) || !readFileSync(log, 'utf8').includes('O_APPEND')) await sleep(5);
    using own = at.home.open();
    const take = () => {
      const { records: lines } = parseJsonLines([readFileSync(at.file('a.jsonl'))]);
      return reconcile(own, planClaudeCode({ name: 'a', lines }));
    };
    expect(take()).toMatchObject([{ session: 'a', created: true }]);
    expect(await ended).toEqual([0, null]);
    at.write('a.jsonl', records('a', turns('a0 a1')));
    expect(take().map(({ refused }) => refused?.code)).toEqual(['IMPORT_FORGOTTEN']);
    expect(at.holds(`${secretWord} a `)).toEqual([]);
  },
);
