import { existsSync, mkdirSync, readFileSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { DeckConfig, DeckTools } from '@tapedeck/runtime';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import { note } from '@tapedeck/tape';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { byAgent, call, desk, done, run } from '../support/ruled.ts';
import { atFullSize, sized } from '../support/size.ts';

test('a model reads the home directory of the user as ~ in a refusal', async () => {
  const path = join(homedir(), '.ssh/config');
  await using s = await desk([call('write_file', { path }), done], { permissions: 'sandboxed' });
  await s.main.run('Write');
  expect(s.outputs()).toEqual(["write(~/.ssh/config) is not allowed in 'main', by the rule: deny write(**)"]);
});

test('a refused call fails with the rule, is recorded, and the run goes on', async () => {
  await using s = await desk([call('write_file', { path: '../x' }), done], { permissions: 'sandboxed' });
  expect(await s.main.run('Write')).toMatchObject({ finish: 'stop', text: 'Done.' });
  const claim = `write(${join(s.cwd, '../x')})`;
  expect(s.outputs()).toEqual([`${claim} is not allowed in 'main', by the rule: deny write(**)`]);
  expect(s.events('permission/decided')).toEqual([
    {
      toolCallId: 'write_file-1',
      toolName: 'write_file',
      verdict: 'deny',
      claim,
      rule: 'deny write(**)',
      scope: 'manifest',
      session: 'main',
    },
  ]);
  expect(existsSync(join(s.cwd, '../x'))).toBe(false);
});

test('without rules nothing is asked, nothing is recorded, and no claims are made', async () => {
  await using s = await desk([call('mystery'), run('rm -rf /'), done]);
  expect(await s.main.run('Go')).toMatchObject({ finish: 'stop' });
  expect(s.ran).toEqual(['mystery', 'rm -rf /']);
  expect(s.events('permission/decided')).toEqual([]);
  expect(await s.main.permits({ tool: 'run_command', input: { command: 'ls' } })).toMatchObject({
    verdict: 'allow',
    claims: ['run_command', 'exec(ls)'],
  });
});

test('of a call that would fail, no decision is shown: there is no such tool, or its arguments do not fit', async () => {
  await using s = await desk([], { permissions: ['deny mystery'] });
  await expect(s.main.permits({ tool: 'run_comand', input: { command: 'ls' } })).rejects.toMatchObject({
    code: 'SESSION_NO_TOOL',
    message: "cannot decide on a call of 'run_comand' in 'main': there is no such tool",
    data: { near: ['run_command'], tools: Object.keys(s.tools) },
  });
  await expect(s.main.permits({ tool: `${'x'.repeat(10_000_000)}\u001b[2J` })).rejects.toMatchObject({
    message: expect.stringMatching(/^cannot decide on a call of 'x{77}\.\.\.' in 'main'/),
  });
  await expect(s.main.permits({ tool: 'run_command', input: { comand: 'ls' } })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    message: expect.stringContaining("call of 'run_command' in 'main'"),
    data: { field: 'input', schema: { required: ['command'] } },
  });
  await expect(s.main.permits({ tool: 'constructor' })).rejects.toMatchObject({ code: 'SESSION_NO_TOOL' });
  const child = await s.main.fork({ uses: ['run_command'] });
  expect(await child.permits({ tool: 'pay' })).toMatchObject({
    verdict: 'deny',
    fault: 'the session may not use the tool',
  });
  expect((await child.permits({ tool: 'run_command', input: { command: 'ls' } })).verdict).toBe('ask');
});

test('a decision says that a tool asks by itself, unless its answer counts for good', async () => {
  await using s = await desk([]);
  expect(await s.main.permits({ tool: 'pay' })).toMatchObject({
    verdict: 'ask',
    scope: 'tool',
    claim: 'pay',
    offers: ['pay'],
  });
  await s.store.entries.append('main', [note('permission/granted', { rule: 'allow pay' })]);
  expect((await s.main.permits({ tool: 'pay' })).verdict).toBe('allow');
  const { run_command } = s.tools;
  const odd = {
    odd: {
      ...run_command,
      needsApproval: () => {
        throw new Error('no answer');
      },
    },
  } as DeckTools;
  expect(await s.main.permits({ tool: 'odd', input: { command: 'ls' } }, { tools: odd })).toMatchObject({
    verdict: 'deny',
    fault: 'no answer',
  });
});

