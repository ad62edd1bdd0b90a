import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  assistant,
  type Draft,
  type Entry,
  note,
  openTapeStore,
  type Redact,
  TapeError,
  toolCall,
  toolResult,
  user,
} from '@tapedeck/tape';
import { type Redactor, redactedDraft, redactorFor } from '@tapedeck/tape/internal';
import { expect, test } from 'vitest';
import { leakingFiles } from '../support/planted.ts';
import { atFullSize } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tokenShapes } from '../support/token-shapes.ts';

const [, token = ''] = tokenShapes.find(([name]) => name === 'github') ?? [];
const [, pem = ''] = tokenShapes.find(([name]) => name === 'privatekey') ?? [];
const placeholder = '[secret github]';
const call = { toolCallId: 'c1', toolName: 'sh' };
const calling = assistant([toolCall('c1', 'sh', {})]);

/** The last entry of a session after a call and these drafts. */
function written(drafts: readonly Draft[], redact?: Redact): Entry {
  using store = openTapeStore(':memory:', { secrets: [], ...(redact !== undefined && { redact }) });
  store.sessions.open('main');
  store.entries.append('main', [user('Go.'), calling, ...drafts]);
  const last = [...store.entries.read('main')].at(-1);
  if (last === undefined) throw new Error('no entry');
  return last;
}

test.each([
  ['a text', 1, `a ${token} b`, { type: 'text', value: `a ${placeholder} b` }],
  [
    'nested JSON, and the names of its fields',
    3,
    { list: [{ deep: { token } }, 1, null], [token]: { [token]: true } },
    {
      type: 'json',
      value: { list: [{ deep: { token: placeholder } }, 1, null], [placeholder]: { [placeholder]: true } },
    },
  ],
  [
    'an error',
    1,
    { type: 'error-text', value: `401: ${token}` },
    { type: 'error-text', value: `401: ${placeholder}` },
  ],
  [
    'an error as JSON',
    1,
    { type: 'error-json', value: { token } },
    { type: 'error-json', value: { token: placeholder } },
  ],
  [
    'a denial',
    1,
    { type: 'execution-denied', reason: token },
    { type: 'execution-denied', reason: placeholder },
  ],
  [
    'parts, and a file of text among them',
    2,
    {
      type: 'content',
      value: [
        { type: 'text', text: token },
        { type: 'media', mediaType: 'text/plain', data: btoa(token) },
      ],
    },
    {
      type: 'content',
      value: [
        { type: 'text', text: placeholder },
        { type: 'media', mediaType: 'text/plain', data: btoa(placeholder) },
      ],
    },
  ],
  [
    'JSON in a text',
    1,
    JSON.stringify({ token }),
    { type: 'text', value: JSON.stringify({ token: placeholder }) },
  ],
])('in the output of a tool a secret is replaced: %s', (_, count, output, expected) => {
  const { payload, meta } = written([toolResult(call, output as Parameters<typeof toolResult>[1])]);
  expect(payload).toMatchObject({ toolCallId: 'c1', toolName: 'sh', output: expected });
  expect(meta.redacted).toBe(count);
});

test('a field whose name tells the secret is replaced, and two secret names stay two', () => {
  const [, other = ''] = tokenShapes.filter(([name]) => name === 'github')[1] ?? [];
  const key = 'wJalrXUtnFEMIaK7MDENGabPxRfiCYEXAMPLEKEX';
  const headers = { authorization: `Bearer ${key}`, aws_secret_access_key: key };
  expect(written([toolResult(call, { headers, [token]: 1, [other]: 2 })]).payload).toMatchObject({
    output: {
      value: {
        headers: { authorization: 'Bearer [secret authorization]', aws_secret_access_key: '[secret aws]' },
        [placeholder]: 1,
        [`${placeholder} 2`]: 2,
      },
    },
  });
});

test('each result of a message of several counts its own', () => {
  using store = openTapeStore(':memory:', { secrets: [] });
  store.sessions.open('main');
  const calls = ['a', 'b', 'c'].map((id) => toolCall(id, 'sh', {}));
  const content = ['none', token, `${token} ${token}`].map((value, i) => ({
    type: 'tool-result',
    toolCallId: 'abc'.charAt(i),
    toolName: 'sh',
    output: { type: 'text', value },
  }));
  store.entries.append('main', [assistant(calls), { kind: 'message', payload: { role: 'tool', content } }]);
  expect([...store.entries.read('main', { kind: 'tool-result' })].map(({ meta }) => meta)).toEqual([
    {},
    { redacted: 1 },
    { redacted: 2 },
  ]);
});

