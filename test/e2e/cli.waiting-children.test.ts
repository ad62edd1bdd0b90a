import { rmSync, writeFileSync } from 'node:fs';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import { expect, test } from 'vitest';
import { json, jsonError, jsonLines } from '../support/cli.ts';
import { installPackages } from '../support/project.ts';
import { entryLines } from '../support/scripted.ts';
import { sized } from '../support/size.ts';
import { tempHome } from '../support/temp-home.ts';
import { typeHere } from '../support/typist.ts';

const config = `
import { appendFileSync, existsSync } from 'node:fs';
import { delegationTools } from '@tapedeck/runtime';
import { tool } from 'ai';
import { z } from 'zod';
const pay = tool({
  inputSchema: z.object({ to: z.string() }),
  needsApproval: true,
  execute: async ({ to }) => {
    if (existsSync(new URL('deadly', import.meta.url))) process.kill(process.pid, 'SIGKILL');
    appendFileSync(new URL('paid', import.meta.url), to + '\\n');
    return 'paid';
  },
});
export default { tools: { ...delegationTools(), pay, buy: pay } };
`;

/** A home whose session `main` delegates these tasks, each of which pays. */
function payingHome(...tasks: readonly string[]) {
  const home = tempHome();
  const script: ScriptAnswer[] = [
    {
      toolCalls: [{ name: 'delegate', id: 'd1', input: { tasks: tasks.map((task) => ({ task })) } }],
      when: { session: 'main' },
    },
    { text: 'All is paid.', when: { session: 'main' } },
    ...tasks.flatMap((task): ScriptAnswer[] => [
      {
        toolCalls: [{ name: 'pay', id: 'p1', input: { to: task } }],
        when: { session: 'main-*', text: task },
      },
      { text: `${task} is done.`, when: { session: 'main-*', text: task } },
    ]),
  ];
  const [file, answers] = [home.file('shop.mjs'), home.file('answers.json')];
  const buys = ['b1', 'b2'].map((id) => ({ name: 'buy', id, input: { to: 'me', _parallel: true } }));
  writeFileSync(home.file('second.json'), JSON.stringify([{ toolCalls: buys }, { text: 'All is bought.' }]));
  installPackages(home.path);
  writeFileSync(file, config);
  writeFileSync(answers, JSON.stringify(script));
  const model = ['--config', file, '--model', `script:${answers}`];
  const childrenOf = (parent = 'main') => {
    using store = home.open();
    return store.sessions.list({ parent, all: true }).map(({ session }) => session);
  };
  const linesOf = (name: string) => {
    using store = home.open();
    return entryLines(store.entries.read(name));
  };
  return Object.assign(home, { model, childrenOf, linesOf });
}

test.each(['parent', 'child'])(
  'approve of the %s lets the child and then the parent go on',
  async (where) => {
    using home = payingHome('Pay rent');
    const ran = await home.tape(['run', 'main', 'Go', ...home.model]);
    const [child = ''] = home.childrenOf();
    expect(ran).toMatchObject({ code: 6, stdout: '' });
    expect(ran.stderr).toContain(`pay of ${child} waits for approval: ${child}/p1 {"to":"Pay rent"}\n`);
    expect(ran.stderr).toContain(
      'Hint: approve it with: tape approve main; or deny it with: tape approve main --deny',
    );
    expect((await home.tape(['run', 'main', '--attach'])).stderr).toContain('tape approve main;');
    const status = await home.tape(['status', 'main', '--json']);
    expect(json(status)).toMatchObject([
      {
        state: 'waiting',
        waiting: [{ call: 'd1', tool: 'delegate', for: 'children' }],
        children: [{ session: child, waiting: [{ call: 'p1', for: 'approval' }] }],
      },
    ]);
    expect((await home.tape(['status', 'main'])).stdout).toContain('delegate waits for its children: d1');
    expect((await home.tape(['verify'])).code).toBe(0);
    expect(json(await home.tape(['recover', '--dry-run', '--json', ...home.model]))).toMatchObject({
      resumed: [],
      waiting: [child, 'main'],
    });
    const done = await home.tape(['approve', where === 'parent' ? 'main' : child, ...home.model]);
    expect(done.code, done.stderr).toBe(0);
    expect(done.stdout).toBe(where === 'parent' ? 'All is paid.\n' : 'Pay rent is done.\n');
    expect(home.linesOf('main').at(-1)).toBe('assistant: All is paid.');
    expect(home.linesOf('main').filter((line) => line.startsWith('anchor merge/'))).toHaveLength(1);
    const again = await home.tape(['approve', 'main', '--json', ...home.model]);
    expect(jsonError(again)).toMatchObject({ code: 'SESSION_NO_CALL' });
    expect((await home.tape(['audit'])).code).toBe(0);
  },
);