test('an asked call waits with its claims and offers, and an answer can count for good', async () => {
  await using s = await desk([run('git log'), run('git status', 'c2'), run('make', 'c3'), done], {
    permissions: ['trusted'],
  });
  expect(await s.main.run('Look')).toMatchObject({ finish: 'waiting' });
  const [waiting] = (await s.main.status()).waiting;
  expect(waiting).toEqual({
    toolCallId: 'c1',
    name: 'run_command',
    input: { command: 'git log' },
    for: 'approval',
    claims: ['run_command', 'exec(git log)'],
    offers: ['exec(git log)', 'exec(git *)'],
  });
  await expect(s.main.respond('c1', { approved: true, remember: ['exec(*)'] })).rejects.toMatchObject({
    code: 'SESSION_NO_CALL',
    message: expect.stringContaining(
      'it cannot count for "exec(*)": the offers are exec(git log), exec(git *)',
    ),
  });
  const { run: second } = await s.main.respond('c1', { approved: true, remember: ['exec(git *)'] });
  // The second command is covered; the third one is not.
  expect(await second).toMatchObject({ finish: 'waiting' });
  expect(s.ran).toEqual(['git log', 'git status']);
  expect(s.events('permission/granted')).toEqual([{ rule: 'allow exec(git *)', toolCallId: 'c1' }]);
  expect(s.events('permission/decided')).toMatchObject([
    { toolCallId: 'c1', verdict: 'ask', claim: 'exec(git log)', rule: 'ask exec(*)' },
    { toolCallId: 'c2', verdict: 'allow', rule: 'allow exec(git *)', scope: 'grant' },
    { toolCallId: 'c3', verdict: 'ask', claim: 'exec(make)' },
  ]);
  const { run: third } = await s.main.respond('c3', {
    approved: false,
    reason: 'no',
    remember: ['exec(make)'],
  });
  expect(await third).toMatchObject({ finish: 'stop' });
  expect(await s.main.permits({ tool: 'run_command', input: { command: 'make' } })).toMatchObject({
    verdict: 'deny',
    rule: 'deny exec(make)',
    scope: 'grant',
  });
});

test('forks inherit what was granted as they inherit entries, and a rewind takes it back', async () => {
  await using s = await desk([done], { permissions: 'trusted' });
  await s.main.run('Hello');
  const asked = { tool: 'run_command', input: { command: 'git log' } };
  await s.store.entries.append('main', [note('permission/granted', { rule: 'allow exec(git *)' })]);
  expect((await s.main.permits(asked)).verdict).toBe('allow');
  const full = await s.main.fork({ name: 'full', onUnmerged: 'keep' });
  const fresh = await s.main.fork({ name: 'fresh', inherit: 'nothing', onUnmerged: 'keep' });
  expect((await full.permits(asked)).verdict).toBe('allow');
  expect((await fresh.permits(asked)).verdict).toBe('ask');
  // What is granted to a child is its own, and stays its own when it is merged.
  const make = { tool: 'run_command', input: { command: 'make' } };
  await s.store.entries.append('full', [note('permission/granted', { rule: 'allow exec(make)' })]);
  expect((await full.permits(make)).verdict).toBe('allow');
  await full.finish();
  expect((await s.main.permits(make)).verdict).toBe('ask');
  // A boundary hides nothing of it, a rewind does.
  await s.main.handoff('later', { summary: 'All is well.' });
  expect((await s.main.permits(asked)).verdict).toBe('allow');
  await s.main.rewind('@2');
  expect((await s.main.permits(asked)).verdict).toBe('ask');
  expect((await s.main.rules()).grants).toEqual([]);
});

test('a fork that must always be asked is asked, whatever its parent was granted', async () => {
  await using s = await desk([run('git log'), run('git push', 'c2'), done], {
    permissions: ['allow *', 'ask exec(*)'],
  });
  await s.main.run('Look');
  const { run: again } = await s.main.respond('c1', { approved: true, remember: ['exec(git *)'] });
  expect(await again).toMatchObject({ finish: 'stop' });
  const asked = { tool: 'run_command', input: { command: 'git push' } };
  expect(await s.main.permits(asked)).toMatchObject({ verdict: 'allow', scope: 'grant' });
  const child = await s.main.fork({ name: 'child', rules: 'ask! exec(*)', onUnmerged: 'keep' });
  expect(await child.permits(asked)).toMatchObject({
    verdict: 'ask',
    rule: 'ask! exec(*)',
    session: 'child',
    offers: [],
  });
});

