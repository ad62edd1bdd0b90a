import { type AuditFinding, type AuditOptions, audit } from '@tapedeck/runtime';
import {
  assistant,
  type ForkRequest,
  note,
  processOwner,
  type SqliteTapeStore,
  type Task,
  toolCall,
  toolResult,
  user,
} from '@tapedeck/tape';
import { wrapStore } from '@tapedeck/tape/store';
import { expect, test } from 'vitest';
import { audited } from '../support/audited.ts';
import { fixedClock } from '../support/clock.ts';
import { playScript } from '../support/script.ts';
import { atFullSize } from '../support/size.ts';
import { openStore, refusal } from '../support/store.ts';

/** A store whose clock does not move, so that no lease expires, with a session `main`. */
function withMain(): SqliteTapeStore {
  const store = openStore(':memory:', { now: fixedClock().now });
  store.sessions.open('main');
  return store;
}

/** A child of `main` that was delegated, and came as far as its task says. */
function child(store: SqliteTapeStore, name: string, task?: Task, request: ForkRequest = {}): string {
  store.lineage.fork('main', { name, deliver: 'merge', ...request });
  if (task === undefined) return name;
  store.sessions.update(name, { task: 'running' });
  store.entries.append(name, [assistant(`${name} says so.`, { run: 'r' })]);
  store.sessions.update(name, { task });
  return name;
}

async function findingsOf(
  store: SqliteTapeStore,
  options: AuditOptions = {},
): Promise<readonly AuditFinding[]> {
  return (await audited(store, options)).findings;
}

/** Findings as short texts: `result-not-merged a: … → merge a`. */
function linesOf(findings: readonly AuditFinding[]): string[] {
  return findings.map(({ code, session, seq, message, next }) => {
    const where = seq === null ? session : `${session}@${seq}`;
    return `${code} ${where}: ${message} → ${next.act}${next.session === undefined ? '' : ` ${next.session}`}`;
  });
}

/** An entry that says that calls wait. */
const waits = (what: string, ...ids: readonly string[]) =>
  note('run/waiting', { run: 'r', calls: ids.map((id) => ({ toolCallId: id, toolName: 'pay', for: what })) });
const asks = (...ids: readonly string[]) =>
  assistant(
    ids.map((id) => toolCall(id, 'pay', { id })),
    { run: 'r' },
  );

test('a record in which every child was merged is complete', async () => {
  const store = openStore();
  await playScript(store);
  child(store, 'kept', 'completed');
  store.lineage.merge('kept');
  child(store, 'failed', 'failed');
  store.lineage.merge('failed');
  child(store, 'unwanted');
  store.lineage.merge('unwanted', { strategy: 'discard' });
  // A session without a task needs no merge.
  store.lineage.fork('main', { name: 'branch' });
  store.entries.append('branch', [user('What if?')]);
  store.lineage.fork('kept', { name: 'nested', deliver: 'merge' });
  store.sessions.update('nested', { task: 'completed' });
  store.lineage.merge('nested', { into: 'main' });
  const { seq } = store.lineage.merge('kept');
  store.entries.redact('main', seq, 'a test');
  expect(await audited(store)).toEqual({ sessions: 8, findings: [] });
});

test('a child that has not ended, and that no process runs, is reported', async () => {
  const store = withMain();
  child(store, 'begun', 'running');
  child(store, 'queued');
  child(store, 'run');
  child(store, 'dead', 'running');
  child(store, 'away', 'running');
  store.lineage.fork('main', { name: 'by-hand' });
  store.sessions.update('by-hand', { task: 'running' });
  store.sessions.update('away', { lifecycle: 'archived' });
  store.leases.acquire('run', { id: 'other-owner' });
  store.leases.acquire('dead', { ...processOwner('gone'), pid: 2 ** 22 + 1 });
  expect(linesOf(await findingsOf(store))).toEqual([
    "children-not-terminal begun: 'begun' was interrupted, and no process runs it → recover begun",
    "children-not-terminal queued: 'queued' has not started, and no process runs it → recover queued",
    "children-not-terminal dead: 'dead' was interrupted, and no process runs it → recover dead",
    "children-not-terminal away: 'away' was interrupted, and no process runs it → unarchive away",
    "children-not-terminal by-hand: 'by-hand' was interrupted, and no process runs it → run by-hand",
  ]);
});

