import { setTimeout as sleep } from 'node:timers/promises';
import { type ChildProgress, delegationTools, openDeck } from '@tapedeck/runtime';
import { catchUp } from '@tapedeck/runtime/chat-client';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import { assistant, toolCall, user } from '@tapedeck/tape';
import { wrapStore } from '@tapedeck/tape/store';
import { lastAssistantMessageIsCompleteWithApprovalResponses, tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { serveChats, type TestChat } from '../support/chat.ts';
import { expectSame, shape } from '../support/chatting.ts';
import { entryLines, scriptedDeck } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';

const pays = (task: string, ...ids: string[]): ScriptAnswer[] => [
  ...ids.map(
    (id): ScriptAnswer => ({
      toolCalls: [{ name: 'pay', id, input: { to: task } }],
      when: { session: 'main-*', text: task },
    }),
  ),
  { text: `${task} is done.`, when: { session: 'main-*', text: task } },
];

const delegates = (session: string, text: string | undefined, ...tasks: string[]): ScriptAnswer[] => {
  const when = { session, ...(text !== undefined && { text }) };
  const input = { tasks: tasks.map((task) => ({ task })), inherit: 'nothing' };
  return [
    { toolCalls: [{ name: 'delegate', id: `d-${session}`, input }], when },
    { text: `${session} is done.`, when },
  ];
};

/** The session `main`, served to chats, which delegates to children that pay. */
async function chatting(
  answers: readonly ScriptAnswer[],
  paid: () => Promise<void> = async () => {},
  around: Parameters<typeof wrapStore>[1] = ({ act }) => act(),
) {
  const failures: unknown[] = [];
  const pay = tool({
    inputSchema: z.object({ to: z.string() }),
    needsApproval: true,
    execute: async ({ to }) => {
      await paid();
      return `paid ${to}`;
    },
  });
  const store = wrapStore(openStore(), around);
  const home = await scriptedDeck(answers, { store, tools: { ...delegationTools(), pay } });
  const main = await home.deck.session('main');
  const children = () =>
    home.store.sessions.list({ parent: 'main', all: true }).map(({ session }) => session);
  const server = await serveChats(home.deck, {
    authorize: () => ({ sessions: ['main', ...children()] }),
    onError: (error) => failures.push(error),
  });
  const same = async (chat: TestChat) => await expectSame({ main }, chat);
  return {
    ...home,
    main,
    server,
    children,
    failures,
    same,
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await home[Symbol.asyncDispose]();
    },
  };
}

const automatic = { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses };

test.each([
  { approved: true, state: 'output-available' },
  { approved: false, state: 'output-denied' },
])('a chat shows the call of a child, answers it, and goes on in the same message: $state', async (given) => {
  await using s = await chatting([...delegates('main', undefined, 'Pay rent'), ...pays('Pay rent', 'p1')]);
  const chat = s.server.chat('main', automatic);
  await chat.sendMessage({ text: 'Go' });
  const [child] = s.children();
  const [, waiting] = await s.same(chat);
  expect(shape(waiting)).toEqual([
    'step-start',
    'tool-delegate input-available',
    'data-child',
    'step-start',
    'tool-pay approval-requested',
  ]);
  expect(waiting?.parts.at(-1)).toMatchObject({
    toolCallId: `${child}/p1`,
    input: { to: 'Pay rent' },
    approval: { id: `${child}/p1` },
    toolMetadata: { session: child, toolCallId: 'p1' },
  });
  await chat.addToolApprovalResponse({ id: `${child}/p1`, approved: given.approved, reason: 'as I say' });
  await expect.poll(() => shape(chat.lastMessage)?.at(-1)).toBe('text done');
  const messages = await s.same(chat);
  expect(messages).toHaveLength(2);
  expect(messages[1]?.id).toBe(waiting?.id);
  expect(shape(messages[1])).toEqual([
    'step-start',
    'tool-delegate output-available',
    'data-child',
    'step-start',
    `tool-pay ${given.state}`,
    'step-start',
    'text done',
  ]);
});