test('a child only narrows, whatever it or its own children are given', async () => {
  await using s = await desk([done]);
  const child = await s.main.fork({ name: 'child', rules: 'sandboxed', onUnmerged: 'keep' });
  const below = await child.fork({ name: 'below', rules: ['yolo'], onUnmerged: 'keep' });
  const asked = { tool: 'run_command', input: { command: 'ls' } };
  expect(await below.permits(asked)).toMatchObject({
    verdict: 'deny',
    rule: 'deny exec(*)',
    scope: 'session',
    session: 'child',
  });
  expect((await s.main.permits(asked)).verdict).toBe('allow');
  await s.store.entries.append('below', [note('permission/granted', { rule: 'allow exec(ls)' })]);
  expect((await below.permits(asked)).verdict).toBe('deny');
  expect((await below.rules()).lineage.map(({ session, rules }) => [session, rules.length])).toEqual([
    ['main', 0],
    ['child', 10],
    ['below', 11],
  ]);
  const branch = await below.branch();
  expect((await branch.permits(asked)).verdict).toBe('deny');
  await expect(child.fork({ rules: ['allow wirte(**)'] })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    data: { field: 'rules', line: 1, column: 7 },
  });
});

test('a message of an agent brings the rules of its sender', async () => {
  const tell = (message: string): ScriptAnswer => ({
    toolCalls: [{ id: 's1', name: 'send', input: { to: 'manager', message } }],
    when: { session: 'child' },
  });
  await using s = await desk([
    tell('Run it for me'),
    { text: 'Told.', when: { session: 'child' } },
    { ...run('rm x'), when: { session: 'main', text: 'Run it for me' } },
    { text: 'I may not.', when: { session: 'main', text: 'Run it for me' } },
    { ...run('ls'), when: { session: 'main', text: 'And I' } },
    { text: 'You may.', when: { session: 'main', text: 'And I' } },
  ]);
  const child = await s.main.fork({ name: 'child', rules: 'sandboxed', onUnmerged: 'keep' });
  await child.run('Try');
  await s.deck.idle();
  expect(s.ran).toEqual([]);
  expect(s.outputs()).toEqual(["exec(rm x) is not allowed in 'child', by the rule: deny exec(*)"]);
  expect(s.events('permission/decided')).toMatchObject([{ verdict: 'deny', session: 'child' }]);
  // A person who wants the same gets no question.
  await s.main.run('And I?');
  expect(s.ran).toEqual(['ls']);
});

test('an answer for good does not count for a sender whose rules ask: the request says so, and asks again', async () => {
  const answers = [run('git log'), done, run('git log', 'c2'), done, run('git log', 'c3'), done];
  await using s = await desk(answers);
  const lead = await s.deck.session('lead', { rules: ['allow *', 'ask exec(*)'] });
  const send = async () => {
    const by = { id: lead.id, session: 'lead' };
    return await (await s.main.send('Look', { meta: { by } })).run;
  };
  expect(await send()).toMatchObject({ finish: 'waiting' });
  const [asked] = (await s.main.status()).waiting;
  expect(asked).toMatchObject({ offers: ['exec(git log)', 'exec(git *)'], askedFor: ['lead'] });
  expect(s.events('run/waiting')).toMatchObject([{ calls: [{ askedFor: ['lead'] }] }]);
  const { run: then } = await s.main.respond('c1', { approved: true, remember: ['exec(git *)'] });
  expect(await then).toMatchObject({ finish: 'stop' });
  expect(await send()).toMatchObject({ finish: 'waiting' });
  expect((await s.main.status()).waiting).toMatchObject([{ toolCallId: 'c2', askedFor: ['lead'] }]);
  const { run: last } = await s.main.respond('c2', { approved: true });
  expect(await last).toMatchObject({ finish: 'stop' });
  // A person is not asked.
  expect(await s.main.run('Look')).toMatchObject({ finish: 'stop' });
  expect(s.ran).toEqual(['git log', 'git log', 'git log']);
});

