import { type Draft, type Entry, type Part, type Target, toolResult, view } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { entriesOf } from '../support/entries.ts';
import { sized } from '../support/size.ts';
import { invalidities } from '../support/valid-messages.ts';

const providers = ['anthropic', 'openai', 'google'] as const;
const targets: readonly Target[] = [{}, { provider: 'anthropic' }, { provider: 'openai.responses' }];

const text = fc.constantFrom('', 'hello', '\ud800', 'a\udc00b', '😀', '</merge>', '\0', 'x\n\ny');
/** Few ids, so that they collide; one looks like what a collision is renamed to. */
const callId = fc.constantFrom('c1', 'c2', 'c3', 'c1_2', '');
const options = fc.option(
  fc.dictionary(
    fc.constantFrom(...providers),
    fc.oneof(
      fc.constantFrom({ signature: 'c2ln' }, {}),
      // An item that its provider stores is in one message.
      fc.nat(1e9).map((n) => ({ itemId: `msg_${n}` })),
    ),
    { maxKeys: 2 },
  ),
  { nil: undefined },
);

const call = fc.record({
  type: fc.constant('tool-call'),
  toolCallId: callId.filter((id) => id !== ''),
  toolName: fc.constantFrom('read', 'write'),
  input: fc.constantFrom({}, { path: 'a' }, 'not an object', null),
  providerExecuted: fc.constantFrom(undefined, undefined, false, true),
  providerOptions: options,
});

const providerResult = fc.record({
  type: fc.constant('tool-result'),
  toolCallId: callId,
  toolName: fc.constant('web_search'),
  output: fc.constantFrom({ type: 'json', value: [1] }, { type: 'text', value: '\ud800' }),
  providerOptions: options,
});

const textPart = fc.record({ type: fc.constant('text'), text, providerOptions: options });
const assistantPart: fc.Arbitrary<Record<string, unknown>> = fc.oneof(
  textPart,
  fc.record({ type: fc.constant('reasoning'), text, providerOptions: options }),
  fc.record({ type: fc.constant('custom'), kind: fc.constant('x.y'), providerOptions: options }),
  fc.record({ type: fc.constant('file'), mediaType: fc.constant('image/png'), data: fc.constant('AAAA') }),
  call,
  call,
  providerResult,
);

const withoutUndefined = (parts: readonly Record<string, unknown>[]): Part[] =>
  parts.map((part) => JSON.parse(JSON.stringify(part)));

const provider = fc.option(fc.constantFrom(...providers, 'anthropic.messages'), { nil: undefined });

const assistantDraft = fc.tuple(fc.array(assistantPart, { maxLength: 5 }), provider).map(
  ([parts, by]): Draft => ({
    kind: 'message',
    payload: { role: 'assistant', content: withoutUndefined(parts) },
    ...(by !== undefined && { meta: { provider: by } }),
  }),
);

const userDraft = fc.tuple(fc.array(textPart, { maxLength: 3 }), fc.boolean()).map(
  ([parts, shown]): Draft => ({
    kind: 'message',
    payload: { role: 'user', content: withoutUndefined(parts) },
    ...(!shown && { meta: { context: false } }),
  }),
);

const resultDraft = fc
  .tuple(
    callId.filter((id) => id !== ''),
    fc.constantFrom('fine', { a: 1 }, { type: 'error-text', value: 'no' }),
  )
  .map(([toolCallId, output]) => toolResult({ toolCallId, toolName: 'read' }, output));

const boundary: Draft = { kind: 'anchor', mark: 'boundary', name: 'H', payload: { state: { summary: 's' } } };
const history = fc.array(
  fc.oneof(assistantDraft, assistantDraft, userDraft, resultDraft, resultDraft, fc.constant(boundary)),
  { maxLength: 14, size: 'max' },
);

/** Every cut of a history, so that a view begins and ends anywhere. */
const cuts = (entries: readonly Entry[]) => entries.map((_, i) => entries.slice(0, i + 1));