test('a child that asks again is answered again in the same message', async () => {
  await using s = await chatting([
    ...delegates('main', undefined, 'Pay rent'),
    ...pays('Pay rent', 'p1', 'p2'),
  ]);
  const chat = s.server.chat('main', automatic);
  await chat.sendMessage({ text: 'Go' });
  const [child] = s.children();
  await chat.addToolApprovalResponse({ id: `${child}/p1`, approved: true });
  await expect.poll(() => shape(chat.lastMessage)?.at(-1)).toBe('tool-pay approval-requested');
  expect(shape((await s.same(chat))[1])?.slice(-3)).toEqual([
    'step-start',
    'tool-pay output-available',
    'tool-pay approval-requested',
  ]);
  await chat.addToolApprovalResponse({ id: `${child}/p2`, approved: true });
  await expect.poll(() => shape(chat.lastMessage)?.at(-1)).toBe('text done');
  expect(await s.same(chat)).toHaveLength(2);
});

test('a child that is resumed shows its call in the message that resumes it, and is answered there', async () => {
  const when = { session: 'kid' };
  await using s = await chatting([
    { toolCalls: [{ name: 'pay', id: 'p1', input: { to: 'one' } }], when },
    { text: 'First.', when },
    { toolCalls: [{ name: 'pay', id: 'p1', input: { to: 'all' } }], when },
    { text: 'Second.', when },
    {
      toolCalls: [{ name: 'delegate', id: 'd1', input: { tasks: [{ task: 'Go on', resume: 'kid' }] } }],
      when: { session: 'main' },
    },
    { text: 'main is done.', when: { session: 'main' } },
  ]);
  await s.main.delegate({ task: 'Begin', name: 'kid' });
  await (await (await s.deck.session('kid')).respond('p1', { approved: true })).run;
  await s.deck.idle();
  const chat = s.server.chat('main', automatic);
  await chat.sendMessage({ text: 'Go' });
  const recorded = async () => (await s.main.uiMessages()).at(-1);
  const asked = [
    'step-start',
    'tool-delegate input-available',
    'data-child',
    'step-start',
    'tool-pay approval-requested',
  ];
  expect(shape(chat.lastMessage)).toEqual(asked);
  expect(await recorded()).toEqual(chat.plain.at(-1));
  expect(chat.lastMessage?.parts.at(-1)).toMatchObject({ toolCallId: 'kid/p1', input: { to: 'all' } });
  await chat.addToolApprovalResponse({ id: 'kid/p1', approved: true });
  await expect.poll(() => shape(chat.lastMessage)?.at(-1)).toBe('text done');
  await expect.poll(() => chat.status).toBe('ready');
  expect(await recorded()).toEqual(chat.plain.at(-1));
  expect(shape(await recorded())?.slice(-3)).toEqual([
    'tool-pay output-available',
    'step-start',
    'text done',
  ]);
  expect(s.failures).toEqual([]);
});

test('of two children that wait, each is answered, and a grandchild too, over two generations', async () => {
  await using s = await chatting([
    ...delegates('main', undefined, 'Pay rent', 'Plan it'),
    ...pays('Pay rent', 'p1'),
    ...delegates('main-*', 'Plan it', 'Pay tax'),
    ...pays('Pay tax', 'p1'),
  ]);
  const chat = s.server.chat('main', automatic);
  await chat.sendMessage({ text: 'Go' });
  const [, answer] = await s.same(chat);
  const asked = answer?.parts.flatMap((part) => ('approval' in part ? [part.approval?.id ?? ''] : [])) ?? [];
  expect(asked).toHaveLength(2);
  for (const id of asked) await chat.addToolApprovalResponse({ id, approved: true });
  await expect.poll(() => shape(chat.lastMessage)?.at(-1)).toBe('text done');
  const messages = await s.same(chat);
  expect(messages).toHaveLength(2);
  expect(shape(messages[1])?.filter((part) => part === 'tool-pay output-available')).toHaveLength(2);
  const merges = entryLines(s.store.entries.read('main')).filter((line) => line.startsWith('anchor merge/'));
  expect(merges).toHaveLength(2);
});

