import { writeFileSync } from 'node:fs';
import { contract } from '@tapedeck/cli/contract';
import { openJournal } from '@tapedeck/graph/journal';
import { assistant, openTapeStore, toolCall, toolResult, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { fixedClock } from '../support/clock.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

/** A session of two turns, at 2 to 5, with a child that has done its work and one that has not. */
function talked(): TempHome {
  const home = tempHome();
  home.session('main', user('One'), assistant('First.'), user('Two'), assistant('Second.'));
  // Sessions of one moment change places in a list with each act.
  const { now } = fixedClock({ start: Date.now(), stepMs: 1 });
  using store = openTapeStore(home.db, { journal: openJournal(home.graph), durability: 'fast', now });
  for (const name of ['kid', 'other']) {
    store.lineage.fork('main', { name });
    store.entries.append(name, [assistant(`Done by ${name}.`)]);
  }
  store.sessions.update('main', { alias: { name: 'talk', reason: '' } });
  store.sessions.open('dm:mail:mom');
  store.identities.link('dm:dad', ['dm:mail:dad', 'dm:fax:dad']);
  store.sessions.open('old');
  store.sessions.update('old', { lifecycle: 'archived' });
  store.sessions.open('tools');
  const call = { toolCallId: 'c1', toolName: 'read' };
  store.entries.append('tools', [
    ...[user('Read'), assistant([toolCall('c1', 'read', {})]), toolResult(call, 'line\n'.repeat(20_000))],
    ...[assistant('Read.'), user('On'), assistant('On.'), user('Go'), assistant('Gone.')],
  ]);
  store.sessions.open('back');
  store.entries.append('back', [user('One'), assistant('First.')]);
  store.history.rewind('back', 1);
  writeFileSync(home.file('answers.json'), JSON.stringify([{ text: 'Answered.' }]));
  writeFileSync(home.file('claude.jsonl'), `${JSON.stringify(record)}\n`);
  return home;
}

const record = {
  ...{ type: 'user', uuid: 'u1', parentUuid: null, sessionId: 's1', timestamp: '2026-11-16T09:00:00.000Z' },
  message: { role: 'user', content: 'Why?' },
};

/** What a user sees before an act, after it, and again after its way back. */
type Look = (home: TempHome) => Promise<string>;

const out =
  (line: string): Look =>
  async (home) => {
    const { stdout, code } = await home.here(line.split(' '));
    return `${code} ${stdout}`;
  };
const messages: Look = async (home) => (await home.here(['view', 'main', '--quiet'])).stdout;
const listed: Look = out('sessions --quiet');
const deliveries: Look = out('children main --format {session}:{delivery}');

const both: Look = async (home) => (await deliveries(home)) + (await messages(home)) + (await listed(home));

interface Act {
  readonly line: string;
  readonly stdin?: string;
  readonly look: Look;
  /** What is seen after the way back, if that is not what was seen before. */
  readonly after?: RegExp;
}

const model = '--model script:HOME/answers.json';
const acts: readonly Act[] = [
  { line: 'new fresh', look: listed },
  { line: 'fork main --as fix --task Try', look: deliveries, after: /fix:discarded/ },
  { line: 'branch main@3 --as idea', look: listed },
  { line: 'merge kid', look: messages },
  { line: 'discard other', look: both, after: /other-fork-/ },
  { line: 'anchor main mark', look: out('show main@mark --quiet') },
  { line: 'handoff main next --summary On', look: messages },
  { line: 'append main', stdin: '{"role":"user","content":"More"}', look: messages },
  { line: 'append main --each', stdin: '{"role":"user","content":"More"}\n'.repeat(2), look: messages },
  { line: 'append main', stdin: '{"role":"assistant","content":"More"}', look: both, after: /main-fork-/ },
  {
    line: 'append main',
    stdin: '{"kind":"anchor","name":"x","payload":{"state":{}}}',
    look: out('show main@x --quiet'),
  },
  { line: 'append other-new --new', stdin: '{"role":"user","content":"More"}', look: listed },
  { line: 'append third --new --each', stdin: '{"role":"user","content":"More"}', look: listed },
  { line: 'import HOME/claude.jsonl --as why', look: listed },
  { line: `run main Three ${model}`, look: messages },
  { line: `delegate main --task A --task B ${model}`, look: messages },
  { line: 'rewind main@4', look: messages },
  { line: 'undo back', look: out('view back --quiet') },
  { line: `compact tools --prune ${model}`, look: out('view tools --quiet') },
  { line: 'alias main other-name', look: out('show other-name --quiet') },
  { line: 'unalias talk', look: out('show talk --quiet') },
  { line: 'rename main talk-2', look: out('sessions --format {session}:{title}') },
  { line: 'link kid old', look: out('children old --quiet') },
  { line: 'link kid --root', look: out('children main --quiet') },
  { line: 'resolve dm:sms:1', look: listed },
  {
    line: 'resolve dm:mom --address dm:mail:mom',
    look: out('resolve dm:mom --dry-run --quiet'),
  },
  { line: 'identity link dm:mom dm:mail:mom dm:fax:mom', look: out('identity --json') },
  { line: 'identity unlink dm:dad dm:fax:dad', look: out('identity --json') },
  { line: 'identity unlink dm:dad', look: out('identity --json') },
  { line: 'delete back', look: listed },
  { line: 'archive main', look: listed },
  { line: 'archive old --undo', look: listed },
  { line: 'config set model acme/one', look: out('config get model') },
  { line: 'remote add origin HOME/packs', look: out('remote') },
];

/** Verbs that change something and say no way back, with the reason. */
const others: Readonly<Record<string, string>> = {
  init: 'makes a directory, or names a realm, which the same command does again',
  demo: 'makes a home of its own',
  chat: 'has /undo',
  send: 'what was sent is in an inbox, or runs',
  abort: 'says how to go on',
  approve: 'what ran has run',
  recover: 'ends what a crash left',
  worker: 'runs what others delegate, who can undo the merges',
  redact: 'says that it cannot be undone',
  purge: 'says that it cannot be undone',
  doctor: 'repairs',
  raw: 'changes no content, or takes in what another home pushes',
  backup: 'writes a new file',
  export: 'writes a new file',
  attest: 'writes a new file',
  restore: 'writes a new home',
  copy: 'writes another home, where it adds alone',
  push: 'adds to another place',
  pull: 'brings sessions, of which new ones can be archived',
  clone: 'makes a home of its own',
  mcp: 'see cli.mcp-install',
  trust: 'see cli.trust',
  completion: 'says which file to remove',
};

/** Verbs that only read. */
const readers = new Set(
  'wait ui overview sessions children status log logs show view search lineage graph diff trace blame permissions usage check verify audit schema'.split(
    ' ',
  ),
);

/** The commands that an output offers as the way back. */
function waysBack(text: string): readonly string[] {
  const [, commands = ''] = /\b(?:[Uu]ndo|fork|branch) with: (tape [^)\n]*)/.exec(text) ?? [];
  return commands.split('; ');
}