test('a child that waits for an answer is reported as waiting, with its call', async () => {
  const store = withMain();
  for (const [name, what] of [
    ['asks', 'approval'],
    ['client', 'result'],
    ['tool', 'tool'],
    ['answered', 'approval'],
  ] as const) {
    child(store, name, 'running');
    store.entries.append(name, [asks('c1'), waits(what, 'c1')]);
  }
  store.entries.append('answered', [note('call/answered', { toolCallId: 'c1', approved: true })]);
  const seq = 4;
  expect(await findingsOf(store)).toMatchObject([
    { session: 'asks', seq, message: "'asks' waits for approval of call 'c1' of 'pay'" },
    { session: 'client', seq, message: "'client' waits for the client's result of call 'c1' of 'pay'" },
    { session: 'tool', message: "'tool' waits for a run that offers the tool of call 'c1' of 'pay'" },
    {
      session: 'answered',
      message: "'answered' waits for a run that takes up the answer to call 'c1' of 'pay'",
    },
  ]);
  expect((await findingsOf(store)).map(({ code, next }) => [code, next.act])).toEqual([
    ['children-not-terminal', 'answer'],
    ['children-not-terminal', 'answer'],
    ['children-not-terminal', 'recover'],
    ['children-not-terminal', 'recover'],
  ]);
});

test('a result that its parent lacks is reported', async () => {
  const store = withMain();
  child(store, 'done', 'completed');
  child(store, 'failed', 'failed');
  store.lineage.fork('main', { name: 'by-hand' });
  store.sessions.update('by-hand', { task: 'halted' });
  expect(linesOf(await findingsOf(store))).toEqual([
    "result-not-merged done: 'done' has ended (completed), and is neither merged nor discarded → merge done",
    "result-not-merged failed: 'failed' has ended (failed), and is neither merged nor discarded → merge failed",
    "result-not-merged by-hand: 'by-hand' has ended (halted), and is neither merged nor discarded → merge by-hand",
  ]);
  store.sessions.update('main', { lifecycle: 'archived' });
  expect((await findingsOf(store)).map(({ next }) => next)).toEqual(
    Array(3).fill({ act: 'unarchive', session: 'main' }),
  );
});

test('a child that ended with open calls has to settle them before its merge', async () => {
  const store = withMain();
  for (const name of ['cut', 'asked']) child(store, name, 'aborted');
  store.entries.append('cut', [asks('c1')]);
  store.entries.append('asked', [asks('c1'), waits('approval', 'c1')]);
  const steps = (await findingsOf(store)).flatMap(({ code, next }) =>
    code === 'result-not-merged' ? [next] : [],
  );
  expect(steps).toEqual([
    { act: 'run', session: 'cut' },
    { act: 'answer', session: 'asked' },
  ]);
});

test('work of a child after its merge is reported, but not the end of its run', async () => {
  const store = withMain();
  child(store, 'noted', 'completed');
  child(store, 'grown', 'completed');
  for (const name of ['noted', 'grown']) store.lineage.merge(name);
  store.entries.append('noted', [
    note('run/aborted', { reason: 'late' }),
    note('run/error', { message: 'late' }),
  ]);
  store.entries.append('grown', [note('run/error', {}), user('And?'), assistant('More.')]);
  expect(linesOf(await findingsOf(store))).toEqual([
    "result-not-merged grown@5: 'grown' has grown since its merge main@4: 5-6 are not merged → merge grown",
  ]);
  store.lineage.merge('grown');
  expect(await findingsOf(store)).toEqual([]);
});

test('a merge that a rewind hides is reported, until it is repeated or shown again', async () => {
  const store = withMain();
  store.entries.append('main', [user('Go')]);
  child(store, 'done', 'completed');
  child(store, 'dropped', 'completed');
  store.lineage.merge('done');
  store.lineage.merge('dropped', { strategy: 'discard' });
  store.history.rewind('main', 2);
  expect(linesOf(await findingsOf(store))).toEqual([
    "result-not-merged done: the rewind main@6 hides the merge main@3 of 'done' → merge done",
  ]);
  store.lineage.merge('done');
  expect(await findingsOf(store)).toEqual([]);
  store.history.unrewind('main');
  expect(await findingsOf(store)).toEqual([]);
});

test('a call without a result is reported where no process runs the session, with the children that it started', async () => {
  const store = withMain();
  child(store, 'before');
  store.lineage.merge('before', { strategy: 'discard' });
  store.entries.append('main', [asks('c1', 'c2'), note('run/begun', { calls: [] })]);
  for (const name of ['one', 'two'])
    child(store, name, 'completed', { spawnCall: 'c1', deliver: 'tool-result' });
  const orphans = async () =>
    linesOf(await findingsOf(store)).filter((line) => line.startsWith('orphaned-call'));
  expect(await orphans()).toEqual([
    "orphaned-call main@3: call 'c1' of 'pay' has no result, and no process runs 'main'; it started 'one', 'two' → recover main",
    "orphaned-call main@3: call 'c2' of 'pay' has no result, and no process runs 'main' → run main",
  ]);
  const lease = store.leases.acquire('main', { id: 'other-owner' });
  expect(await orphans()).toEqual([]);
  store.entries.append(
    'main',
    ['c1', 'c2'].map((id) => toolResult({ toolCallId: id, toolName: 'pay' }, 'x')),
    { lease },
  );
  store.leases.release(lease);
  expect(await orphans()).toEqual([]);
});