test('an answer at the endpoint of the child continues the parent, whose chat loads the rest', async () => {
  await using s = await chatting([...delegates('main', undefined, 'Pay rent'), ...pays('Pay rent', 'p1')]);
  const chat = s.server.chat('main');
  await chat.sendMessage({ text: 'Go' });
  const [child = ''] = s.children();
  const kid = await s.deck.session(child);
  const below = s.server.chat(child, { ...automatic, messages: await kid.uiMessages() });
  await below.addToolApprovalResponse({ id: 'p1', approved: true });
  await expect.poll(() => shape(below.lastMessage)?.at(-1)).toBe('text done');
  await s.deck.idle();
  expect(entryLines(s.store.entries.read('main')).at(-1)).toBe('assistant: main is done.');
  const loaded = s.server.chat('main', { messages: await s.main.uiMessages() });
  expect(shape(loaded.lastMessage)).toContain('tool-pay output-available');
  expect(shape(loaded.lastMessage)?.at(-1)).toBe('text done');
});

test('forged answers are refused: of another session, of a call that does not wait, and of another kind', async () => {
  await using s = await chatting([...delegates('main', undefined, 'Pay rent'), ...pays('Pay rent', 'p1')]);
  const chat = s.server.chat('main');
  await chat.sendMessage({ text: 'Go' });
  const [, answer] = await s.main.uiMessages();
  const [child = ''] = s.children();
  const part = (toolCallId: string, more: object) => ({ type: 'tool-pay', toolCallId, input: {}, ...more });
  const yes = (id: string) => part(id, { state: 'approval-responded', approval: { id, approved: true } });
  for (const forged of [
    yes('p1'),
    yes('other/p1'),
    yes('d-main'),
    yes(`${child}/p2`),
    part(`${child}/p1`, { state: 'output-available', output: 'paid' }),
  ]) {
    const response = await s.server.ask('', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: 'main', messages: [{ ...answer, parts: [forged] }] }),
    });
    expect(response.status, JSON.stringify(forged)).toBe(409);
  }
  expect(await s.main.status()).toMatchObject({ state: 'waiting' });
  expect(s.store.inbox.list(child)).toEqual([]);
});

test('the same approval from two tabs at once continues once, and both get the answer', async () => {
  await using s = await chatting([...delegates('main', undefined, 'Pay rent'), ...pays('Pay rent', 'p1')]);
  const first = s.server.chat('main', automatic);
  await first.sendMessage({ text: 'Go' });
  const second = s.server.chat('main', { ...automatic, messages: await s.main.uiMessages() });
  const [child] = s.children();
  for (const chat of [first, second])
    await chat.addToolApprovalResponse({ id: `${child}/p1`, approved: true });
  for (const chat of [first, second])
    await expect.poll(() => shape(chat.lastMessage)?.at(-1)).toBe('text done');
  await s.same(first);
  expect(shape(second.lastMessage)).toEqual(shape(first.lastMessage));
  expect(
    entryLines(s.store.entries.read('main')).filter((line) => line.startsWith('assistant')),
  ).toHaveLength(2);
});

test('a client that leaves while the child works is no failure, and the parent goes on', async () => {
  const gate = Promise.withResolvers<void>();
  const isReached = Promise.withResolvers<void>();
  await using s = await chatting(
    [...delegates('main', undefined, 'Pay rent'), ...pays('Pay rent', 'p1')],
    async () => {
      isReached.resolve();
      await gate.promise;
    },
  );
  const chat = s.server.chat('main', automatic);
  await chat.sendMessage({ text: 'Go' });
  const [child] = s.children();
  void chat.addToolApprovalResponse({ id: `${child}/p1`, approved: true });
  await isReached.promise;
  await expect.poll(() => chat.status).toBe('streaming');
  await chat.stop();
  gate.resolve();
  await expect.poll(() => entryLines(s.store.entries.read('main')).at(-1)).toBe('assistant: main is done.');
  await s.deck.idle();
  expect(s.failures).toEqual([]);
});

