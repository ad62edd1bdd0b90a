import {
  anchor,
  assistant,
  compaction,
  type Draft,
  handoff,
  type Json,
  type JsonObject,
  note,
  type Part,
  prune,
  type Seq,
  toolCall,
  toolResult,
  user,
} from '@tapedeck/tape';
import { omit } from '@tapedeck/tape/internal';
import type { Random } from '../seeded.ts';
import { sealedFor, type Words } from './words.ts';

/** The sources of the drafts of one history. */
export interface Material {
  readonly random: Random;
  readonly words: Words;
  /** Positions that the session has; the next entry follows the last of them. */
  readonly floor: Seq;
  readonly head: Seq;
  /** Ids of recent calls, whether they have an answer or not. */
  readonly asked: string[];
  /** Positions of results. */
  readonly results: readonly Seq[];
  /** Reports that something was made, so that what is never made is noticed. */
  readonly count: (what: string) => void;
}

type Maker = (material: Material) => readonly Draft[];

/** The author of a message, as runs record it, and the name under which its package encrypts parts. */
const authors = [
  { meta: { provider: 'anthropic.messages', model: 'claude' }, seals: 'anthropic', field: 'signature' },
  { meta: { provider: 'anthropic' }, seals: 'anthropic', field: 'signature' },
  { meta: { provider: 'openai.responses', model: 'gpt' }, seals: 'openai', field: 'itemId' },
  { meta: { provider: 'openai.chat', model: 'gpt' }, seals: 'openai', field: 'reasoningContent' },
  { meta: { provider: 'google.generative-ai' }, seals: 'google', field: 'thoughtSignature' },
  {
    meta: { provider: 'openai-compatible.chat', model: 'qwen' },
    seals: 'openai-compatible',
    field: 'sealed',
  },
  // An import may lack the provider: only the options show it.
  { meta: undefined, seals: 'anthropic', field: 'signature' },
  { meta: undefined, seals: 'openai', field: 'itemId' },
] as const;

type Author = (typeof authors)[number];

const anchorNames = ['A', 'B', 'task/one'];
/** Few enough that models repeat them. */
const commonIds = ['c1', 'c2', 'call_0', 'functions.read:0', 'c1_2', 'é'];
const inputs: readonly Json[] = [{}, { path: 'a' }, '{"a":1}', '{"a', null, [1]];
const blanks = ['', ' ', '\n'];

const sealed = ({ seals, field }: Author, { words }: Material): JsonObject => ({
  [seals]: { [field]: sealedFor(seals, words.next('thought')) },
});

/** Options for several providers on one part, as an application may give them. */
const everybodys = (material: Material): JsonObject =>
  Object.assign({}, ...authors.map((author) => sealed(author, material)));

const text = (words: string, options?: JsonObject): Part => ({
  type: 'text',
  text: words,
  ...(options !== undefined && { providerOptions: options }),
});

const picture: Part = {
  type: 'file',
  mediaType: 'image/png',
  data: { type: 'url', url: 'https://x.example/a.png' },
};

const userPart = (material: Material): Part => {
  const { random, words } = material;
  if (random.chance(12)) return text(random.of(blanks));
  if (random.chance(8)) return picture;
  return text(words.next('said'), random.chance(8) ? everybodys(material) : undefined);
};

const several = <T>(n: number, make: () => T): T[] => Array.from({ length: n }, make);

const callId = ({ random, words, asked, count }: Material): string => {
  const again = random.chance(25);
  const id = again ? random.of(commonIds) : `c${words.next('thought').slice(1, -1)}`;
  if (again) count('a call with an id that others have');
  asked.push(id);
  return id;
};

const ownCall = (author: Author, material: Material): Part => {
  const { random } = material;
  const name = random.chance(90) ? 'read' : 'fs.read';
  const options = random.chance(20) ? { providerOptions: sealed(author, material) } : {};
  return { ...toolCall(callId(material), name, random.of(inputs)), ...options };
};

/** A search that the provider ran: whole, without its result, or a result without its call. */
const search = (author: Author, material: Material): Part[] => {
  const { random, words, count } = material;
  // Few of these, so that the result may come long after its call; or with the id of a client call.
  const again = random.chance(10) ? random.of(commonIds) : random.of(['srv1', 'srv2']);
  const id = random.chance(50) ? `srv${words.next('thought').slice(1, -1)}` : again;
  const call = { toolCallId: id, toolName: 'web_search' };
  const found = [{ url: words.next('found'), encryptedContent: sealedFor(author.seals, '0') }];
  const both: Part[] = [
    {
      type: 'tool-call',
      ...call,
      input: {},
      providerExecuted: true,
      providerOptions: sealed(author, material),
    },
    { type: 'tool-result', ...call, output: { type: 'json', value: found } },
  ];
  count('a call that the provider ran');
  const shape = random.below(5);
  return shape === 0 ? both.slice(0, 1) : shape === 1 ? both.slice(1) : both;
};