test('calls that wait for an answer are reported as waiting, and are no orphans', async () => {
  const store = withMain();
  store.entries.append('main', [asks('c1', 'c2'), waits('approval', 'c1'), waits('held', 'c2')]);
  expect(linesOf(await findingsOf(store))).toEqual([
    "call-waiting main@2: call 'c1' of 'pay' waits for an approval → answer main",
  ]);
});

test('a fork for its parent that has work is reported until it is merged, discarded or archived', async () => {
  const store = withMain();
  const fork = (name: string, intention: ForkRequest['intention']) =>
    store.lineage.fork('main', { name, ...(intention !== undefined && { intention }) });
  fork('task', { nextSteps: 'Fix it.' });
  fork('notifies', { triggerOnComplete: 'notify_parent' });
  fork('context', { contextSummary: 'Of no task.' });
  fork('branch', undefined);
  fork('untouched', { nextSteps: 'Later.' });
  fork('archived', { nextSteps: 'Never.' });
  for (const name of ['task', 'notifies', 'context', 'branch', 'archived'])
    store.entries.append(name, [note('x', {}), assistant('Done.')]);
  store.sessions.update('archived', { lifecycle: 'archived' });
  const found = async () => linesOf(await findingsOf(store));
  const lines = ['task', 'notifies'].map(
    (name) =>
      `fork-not-merged ${name}@5: '${name}' was forked for its parent and has work, and is neither merged nor discarded → merge ${name}`,
  );
  expect((await found()).map((line) => line.replace(/@\d/, '@5'))).toEqual(lines);
  store.lineage.merge('task');
  store.lineage.merge('notifies', { strategy: 'discard' });
  expect(await found()).toEqual([]);
  store.entries.append('task', [assistant('More.')]);
  expect(await found()).toEqual([
    expect.stringMatching(/^fork-not-merged task@\d: 'task' has grown since its merge/),
  ]);
});

test('a root that was cut off is reported, until its run has ended', async () => {
  const store = withMain();
  store.entries.append('main', [user('Go')]);
  expect(await findingsOf(store)).toEqual([]);
  store.entries.append('main', [user('Go on', { run: 'r' })]);
  expect(linesOf(await findingsOf(store))).toEqual([
    "run-interrupted main@3: the process of the last run of 'main' died during it → run main",
  ]);
  const lease = store.leases.acquire('main', { id: 'other-owner' });
  expect(await findingsOf(store)).toEqual([]);
  store.entries.append('main', [assistant('Gone.', { run: 'r' })], { lease });
  store.leases.release(lease);
  expect(await findingsOf(store)).toEqual([]);
});

test('a message that was acknowledged and has no answer is reported', async () => {
  const store = withMain();
  store.sessions.open('failed');
  store.entries.append('failed', [
    user('Go', { run: 'r' }),
    note('run/error', { run: 'r', message: 'down' }),
  ]);
  store.inbox.post('main', { body: { type: 'input', drafts: [user('Hello?')] } });
  expect(linesOf(await findingsOf(store))).toEqual([
    "message-unanswered main: a message waits in the inbox of 'main', and no process runs it → run main",
    'message-unanswered failed@2: the run of the message failed@2 failed before it answered → run failed',
  ]);
  store.entries.append('failed', [user('Again', { run: 's' }), assistant('Yes.', { run: 's' })]);
  // While a process runs it, it will take up the message.
  store.leases.acquire('main', { id: 'other-owner' });
  expect(await findingsOf(store)).toEqual([]);
});

test('a queued merge that was refused is reported, until it is done', async () => {
  const store = withMain();
  child(store, 'done', 'completed');
  const lease = store.leases.acquire('main', { id: 'other-owner' });
  store.inbox.post('main', { body: { type: 'merge', draft: { child: 'done', onConflict: 'refuse' } } });
  store.inbox.post('main', { body: { type: 'merge', draft: { child: 'missing' } } });
  // A tool that does not say what it writes, so that conflicts cannot be ruled out.
  store.entries.append('done', [asks('c1'), toolResult({ toolCallId: 'c1', toolName: 'pay' }, 'x')]);
  store.inbox.drain(lease);
  store.leases.release(lease);
  const refused = async () =>
    linesOf(await findingsOf(store)).filter((line) => line.startsWith('merge-refused'));
  expect(await refused()).toEqual([
    expect.stringMatching(/^merge-refused main@2: cannot merge 'done' .* \(TAPE_CONFLICT\) → merge done$/),
    expect.stringMatching(
      /^merge-refused main@3: cannot find session 'missing'.* \(TAPE_NO_SESSION\) → look main$/,
    ),
  ]);
  store.lineage.merge('done');
  expect(await refused()).toEqual([expect.stringContaining("'missing'")]);
});