test.each(['first', 'second'])(
  'an answer that another process has recorded goes on at the endpoint: by the %s answer there',
  async (which) => {
    await using s = await chatting([
      ...delegates('main', undefined, 'Pay rent', 'Pay tax'),
      ...pays('Pay rent', 'p1'),
      ...pays('Pay tax', 'p1'),
    ]);
    const chat = s.server.chat('main', automatic);
    await chat.sendMessage({ text: 'Go' });
    const [rent, tax] = s.children();
    // A process without tools records the answers, and its runs wait for one that has them.
    await using bare = await openDeck({ store: s.store, model: s.spec });
    const there = await bare.session('main');
    await (await there.respond(`${rent}/p1`, { approved: true })).run;
    if (which === 'first') await (await there.respond(`${tax}/p1`, { approved: true })).run;
    await bare.idle();
    for (const child of [rent, tax])
      await chat.addToolApprovalResponse({ id: `${child}/p1`, approved: true });
    await expect.poll(() => shape(chat.lastMessage)?.at(-1)).toBe('text done');
    await s.same(chat);
    expect(shape(chat.lastMessage)?.filter((part) => part === 'tool-pay output-available')).toHaveLength(2);
    expect(s.failures).toEqual([]);
  },
);

test('a server without the tool of a child says so, and writes nothing more when it is asked again', async () => {
  await using s = await chatting([...delegates('main', undefined, 'Pay rent'), ...pays('Pay rent', 'p1')]);
  const chat = s.server.chat('main', automatic);
  await chat.sendMessage({ text: 'Go' });
  const [child = ''] = s.children();
  await using bare = await openDeck({ store: s.store, model: s.spec });
  await using other = await serveChats(bare);
  const there = other.chat('main', { ...automatic, messages: chat.plain });
  await there.addToolApprovalResponse({ id: `${child}/p1`, approved: true });
  await expect.poll(() => there.status).toBe('error');
  expect(there.error?.message).toContain(
    "the call of 'pay' is approved, and waits for a server that has this tool",
  );
  const before = entryLines(s.store.entries.read(child));
  await there.sendMessage();
  expect(there.status).toBe('error');
  expect(entryLines(s.store.entries.read(child))).toEqual(before);
  await chat.addToolApprovalResponse({ id: `${child}/p1`, approved: true });
  await expect.poll(() => shape(chat.lastMessage)?.at(-1)).toBe('text done');
  await s.same(chat);
});

/** A tool run that a test lets go on, and that says when it has begun. */
function gated() {
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const paid = async () => {
    begun.resolve();
    await gate.promise;
  };
  return { paid, begun: begun.promise, open: gate.resolve };
}

const childParts = (chat: TestChat) =>
  chat.lastMessage?.parts.flatMap((part) =>
    part.type === 'data-child' ? [part.data as ChildProgress] : [],
  ) ?? [];

test('a page that loads while only the child works sees it at work, and then the parent go on', async () => {
  const { paid, begun, open } = gated();
  await using s = await chatting(
    [...delegates('main', undefined, 'Pay rent'), ...pays('Pay rent', 'p1')],
    paid,
  );
  await s.main.run('Go');
  const [child = ''] = s.children();
  await s.main.respond(`${child}/p1`, { approved: true });
  await begun;
  expect(await s.main.status()).toMatchObject({ state: 'waiting' });
  const page = s.server.chat('main', { messages: await s.main.uiMessages() });
  const resumed = page.resumeStream();
  await expect.poll(() => childParts(page)).toMatchObject([{ session: child, state: 'running', steps: 1 }]);
  open();
  await resumed;
  const [, answer] = await s.same(page);
  expect(shape(answer)).toEqual([
    'step-start',
    'tool-delegate output-available',
    'data-child',
    'step-start',
    'tool-pay output-available',
    'step-start',
    'text done',
  ]);
  expect(childParts(page)).toMatchObject([{ state: 'ended', status: 'completed', steps: 2 }]);
  expect((await s.server.ask('/main/stream')).status).toBe(204);
});