test('errors in events are replaced; what users and models say is not, unless all is to be', () => {
  const event = note('run/failed', { error: { message: `401 ${token}`, list: [token] }, said: token });
  expect(written([event]).payload).toEqual({
    error: { message: `401 ${placeholder}`, list: [placeholder] },
    said: token,
  });
  expect(written([event]).meta).toEqual({ redacted: 2 });
  expect(written([event], 'all').payload).toEqual({
    error: { message: `401 ${placeholder}`, list: [placeholder] },
    said: placeholder,
  });
  expect(written([event], false).payload).toEqual(event.payload);
  for (const draft of [user(`mine: ${token}`), assistant(`It is ${token}.`)]) {
    expect(JSON.stringify(written([draft]).payload)).toContain(token);
    expect(written([draft], 'all').meta).toEqual({ redacted: 1 });
    expect(JSON.stringify(written([draft], 'all'))).not.toContain(token);
  }
  expect(
    written([user('itk_123456')], { in: 'all', patterns: { intranet: 'itk_\\d+' } }).payload,
  ).toMatchObject({
    content: [{ text: '[secret intranet]' }],
  });
});

test('an error is found behind any number of other values, and below any that is shared', () => {
  const many = Array.from({ length: 20_000 }, (_, i) => ({ i }));
  const { payload, meta } = written([note('log', { many, failed: { error: token } })]);
  expect(payload).toMatchObject({ failed: { error: placeholder } });
  expect(meta).toEqual({ redacted: 1 });
  const shared = { errorText: token };
  let tree: unknown = shared;
  for (let i = 0; i < 12; i += 1) tree = { a: tree, b: tree };
  expect(JSON.stringify(written([note('log', { tree, said: token } as never)]).payload)).not.toContain(
    `"errorText":"${token}"`,
  );
  const itself: Record<string, unknown> = { said: 'a' };
  itself.itself = itself;
  expect(() => written([note('log', itself as never)])).toThrow(/cannot store/);
});

test('a draft that was searched before is searched again for what a store looks for besides', () => {
  const searched = redactedDraft(
    toolResult(call, { type: 'text', value: `${token} and order-4711` }),
    redactorFor('all') as Redactor,
  );
  expect(written([searched]).payload).toMatchObject({ output: { value: `${placeholder} and order-4711` } });
  const others = { patterns: { order: 'order-\\d+' } };
  const again = written([searched], others);
  expect(again.payload).toMatchObject({ output: { value: `${placeholder} and [secret order]` } });
  expect(again.meta.redacted).toBe(2);
  // A draft that was searched where only tools and errors speak is not known to have no other secret.
  const said = redactedDraft(user(`It is ${token}.`), redactorFor(true) as Redactor);
  expect(written([said], 'all').payload).toMatchObject({ content: [{ text: `It is ${placeholder}.` }] });
});

test('a signed part with a secret is dropped as a whole, one without stays, and a call loses its signature', () => {
  const signed = { providerOptions: { anthropic: { signature: 'c2lnbmVk' } } };
  const parts = [
    { type: 'reasoning', text: `The key is ${token}.`, ...signed },
    { type: 'reasoning', text: 'Now I know.', ...signed },
    { type: 'text', text: token },
    {
      type: 'tool-call',
      toolCallId: 'c2',
      toolName: 'sh',
      input: { token },
      providerOptions: { google: { thoughtSignature: 'c2ln' } },
    },
  ];
  const { payload, meta } = written([assistant(parts)], 'all');
  expect((payload as { content: unknown }).content).toEqual([
    parts[1],
    { type: 'text', text: placeholder },
    { type: 'tool-call', toolCallId: 'c2', toolName: 'sh', input: { token: placeholder } },
  ]);
  expect(meta).toEqual({ redacted: 3 });
  // Exact secrets of the process as well.
  using store = openTapeStore(':memory:', { secrets: [{ name: 'KEY', value: token }], redact: false });
  store.sessions.open('main');
  store.entries.append('main', [assistant(parts.slice(0, 3))]);
  expect([...store.entries.read('main')].at(-1)?.payload).toMatchObject({
    content: [parts[1], { type: 'text', text: '[secret KEY]' }],
  });
});

test('a value that cannot be searched is refused with a typed error, and nothing of the batch is written', () => {
  using store = openTapeStore(':memory:', { secrets: [] });
  store.sessions.open('main');
  const hidden = Object.defineProperty({}, 'token', {
    enumerable: true,
    get: () => {
      throw new Error(`cannot read ${token}`);
    },
  });
  const act = () => store.entries.append('main', [calling, toolResult(call, hidden as never)]);
  expect(act).toThrow(TapeError);
  try {
    act();
  } catch (error) {
    expect(error).toMatchObject({ code: 'TAPE_CANNOT_REDACT', data: { method: 'entries.append' } });
    expect(`${String(error)} ${JSON.stringify(error)} ${String((error as Error).stack)}`).not.toContain(
      token,
    );
  }
  expect(store.sessions.find('main')?.head).toBe(1);
});

test('a batch that is repeated under its key is equal, and the chain verifies', () => {
  using store = openTapeStore(':memory:', { secrets: [] });
  store.sessions.open('main');
  const batch = [calling, toolResult(call, token)];
  store.entries.append('main', batch, { key: 'once' });
  expect(store.entries.append('main', batch, { key: 'once' })).toMatchObject({ added: 0, repeated: 2 });
  expect([...store.verify()]).toEqual([]);
});