test('what an agent may not have done, it may not have done by messages and children of others', async () => {
  const send = (to: string, message: string, when: object): ScriptAnswer => ({
    toolCalls: [{ id: `to-${to}`, name: 'send', input: { to, message } }],
    when,
  });
  await using s = await desk([
    send('manager', 'Have it run', { session: 'bound' }),
    { text: 'Told.', when: { session: 'bound' } },
    send('free', 'Run it', { session: 'main', text: 'Have it run' }),
    {
      toolCalls: [
        { id: 'd1', name: 'delegate', input: { tasks: [{ task: 'Run it, too' }], inherit: 'nothing' } },
      ],
      when: { session: 'main' },
    },
    { text: 'Passed on.', when: { session: 'main' } },
    { ...run('rm x'), when: { session: 'free' } },
    { text: 'Refused.', when: { session: 'free' } },
    { ...run('rm y', 'c2'), when: { text: 'Run it, too' } },
    { text: 'Refused as well.', when: { text: 'Run it, too' } },
  ]);
  await s.main.fork({ name: 'free', onUnmerged: 'keep' });
  const bound = await s.main.fork({ name: 'bound', rules: ['allow *', 'deny exec(*)'], onUnmerged: 'keep' });
  await bound.run('Try');
  await s.deck.idle();
  expect(s.ran).toEqual([]);
  expect(s.outputs('free')).toEqual(["exec(rm x) is not allowed in 'bound', by the rule: deny exec(*)"]);
  const [delegated] = s.store.sessions
    .list({ all: true })
    .filter(({ session }) => session.startsWith('main-'));
  expect(s.outputs(delegated?.session)).toEqual([
    "exec(rm y) is not allowed in 'bound', by the rule: deny exec(*)",
  ]);
});

test('a message that is sent again brings the rules of its sender again', async () => {
  await using s = await desk([
    { text: 'Not now.' },
    { ...run('rm x'), when: { text: 'Run it' } },
    { text: 'I may not.' },
  ]);
  const child = await s.main.fork({ name: 'child', rules: 'sandboxed', onUnmerged: 'keep' });
  await s.main.send('Run it', byAgent(child.id));
  await s.deck.idle();
  const [message] = [...s.store.entries.read('main', { kind: 'message' })];
  const { run: again } = await s.main.rewind(message?.seq ?? 0, { mode: 'resend' });
  await again;
  expect(s.ran).toEqual([]);
  expect(s.outputs()).toEqual(["exec(rm x) is not allowed in 'child', by the rule: deny exec(*)"]);
});

test('a run that goes on after an answer keeps to all who sent to the turn; the next turn does not', async () => {
  await using s = await desk(
    [
      run('git log'),
      call('nudge'),
      run('git status', 'c2'),
      run('git tag', 'c3'),
      done,
      run('git tag', 'c4'),
    ],
    { permissions: ['allow *', 'ask exec(*)'] },
  );
  const bound = await s.main.fork({ name: 'bound', rules: 'deny exec(git tag)', onUnmerged: 'keep' });
  const other = await s.main.fork({ name: 'other', onUnmerged: 'keep' });
  await s.main.send('Look', byAgent(bound.id));
  await s.deck.idle();
  const nudge = tool({
    inputSchema: z.object({}),
    execute: async () => (await s.main.send('At this, too', { ...byAgent(other.id), mode: 'steer' })).state,
  });
  const { run: second } = await s.main.respond('c1', { approved: true }, { tools: { ...s.tools, nudge } });
  expect(await second).toMatchObject({ finish: 'waiting' });
  const { run: third } = await s.main.respond('c2', { approved: true });
  expect(await third).toMatchObject({ finish: 'stop' });
  expect(s.ran).toEqual(['git log', 'git status']);
  expect(s.outputs().at(-1)).toBe("exec(git tag) is not allowed in 'bound', by the rule: deny exec(git tag)");
  expect(await s.main.run('And I?')).toMatchObject({ finish: 'waiting' });
  const { run: last } = await s.main.respond('c4', { approved: true });
  await last;
  expect(s.ran).toEqual(['git log', 'git status', 'git tag']);
});

