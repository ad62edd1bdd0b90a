import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { jsonError } from '../support/cli.ts';
import { tempHome } from '../support/temp-home.ts';

/** Command lines that are not valid, with the message for each. */
const lines: readonly (readonly [line: string, message: string])[] = [
  ['log main --sinse x', 'cannot use --sinse: no such option; did you mean --since?'],
  ['log main --sinse=x', 'cannot use --sinse: no such option; did you mean --since?'],
  ['log main --kinds x', 'cannot use --kinds: no such option; did you mean --kind?'],
  ['log main --zzzzzzzz', 'cannot use --zzzzzzzz: no such option'],
  ['log main -Z', 'cannot use -Z: no such option'],
  ['log main -q', 'cannot use -q: no such option; did you mean --quiet?'],
  ['log main extra more', "cannot use 'extra', 'more': there are too many arguments"],
  ['log main -- --x', "cannot use '--x': there are too many arguments"],
  ['log main -srv-acme', 'cannot use -srv-acme: no such options'],
  ['new', 'arguments are missing: expected tape new <name>'],
  ['delegate main', '--task is missing'],
  ['log main -n', 'cannot use -n: it has no value'],
  ['log main --kind', 'cannot use --kind: it has no value'],
  ['export main --output=', 'cannot use --output: it is empty'],
  ['export main --format claude-code --project=', 'cannot use --project: it is empty'],
  ['log main --durability slow', 'cannot use --durability "slow": expected one of "full", "fast"'],
];

test.each(lines)('tape %s is refused in the words of the other errors', async (line, message) => {
  using home = tempHome();
  home.session('main', user('Hello.'));
  const result = await home.here(['--json', ...line.split(' ')]);
  expect(result.code).toBe(2);
  expect(jsonError(result)).toMatchObject({
    code: 'CLI_USAGE',
    hint: `see: tape ${line.split(' ')[0]} --help`,
  });
  // Of several options that are as near, others may follow.
  expect(jsonError(result).message.startsWith(message.replace(/\?$/, ''))).toBe(true);
});

test('a folder whose name begins with a dash, as those of Claude Code do, is imported behind --, and a hint says so', async () => {
  using home = tempHome();
  const refused = await home.here(['import', '-srv-acme']);
  expect([refused.code, refused.stderr]).toEqual([
    2,
    'Error: cannot use -srv-acme: no such options\nHint: for a word that begins with a dash, write -- before it; or see: tape import --help\n',
  ]);
  mkdirSync(home.file('-srv-acme'));
  const taken = await home.here(['import', '--', '-srv-acme'], { cwd: home.file('.') });
  expect([taken.code, taken.stdout]).toEqual([0, 'No transcripts found\n']);
});

test('a backup without sessions is not restored beside the graph file of other tapes, and nothing of it is left', async () => {
  using empty = tempHome();
  using other = tempHome();
  empty.open().close();
  expect((await empty.here(['backup', empty.file('empty.db')])).code).toBe(0);
  other.session('main', user('Hello.'));
  const dir = empty.file('restored');
  mkdirSync(dir, { mode: 0o700 });
  appendFileSync(`${dir}/session_graph.jsonl`, readFileSync(other.graph), { mode: 0o600 });
  const result = await empty.here(['restore', empty.file('empty.db'), dir, '--json']);
  expect(jsonError(result)).toMatchObject({ code: 'GRAPH_DIVERGED' });
  expect(readdirSync(dir)).toEqual(['session_graph.jsonl']);
  expect(existsSync(`${dir}/tape.db`)).toBe(false);
});

/** Wrong lines with words that are named like verbs, and the help that the hint names. */
const hints: readonly (readonly [line: string, hint: string])[] = [
  ['log demo --onelin', 'tape log --help'],
  ['--json log demo --onelin', 'tape log --help'],
  ['--home run log demo --onelin', 'tape log --help'],
  ['--home=run --base check log demo --onelin', 'tape log --help'],
  ['-n 5 log demo --onelin', 'tape log --help'],
  ['anchor log', 'tape anchor --help'],
  ['send main', 'tape send --help'],
  ['nosuch log main', 'tape --help'],
  ['--home log', 'tape --help'],
  ['--quiet', 'tape --help'],
];

test.each(hints)('the hint for tape %s is %s', async (line, hint) => {
  using home = tempHome();
  home.session('demo', user('Hello.'));
  const result = await home.here(['--json', ...line.split(' ')]);
  expect({ code: result.code, hint: jsonError(result).hint }).toEqual({ code: 2, hint: `see: ${hint}` });
});

test('a session may be named help or like a verb', async () => {
  using home = tempHome();
  for (const name of ['help', 'log', 'demo']) {
    home.session(name, user('Hello.'));
    expect((await home.here(['log', name, '--quiet'])).code).toBe(0);
  }
});

test('a flag does not take the word true or false behind it', async () => {
  using home = tempHome();
  home.session('true', user('Hello.'));
  for (const args of [
    ['log', '--own', 'true'],
    ['log', '--oneline=false', '--json', 'true'],
    ['--home', home.path, 'log', '--json', 'true'],
  ])
    expect((await home.here(args)).code, args.join(' ')).toBe(0);
});