test('approve names the calls of several children, answers each for itself, and exits 6 until the last', async () => {
  using home = payingHome('Pay rent', 'Pay tax');
  await home.tape(['run', 'main', 'Go', ...home.model]);
  const [rent = '', tax = ''] = home.childrenOf();
  const many = await home.tape(['approve', 'main', ...home.model]);
  expect(many.code).toBe(2);
  expect(many.stderr).toContain(`several are pending: ${rent}/p1 (pay), ${tax}/p1 (pay)`);
  expect(many.stderr).toContain(
    `Hint: answer each with: tape approve main ${rent}/p1; tape approve main ${tax}/p1; or approve all with: tape approve main --yes\n`,
  );
  const denied = await home.tape(['approve', 'main', `${tax}/p1`, '--deny', ...home.model]);
  expect(denied).toMatchObject({ code: 6, stdout: '' });
  expect(denied.stderr).toContain('tape approve main');
  expect(home.linesOf(tax)).toContain('assistant: Pay tax is done.');
  const done = await home.tape(['approve', 'main', '--json', ...home.model]);
  expect(json(done)).toMatchObject({ session: 'main', finish: 'stop', text: 'All is paid.' });
  expect(home.linesOf('main').filter((line) => line.startsWith('anchor merge/'))).toHaveLength(2);
});

test('approve --yes answers all that wait, shows each end once, and is one document of JSON', async () => {
  using home = payingHome('Pay rent', 'Pay tax');
  await home.tape(['run', 'main', 'Go', ...home.model]);
  const [rent = '', tax = ''] = home.childrenOf();
  const done = await home.tape(['approve', 'main', '--yes', ...home.model]);
  expect(done, done.stderr).toMatchObject({ code: 0, stdout: 'All is paid.\n' });
  for (const child of [rent, tax])
    expect(done.stderr.split('\n').filter((line) => line.includes(child))).toEqual([`${child}@10 stop`]);
  expect(home.linesOf('main').filter((line) => line.startsWith('anchor merge/'))).toHaveLength(2);
  const second = [...home.model.slice(0, 3), `script:${home.file('second.json')}`];
  await home.tape(['run', 'second', 'Go', ...second]);
  const again = await home.tape(['approve', 'second', '--yes', '--json', ...second]);
  expect(json(again)).toMatchObject({ session: 'second', finish: 'stop', text: 'All is bought.' });
  expect(home.linesOf('second').filter((line) => line.startsWith('buy'))).toHaveLength(2);
});

test('an approval that a process without the tool gives is kept, and what helps is named everywhere', async () => {
  using home = payingHome('Pay rent', 'Pay tax');
  await home.tape(['run', 'main', 'Go', ...home.model]);
  const [rent = '', tax = ''] = home.childrenOf();
  const bare = ['--no-config', ...home.model.slice(2)];
  const runs = `run it with a configuration that has the tool: tape run ${rent} --config FILE`;
  const given = await home.tape(['approve', 'main', `${rent}/p1`, ...bare]);
  expect(given.code).toBe(6);
  expect(given.stderr).toContain(`pay of ${rent} is approved, and waits for a run with its tool: ${rent}/p1`);
  expect(given.stderr).toContain('Hint: approve it with: tape approve main;');
  expect((await home.tape(['status', 'main'])).stdout).toContain(runs);
  const again = await home.tape(['approve', 'main', `${rent}/p1`, '--json', ...home.model]);
  expect(jsonError(again)).toMatchObject({ code: 'SESSION_NO_CALL', hint: runs });
  expect((await home.tape(['approve', 'main', ...bare])).stderr).toContain(
    'Hint: run it with a configuration that has the tool: tape recover main --config FILE',
  );
  const recovered = await home.tape(['recover', 'main', ...bare]);
  expect(recovered.stdout).toContain(`${rent} waits: ${runs}\n`);
  expect(recovered.stdout).toContain('Waiting for an answer (tape status): main\n');
  const { sessions } = json<{ sessions: { session: string }[] }>(
    await home.tape(['recover', '--dry-run', '--json', ...bare]),
  );
  // The children ran at once, and the one that spoke last comes first.
  expect([
    sessions
      .slice(0, 2)
      .map(({ session }) => session)
      .toSorted(),
    sessions.slice(2),
  ]).toMatchObject([[rent, tax].toSorted(), [{ session: 'main' }]]);
  expect((await home.tape(['run', rent, ...home.model])).stdout).toBe('Pay rent is done.\n');
  const done = await home.tape(['recover', 'main', ...home.model]);
  expect(done.code, done.stdout).toBe(0);
  expect(home.linesOf('main').at(-1)).toBe('assistant: All is paid.');
  expect((await home.tape(['audit'])).code).toBe(0);
});

