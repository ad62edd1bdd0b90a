import { mkdirSync, realpathSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import {
  claimText,
  commandText,
  covers,
  levels,
  offersFor,
  parseRule,
  parseRules,
  RuleFault,
  realPath,
  rememberedPaths,
  wordsOf,
} from '@tapedeck/runtime/internal';
import { afterAll, describe, expect, test } from 'vitest';
import { rulingsOn, type Scopes } from '../support/permissions.ts';
import { seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';

const dir = tempDir();
afterAll(() => dir[Symbol.dispose]());
const root = realpathSync(dir.path);
const workspace = `${root}/project`;
const home = `${root}/home`;
mkdirSync(`${workspace}/src`, { recursive: true });
mkdirSync(`${home}/.ssh`, { recursive: true });
mkdirSync(`${root}/outside/deep`, { recursive: true });
writeFileSync(`${workspace}/src/a`, 'a');
writeFileSync(`${root}/outside/secret`, 's');
symlinkSync(`${root}/outside`, `${workspace}/out`);
symlinkSync(`${root}/outside/new`, `${workspace}/dangling`);
symlinkSync('again', `${workspace}/again`);
symlinkSync('out/deep', `${workspace}/through`);
symlinkSync(`${home}/.ssh`, `${root}/keys`);

/** `allow`, or `deny write(/x)`: the verdict on a call, and the claim that decided. */
function verdict(line: readonly Scopes[], tool: string, input: unknown, grants: readonly string[] = []) {
  const [ruling] = rulingsOn({ workspace, home, line, grants }, tool, input);
  if (ruling.verdict === 'allow') return 'allow';
  return `${ruling.verdict} ${claimText(ruling.claim)}`.replaceAll(root, '');
}

const sandboxed: Scopes = { manifest: 'sandboxed' };
const trusted: Scopes = { manifest: 'trusted' };

test.each<[string, readonly Scopes[], string, unknown, string]>([
  ['a sandbox writes inside', [sandboxed], 'write_file', { path: 'src/new' }, 'allow'],
  ['the workspace itself is inside', [sandboxed], 'read_file', { path: '.' }, 'allow'],
  ['not above it', [sandboxed], 'write_file', { path: 'src/../../x' }, 'deny write(/x)'],
  ['not by an absolute path', [sandboxed], 'write_file', { path: '/etc/hosts' }, 'deny write(/etc/hosts)'],
  ['not through a link', [sandboxed], 'write_file', { path: 'out/secret' }, 'deny write(/outside/secret)'],
  [
    'nor to what is missing behind it',
    [sandboxed],
    'write_file',
    { path: 'out/a/b' },
    'deny write(/outside/a/b)',
  ],
  [
    'nor through a link to nothing',
    [sandboxed],
    'write_file',
    { path: 'dangling' },
    'deny write(/outside/new)',
  ],
  [
    'nor back from behind a link',
    [sandboxed],
    'write_file',
    { path: 'through/../x' },
    'deny write(/outside/x)',
  ],
  ['nor to the home by a tilde', [sandboxed], 'read_file', { path: '~/.ssh/id' }, 'deny read(/home/.ssh/id)'],
  ['nor by a URL', [sandboxed], 'read_file', { path: 'file:///etc/pass%77d' }, 'deny read(/etc/passwd)'],
  ['nor through a loop of links', [sandboxed], 'read_file', { path: 'again' }, 'deny read(again)'],
  ['nor by a null character', [sandboxed], 'read_file', { path: 'src/a\0' }, 'deny read(src/a\0)'],
  [
    'all paths are decided on',
    [sandboxed],
    'copy_file',
    { source: '/etc/hosts', destination: 'a' },
    'deny read(/etc/hosts)',
  ],
  [
    'and those of a list',
    [sandboxed],
    'read_file',
    { path: ['src/a', '/etc/hosts'] },
    'deny read(/etc/hosts)',
  ],
  [
    'what is no path where one is said',
    [sandboxed],
    'read_file',
    { path: { toString: 1 } },
    'deny opaque(read_file)',
  ],
  ['a tool that says nothing', [sandboxed], 'mystery', {}, 'deny opaque(mystery)'],
  ['a tool that touches nothing', [sandboxed], 'add', {}, 'allow'],
  ['it sends to its parent', [{}, { session: 'sandboxed' }], 'send', { to: 's0' }, 'allow'],
  ['and to no other session', [{}, { session: 'sandboxed' }], 'send', { to: 'other' }, 'deny send(other)'],
  [
    'children are children',
    [{ manifest: ['deny send(*)', 'allow send(children)'] }],
    'send',
    { to: 's1' },
    'allow',
  ],
  [
    'but not theirs',
    [{ manifest: ['deny send(*)', 'allow send(children)'] }],
    'send',
    { to: 'below' },
    'deny send(below)',
  ],
  [
    'the family is both',
    [{}, { session: ['deny send(*)', 'allow send(family)'] }],
    'send',
    { to: 'below' },
    'allow',
  ],
  [
    'a list names sessions',
    [{ manifest: ['deny send(*)', 'allow send(ops-*)'] }],
    'send',
    { to: 'ops-1' },
    'allow',
  ],
  [
    'nor to the rules of its home',
    [{ manifest: ['sandboxed', 'allow write(**)'] }],
    'write_file',
    { path: '.tape/config.yaml' },
    'deny write(/project/.tape/config.yaml)',
  ],
  [
    'which trust does not allow either',
    [trusted],
    'write_file',
    { path: 'src/../.tape/config.yaml' },
    'deny write(/project/.tape/config.yaml)',
  ],
  ['trusted asks outside', [trusted], 'write_file', { path: '/tmp/x' }, 'ask write(/tmp/x)'],
  ['and about commands', [trusted], 'run_command', { command: 'git status' }, 'ask exec(git status)'],
  ['yolo asks nothing', [{ manifest: 'yolo' }], 'run_command', { command: 'rm -rf /' }, 'allow'],
  ['without rules all is allowed', [{}], 'mystery', {}, 'allow'],
  ['with any, a path asks', [{ manifest: 'deny other' }], 'read_file', { path: 'a' }, 'ask read(/project/a)'],
  ['and what says nothing', [{ manifest: 'deny other' }], 'mystery', {}, 'ask opaque(mystery)'],
  ['but no tool that touches nothing', [{ manifest: 'deny other' }], 'add', {}, 'allow'],
  [
    'a refusal names tools before paths',
    [{ manifest: 'deny *' }],
    'write_file',
    { path: '/x' },
    'deny write_file',
  ],
  [
    'a server by its prefix',
    [{ manifest: 'deny mcp_github_*' }],
    'mcp_github_push',
    {},
    'deny mcp_github_push',
  ],
  [
    'the last rule decides',
    [{ manifest: ['deny exec(*)', 'allow exec(ls)'] }],
    'run_command',
    { command: 'ls' },
    'allow',
  ],
  [
    'a session over the deck',
    [{ manifest: 'deny exec(*)', session: 'allow exec(ls)' }],
    'run_command',
    { command: 'ls' },
    'allow',
  ],
  [
    'but not over a pin',
    [{ manifest: 'deny! exec(*)', project: 'allow exec(*)', session: 'allow exec(ls)' }],
    'run_command',
    { command: 'ls' },
    'deny exec(ls)',
  ],
  [
    'a pin can be made stricter',
    [{ manifest: 'ask! exec(*)', session: 'deny exec(*)' }],
    'run_command',
    { command: 'ls' },
    'deny exec(ls)',
  ],
  [
    'a child takes nothing back',
    [{ session: 'deny exec(*)' }, { session: 'allow exec(*)' }],
    'run_command',
    { command: 'ls' },
    'deny exec(ls)',
  ],
  [
    'nor its child',
    [{}, { session: 'sandboxed' }, { session: 'yolo' }],
    'run_command',
    { command: 'ls' },
    'deny exec(ls)',
  ],
  ['a root without rules says nothing', [{}, { session: 'sandboxed' }], 'write_file', { path: 'a' }, 'allow'],
])('%s', (_, line, tool, input, expected) => {
  expect(verdict(line, tool, input)).toBe(expected);
});

describe('commands are words, without a shell', () => {
  const only = [{ manifest: ['deny exec(*)', 'allow exec(git *)'] }];
  test.each([
    ['git', 'allow'],
    ['git log', 'allow'],
    ["git commit -m 'one; two'", 'allow'],
    ['git commit -m "one two"', 'allow'],
    ['git log; rm x', "deny exec(sh -c 'git log; rm x')"],
    ['git log && rm x', "deny exec(sh -c 'git log && rm x')"],
    ['git log | sh', "deny exec(sh -c 'git log | sh')"],
    ['git log > x', "deny exec(sh -c 'git log > x')"],
    ['git log\nrm x', "deny exec(sh -c 'git log\nrm x')"],
    ['git log $(rm x)', "deny exec(sh -c 'git log $(rm x)')"],
    ['git log "$(rm x)"', `deny exec(sh -c 'git log "$(rm x)"')`],
    ['git log `rm x`', "deny exec(sh -c 'git log `rm x`')"],
    ['GIT_SSH=x git log', "deny exec(sh -c 'GIT_SSH=x git log')"],
    ['git log *', "deny exec(sh -c 'git log *')"],
    ['exit 3', "deny exec(sh -c 'exit 3')"],
    ['cd git', "deny exec(sh -c 'cd git')"],
    ["'eval' git", `deny exec(sh -c ''\\''eval'\\'' git')`],
    ['exit-git 3', 'deny exec(exit-git 3)'],
    ['git \u202elog', "deny exec(sh -c 'git \u202elog')"],
    ['gitk', 'deny exec(gitk)'],
    ['./git log', 'deny exec(./git log)'],
    ["'git log'", "deny exec('git log')"],
    ['', "deny exec(sh -c '')"],
  ])('%j', (command, expected) => {
    expect(verdict(only, 'run_command', { command })).toBe(expected);
  });

  test('a list is the words themselves, and so are a program and its arguments', () => {
    expect(verdict(only, 'run_command', { command: ['git', 'log; rm x'] })).toBe('allow');
    expect(verdict(only, 'run_program', { program: 'git', args: ['log'] })).toBe('allow');
    expect(verdict(only, 'run_program', { program: 'sh', args: ['-c', 'git'] })).toBe('deny exec(sh -c git)');
    expect(verdict(only, 'run_program', { program: 'git; rm x' })).toBe("deny exec('git; rm x')");
  });

  test('what forbids a program forbids it by its path', () => {
    const none = [{ manifest: ['allow *', 'deny exec(rm *)'] }];
    expect(verdict(none, 'run_command', { command: '/bin/rm -r x' })).toBe('deny exec(/bin/rm -r x)');
    expect(verdict(none, 'run_command', { command: 'rmdir x' })).toBe('allow');
  });

  test('words of a command text are those that a shell would make', () => {
    expect(wordsOf(`a 'b c' d"e f"g ''`)).toEqual(['a', 'b c', 'de fg', '']);
    expect(commandText(['a', 'b c', '', "it's"])).toBe(`a 'b c' '' 'it'\\''s'`);
  });
});

test.each<[string, readonly Scopes[]]>([
  ['by a later rule of the session', [{ manifest: ['allow *', 'ask! exec(*)', 'ask exec(git *)'] }]],
  ['by a level after it', [{ manifest: ['ask! exec(git push *)', 'trusted'] }]],
  ['by a rule of its parent', [{ manifest: ['allow *', 'ask exec(*)'] }, { session: 'ask! exec(*)' }]],
  ['by a rule of its child', [{ manifest: ['allow *', 'ask! exec(*)'] }, { session: 'ask exec(*)' }]],
])('a pinned question is asked whatever was granted, also where it is asked %s', (_, line) => {
  const [ruling] = rulingsOn({ workspace, home, line, grants: ['allow exec(git *)'] }, 'run_command', {
    command: 'git push 2',
  });
  expect(ruling).toMatchObject({ verdict: 'ask', rule: { pinned: true } });
  expect(verdict(line, 'run_command', { command: 'git push 2' }, ['deny exec(git *)'])).toBe(
    'deny exec(git push 2)',
  );
});

test('where names in another case are the same, what forbids covers them, and what allows does not', () => {
  const of = (rule: string, tool: string, input: unknown) =>
    rulingsOn({ workspace, home, line: [{ manifest: rule.split('; ') }], ignoresCase: true }, tool, input)[0]
      .verdict;
  const none = 'allow *; deny write(**/.env); deny write(Caf\u00e9/**); ask exec(git *); deny exec(rm *)';
  expect(of(none, 'write_file', { path: 'src/.ENV' })).toBe('deny');
  expect(of(none, 'write_file', { path: 'CAFE\u0301/x' })).toBe('deny');
  expect(of(none, 'run_command', { command: 'RM x' })).toBe('deny');
  expect(of(none, 'run_command', { command: '/BIN/Rm x' })).toBe('deny');
  expect(of(none, 'run_command', { command: 'Git log' })).toBe('ask');
  expect(of(none, 'write_file', { path: 'src/env' })).toBe('allow');
  const some = 'deny *; allow write_file; allow write(docs/**)';
  expect(of(some, 'write_file', { path: 'DOCS/x' })).toBe('deny');
  expect(verdict([{ manifest: ['allow *', 'deny exec(rm *)'] }], 'run_command', { command: 'RM x' })).toBe(
    'allow',
  );
});

test.each([
  ['exec(curl *a*b)', { kind: 'exec', what: '', words: ['curl', 'a'.repeat(131_000)] }],
  ['exec(*a*a*a*a*a*a*b *)', { kind: 'exec', what: '', words: ['a'.repeat(131_000), 'b'] }],
  ['write(**/a*a*a*a*a*a*b)', { kind: 'write', what: `/${'a'.repeat(255)}`.repeat(15) }],
  ['write(**/x/**/x/**/x/**/x/**/x/**/y)', { kind: 'write', what: '/x'.repeat(2_000) }],
  ['a*a*a*a*a*b', { kind: 'tool', what: 'a'.repeat(1_000_000) }],
] as const)('a rule is compared in few steps, whatever the text is: %s', (pattern, claim) => {
  const place = { workspace, home, real: (path: string) => path, session: 's0', parent: undefined };
  const rule = parseRule(`deny ${pattern}`);
  // One that backtracks takes hours.
  expect(covers(rule, claim, place)).toBe(false);
});

test('a pattern of names covers what the same regular expression does', () => {
  const random = seeded(20_261_125);
  const place = { workspace: '/w', home, real: (path: string) => path, session: 's0', parent: undefined };
  const word = (of: readonly string[], most: number) =>
    Array.from({ length: random.below(most + 1) }, () => random.of(of)).join('');
  const seen = new Set<boolean>();
  for (let i = 0; i < sized(5_000, 8_000, 1_000_000); i += 1) {
    const names = Array.from({ length: 1 + random.below(4) }, () =>
      random.chance(30) ? '**' : word(['a', 'b', '*'], 4).replaceAll(/\*+/g, '*') || 'a',
    );
    const path = `/${Array.from({ length: 1 + random.below(4) }, () => word(['a', 'b'], 3) || 'b').join('/')}`;
    const source = names
      .map((name) => (name === '**' ? '(?:/[^]*)?' : `/${name.replaceAll('*', '[^/]*')}`))
      .join('');
    const expected = new RegExp(`^${source}$`).test(path);
    seen.add(expected);
    const rule = parseRule(`deny write(/${names.join('/')})`);
    expect(covers(rule, { kind: 'write', what: path }, place), `${rule.text} ${path}`).toBe(expected);
  }
  expect(seen.size).toBe(2);
});

describe('rules and links', () => {
  test('a rule counts for the place that its path leads to', () => {
    const line = [{ manifest: ['allow *', `deny read(${root}/keys/**)`] }];
    expect(verdict(line, 'read_file', { path: `${home}/.ssh/id` })).toBe('deny read(/home/.ssh/id)');
    const tilde = [{ manifest: ['allow *', 'deny! read(~/.ssh/**)'] }];
    expect(verdict(tilde, 'read_file', { path: `${root}/keys/id` })).toBe('deny read(/home/.ssh/id)');
    expect(verdict(tilde, 'read_file', { path: `${root}/keys` })).toBe('deny read(/home/.ssh)');
    expect(verdict(tilde, 'read_file', { path: `${home}/.sshd` })).toBe('allow');
  });

  test('stars', () => {
    const line = (pattern: string) => [{ manifest: ['allow *', `deny write(${pattern})`] }];
    const denies = (pattern: string, path: string) =>
      verdict(line(pattern), 'write_file', { path }).startsWith('deny');
    expect(denies('*.md', 'a.md')).toBe(true);
    expect(denies('*.md', 'src/a.md')).toBe(false);
    expect(denies('**/*.md', '/any/where/a.md')).toBe(true);
    expect(denies('src/**/x', 'src/x')).toBe(true);
    expect(denies('src/**/x', 'src/a/b/x')).toBe(true);
    expect(denies('src/**/x', 'srcs/x')).toBe(false);
    expect(denies('{workspace}/src', 'src')).toBe(true);
    expect(denies('{workspace}/src', 'src/a')).toBe(false);
    expect(denies('a.c', 'abc')).toBe(false);
    expect(denies('a\\*b', 'a*b')).toBe(true);
    expect(denies('a\\*b', 'axb')).toBe(false);
    expect(denies('\\/etc/**', '/etc/hosts')).toBe(true);
    expect(denies('/**', '/')).toBe(true);
  });

  test.each([
    ['\\{workspace\\}-x/**', `${workspace}-x/a`, '{workspace}-x/a'],
    ['\\~/**', `${home}/a`, `${workspace}/~/a`],
    ['\\~', home, `${workspace}/~`],
  ])('%s is a name in the workspace, as its backslash says', (pattern, elsewhere, inside) => {
    const line = [{ manifest: ['deny write(**)', `allow write(${pattern})`] }];
    const shown = `deny write(${elsewhere.startsWith('/') ? elsewhere : `${workspace}/${elsewhere}`})`;
    expect(verdict(line, 'write_file', { path: elsewhere })).toBe(shown.replaceAll(root, ''));
    expect(verdict(line, 'write_file', { path: inside })).toBe('allow');
  });

  test('a path of 10 MB is refused, and not looked for', () => {
    const path = 'x/'.repeat(5 * 1024 * 1024 + 1);
    const text = verdict([{ manifest: 'allow *' }], 'write_file', { path });
    expect(text.startsWith('deny write(x/x/')).toBe(true);
    expect(text.length).toBeLessThan(600);
  });

  test('a link that is swapped is seen by the next decision, and not within one', () => {
    const link = `${workspace}/swapped`;
    symlinkSync(`${workspace}/src`, link);
    const real = rememberedPaths();
    expect(real(`${link}/a`)).toBe(`${workspace}/src/a`);
    expect(verdict([sandboxed], 'write_file', { path: 'swapped/a' })).toBe('allow');
    unlinkSync(link);
    symlinkSync(`${root}/outside`, link);
    // One decision sees one disk, and so do its rules.
    expect(real(`${link}/a`)).toBe(`${workspace}/src/a`);
    expect(rememberedPaths()(`${link}/a`)).toBe(`${root}/outside/a`);
    expect(verdict([sandboxed], 'write_file', { path: 'swapped/a' })).toBe('deny write(/outside/a)');
  });

  test('names are followed one by one, and a loop of links is no place', () => {
    expect(realPath(`${workspace}/through/x/../y`)).toBe(`${root}/outside/deep/y`);
    expect(() => realPath(`${workspace}/again/x`)).toThrow('it leads through too many links');
  });
});

describe('grants', () => {
  const asking = [{ manifest: 'trusted' }];
  test('answer what asks, and lift nothing', () => {
    const run = { command: 'git log' };
    expect(verdict(asking, 'run_command', run, ['allow exec(git *)'])).toBe('allow');
    expect(verdict([sandboxed], 'run_command', run, ['allow exec(git *)'])).toBe('deny exec(git log)');
    expect(
      verdict([{ manifest: ['trusted', 'ask! exec(*)'] }], 'run_command', run, ['allow exec(git *)']),
    ).toBe('ask exec(git log)');
    expect(verdict(asking, 'run_command', run, ['allow exec(*)', 'deny exec(git *)'])).toBe(
      'deny exec(git log)',
    );
    expect(verdict([{ manifest: 'yolo' }], 'run_command', run, ['deny exec(git *)'])).toBe(
      'deny exec(git log)',
    );
  });

  test('each offer is a rule, and covers the claim that it was made for', () => {
    const calls: [string, unknown][] = [
      ['write_file', { path: 'src/new' }],
      ['write_file', { path: 'a*b {c} \\d' }],
      ['read_file', { path: '/' }],
      ['run_command', { command: 'git log --oneline' }],
      ['run_command', { command: ['git', 'commit', '-m', 'two words "quoted" *', ''] }],
      ['run_command', { command: 'a; b' }],
      ['send', { to: 'parent' }],
      ['mcp_notes_add', {}],
      ['odd tool (x)', {}],
    ];
    for (const [tool, input] of calls)
      for (const { claim } of rulingsOn({ workspace, home, line: asking }, tool, input))
        for (const offer of offersFor(claim)) {
          const place = { workspace, home, real: realPath, session: 's0', parent: undefined };
          expect(covers(parseRule(`allow ${offer}`), claim, place), offer).toBe(true);
        }
    const offersOf = (tool: string, input: unknown) =>
      rulingsOn({ workspace, home, line: asking }, tool, input).flatMap(({ claim }) =>
        offersFor(claim).map((offer) => offer.replaceAll(root, '')),
      );
    expect(offersOf('write_file', { path: '/a/b' })).toEqual(['write(/a/b)', 'write(/a/**)', 'write_file']);
    expect(offersOf('run_command', { command: 'git log' })).toEqual([
      'exec(git log)',
      'exec(git *)',
      'run_command',
    ]);
    expect(offersOf('run_command', { command: 'a; b' })).toEqual(['exec(sh -c "a; b")', 'run_command']);
    expect(offersOf('mcp_notes_add', {}).slice(0, 2)).toEqual(['mcp_notes_add', 'mcp_notes_*']);
    expect(offersOf('write_file', { path: `a\n${'b'.repeat(10)}` })).toEqual(['write_file']);
  });
});

describe('texts', () => {
  test('rules are read from lines, and levels stand for their lists', () => {
    expect(parseRules('# mine\n\n  deny  write(**)\r\ntrusted\n').map(({ text }) => text)).toEqual([
      'deny  write(**)',
      ...levels.trusted,
    ]);
    expect(parseRule('deny! read(a (b) c)')).toMatchObject({
      pinned: true,
      kind: 'read',
      pattern: 'a (b) c',
    });
  });

  test.each([
    [
      'forbid write(**)',
      1,
      1,
      "a rule begins with deny, ask or allow, or is 'yolo', 'trusted' or 'sandboxed'",
    ],
    ['deny', 1, 5, 'nothing follows the verdict'],
    ['ok\n', 1, 1, "a rule begins with deny, ask or allow, or is 'yolo', 'trusted' or 'sandboxed'"],
    [
      'allow *\ndeny wirte(**)',
      2,
      6,
      "there is no kind 'wirte'; the kinds are send, read, write, exec, opaque",
    ],
    ['deny write(**', 1, 14, 'the parenthesis is not closed'],
    ['deny write()', 1, 12, 'the pattern is empty'],
    ['deny two words', 1, 9, 'the name of a tool has no space'],
    ['deny write({home}/x)', 1, 12, 'only {workspace} has braces, at the beginning; write \\{ for a brace'],
    ['deny write(*/../x)', 1, 13, "no '..' may follow a *"],
    ['deny read(~/.ssh/)', 1, 17, 'a directory alone has no / at its end; write /** for all that is below'],
    ['deny exec(git "a)', 1, 15, 'a quote is not closed'],
    ['deny read(a\\)', 1, 13, 'nothing follows the backslash'],
    ['deny a\u202eb', 1, 7, 'a rule has no control and no invisible characters'],
    ['deny \u001b]52;c;x\u0007', 1, 6, 'a rule has no control and no invisible characters'],
    [`deny ${'a'.repeat(10_000)}`, 1, 10_001, 'a rule has at most 10000 characters'],
  ])('%j is no rule', (text, line, column, why) => {
    let fault: unknown;
    try {
      parseRules(text);
    } catch (error) {
      fault = error;
    }
    expect(fault).toBeInstanceOf(RuleFault);
    expect(fault).toMatchObject({ line, column, message: `line ${line}, column ${column}: ${why}` });
  });
});