describe('for every tape', () => {
  test('its views are valid for every target, cut after any entry', () => {
    let messages = 0;
    fc.assert(
      fc.property(history, (drafts) => {
        for (const entries of cuts(entriesOf(drafts)))
          for (const target of targets) {
            const shown = view(entries, { target }).messages;
            expect(invalidities(shown)).toEqual([]);
            messages += shown.length;
          }
      }),
      { numRuns: sized(133, 200, 8_000), seed: 20261122 },
    );
    expect(messages).toBeGreaterThan(sized(3_000, 4_500, 200_000));
  });

  test('the same entries give the same bytes', () => {
    fc.assert(
      fc.property(history, fc.constantFrom(...targets), (drafts, target) => {
        const entries = entriesOf(drafts);
        const before = JSON.stringify(entries);
        const [first, second] = [view(entries, { target }), view(structuredClone(entries), { target })];
        expect(JSON.stringify(second.messages)).toBe(JSON.stringify(first.messages));
        expect(second.digest).toBe(first.digest);
        expect(JSON.stringify(entries)).toBe(before);
      }),
      { numRuns: sized(66, 100, 4_000), seed: 20261123 },
    );
  });

  test('a provider receives its own parts unchanged, and none of the others', () => {
    let returned = 0;
    fc.assert(
      fc.property(history, (drafts) => {
        const entries = entriesOf(drafts);
        for (const { provider: to } of targets) {
          const own = to?.split('.')[0];
          const shown = view(entries, { policy: 'full', target: to === undefined ? {} : { provider: to } });
          const parts = shown.messages.flatMap(({ content }) => content).map(withoutId);
          for (const entry of entries) {
            if (entry.kind !== 'message' || !isObject(entry.payload) || entry.payload.role !== 'assistant')
              continue;
            const by =
              typeof entry.meta.provider === 'string' ? entry.meta.provider.split('.')[0] : undefined;
            if (by === undefined || by !== own || !Array.isArray(entry.payload.content)) continue;
            const given = entry.payload.content.filter(isObject);
            const back = given.filter((part, i) => comesBack(part, given.slice(i + 1)));
            expect(parts).toEqual(expect.arrayContaining(back.map(withoutId)));
            returned += back.length;
          }
          for (const part of own === undefined ? parts : []) {
            expect(part).not.toHaveProperty('providerOptions');
            expect(['reasoning', 'custom']).not.toContain(part.type);
          }
        }
      }),
      { numRuns: sized(133, 200, 8_000), seed: 20261124 },
    );
    expect(returned).toBeGreaterThan(sized(60, 90, 4_000));
  });
});

test('empty items of an output are omitted, or rendered as text; the rest is shown', () => {
  const odd = { toString: 1 };
  const value = [
    odd,
    { type: odd },
    { type: 'text', text: odd },
    { type: 'text' },
    null,
    5,
    { type: 'text', text: 'Fine.' },
  ];
  const called = { toolCallId: 'c', toolName: 'read' };
  const drafts: Draft[] = [
    { kind: 'message', payload: { role: 'user', content: [{ type: 'text', text: 'Go.' }] } },
    {
      kind: 'message',
      payload: { role: 'assistant', content: [{ type: 'tool-call', ...called, input: {} }] },
    },
    { kind: 'tool-result', payload: { type: 'tool-result', ...called, output: { type: 'content', value } } },
  ];
  for (const target of [...targets, { provider: 'openai-compatible.chat' }]) {
    const { messages } = view(entriesOf(drafts), { target });
    expect(invalidities(messages)).toEqual([]);
    const texts = JSON.stringify(messages.at(-1));
    expect(texts).toContain('Fine.');
    expect(texts).not.toContain('toString');
  }
});

/** The one field that a view may change, when another call has the same id. */
function withoutId({ toolCallId: _, ...part }: Record<string, unknown>): Record<string, unknown> {
  return part;
}

/**
 * Whether a part has to come back to who made it. Not so a text that says nothing, reasoning that led to nothing, a
 * call without arguments that are an object; what the provider ran itself is another matter.
 */
function comesBack(part: Record<string, unknown>, after: readonly Record<string, unknown>[]): boolean {
  if (part.type === 'text') return String(part.text).trim() !== '';
  if (part.type === 'tool-call') return part.providerExecuted !== true && isObject(part.input);
  return part.type === 'reasoning' && after.some((next) => next.type !== 'reasoning' && comesBack(next, []));
}