test('a child that is resumed is bound by who sent to the run that resumes it, as a new one is', async () => {
  const delegate = (task: object, when: object): ScriptAnswer => ({
    toolCalls: [{ id: 'd1', name: 'delegate', input: { tasks: [task] } }],
    when,
  });
  await using s = await desk([
    delegate({ task: 'Again', resume: 'early' }, { session: 'main' }),
    { text: 'Passed on.', when: { session: 'main' } },
    { text: 'Ready.', when: { session: 'early' } },
    { ...run('rm x'), when: { session: 'early' } },
    { text: 'Refused.', when: { session: 'early' } },
  ]);
  const early = await s.main.fork({ name: 'early', inherit: 'nothing', onUnmerged: 'keep' });
  await early.run('First');
  const bound = await s.main.fork({ name: 'bound', rules: 'deny exec(*)', onUnmerged: 'keep' });
  await s.main.send('Have it run', byAgent(bound.id));
  await s.deck.idle();
  expect(s.outputs('early')).toEqual(["exec(rm x) is not allowed in 'bound', by the rule: deny exec(*)"]);
  expect(s.ran).toEqual([]);
});

test('nothing is allowed for a sender that is not known here', async () => {
  const unknown = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
  for (const id of [unknown, 'main', 'no/name\0']) {
    await using s = await desk([call('mystery'), done]);
    await s.main.send('Run it', byAgent(id));
    await s.deck.idle();
    expect(s.ran).toEqual([]);
    expect(s.outputs()).toEqual([
      `mystery is not allowed: the session that sent the message, '${id}', is not known here`,
    ]);
  }
});

test.each([
  ['ask', 'what it would do has changed since it was approved'],
  ['allow', 'what it would do has changed since it was approved'],
  ['deny', expect.stringMatching(/^write\(.*\/secret\) is not allowed in 'main', by the rule: deny write/)],
])(
  'what was approved is what runs: a link that leads elsewhere since then is decided on anew: %s',
  async (verdict, refusal) => {
    await using s = await desk([call('write_file', { path: 'link', text: 'x' }), done], {
      permissions: ['ask write(**)', `${verdict} write(${verdict}/**)`],
    });
    const secret = join(s.cwd, verdict, 'secret');
    mkdirSync(join(s.cwd, verdict));
    writeFileSync(join(s.cwd, 'harmless'), '');
    writeFileSync(secret, 'kept');
    symlinkSync(join(s.cwd, 'harmless'), join(s.cwd, 'link'));
    expect(await s.main.run('Write')).toMatchObject({ finish: 'waiting' });
    expect((await s.main.status()).waiting[0]?.claims).toEqual([
      'write_file',
      `write(${join(s.cwd, 'harmless')})`,
    ]);
    unlinkSync(join(s.cwd, 'link'));
    symlinkSync(secret, join(s.cwd, 'link'));
    const { run: again } = await s.main.respond('write_file-1', {
      approved: true,
      remember: [`write(${join(s.cwd, 'harmless')})`],
    });
    expect(await again).toMatchObject({ finish: 'stop' });
    expect(s.outputs()).toEqual([refusal]);
    expect(readFileSync(secret, 'utf8')).toBe('kept');
    // The decision on the new place is on the tape, and what was granted is the place that was shown.
    const decided = s.events('permission/decided');
    expect(decided[0]).toMatchObject({ verdict: 'ask', claim: `write(${join(s.cwd, 'harmless')})` });
    if (verdict !== 'allow') expect(decided.at(-1)).toMatchObject({ verdict, claim: `write(${secret})` });
    expect(await s.main.permits({ tool: 'write_file', input: { path: 'link' } })).toMatchObject({ verdict });
  },
);

test('a tool that asks by itself asks no more once its answer counts for good', async () => {
  await using s = await desk([call('pay'), { toolCalls: [{ id: 'p2', name: 'pay', input: {} }] }, done]);
  expect(await s.main.run('Pay')).toMatchObject({ finish: 'waiting' });
  expect((await s.main.status()).waiting[0]).toMatchObject({
    claims: ['pay', 'opaque(pay)'],
    offers: ['pay'],
  });
  const { run: again } = await s.main.respond('pay-1', { approved: true, remember: ['pay'] });
  expect(await again).toMatchObject({ finish: 'stop' });
  expect(s.ran).toEqual(['pay', 'pay']);
});

test('a program answers by onApproval, with what counts for good', async () => {
  const asked: unknown[] = [];
  await using s = await desk([run('git log'), run('git status', 'c2'), done], {
    permissions: 'trusted',
    onApproval: ({ claims, offers }) => {
      asked.push(claims, offers);
      return { approved: true, remember: offers.slice(-1) };
    },
  });
  expect(await s.main.run('Look')).toMatchObject({ finish: 'stop' });
  expect(asked).toEqual([
    ['run_command', 'exec(git log)'],
    ['exec(git log)', 'exec(git *)'],
  ]);
  expect(s.ran).toEqual(['git log', 'git status']);
});