test('an earlier merge does not settle a later refusal, nor do other refusals', async () => {
  const store = withMain();
  child(store, 'done', 'completed');
  store.lineage.merge('done');
  store.entries.append('done', [assistant('More.')]);
  const lease = store.leases.acquire('main', { id: 'other-owner' });
  store.inbox.post('main', {
    body: { type: 'merge', draft: { child: 'done', strategy: 'discard' } },
  });
  store.inbox.drain(lease);
  // As an item that cannot be done leaves it, of whatever sort it is.
  store.entries.append(
    'main',
    [note('inbox/refused', { id: 'i', type: 'answer', code: 'SESSION_NO_CALL' })],
    {
      lease,
    },
  );
  store.entries.append(
    'main',
    [note('inbox/refused', { id: 'i', type: 'merge', code: 'X', message: 'long ago' })],
    {
      lease,
    },
  );
  store.leases.release(lease);
  const refused = (await findingsOf(store)).filter(({ code }) => code === 'merge-refused');
  expect(refused.map(({ seq, next }) => [seq, next.act])).toEqual([
    [4, 'merge'],
    [6, 'look'],
  ]);
});

test('a call whose id was used before is reported at its last use', async () => {
  const store = withMain();
  const done = toolResult({ toolCallId: 'c1', toolName: 'pay' }, 'x');
  store.entries.append('main', [asks('c1', 'c2'), done, asks('c1')]);
  expect((await findingsOf(store)).map(({ seq, message }) => [seq, message.slice(0, 9)])).toEqual([
    [2, "call 'c2'"],
    [4, "call 'c1'"],
  ]);
});

test('of one session covers it and all its descendants', async () => {
  const store = withMain();
  child(store, 'a', 'completed');
  child(store, 'b', 'completed');
  store.lineage.fork('a', { name: 'below', deliver: 'merge' });
  const sessions = async (session: string) => {
    const { sessions: count, findings } = await audited(store, { session });
    return [count, findings.map((found) => found.session)];
  };
  expect(await sessions('a')).toEqual([2, ['a', 'below']]);
  expect(await sessions('main')).toEqual([4, ['a', 'b', 'below']]);
  expect(await sessions('below')).toEqual([1, ['below']]);
  await expect(audited(store, { session: 'missing' })).rejects.toMatchObject({
    code: 'TAPE_NO_SESSION',
  });
});

test('a merge during the audit is not reported as missing', async () => {
  const store = withMain();
  child(store, 'done', 'completed');
  const { id } = store.sessions.find('done') ?? {};
  let asked = 0;
  const busy = wrapStore(store, ({ method, args: [ref], act }) => {
    const answer = act();
    if (method !== 'sessions.find' || ref !== id) return answer;
    asked += 1;
    // Between the look at the child and the next question its parent takes it in.
    if (asked === 1) store.lineage.merge('done');
    return answer;
  });
  expect(await audit(busy)).toEqual({ sessions: 2, findings: [] });
  expect(asked).toBeGreaterThan(1);
});

test('an audit writes nothing', async () => {
  const store = withMain();
  child(store, 'done', 'completed');
  store.entries.append('main', [asks('c1')]);
  const before = store.changes();
  expect((await findingsOf(store)).length).toBe(2);
  expect(store.changes()).toBe(before);
  store.close();
  expect(refusal(() => store.sessions.find('main')).code).toBe('TAPE_CLOSED');
});

test.runIf(atFullSize)('audit covers more sessions than it reads at a time', async () => {
  const store = withMain();
  for (let n = 0; n < 450; n += 1)
    store.lineage.fork('main', { name: `c${n}`, inherit: 'nothing', deliver: 'merge' });
  const { sessions, findings } = await audit(store, { session: 'main' });
  expect([sessions, new Set(findings.map(({ session }) => session)).size]).toEqual([451, 450]);
  expect((await audit(store)).sessions).toBe(451);
});

test('other tasks of the process have their turn while many sessions are examined', async () => {
  using store = withMain();
  for (let i = 0; i < 400; i += 1) child(store, `c${i}`, 'completed');
  let turns = 0;
  const counting = setInterval(() => {
    turns += 1;
  }, 1);
  const began = performance.now();
  const { findings } = await audit(store);
  const took = performance.now() - began;
  clearInterval(counting);
  expect(findings.length).toBeGreaterThanOrEqual(400);
  // One in 20 milliseconds; a busy machine may be late.
  expect(turns).toBeGreaterThanOrEqual(Math.floor(took / 200));
  expect(turns).toBeGreaterThan(0);
});