test.each([
  ['at once', 0],
  ['late', 200],
])(
  'stopping a chat while only a child works stops the child and its parent, which would go on %s',
  async (_, lateMs) => {
    const { paid, begun, open } = gated();
    let isLate = false;
    await using s = await chatting(
      [
        ...delegates('main', undefined, 'Pay rent').map((answer) => ({ ...answer, delayMs: 300 })),
        ...pays('Pay rent', 'p1'),
        { text: 'Well.', when: { session: 'main' } },
      ],
      paid,
      ({ method, act }) => (isLate && method === 'leases.acquire' ? sleep(lateMs).then(act) : act()),
    );
    await s.main.run('Go');
    const [child = ''] = s.children();
    await s.main.respond(`${child}/p1`, { approved: true });
    await begun;
    const page = s.server.chat('main', { messages: await s.main.uiMessages() });
    const resumed = page.resumeStream();
    isLate = lateMs > 0;
    const stopping = s.server.ask('/main/stream', { method: 'DELETE' });
    await expect.poll(() => s.store.sessions.find(child)?.task).toBe('aborted');
    open();
    expect((await stopping).status).toBe(204);
    await resumed;
    await s.deck.idle();
    const linesOf = (name: string) => entryLines(s.store.entries.read(name));
    expect(linesOf(child)).not.toContain('assistant: Pay rent is done.');
    expect(linesOf('main').join()).not.toContain('main is done.');
    expect((await s.server.ask('/main/stream')).status).toBe(204);
    expect((await s.main.run('Go on')).finish).toBe('stop');
  },
);

test('a message after a crash during a delegation is answered, and is a message of its own', async () => {
  const when = { session: 'main' };
  await using s = await chatting([
    { text: 'It is sunny.', when: { session: 'main-*' } },
    { text: 'Fine.', when },
  ]);
  const tasks = { tasks: [{ task: 'Look outside' }], inherit: 'nothing' };
  s.store.entries.append('main', [
    user('Go', { run: 'dead' }),
    assistant([toolCall('d1', 'delegate', tasks)], { run: 'dead' }),
  ]);
  const chat = s.server.chat('main', { messages: await s.main.uiMessages() });
  await chat.sendMessage({ text: 'And now?' });
  expect(chat.error).toBeUndefined();
  expect(shape(chat.lastMessage)).toEqual(['step-start', 'text done']);
  await catchUp(chat, { api: s.server.api });
  const messages = await s.same(chat);
  expect(messages.map(shape)).toEqual([
    ['text'],
    ['step-start', 'tool-delegate output-available', 'data-child'],
    ['text'],
    ['step-start', 'text done'],
  ]);
});

test('while one child works, a page that resumes gets the new question of another', async () => {
  const { paid, begun, open } = gated();
  let calls = 0;
  await using s = await chatting(
    [
      ...delegates('main', undefined, 'Pay rent', 'Pay tax'),
      ...pays('Pay rent', 'p1'),
      ...pays('Pay tax', 'q1', 'q2'),
    ],
    async () => {
      calls += 1;
      if (calls === 1) await paid();
    },
  );
  await s.main.run('Go');
  const [rent = '', tax = ''] = s.children();
  await s.main.respond(`${rent}/p1`, { approved: true });
  await begun;
  const page = s.server.chat('main', { ...automatic, messages: await s.main.uiMessages() });
  const resumed = page.resumeStream();
  await s.main.respond(`${tax}/q1`, { approved: true });
  await expect
    .poll(() => page.lastMessage?.parts.at(-1))
    .toMatchObject({
      toolCallId: `${tax}/q2`,
      state: 'approval-requested',
    });
  open();
  await resumed;
  await page.addToolApprovalResponse({ id: `${tax}/q2`, approved: true });
  await expect.poll(() => shape(page.lastMessage)?.at(-1)).toBe('text done');
  await s.same(page);
  expect(s.failures).toEqual([]);
});

test('a page that resumes while a grandchild works gets the answers of both generations', async () => {
  const { paid, begun, open } = gated();
  await using s = await chatting(
    [
      ...delegates('main', undefined, 'Plan it'),
      ...delegates('main-*', 'Plan it', 'Pay tax'),
      ...pays('Pay tax', 'p1'),
    ],
    paid,
  );
  await s.main.run('Go');
  await s.main.respond('p1', { approved: true });
  await begun;
  const page = s.server.chat('main', { messages: await s.main.uiMessages() });
  const resumed = page.resumeStream();
  await expect.poll(() => page.status).toBe('streaming');
  open();
  await resumed;
  expect(shape((await s.same(page))[1])?.at(-1)).toBe('text done');
});