test('rules of the home follow those of the deck, and those of a session follow both', async () => {
  await using s = await desk([done], {
    permissions: 'deny! exec(rm *)',
    projectPermissions: 'allow exec(*)',
  });
  const strict = await s.deck.session('strict', { rules: 'deny exec(git push *)' });
  const verdict = async (command: string) => {
    const { verdict, scope } = await strict.permits({ tool: 'run_command', input: { command } });
    return `${verdict} ${scope}`;
  };
  expect(await verdict('rm x')).toBe('deny manifest');
  expect(await verdict('git log')).toBe('allow project');
  expect(await verdict('git push -f')).toBe('deny session');
  await expect(s.deck.session('odd', { rules: 'deny' })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    message: "cannot create 'odd' with these rules: line 1, column 5: nothing follows the verdict",
  });
});

test('tools that the provider runs are offered only where rules allow them', async () => {
  const search = {
    type: 'provider',
    id: 'x.search',
    args: {},
    isProviderExecuted: true,
    inputSchema: z.object({}),
  };
  const offered = async (permissions: DeckConfig['permissions'], sender?: string) => {
    const names: string[] = [];
    const { MockLanguageModelV4 } = await import('ai/test');
    const model = new MockLanguageModelV4({
      doStream: async ({ tools = [] }) => {
        names.push(...tools.map(({ name }) => name));
        throw new Error('enough');
      },
    });
    await using s = await desk([], {
      tools: { search } as unknown as DeckTools,
      model,
      limits: { retries: 0 },
      ...(permissions && { permissions }),
    });
    if (sender === undefined) await s.main.run('Search');
    else {
      const child = await s.main.fork({ name: 'child', rules: sender, onUnmerged: 'keep' });
      await s.main.send('Search', byAgent(child.id));
      await s.deck.idle();
    }
    return names;
  };
  expect(await offered(undefined)).toEqual(['search']);
  expect(await offered('trusted')).toEqual(['search']);
  expect(await offered('deny search')).toEqual([]);
  expect(await offered('ask exec(*)')).toEqual([]);
  expect(await offered(undefined, 'yolo')).toEqual(['search']);
  expect(await offered(undefined, 'deny search')).toEqual([]);
});

test('a rule on a tape that cannot be read denies everything', async () => {
  await using s = await desk([done]);
  await s.store.sessions.open('old', { settings: { rules: ['forbid it all'] } });
  const old = await s.deck.session('old');
  expect(await old.permits({ tool: 'write_file', input: { path: 'a' } })).toMatchObject({
    verdict: 'deny',
    claim: 'write_file',
    rule: 'forbid it all',
  });
});

test('of calls side by side, each is decided on when it runs: an earlier one can have moved a link', async () => {
  const swap = tool({
    inputSchema: z.object({ link: z.string(), to: z.string() }),
    execute: ({ link, to }) => {
      unlinkSync(link);
      symlinkSync(to, link);
      return 'swapped';
    },
  });
  await using s = await desk([], {
    permissions: ['sandboxed', 'allow opaque(swap)'],
    limits: { concurrentTools: 1 },
  });
  const link = join(s.cwd, 'link');
  mkdirSync(join(s.cwd, 'in'));
  mkdirSync(join(s.cwd, '../outside'));
  symlinkSync(join(s.cwd, 'in'), link);
  const model = s.script([
    {
      toolCalls: [
        { id: 'c1', name: 'swap', input: { link, to: join(s.cwd, '../outside'), _parallel: true } },
        { id: 'c2', name: 'write_file', input: { path: 'link/x', text: 'x' } },
      ],
    },
    done,
  ]);
  expect(await s.main.run('Go', { model, tools: { ...s.tools, swap } })).toMatchObject({ finish: 'stop' });
  expect(s.outputs()[0]).toBe('swapped');
  expect(s.outputs()[1]).toContain("is not allowed in 'main', by the rule: deny write(**)");
  expect(existsSync(join(s.cwd, '../outside/x'))).toBe(false);
});