test('a message to a parent that waits says what becomes of its call', async () => {
  using home = payingHome('Pay rent');
  await home.tape(['run', 'main', 'Go', ...home.model]);
  const sent = await home.tape(['send', 'main', 'Never mind', ...home.model]);
  expect(sent).toMatchObject({ code: 0, stdout: 'All is paid.\n' });
  expect(sent.stderr).toBe(
    'Answered delegate d1 with what has come of its children so far: each is merged when it ends\n',
  );
});

test('approve at a parent without an open call reports the merge of the child that was delegated to', async () => {
  using home = payingHome('Pay rent');
  expect(await home.tape(['new', 'main'])).toMatchObject({ code: 0 });
  expect(await home.tape(['delegate', 'main', '--task', 'Pay rent', ...home.model])).toMatchObject({
    code: 6,
  });
  const [child = ''] = home.childrenOf();
  const { code, stderr } = await home.tape(['approve', 'main', ...home.model]);
  expect(stderr).toMatch(new RegExp(`^Merged ${child} into main@\\d+$`, 'm'));
  expect(stderr).not.toContain('waits');
  expect(code).toBe(0);
});

test('approve of one of two children says what their parent still waits for', async () => {
  using home = payingHome('Pay rent', 'Pay tax');
  await home.tape(['run', 'main', 'Go', ...home.model]);
  const [first = '', second = ''] = home.childrenOf();
  const { stderr } = await home.tape(['approve', first, ...home.model]);
  expect(stderr).toContain(`${second}/p1`);
  expect(stderr).toContain('main waits\n');
  expect(stderr).not.toContain('tape merge');
});

test('--jsonl of run and delegate has a line for each thing that happens to a child', async () => {
  using home = payingHome('Pay rent');
  const ran = await home.tape(['run', 'main', 'Go', '--jsonl', ...home.model]);
  const [child = ''] = home.childrenOf();
  const lines = jsonLines<{ type?: string; state?: string; session?: string; finish?: string }>(ran);
  expect(lines.filter(({ type }) => type === 'child-progress')).toEqual([
    {
      type: 'child-progress',
      session: child,
      task: 'Pay rent',
      toolCallId: 'd1',
      state: 'started',
      steps: 0,
      tokens: 0,
    },
    expect.objectContaining({ session: child, state: 'running' }),
    expect.objectContaining({ session: child, state: 'waiting', tool: 'pay', steps: 1 }),
  ]);
  expect(lines.at(-2)).toMatchObject({
    type: 'tool-waiting',
    calls: [
      { toolCallId: 'd1', for: 'children' },
      { toolCallId: `${child}/p1`, session: child, name: 'pay', input: { to: 'Pay rent' }, for: 'approval' },
    ],
  });
  expect(lines.at(-1)).toMatchObject({ session: 'main', finish: 'waiting' });
  const args = ['--task', 'Pay rent', '--jsonl', ...home.model];
  const waits = jsonLines<object>(await home.tape(['delegate', 'main', ...args]));
  expect(waits.at(-1)).toMatchObject({ parent: 'main', children: [{ status: 'running', merged: false }] });
  const [, other = ''] = home.childrenOf();
  expect(waits).toContainEqual(expect.objectContaining({ session: other, state: 'waiting', tool: 'pay' }));
  expect(waits).toContainEqual({
    type: 'tool-waiting',
    calls: [
      {
        toolCallId: `${other}/p1`,
        session: other,
        name: 'pay',
        input: { to: 'Pay rent' },
        for: 'approval',
        claims: ['pay', 'opaque(pay)'],
        offers: ['pay'],
      },
    ],
  });
  // The parent waits, so that the merge of the other child follows the result of its call.
  expect((await home.tape(['approve', other, ...home.model])).code).toBe(0);
  expect((await home.tape(['approve', 'main', ...home.model])).stdout).toBe('All is paid.\n');
  const again = jsonLines<{ state?: string; type?: string }>(await home.tape(['delegate', 'main', ...args]));
  expect(again.map(({ type, state }) => type && state)).toEqual(['started', 'ended', undefined]);
});

