import { exportSession } from '@tapedeck/runtime';
import { assistant, handoff, type SqliteTapeStore, toolCall, toolResult, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { storeUnderTest } from '../support/deck.ts';
import { openStore } from '../support/store.ts';
import { tokenShapes } from '../support/token-shapes.ts';

const secret = tokenShapes.find(([name]) => name === 'aws')?.[1] ?? '';
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

type Line = Readonly<Record<string, unknown>> & { readonly tapedeck?: { readonly entry?: string } };

async function written(store: SqliteTapeStore, format: 'claude-code' | 'pi', at?: number) {
  const options = { format, project: '/', ...(at !== undefined && { at }) } as const;
  const pieces = exportSession(storeUnderTest(store), 'main', options);
  let text = '';
  for (;;) {
    const { done, value } = await pieces.next();
    if (done !== true) text += value;
    else
      return {
        ...value,
        lines: text
          .split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line) as Line),
      };
  }
}

function family(): SqliteTapeStore {
  const store = openStore();
  store.sessions.open('main', { title: 'Look' });
  const call = { toolCallId: 'a:b', toolName: 'my.tool' };
  const foreign = { type: 'reasoning', text: 'Hm.', providerOptions: { openai: { itemId: 'rs_1' } } };
  store.entries.append('main', [
    user(`The key is ${secret}.`),
    assistant([foreign, { type: 'text', text: 'I look.' }, toolCall('a:b', 'my.tool', { at: 1 })]),
    toolResult(call, { type: 'error-text', value: 'broken' }),
    assistant('Seen.'),
    user('Kept.'),
    handoff('next', { summary: 'All is well.', files: 3 }, { keepFrom: 6 }),
    user('Go on.'),
  ]);
  return store;
}

test('records of Claude Code are one line of blocks and results, each with the entry that it was made of', async () => {
  using store = family();
  const { lines, transcript, items, withheld } = await written(store, 'claude-code');
  const chained = lines.filter((line) => 'parentUuid' in line);
  const entries = [...store.entries.read('main')];
  expect([items, withheld, transcript?.id]).toEqual([5, 1, chained[0]?.sessionId]);
  expect(chained.map(({ type, subtype }) => subtype ?? type)).toEqual([
    ...['user', 'assistant', 'assistant', 'user', 'assistant', 'user'],
    ...['compact_boundary', 'user', 'user'],
  ]);
  for (const [i, { parentUuid, uuid: own, subtype }] of chained.entries()) {
    expect(own).toMatch(uuid);
    expect(parentUuid).toBe(i === 0 || subtype !== undefined ? null : chained[i - 1]?.uuid);
  }
  const hashes = [2, 3, 3, 4, 5, 6, 7, 7, 8].map((seq) => entries[seq - 1]?.hash);
  expect(chained.map(({ tapedeck }) => tapedeck?.entry)).toEqual(hashes);
  const text = JSON.stringify(lines);
  expect(text).not.toMatch(/thinking|Hm\.|a:b|my\.tool/);
  expect(text).not.toContain(secret);
  expect(chained[3]?.message).toMatchObject({ content: [{ is_error: true, content: 'broken' }] });
  expect(chained[6]?.compactMetadata).toMatchObject({
    preservedMessages: { anchorUuid: chained[7]?.uuid, uuids: [chained[5]?.uuid] },
  });
  expect(lines.at(-2)).toMatchObject({ type: 'custom-title', customTitle: 'Look' });
  expect(lines.at(-1)).toMatchObject({ type: 'last-prompt', leafUuid: chained.at(-1)?.uuid });
});

test('an imported compaction is written with what its record said of it', async () => {
  using store = openStore();
  store.sessions.open('main');
  const meta = { source: 'import', trigger: 'auto', tokens_before: 1234 };
  store.entries.append('main', [
    user('Look.'),
    { ...handoff('compact/1', { summary: 'It was read.' }), meta },
    user('Go on.'),
  ]);
  const { lines } = await written(store, 'claude-code');
  expect(lines.find(({ subtype }) => subtype === 'compact_boundary')?.compactMetadata).toMatchObject({
    trigger: 'auto',
    preTokens: 1234,
  });
  const pi = await written(store, 'pi');
  expect(pi.lines.find(({ type }) => type === 'compaction')).toMatchObject({ tokensBefore: 1234 });
});

test('the same entries give the same transcript, and others another id', async () => {
  using store = family();
  const [first, again, earlier] = [
    await written(store, 'claude-code'),
    await written(store, 'claude-code'),
    await written(store, 'claude-code', 5),
  ];
  expect(again.lines).toEqual(first.lines);
  expect(earlier.transcript?.id).not.toBe(first.transcript?.id);
  expect(earlier.lines.filter((line) => 'parentUuid' in line)).toHaveLength(5);
});

test('a session of pi has a header, and entries that follow each other', async () => {
  using store = family();
  const { lines, transcript } = await written(store, 'pi');
  const [header, ...entries] = lines;
  expect(header).toMatchObject({ type: 'session', version: 3, id: transcript?.id, cwd: '/' });
  for (const [i, { parentId }] of entries.entries())
    expect(parentId).toBe(i === 0 ? null : entries[i - 1]?.id);
  expect(entries.map(({ type }) => type)).toEqual([
    ...['session_info', 'message', 'message', 'message', 'message', 'message', 'compaction', 'message'],
  ]);
  expect(entries.find(({ type }) => type === 'compaction')).toMatchObject({
    summary: 'All is well.\n{"files":3}',
    firstKeptEntryId: entries[5]?.id,
  });
});

test('what shows nothing is no transcript of Claude Code, which would find no conversation in it', async () => {
  using store = openStore();
  store.sessions.open('main');
  await expect(written(store, 'claude-code')).rejects.toMatchObject({
    code: 'TAPE_BAD_POINT',
    message: "cannot export 'main' as claude-code: it shows nothing up to @1",
  });
  expect((await written(store, 'pi')).lines).toMatchObject([{ type: 'session' }]);
});