const line = pem.split('\n')[1] ?? '';

test.each([
  [
    'text in another encoding',
    Buffer.from(`caf\u{e9} ${token} caf\u{e9}`, 'latin1'),
    'caf\u{e9} [secret github] caf\u{e9}',
  ],
  ['bytes of a program', Buffer.from(`\u{e9}\0 ${token}`, 'latin1'), `\u{e9}\0 ${token}`],
])('bytes that are not UTF-8 keep all others: %s', (_, bytes, kept) => {
  const redactor = redactorFor('all');
  const file = { type: 'file', mediaType: 'text/plain', data: new Uint8Array(bytes) };
  const encoded = { ...file, data: bytes.toString('base64') };
  const { value } = redactor?.whole([file, encoded]) ?? {};
  expect(value?.map(({ data }) => Buffer.from(data as string, 'base64').toString('latin1'))).toEqual([
    kept,
    kept,
  ]);
});

test('no file of a store has a secret: entries, blobs, inbox, chunks, titles, intentions, search index, backup', async () => {
  using dir = tempDir();
  const path = join(dir.path, 'tape.db');
  const secret = `${token} ${pem}`;
  {
    using store = openTapeStore(path, { secrets: [], redact: 'all' });
    store.sessions.open('main', { title: `About ${secret}`, settings: { instructions: secret } });
    store.entries.append('main', [
      user([
        { type: 'text', text: secret },
        { type: 'file', mediaType: 'text/plain', data: Buffer.from(secret.repeat(3)).toString('base64') },
      ]),
      user([{ type: 'file', mediaType: 'text/plain', data: new Uint8Array(Buffer.from(secret)) }]),
      calling,
      toolResult(call, `${'a line of words\n'.repeat(40_000)}${secret}`),
      note('x', { [secret]: secret }, { by: secret }),
    ]);
    store.inbox.post('main', { body: { type: 'input', drafts: [user(secret)] } });
    store.inbox.post('main', { body: { type: 'answer', toolCallId: 'c9', answer: { secret } } });
    store.live.save([
      {
        session: 'main',
        run: 'r',
        chunks: [{ index: 0, chunk: { type: 'text-delta', id: '0', delta: secret } }],
      },
    ]);
    store.lineage.fork('main', { name: 'child', intention: { nextSteps: secret, contextSummary: secret } });
    store.entries.append('child', [assistant(secret)]);
    store.lineage.fork('main', { name: 'other', first: [assistant(secret)] });
    const [, said] = store.entries.read('other', { own: true });
    expect(Number(said?.meta.redacted)).toBeGreaterThan(0);
    store.lineage.merge('child', { strategy: 'summary', text: secret });
    store.entries.redact('main', 2, `It had ${secret}`);
    store.history.rewind('main', 4, { mode: secret });
    store.fillSearchIndex();
    expect(store.entries.search({ text: 'secret github' }).hits.length).toBeGreaterThan(0);
    await store.backup(join(dir.path, 'copy.db'));
    expect(leakingFiles(dir.path, { token, line })).toEqual([]);
    expect(existsSync(`${path}-wal`)).toBe(true);
    expect([...store.verify()]).toEqual([]);
  }
  expect(leakingFiles(dir.path, { token, line })).toEqual([]);
});

test('the chunks and inbox items of tools and errors have no secret by default', () => {
  using store = openTapeStore(':memory:', { secrets: [] });
  store.sessions.open('main');
  const chunks = [
    { type: 'tool-output-available', toolCallId: 'c', output: { token } },
    { type: 'tool-output-error', toolCallId: 'c', errorText: token },
    { type: 'error', errorText: token },
    { type: 'text-delta', id: '0', delta: token },
  ].map((chunk, index) => ({ index, chunk }));
  store.live.save([{ session: 'main', run: 'r', chunks }]);
  expect(
    store.live.read('main')[0]?.chunks.map(({ chunk }) => JSON.stringify(chunk).includes(token)),
  ).toEqual([false, false, false, true]);
  store.inbox.post('main', { body: { type: 'answer', toolCallId: 'c', answer: token } });
  expect(JSON.stringify(store.inbox.list('main'))).not.toContain(token);
});

test.runIf(atFullSize)('an output of ten megabytes is searched to its end', () => {
  const large = `${'0123456789abcdef ghp_ eyJ SG. AKIA '.repeat(300_000)}${token}`;
  const { payload, meta } = written([toolResult(call, large)]);
  expect(meta).toEqual({ redacted: 1 });
  expect((payload as { output: { value: { size: number } } }).output.value.size).toBe(
    large.length - token.length + placeholder.length,
  );
});

test('a setting that cannot be used is refused before anything is opened', () => {
  using dir = tempDir();
  const path = join(dir.path, 'tape.db');
  expect(() => openTapeStore(path, { redact: { patterns: { a: '(' } } })).toThrow(
    expect.objectContaining({ code: 'TAPE_BAD_OPTION', data: { field: 'redact.patterns.a', near: [] } }),
  );
  expect(existsSync(path)).toBe(false);
});