test('chat at a terminal asks for the calls of children, and shows how the session goes on', async () => {
  using home = payingHome('Pay rent', 'Pay tax');
  const ask = { until: 'Run it? [y]es, [n]o, n REASON, [l]ater' };
  const seen = await typeHere(
    ['chat', 'main', '--new', ...home.model],
    [
      { until: 'main> ' },
      { type: 'Go\r' },
      { until: 'Of main-pay-rent-' },
      ask,
      { type: 'y\r' },
      { until: 'Of main-pay-tax-' },
      ask,
      { type: 'no, later\r' },
      { until: 'All is paid.' },
      { until: 'main> ' },
      { type: '\u0004' },
    ],
    { env: { TAPE_HOME: home.path }, cwd: home.path },
  );
  expect(seen.code).toBe(0);
  expect(home.linesOf('main').at(-1)).toBe('assistant: All is paid.');
  const [rent = '', tax = ''] = home.childrenOf();
  expect(home.linesOf(rent)).toContain('pay p1 → text paid');
  expect(home.linesOf(tax).some((line) => line.startsWith('pay p1 → execution-denied'))).toBe(true);
});

// On a push no process is started for it.
test.each(sized([], ['parent', 'child'], ['parent', 'child']))(
  'after a kill of the run that an answer has let go on, approve of the %s names the command that goes on',
  async (where) => {
    using home = payingHome('Pay rent', 'Pay tax');
    await home.tape(['run', 'main', 'Go', ...home.model]);
    const [rent = '', tax = ''] = home.childrenOf();
    const named = where === 'parent' ? 'main' : rent;
    const call = where === 'parent' ? `${rent}/p1` : 'p1';
    writeFileSync(home.file('deadly'), '');
    const killed = await home.process(['approve', named, call, ...home.model]);
    expect(killed.code, killed.stderr).toBe(137);
    rmSync(home.file('deadly'));
    const again = await home.tape(['approve', named, call, '--json', ...home.model]);
    expect(jsonError(again)).toMatchObject({
      code: 'SESSION_NO_CALL',
      data: { left: rent },
      hint: `the answer is recorded, and no process runs ${rent}; go on with: tape run ${rent}`,
    });
    const recovered = await home.tape(['run', rent, ...home.model]);
    expect(recovered.code, recovered.stderr).toBe(0);
    expect(home.linesOf(rent)).toContain('assistant: Pay rent is done.');
    expect((await home.tape(['approve', tax, ...home.model])).code).toBe(0);
    expect(home.linesOf('main').at(-1)).toBe('assistant: All is paid.');
  },
);

test('--model of approve is that of the run of the child and of the run of its parent', async () => {
  using home = payingHome('Pay rent');
  await home.tape(['run', 'main', 'Go', ...home.model]);
  const other = home.file('other.json');
  writeFileSync(other, JSON.stringify([{ text: 'The other is here.' }, { text: 'The other is here.' }]));
  const done = await home.tape(['approve', 'main', ...home.model.slice(0, 2), '--model', `script:${other}`]);
  expect(done).toMatchObject({ code: 0, stdout: 'The other is here.\n' });
  const [child = ''] = home.childrenOf();
  expect(home.linesOf(child).at(-1)).toBe('assistant: The other is here.');
  expect(home.linesOf('main').at(-1)).toBe('assistant: The other is here.');
});

test('discard of a child that waits names the run with which its parent goes on', async () => {
  using home = payingHome('Pay rent');
  await home.tape(['run', 'main', 'Go', ...home.model]);
  const [child = ''] = home.childrenOf();
  const discarded = await home.tape(['discard', child, '--reason', 'too dear']);
  expect(discarded.code, discarded.stderr).toBe(6);
  expect(discarded.stderr).toContain(
    `Hint: its call gets the outcome of ${child} when it goes on: tape run main`,
  );
  const ran = await home.tape(['run', 'main', ...home.model]);
  expect(ran, ran.stderr).toMatchObject({ code: 0, stdout: 'All is paid.\n' });
  expect(home.linesOf('main').some((line) => line.includes('discarded: too dear'))).toBe(true);
  using store = home.open();
  expect(store.sessions.find(child)).toMatchObject({ task: 'aborted', delivery: 'discarded' });
  expect((await home.tape(['audit'])).code).toBe(0);
});
