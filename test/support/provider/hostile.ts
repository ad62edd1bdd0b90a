import type { Json, JsonObject } from '@tapedeck/tape';
import type { RawAnswer } from './protocol.ts';

/** An answer of a server of chat completions as no sound server gives it. */
export interface Hostile {
  readonly name: string;
  readonly answer: RawAnswer;
  /** Whether it takes long to send, or to run. */
  readonly isSlow: boolean;
}

const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'hostile' };
const chunk = (delta: unknown, finish: Json = null, more: JsonObject = {}): string =>
  data({ ...head, choices: [{ index: 0, delta, finish_reason: finish }], ...more });
const done = 'data: [DONE]\n\n';
const said = chunk({ role: 'assistant', content: 'I think ' });
const stop = chunk({}, 'stop');
const called = chunk({}, 'tool_calls');

interface CallParts {
  readonly index?: unknown;
  readonly id?: unknown;
  readonly name?: unknown;
}

/** The chunk of a call with its arguments, which are sent as they are. */
function call(args: unknown, { index = 0, id = 'c1', name = 'look' }: CallParts = {}): string {
  return chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: args } }] });
}

const answer = (...raw: (string | Uint8Array)[]): RawAnswer => ({ raw });
const whole = (...raw: string[]): RawAnswer => ({ raw: [...raw, stop, done] });
const calls = (...raw: string[]): RawAnswer => ({ raw: [...raw, called, done] });
const html = '<!doctype html><html><body><h1>502 Bad Gateway</h1></body></html>';
const page = { 'content-type': 'text/html' };
const mebibyte = 1024 * 1024;
/** A text of this size in pieces, so that it is not one chunk of the network. */
const large = (bytes: number, letter = 'x'): string[] =>
  Array.from({ length: Math.ceil(bytes / mebibyte) }, () => letter.repeat(mebibyte));
const deep = `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`;
const controls = 'a\u0000b\u001b[2J\u007f\u202e\r\n\u2028';

const malformed: Readonly<Record<string, RawAnswer>> = {
  'no event at all': answer('Hello, how can I help you?'),
  nothing: answer(),
  'an end alone': answer(done),
  'comments alone': answer(': ping\n\n'.repeat(100)),
  'an event that is not JSON': whole(said, 'data: {"choices":[{"delta"\n\n'),
  'an empty object': whole(data({})),
  null: whole(data(null)),
  'a list': whole(data([1, 2])),
  'a number': whole(data(7)),
  'choices that are no list': whole(data({ ...head, choices: { a: 1 } })),
  'a choice that is null': whole(data({ ...head, choices: [null] })),
  'a choice without a delta': whole(data({ ...head, choices: [{ index: 0 }] })),
  'a delta that is null': whole(chunk(null)),
  'a text that is a number': whole(chunk({ content: 5 })),
  'a text that is a list': whole(chunk({ content: [{ type: 'text', text: 'x' }] })),
  'an answer that does not finish': answer(said),
  'a reason to finish that nobody knows': answer(said, chunk({}, 'bored'), done),
  'two ends': answer(said, stop, stop, done, done),
  'words after the end': answer(said, stop, done, said, stop),
  'lines that end with CR': answer(`${said}${stop}${done}`.replaceAll('\n', '\r')),
  'a byte order mark': answer('\ufeff', said, stop, done),
  'events without a line between': answer(`${said}${stop}${done}`.replaceAll('\n\n', '\n')),
  'an error in place of an event': answer(said, data({ error: 'out of memory' })),
  'an error without a message': answer(said, data({ error: {} })),
};

const cuts: Readonly<Record<string, RawAnswer>> = {
  'cut before its head': { raw: [], cut: 'before' },
  'cut after its head': { raw: [], cut: true },
  'cut in its text': { raw: [said, said.slice(0, 60)], cut: true },
  'cut in a letter': { raw: [said, Buffer.from(chunk({ content: 'ä' })).subarray(0, -20)], cut: true },
  'cut in the arguments of a call': { raw: [said, call('{"at": "the b')], cut: true },
  'cut between two calls': { raw: [call('{"at":"a"}'), call('{', { index: 1, id: 'c2' })], cut: true },
  'shorter than it says': { raw: [said], headers: { 'content-length': '100000' }, cut: true },
  'no gzip, as it says': { raw: [said, stop, done], headers: { 'content-encoding': 'gzip' } },
};

const pages: Readonly<Record<string, RawAnswer>> = {
  'a page': { raw: [html], headers: page },
  'a page of an error': { raw: [html], code: 502, headers: page },
  'a page of a refusal': { raw: [html], code: 403, headers: page },
  'a document that is not streamed': {
    raw: ['{"choices":[{"message":{"content":"Hi"}}]}'],
    headers: { 'content-type': 'application/json' },
  },
  'no content': { raw: [], code: 204 },
};

