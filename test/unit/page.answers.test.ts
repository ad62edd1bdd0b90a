import { anchor, assistant, compaction, openTapeStore, toolCall, toolResult, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { pageOn } from '../support/page.ts';
import { memoryHome, type TempHome } from '../support/temp-home.ts';

const usage = (n: number) => ({ input: 10 * n, output: n, reasoning: 1, cacheRead: 3, cacheWrite: 2 });

/** What a verb prints as JSON. */
async function said(home: TempHome, ...args: string[]) {
  const { stdout, code, stderr } = await home.here([...args, '--json']);
  if (stdout === '') throw new Error(`tape ${args.join(' ')} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout);
}

/** A family of three, with calls of two models, one of them imported, and one that was erased. */
function family(home: TempHome): void {
  using store = home.open();
  store.sessions.open('main');
  store.entries.append('main', [
    user('Plan it.'),
    assistant('Test, tag.', { model: 'a/b', usage: usage(1), cost: 0.25 }),
    assistant('It was so.', {
      ...{ model: 'c/d', usage: usage(2) },
      ...{ source: 'import', timestamp: '2025-01-02T23:30:00-02:00' },
    }),
    anchor('plan', { goal: 'release', steps: 3 }),
  ]);
  store.lineage.fork('main', { name: 'tests', intention: { nextSteps: 'Run the tests.' } });
  const read = { toolCallId: 'r', toolName: 'read_file' };
  store.entries.append('tests', [
    assistant([toolCall(read.toolCallId, read.toolName, { path: 'a.ts' })], {
      model: 'a/b',
      usage: usage(3),
    }),
  ]);
  store.entries.append('tests', [
    toolResult(read, 'Ok.'),
    assistant('All pass.', { model: 'a/b', usage: usage(4), cost: 0.5 }),
    anchor('plan', { goal: 'merge' }),
  ]);
  store.lineage.merge('tests');
  store.lineage.fork('main', { name: 'idea' });
  const { to } = store.entries.append('idea', [assistant('Shorter.', { model: 'c/d', usage: usage(5) })]);
  store.entries.append('idea', [assistant('Secret.', { model: 'c/d', usage: usage(6) })]);
  store.entries.append('idea', [compaction({ summary: 'Short.', range: [1, to] })]);
  store.entries.redact('idea', to + 1, 'a secret');
}

const counts = ({
  steps,
  input,
  output,
  reasoning,
  cache_read,
  cache_write,
  total,
  cost,
}: Record<string, number>) => ({
  ...{ steps, input, output, reasoning, cacheRead: cache_read, cacheWrite: cache_write, total },
  ...(cost !== undefined && { cost }),
});

test('usage is that of tape usage, by model, by session, and by day in UTC', async () => {
  using home = memoryHome();
  family(home);
  using store = home.open();
  const page = pageOn(store);
  const all = await said(home, 'usage');
  const answer = await page.usage({});
  expect(answer.total).toEqual({ key: '', ...counts(all.total) });
  expect(answer.sessions).toEqual(
    all.sessions
      .filter(({ steps }: { steps: number }) => steps > 0)
      .map((one: Record<string, number>) => ({ key: one.session, ...counts(one) }))
      .toSorted((a: { total: number }, b: { total: number }) => b.total - a.total),
  );
  for (const [query, args] of [
    [{ session: 'idea' }, ['idea']],
    [{ session: 'main', tree: true }, ['main', '--tree']],
  ] as const) {
    const own = await said(home, 'usage', ...args);
    const found = await page.usage(query);
    expect(found.total).toEqual({ key: query.session, ...counts(own.tree ?? own) });
    if (own.tree === undefined)
      expect(found.models).toEqual(
        own.models.map((of: Record<string, number>) => ({ key: of.model, ...counts(of) })),
      );
    expect(found.days.reduce((sum, { total }) => sum + total, 0)).toBe(found.total.total);
  }
  const today = new Date().toISOString().slice(0, 10);
  expect(answer.days.map(({ key, steps }) => [key, steps])).toEqual([
    ['2025-01-03', 1],
    [today, 4],
  ]);
});

test('the days follow what is added, and what is erased', async () => {
  using home = memoryHome();
  family(home);
  using store = home.open();
  const page = pageOn(store);
  const sums = async () => {
    const { days, total } = await page.usage({});
    expect(days.reduce((sum, { total: of }) => sum + of, 0)).toBe(total.total);
    return total.total;
  };
  const before = await sums();
  const { to } = store.entries.append('main', [assistant('More.', { model: 'a/b', usage: usage(7) })]);
  expect(await sums()).toBe(before + 83);
  store.entries.redact('main', to, 'a secret');
  expect(await sums()).toBe(before);
});

test('where two sessions part is what tape diff says', async () => {
  using home = memoryHome();
  family(home);
  using store = home.open();
  const { base, a, b, answers } = await said(home, 'diff', 'tests', 'idea');
  const found = await pageOn(store).parting({ a: 'tests', b: 'idea' });
  expect(found.common).toEqual({ session: base.session, seq: base.seq });
  expect(found.answers).toBe(answers);
  for (const [side, of] of [
    [found.a, a],
    [found.b, b],
  ] as const) {
    const { user, assistant, merge } = of.messages;
    expect(side).toMatchObject({
      ...{ session: of.session, at: of.at, entries: of.entries, tools: of.tools, complete: of.complete },
      messages: user + assistant + merge,
    });
  }
  expect(found.states).toEqual(
    [...new Set([...a.state, ...b.state].map(({ key }) => key))]
      .sort()
      .map((key) => expect.objectContaining({ key })),
  );
  expect(found.states.find(({ key }) => key === 'goal')?.a).toBe('"merge"');
});

test('a merge is traced back to where it was said, and an answer on to where it went', async () => {
  using home = memoryHome();
  family(home);
  using store = home.open();
  const page = pageOn(store);
  const { items } = await page.timeline({ session: 'main', from: 1, to: 200 });
  const merge = items.find(({ kind }) => kind === 'merge')?.seq ?? 0;
  const back = await said(home, 'trace', `main@${merge}`);
  const rows = await page.trace({ session: 'main', seq: merge });
  expect(rows.map(({ direction, session, seq }) => `${direction} ${session}@${seq}`)).toEqual([
    `here main@${merge}`,
    `from tests@${back.from[0].text.seq}`,
    ...back.inherited_by.map((name: string) => `inherited ${name}@${merge}`),
  ]);
  expect(rows[1]?.range).toEqual(back.from[0].range);
  const on = await page.trace({ session: 'tests', seq: back.from[0].text.seq });
  expect(on.map(({ direction, session, seq }) => `${direction} ${session}@${seq}`)).toContain(
    `into main@${merge}`,
  );
});

test('findings are those of tape check, the worst first, each at its place', async () => {
  using home = memoryHome();
  family(home);
  using store = home.open();
  store.entries.append('idea', [assistant([toolCall('w', 'write_file', {})], { model: 'a/b' })]);
  const page = pageOn(store, {
    check: async (session) => await said(home, 'check', ...(session === undefined ? [] : [session])),
    now: () => Date.parse('2026-11-26T10:00:00Z'),
  });
  const { sections } = await said(home, 'check');
  const ids = Object.values(sections as Record<string, { findings: { id: string }[] }>).flatMap(
    ({ findings }) => findings.map(({ id }) => id),
  );
  const { findings, total, checkedAt } = await page.findings({});
  expect(findings.map(({ id }) => id).sort()).toEqual(ids.sort());
  expect({ total, checkedAt }).toEqual({ total: ids.length, checkedAt: '2026-11-26T10:00:00.000Z' });
  expect(findings.find(({ session, seq }) => session === 'idea' && seq === 13)).toMatchObject({
    weight: 'incomplete',
    command: expect.stringMatching(/^tape /),
  });
});

test('one session has what a person can do, what it waits for, and its landmarks', async () => {
  using home = memoryHome();
  family(home);
  using store = home.open();
  store.entries.append('idea', [
    assistant([toolCall('w', 'write_file', { path: 'b.ts' })], { model: 'a/b' }),
  ]);
  store.entries.append('idea', [
    {
      kind: 'event',
      name: 'run/waiting',
      payload: {
        run: 'r',
        calls: [{ toolCallId: 'w', toolName: 'write_file', for: 'approval', claims: ['write(b.ts)'] }],
      },
    },
  ]);
  const page = pageOn(store, { inHome: (line) => `${line} --home /h` });
  const idea = await page.session({ session: 'idea' });
  expect(idea).toMatchObject({
    session: 'idea',
    origin: 'main',
    parent: 'main',
    state: 'waiting',
    tone: 'open',
  });
  expect(idea.waiting).toMatchObject([
    {
      ...{ session: 'idea', call: 'w', tool: 'write_file', input: 'path: b.ts', for: 'approval' },
      commands: [{ line: 'tape approve --home /h idea w' }, { line: 'tape approve --home /h idea w --deny' }],
    },
  ]);
  expect(
    (await page.timeline({ session: 'idea', from: idea.waiting[0]?.seq ?? 0, to: 99 })).items[0]?.parts,
  ).toMatchObject([{ type: 'call', call: 'w', state: 'waiting' }]);
  expect(
    (await page.session({ session: 'main' })).anchors.map(({ name, shape }) => `${shape} ${name}`),
  ).toEqual(['anchor plan']);
  const { merged } = await page.session({ session: 'tests' });
  const [line] = home.lines().filter(({ type }) => type === 'merge');
  expect(merged).toEqual({
    child: 'tests',
    into: 'main',
    seq: line?.seq,
    range: line?.range,
    state: 'merged',
  });
});

test('a session that is not there, or was deleted, cannot be asked about', async () => {
  using store = openTapeStore(':memory:');
  const { id } = store.sessions.open('gone');
  store.sessions.update('gone', { lifecycle: 'destroyed' });
  const page = pageOn(store);
  for (const session of [id, 'gone', 'none', '']) {
    const at = { session, seq: 1 };
    for (const ask of [
      () => page.session({ session }),
      () => page.timeline({ session, from: 1, to: 9 }),
      () => page.seen(at),
      () => page.trace(at),
      () => page.parting({ a: session, b: session }),
    ])
      await expect(ask(), session).rejects.toMatchObject({
        code: expect.stringMatching(/^(CLI_NOT_FOUND|TAPE_NO_SESSION)$/),
      });
  }
});
