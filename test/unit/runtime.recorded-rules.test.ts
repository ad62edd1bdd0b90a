import { existsSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { recorded, recordedTools, type Session } from '@tapedeck/runtime';
import { user } from '@tapedeck/tape';
import { generateText, isStepCount, type ModelMessage, streamText, type ToolSet, tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { byAgent, call, desk, done, run } from '../support/ruled.ts';

type Desk = Awaited<ReturnType<typeof desk>>;

/** What an application with a loop of its own does: it sends these messages, and keeps what was said. */
async function go(s: Desk, messages: ModelMessage[], more: object = {}): Promise<ModelMessage[]> {
  const { responseMessages } = await generateText({
    model: await recorded(s.main, s.spec),
    tools: recordedTools(s.main, s.tools as ToolSet),
    stopWhen: isStepCount(5),
    messages,
    maxRetries: 0,
    ...more,
  });
  return [...messages, ...responseMessages];
}

const ask: ModelMessage[] = [{ role: 'user', content: 'Go' }];

/** The messages with an answer to the last request for approval. */
function answered(messages: ModelMessage[], answer: { approved: boolean; reason?: string }): ModelMessage[] {
  const asked = messages
    .flatMap(({ role, content }) => (role === 'assistant' && typeof content !== 'string' ? content : []))
    .findLast((part) => part.type === 'tool-approval-request');
  if (asked?.type !== 'tool-approval-request') throw new Error('nothing is asked');
  const response = { type: 'tool-approval-response', approvalId: asked.approvalId, ...answer } as const;
  return [...messages, { role: 'tool', content: [response] }];
}

const waiting = async (session: Session) => (await session.status()).waiting;

test('a loop of an application is refused what rules deny', async () => {
  await using s = await desk([run('rm x'), done], { permissions: ['allow *', 'deny exec(rm *)'] });
  const { text } = await generateText({
    model: await recorded(s.main, s.spec),
    tools: recordedTools(s.main, s.tools as ToolSet),
    stopWhen: isStepCount(3),
    prompt: 'Go',
  });
  expect(text).toBe('Done.');
  expect(s.ran).toEqual([]);
  expect(s.outputs()).toEqual(["Error: exec(rm x) is not allowed in 'main', by the rule: deny exec(rm *)"]);
});

test('a loop of an application keeps to the rules of who sent the message that it answers', async () => {
  await using s = await desk([run('rm x'), done]);
  const child = await s.main.fork({ name: 'child', rules: 'deny exec(rm *)', onUnmerged: 'keep' });
  const { source, meta } = byAgent(child.id);
  await s.store.entries.append('main', [user('Run it', { source, ...meta })]);
  await generateText({
    model: await recorded(s.main, s.spec),
    tools: recordedTools(s.main, s.tools as ToolSet),
    stopWhen: isStepCount(3),
    prompt: 'Run it',
  });
  expect(s.ran).toEqual([]);
  expect(s.outputs()).toEqual(["Error: exec(rm x) is not allowed in 'child', by the rule: deny exec(rm *)"]);
});

test('what rules ask waits for approval as in a run, and runs once the application has an answer', async () => {
  await using s = await desk([run('git log'), done], { permissions: 'trusted' });
  const stop = new AbortController();
  const waits: unknown[] = [];
  const seen = (async () => {
    for await (const event of s.main.subscribe({ signal: stop.signal }))
      if (event.type === 'tool-waiting') waits.push(event.calls.map((one) => one.for));
  })();
  const asked = await go(s, ask);
  expect(s.ran).toEqual([]);
  expect(await waiting(s.main)).toMatchObject([
    { toolCallId: 'c1', for: 'approval', claims: ['run_command', 'exec(git log)'] },
  ]);
  expect((await waiting(s.main))[0]?.offers).toEqual(['exec(git log)', 'exec(git *)']);
  const all = await go(s, answered(asked, { approved: true }));
  expect(s.ran).toEqual(['git log']);
  expect(all.at(-1)).toMatchObject({ role: 'assistant', content: [{ text: 'Done.' }] });
  expect(s.events('permission/decided')).toMatchObject([
    { toolCallId: 'c1', verdict: 'ask', claim: 'exec(git log)', rule: 'ask exec(*)', scope: 'manifest' },
  ]);
  expect(s.events('call/answered')).toEqual([{ toolCallId: 'c1', approved: true }]);
  expect(s.events('history/diverged')).toEqual([]);
  stop.abort();
  await seen;
  expect(waits).toEqual([['result'], ['approval']]);
});

test('a denial of the application is recorded, and the model reads its reason', async () => {
  await using s = await desk([run('git push'), done], { permissions: 'trusted' });
  const asked = await go(s, ask);
  await go(s, answered(asked, { approved: false, reason: 'not today' }));
  expect(s.ran).toEqual([]);
  expect(s.outputs()).toEqual(['not today']);
  expect(s.events('call/answered')).toEqual([{ toolCallId: 'c1', approved: false, reason: 'not today' }]);
  expect(s.events('history/diverged')).toEqual([]);
});

test('an answer that is given to the session counts, also for good', async () => {
  await using s = await desk([run('git log'), run('git tag', 'c2'), done], { permissions: 'trusted' });
  const asked = await go(s, ask);
  await s.main.respond('c1', { approved: true, remember: ['exec(git *)'] }, { start: false });
  await go(s, answered(asked, { approved: true }));
  // The second command is covered by what was granted.
  expect(s.ran).toEqual(['git log', 'git tag']);
  expect(s.events('permission/granted')).toEqual([{ rule: 'allow exec(git *)', toolCallId: 'c1' }]);
  expect((await s.main.rules()).grants).toEqual(['allow exec(git *)']);
});

test('what a person has denied does not run, whatever the application says', async () => {
  await using s = await desk([run('git push'), done], { permissions: 'trusted' });
  const asked = await go(s, ask);
  await s.main.respond('c1', { approved: false, reason: 'never' }, { start: false });
  await go(s, answered(asked, { approved: true }));
  expect(s.ran).toEqual([]);
  expect(s.outputs()).toEqual(['Error: never']);
});

test('the deck answers at once by onApproval', async () => {
  const asked: unknown[] = [];
  await using s = await desk([run('git log'), run('make', 'c2'), done], {
    permissions: 'trusted',
    onApproval: ({ toolName, input, claims, offers }) => {
      asked.push({ toolName, input, claims });
      const isGit = claims.includes('exec(git log)');
      return isGit ? { approved: true, remember: offers.slice(-1) } : { approved: false, reason: 'only git' };
    },
  });
  await go(s, ask);
  expect(asked).toEqual([
    { toolName: 'run_command', input: { command: 'git log' }, claims: ['run_command', 'exec(git log)'] },
    { toolName: 'run_command', input: { command: 'make' }, claims: ['run_command', 'exec(make)'] },
  ]);
  expect(s.ran).toEqual(['git log']);
  expect(s.outputs()).toEqual(['ran git log', 'Error: only git']);
  expect((await s.main.rules()).grants).toEqual(['allow exec(git *)']);
});

test('an approval that the application gives by itself, without a request, does not count', async () => {
  await using s = await desk([run('git log'), done], { permissions: 'trusted' });
  await go(s, ask, { toolApproval: { run_command: 'approved' } });
  expect(s.ran).toEqual([]);
  expect(s.outputs()).toEqual(['Error: exec(git log) needs an approval, which it does not have']);
  expect(s.events('permission/decided')).toMatchObject([{ verdict: 'ask' }]);
});

test('what was approved is what runs: a call whose link leads elsewhere by then is refused', async () => {
  await using s = await desk([call('write_file', { path: 'link', text: 'x' }), done], {
    permissions: ['allow *', 'ask write(**)'],
  });
  writeFileSync(join(s.cwd, 'harmless'), '');
  symlinkSync(join(s.cwd, 'harmless'), join(s.cwd, 'link'));
  const asked = await go(s, ask);
  unlinkSync(join(s.cwd, 'link'));
  symlinkSync(join(s.cwd, 'other'), join(s.cwd, 'link'));
  await go(s, answered(asked, { approved: true }));
  expect(s.outputs()).toEqual(['Error: what it would do has changed since it was approved']);
  expect(existsSync(join(s.cwd, 'other'))).toBe(false);
});

test('a link that is swapped between the question and the start is asked about, and does not run', async () => {
  await using s = await desk([call('write_file', { path: 'link', text: 'x' }), done], {
    permissions: ['allow *', 'ask write(**)', 'allow write(in/**)'],
  });
  symlinkSync('in/x', join(s.cwd, 'link'));
  const tools = recordedTools(s.main, s.tools as ToolSet);
  const { write_file } = tools;
  const swapping = {
    ...write_file,
    needsApproval: async (...given: unknown[]) => {
      const needed = await Reflect.apply(
        write_file?.needsApproval as () => Promise<boolean>,
        undefined,
        given,
      );
      unlinkSync(join(s.cwd, 'link'));
      symlinkSync('outside', join(s.cwd, 'link'));
      return needed;
    },
  } as ToolSet[string];
  await go(s, ask, { tools: { ...tools, write_file: swapping } });
  expect(s.outputs()).toEqual([
    `Error: write(${join(s.cwd, 'outside')}) needs an approval, which it does not have`,
  ]);
  expect(existsSync(join(s.cwd, 'outside'))).toBe(false);
});

test('a stream of an application asks and answers in the same way, for a tool that asks by itself too', async () => {
  await using s = await desk([call('pay'), done]);
  const stream = async (messages: ModelMessage[]) => {
    const result = streamText({
      model: await recorded(s.main, s.spec),
      tools: recordedTools(s.main, s.tools as ToolSet),
      stopWhen: isStepCount(5),
      messages,
    });
    await result.consumeStream();
    return [...messages, ...(await result.responseMessages)];
  };
  const asked = await stream(ask);
  expect(await waiting(s.main)).toMatchObject([{ toolCallId: 'pay-1', for: 'approval', offers: ['pay'] }]);
  await stream(answered(asked, { approved: true }));
  expect(s.ran).toEqual(['pay']);
  expect(s.events('call/answered')).toEqual([{ toolCallId: 'pay-1', approved: true }]);
  expect(s.events('history/diverged')).toEqual([]);
});

test('an error of a tool has ~ in the place of the home directory, for the model and on the tape', async () => {
  await using s = await desk([call('fails'), done]);
  const file = join(homedir(), 'notes.txt');
  const fails = tool({
    inputSchema: z.object({}),
    execute: (): string => {
      throw new RangeError(`cannot open ${file}`);
    },
  });
  const said = await go(s, ask, { tools: recordedTools(s.main, { fails }) });
  expect(s.outputs()).toEqual(['RangeError: cannot open ~/notes.txt']);
  expect(JSON.stringify(said)).toContain('RangeError: cannot open ~/notes.txt');
  expect(JSON.stringify(said)).not.toContain(file);
  expect(s.events('history/diverged')).toEqual([]);
});