test.runIf(atFullSize)(
  'a command that is longer than a system takes is refused, and the session goes on',
  async () => {
    const longest = `echo ${'x'.repeat(131_072 - 5)}`;
    const bytes = sized(1, 1, 10) * 1024 * 1024 + 1;
    const long = [`${longest}x`, `echo ${'x'.repeat(bytes - 5)}`, "a'".repeat(sized(1, 1, 5) * 1024 * 1024)];
    await using s = await desk([run(longest, 'c0'), ...long.map((text, i) => run(text, `l${i}`)), done], {
      permissions: ['allow *', 'deny exec(rm *)'],
      limits: { maxSteps: 20 },
    });
    expect(await s.main.run('Go')).toMatchObject({ finish: 'stop', text: 'Done.' });
    expect(s.ran).toEqual([longest]);
    for (const refused of s.outputs().slice(1))
      expect(refused).toMatch(/^exec\(.{400,700}is not allowed: it is longer than 131072 bytes$/s);
    expect(s.events('permission/decided')).toHaveLength(long.length);
  },
);

test('a tool whose argument is the directory of its command is asked about both, and each can be answered for good', async () => {
  const commands: string[] = [];
  const sh: DeckTools[string] = {
    ...tool({
      inputSchema: z.object({ command: z.string(), cwd: z.string() }),
      execute: ({ command, cwd }) => commands.push(`${cwd}: ${command}`),
    }),
    command: 'command',
    paths: { read: ['cwd'] },
  };
  const asks = (id: string, command: string, cwd: string): ScriptAnswer => ({
    toolCalls: [{ id, name: 'sh', input: { command, cwd } }],
  });
  await using s = await desk(
    [asks('c1', 'make', 'a'), asks('c2', 'make test', 'a'), asks('c3', 'make', 'b'), done],
    { tools: { sh }, permissions: ['ask exec(*)', 'ask read(**)'] },
  );
  expect(await s.main.run('Go')).toMatchObject({ finish: 'waiting' });
  const directory = join(s.cwd, 'a');
  const [asked] = (await s.main.status()).waiting;
  expect(asked?.offers).toEqual([`read(${directory})`, `read(${s.cwd}/**)`, 'exec(make)', 'exec(make *)']);
  const remember = [`read(${directory})`, 'exec(make *)'];
  const { run } = await s.main.respond('c1', { approved: true, remember });
  expect(await run).toMatchObject({ finish: 'waiting' });
  expect(commands).toEqual(['a: make', 'a: make test']);
  expect((await s.main.status()).waiting).toMatchObject([
    { toolCallId: 'c3', offers: [`read(${s.cwd}/b)`, `read(${s.cwd}/**)`] },
  ]);
});

test.runIf(atFullSize)(
  'hostile arguments and names of tools give typed results, small notes, and a session that goes on',
  async () => {
    const long = `${'x/'.repeat(sized(1, 1, 10) * 512 * 1024)}x`;
    const paths = [
      long,
      'a\0b',
      '../../../../etc/x',
      '\u202egpj.exe',
      '\u001b]52;c;aGk=\u0007',
      'file:///etc/%00',
    ];
    await using s = await desk(
      [
        ...paths.map(
          (path, i): ScriptAnswer => ({ toolCalls: [{ id: `c${i}`, name: 'write_file', input: { path } }] }),
        ),
        { toolCalls: [{ id: 'n1', name: '\u001b]52;c;aGk=\u0007', input: {} }] },
        done,
      ],
      { permissions: ['sandboxed'], limits: { maxSteps: 20 } },
    );
    expect(await s.main.run('Go')).toMatchObject({ finish: 'stop', text: 'Done.' });
    const results = s.outputs().map(String);
    expect(results).toHaveLength(paths.length + 1);
    expect(results[0]).toMatch(/^write\(x\/x.{400,600}is not allowed: it is longer than 4096 bytes$/s);
    expect(results[1]).toContain('is not allowed: it contains a null character');
    expect(results[2]).toContain('by the rule: deny write(**)');
    // Odd names are names: they are written in the workspace.
    expect(results.slice(3, 5)).toEqual(['written', 'written']);
    expect(results[5]).toContain('is not allowed');
    const notes = s.events('permission/decided').map((payload) => JSON.stringify(payload).length);
    expect(Math.max(...notes)).toBeLessThan(2_000);
  },
);