const wordsOf = (line: string, { path }: TempHome) => line.replaceAll('HOME', path).split(' ');

test('every change prints the way back, which works', async () => {
  using home = talked();
  for (const { line, stdin = '', look, after } of acts) {
    const before = await look(home);
    const done = await home.here(wordsOf(line, home), { stdin });
    expect(done.code, `${line}: ${done.stderr}`).toBe(0);
    expect(await look(home), line).not.toBe(before);
    for (const command of waysBack(done.stdout + done.stderr)) {
      expect(command, line).toMatch(/^tape \S/);
      const back = await home.here(command.split(' ').slice(1));
      expect(back, `${line}: ${command}`).toMatchObject({ code: 0, stderr: '' });
    }
    if (after === undefined) expect(await look(home), line).toBe(before);
    else expect(await look(home), line).toMatch(after);
  }
});

test('every verb that changes something says the way back, or has a reason not to', () => {
  const covered = new Set(acts.map(({ line }) => line.split(' ')[0]));
  const missing = Object.keys(contract).filter(
    (verb) => !covered.has(verb) && !(verb in others) && !readers.has(verb),
  );
  expect(missing).toEqual([]);
});

test('a run in a pipe says it on stderr, beside the answer alone', async () => {
  using home = talked();
  const args = wordsOf(`run main Three ${model}`, home);
  expect(await home.here(args)).toMatchObject({
    stdout: 'Answered.\n',
    stderr: 'main@6-7 (undo with: tape rewind main@6)\n',
  });
});

test.each(['--json', '--quiet'])('with %s nothing but the receipt is printed', async (form) => {
  using home = talked();
  for (const { line, stdin = '' } of acts.filter(({ line }) => !/^(?:run|delegate|compact)/.test(line))) {
    const done = await home.here([...wordsOf(line, home), form], { stdin });
    if (done.code === 0) expect(done.stdout + done.stderr, line).not.toMatch(/with: tape/i);
  }
});
