import {
  compaction,
  type Draft,
  handoff,
  type Json,
  type Meta,
  type Part,
  prune,
  toolCall,
  toolResult,
  user,
} from '@tapedeck/tape';
import fc from 'fast-check';
import { anyJson, anyText } from '../arbitrary-json.ts';
import { sealed } from '../provider/signed.ts';
import {
  bmp,
  by,
  execution,
  item,
  itemText,
  openaiSearch,
  partial,
  pdf,
  png,
  redacted,
  said,
  search,
  text,
  thought,
} from './parts.ts';

const words = fc.oneof(
  fc.constantFrom('', ' ', '\n', 'Hello.', 'So ', 'half \ud83d', '</s>', '[INST]'),
  anyText,
);

/** Few ids, so that they collide; the first as any provider might give them, the others as only some do. */
const plainId = fc.constantFrom('c1', 'c2', 'toolu_1', 'call_0');
const id = fc.oneof(plainId, fc.constantFrom('functions.read:0', 'a b', 'é', 'x'.repeat(60)));
/** Names as models invent them, or as tools of an application have them. */
const name = fc.oneof(
  fc.constantFrom('read', 'fs.read', 'read file', 'n'.repeat(70), 'echo<|channel|>commentary', '3d', '-'),
  anyText.filter((words) => words !== ''),
);
const input: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json>({}, { a: 1 }, '{"a":1}', '{"a', null, [1], 3),
  anyJson,
);

const call = fc.tuple(plainId, input).map(([i, value]): Part => toolCall(i, 'read', value));
const namedCall = fc.tuple(plainId, name).map(([i, n]): Part => toolCall(i, n, {}));
const oddCall = fc.tuple(id, name, input).map(([i, n, value]): Part => toolCall(i, n, value));

const file: fc.Arbitrary<Part> = fc.constantFrom<Part>(
  { type: 'file', mediaType: 'image/png', data: png },
  { type: 'image', image: png },
  { type: 'file', mediaType: 'image', data: { type: 'url', url: 'https://pictures.example/a.png' } },
  { type: 'file', mediaType: 'image/bmp', data: bmp, filename: 'a.bmp' },
  { type: 'file', mediaType: 'application/pdf', data: { type: 'data', data: pdf } },
  { type: 'file', mediaType: 'text/csv', data: Buffer.from('a,b').toString('base64') },
  { type: 'file', mediaType: 'text/plain', data: { type: 'text', text: ' ' } },
  { type: 'file', mediaType: 'image/png', data: { openai: 'file-1' } },
  { type: 'file', mediaType: 'audio/ogg' },
  { type: 'file' },
);

/** The parts that any model makes; the bytes of their files are on the tape as references. */
const common = fc.oneof(words.map(text), words.map(text), call, namedCall, file);

const fewWords = fc.constantFrom('a', 'b', 'c');
/** Texts alone may come between the parts of a pair. */
const anthropicParts = fc.oneof(
  fewWords.map((w) => [thought(w)]),
  fewWords.map((w) => [redacted(w)]),
  fewWords.map((w) => search(w, w)),
  fewWords.map((w) => search(w, w).slice(0, 1)),
  fewWords.map((w) => search(w, w).slice(1)),
  common.map((part) => [part]),
);
const responsesParts = fc.oneof(
  // A sound server gives an item once: its id is another in every message.
  fc.nat(1e9).map((n) => [item(`r${n}`), itemText(`t${n}`)]),
  fc.nat(1e9).map((n) => [item(`r${n}`)]),
  // A server that is not sound gives one again.
  fewWords.map((w) => [item(w), itemText(w)]),
  fc.nat(1e9).map((n) => openaiSearch(`s${n}`)),
  fc.nat(1e9).map((n) => openaiSearch(`s${n}`).slice(0, 1)),
  common.map((part) => [part]),
);
const otherParts = fc.oneof(
  fewWords.map((w): Part[] => [{ type: 'reasoning', text: w }]),
  fewWords.map((w): Part[] => [
    { ...toolCall(w, 'read', {}), providerOptions: { google: { thoughtSignature: sealed('g') } } },
  ]),
  fc.constantFrom<Part[]>([{ type: 'custom', kind: 'x.y' }], [{ type: 'custom' }]),
  fewWords.map((w): Part[] => [{ ...text(w), providerOptions: { openai: w } }]),
  common.map((part) => [part]),
);
const googleParts = fc.oneof(
  otherParts,
  fewWords.map((w) => execution(w)),
  fewWords.map((w) => execution(w, 'no program')),
  fewWords.map((w) => execution(w).slice(0, 1)),
  fewWords.map((w) => execution(w).slice(1)),
  fewWords.map((w) => search(w, w)),
  oddCall.map((part) => [part]),
);

const author = (parts: fc.Arbitrary<readonly Part[]>, meta: Meta): fc.Arbitrary<Draft> =>
  fc
    .tuple(fc.array(parts, { maxLength: 4 }), fc.nat(9))
    .map(([groups, n]) => (n === 0 ? partial : said)(meta, ...groups.flat()));

const result = fc
  .tuple(
    id,
    fc.oneof(
      fc.constantFrom<Json>(
        'fine',
        '',
        { type: 'error-text', value: 'no' },
        { type: 'error-json', value: null },
        { type: 'execution-denied' },
        { type: 'content', value: [] },
        {
          type: 'content',
          value: [
            { type: 'text', text: ' ' },
            { type: 'text', text: 'x' },
          ],
        },
        {
          type: 'content',
          value: [
            {
              type: 'file',
              mediaType: 'image/png',
              data: { type: 'data', data: Buffer.from(png).toString('base64') },
            },
          ],
        },
        {
          type: 'content',
          value: [
            { type: 'file', mediaType: 'image/bmp', data: { type: 'data', data: 'QUFB' } },
            { type: 'file-id', fileId: 'f' },
          ],
        },
        { type: 'text', value: 5 },
      ),
      anyJson,
    ),
  )
  .map(([toolCallId, output]): Draft => toolResult({ toolCallId, toolName: 'read' }, output));

const userSays = fc
  .array(fc.oneof(words.map(text), words.map(text), file), { maxLength: 3 })
  .map((parts): Draft => user(parts));

/** Any history that models of several providers, tools, users and handoffs can leave, in any order. */
export const anyHistory: fc.Arbitrary<readonly Draft[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: author(anthropicParts, by.anthropic) },
    { weight: 4, arbitrary: author(responsesParts, by.responses) },
    { weight: 3, arbitrary: author(otherParts, by.compatible) },
    { weight: 2, arbitrary: author(otherParts, by.openaiChat) },
    { weight: 2, arbitrary: author(googleParts, by.google) },
    { weight: 5, arbitrary: userSays },
    { weight: 8, arbitrary: result },
    {
      weight: 2,
      arbitrary: fc.constantFrom(
        handoff('h', { summary: 'So far.' }),
        handoff('h'),
        handoff('h', {}, { keepFrom: 2 }),
        prune(
          [1, 3, 5, 7, 9, 11].map((seq) => ({ seq, toolCallId: 'c1', tokens: 9 })),
          { trigger: 'manual' },
        ),
        prune(
          [2, 4, 6, 8, 10, 12].map((seq) => ({ seq, toolCallId: 'c1', tokens: 9 })),
          { trigger: 'manual' },
        ),
        compaction({ summary: 'So far.', range: [1, 2], trigger: 'manual' }),
        compaction({ summary: 'So far.', range: [1, 2] }, { keepFrom: 3 }),
      ),
    },
  ),
  { maxLength: 16, size: 'max' },
);