const big: Readonly<Record<string, RawAnswer>> = {
  '20 MB without an event': answer(...large(20 * mebibyte)),
  '20 MB of an error': { raw: large(20 * mebibyte), code: 400, headers: page },
  'a text over 16 MiB': whole(chunk({ content: large(17 * mebibyte).join('') })),
  'many texts over 16 MiB': whole(...large(17 * mebibyte).map((content) => chunk({ content }))),
  'thoughts over 16 MiB': whole(...large(17 * mebibyte).map((text) => chunk({ reasoning_content: text }))),
  'arguments over 16 MiB': calls(call(`{"at":"${large(17 * mebibyte).join('')}"}`)),
};

/** Errors of a size that no entry holds. */
const errors: Readonly<Record<string, RawAnswer>> = {
  'an error over 16 MiB': {
    raw: ['{"error":{"message":"', ...large(17 * mebibyte), '"}}'],
    code: 400,
    headers: { 'content-type': 'application/json' },
  },
  'a passing error over 16 MiB': {
    raw: ['{"error":{"message":"', ...large(17 * mebibyte), '"}}'],
    code: 503,
    headers: { 'content-type': 'application/json', 'retry-after-ms': '1' },
  },
  'an error in a stream over 16 MiB': answer(
    said,
    data({ error: { message: large(17 * mebibyte).join('') } }),
    done,
  ),
  'an event over 16 MiB of another form': whole(said, data({ choices: large(17 * mebibyte).join('') })),
  'an event over 16 MiB that is not JSON': whole(said, 'data: ', ...large(17 * mebibyte), '\n\n'),
  'an id over 16 MiB': whole(data({ ...head, id: large(17 * mebibyte).join(''), choices: [] }), said),
};

const arguments_: Readonly<Record<string, RawAnswer>> = {
  'truncated arguments': calls(call('{"at": "the b')),
  'arguments 5,000 levels deep': calls(call(deep)),
  'arguments that are no object': calls(call('[1]')),
  'arguments with a prototype': calls(call('{"__proto__":{"at":1},"constructor":{"prototype":2}}')),
  'arguments that are an object': calls(call({ at: 'a' })),
  'arguments after the call has ended': calls(call('{"at":"a"}'), call('{"at":"b"}')),
  'ids that are equal': calls(call('{"at":"a"}'), call('{"at":"b"}', { index: 1 })),
  'an id that is empty': calls(call('{"at":"a"}', { id: '' })),
  'an id that is a number': calls(call('{"at":"a"}', { id: 7 })),
  'a call without a name': calls(call('{"at":"a"}', { name: null })),
  'a name that is empty': calls(call('{"at":"a"}', { name: '' })),
  'an index beyond all': calls(call('{"at":"a"}', { index: 4_000_000_000 })),
  'an index below zero': calls(call('{"at":"a"}', { index: -1 })),
};

const many = calls(
  ...Array.from({ length: 200 }, (_, index) => call('{"at":"a"}', { index, id: `c${index}` })),
);

const characters: Readonly<Record<string, RawAnswer>> = {
  'NUL and control characters': calls(
    chunk({ content: controls, reasoning_content: controls }),
    call(JSON.stringify({ at: controls }), { id: `c${controls}`, name: `look${controls}` }),
  ),
  'halves of characters': calls(
    chunk({ content: 'a\ud83d', reasoning_content: '\udc00' }),
    call('{"at":"\\ud83d"}', { id: 'c\ud800', name: 'look\udfff' }),
  ),
  'bytes that are no UTF-8': answer(
    Buffer.concat([Buffer.from('data: {"choices":[{"delta":{"content":"'), Buffer.from([0xff, 0xc0, 0x80])]),
    '"}}]}\n\n',
    stop,
    done,
  ),
  'numbers of tokens that are none': answer(
    said,
    'data: {"choices":[],"usage":{"prompt_tokens":1e300,"completion_tokens":-3.5,"total_tokens":0.1}}\n\n',
    stop,
    done,
  ),
  'an id and a model of 1 MB': whole(
    data({ ...head, id: 'i'.repeat(mebibyte), model: 'm'.repeat(mebibyte), choices: [] }),
    said,
  ),
};

const slow = { ...big, ...errors, '200 calls': many };
const quick = { ...malformed, ...cuts, ...pages, ...arguments_, ...characters };

/** Every one of them. */
export const hostileAnswers: readonly Hostile[] = [
  ...Object.entries(quick).map(([name, one]) => ({ name, answer: one, isSlow: false })),
  ...Object.entries(slow).map(([name, one]) => ({ name, answer: one, isSlow: true })),
];