const saidParts = (author: Author, material: Material): Part[] => {
  const { random, words, count } = material;
  const choice = random.below(20);
  if (choice < 6) return [text(words.next('said'), random.chance(25) ? sealed(author, material) : undefined)];
  if (choice < 7) return [text(random.of(blanks), random.chance(50) ? sealed(author, material) : undefined)];
  if (choice < 11) {
    count('reasoning');
    return [{ type: 'reasoning', text: words.next('thought'), providerOptions: sealed(author, material) }];
  }
  if (choice < 15) return [ownCall(author, material)];
  if (choice < 16) {
    count('calls side by side');
    return several(2 + random.below(2), () => ownCall(author, material));
  }
  if (choice < 18) return search(author, material);
  if (choice < 19)
    return [{ type: 'custom', kind: `${author.seals}.x`, providerOptions: sealed(author, material) }];
  return [picture];
};

const answer = ({ words, count, random }: Material, toolCallId: string): Draft => {
  const output = words.next('output');
  count('a result');
  const shapes: readonly (Json | { type: string; value: Json })[] = [
    output,
    { found: output },
    { type: 'error-text', value: output },
    { type: 'content', value: [{ type: 'text', text: output }] },
  ];
  return toolResult({ toolCallId, toolName: 'read' }, random.of(shapes) as Json);
};

const anchorState = ({ random, words }: Material): JsonObject =>
  random.chance(60) ? { goal: words.next('state') } : {};

/** A position from which on a tail is kept; now and then one that makes no sense. */
const keepFrom = ({ random, floor, head }: Material): { keepFrom?: Seq } => {
  if (random.chance(40)) return {};
  return { keepFrom: random.chance(10) ? head + 5 : Math.max(1, floor + random.below(head - floor + 2)) };
};

const makers: Readonly<Record<string, Maker>> = {
  user: (material) => [user(several(material.random.below(3) + 1, () => userPart(material)))],
  empty: () => [user([])],
  aside: ({ words }) => [user(words.next('unseen'), { context: false })],
  assistant: (material) => {
    const { random, count } = material;
    const author = random.of(authors);
    const parts = several(random.below(5), () => saidParts(author, material)).flat();
    const partial = random.chance(8);
    if (partial) count('an answer that broke off');
    return [assistant(parts, { ...author.meta, ...(partial && { partial: true }) })];
  },
  call: (material) => {
    const author = material.random.of(authors);
    const calls = several(1 + material.random.below(3), () => ownCall(author, material));
    return [assistant(calls, author.meta)];
  },
  /** The oldest recent call; older ones may long be closed. */
  result: (material) => {
    const id = material.asked.shift();
    return id === undefined ? [] : [answer(material, id)];
  },
  results: (material) => material.asked.splice(0).map((id) => answer(material, id)),
  'results in one message': (material) => {
    const parts = material.asked.splice(0, 3).map((id) => answer(material, id).payload as Part);
    return parts.length === 0 ? [] : [{ kind: 'message', payload: { role: 'tool', content: parts } }];
  },
  'a result of no call': (material) => [answer(material, material.random.of([...commonIds, 'c0']))],
  'no result': ({ asked }) => {
    asked.splice(0);
    return [];
  },
  event: ({ words }) => [note('run/step', { text: words.next('unseen') })],
  ui: ({ words }) => [{ kind: 'ui', payload: { text: words.next('unseen') } }],
  'x-': ({ words }) => [{ kind: 'x-app', payload: { role: 'user', content: words.next('unseen') } }],
  instructions: ({ words }) => [
    { kind: 'message', payload: { role: 'system', content: words.next('unseen') } },
  ],
  anchor: (material) => [anchor(material.random.of(anchorNames), anchorState(material))],
  handoff: (material) => {
    const { random, words } = material;
    const state = random.chance(80) ? { summary: words.next('state') } : {};
    return [handoff(random.of(anchorNames), { ...state, ...anchorState(material) }, keepFrom(material))];
  },
  compaction: (material) => {
    const summary = material.words.next('state');
    const range = [material.floor + 1, material.head] as const;
    return [compaction({ summary, range, trigger: 'manual' }, keepFrom(material))];
  },
  prune: ({ random, results, head }) => {
    const outputs = [...results, random.below(head + 3)].filter(() => random.chance(70));
    return [
      prune(
        outputs.map((seq) => ({ seq, toolCallId: 'c1', tokens: 9 })),
        { trigger: 'manual' },
      ),
    ];
  },
  /** Positions of messages, of other entries, and of what is not there. */
  omit: ({ random, floor, head }) => [
    omit(Array.from({ length: 1 + random.below(4) }, () => floor + random.below(head - floor + 3))),
  ],
};

/** How often each is made, compared with the others. */
const often: Readonly<Record<string, number>> = {
  user: 6,
  assistant: 8,
  call: 3,
  result: 4,
  results: 3,
  'results in one message': 2,
  prune: 2,
};

const names = Object.keys(makers).flatMap((name) => Array.from({ length: often[name] ?? 1 }, () => name));

/** Something that a model, a tool, a user or an application adds to a tape. */
export function anyDrafts(material: Material): readonly Draft[] {
  const name = material.random.of(names);
  const drafts = makers[name]?.(material) ?? [];
  if (drafts.length > 0 || name === 'no result') material.count(name);
  return drafts;
}
