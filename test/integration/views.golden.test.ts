import { type Entry, type Part, type SqliteTapeStore, view } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { describe, expect, test } from 'vitest';
import { png } from '../support/golden/parts.ts';
import {
  anthropicBlock,
  keptItem,
  opaqueTexts,
  sealedItem,
  signedParts,
  signers,
} from '../support/golden/wire.ts';
import { goldenTapes } from '../support/golden-tapes.ts';
import { answerTo, ask } from '../support/provider/ask.ts';
import { modeOf, modes } from '../support/provider/modes.ts';
import { startProvider } from '../support/provider.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';

/** Every golden tape in a store of its own. */
function written(name: string): SqliteTapeStore {
  const store = openStore();
  goldenTapes.find((tape) => tape.name === name)?.write(store);
  return store;
}

/** Every session of a store, cut after each of its entries. */
function* cuts(store: SqliteTapeStore): Iterable<{ session: string; at: number }> {
  for (const { session: name } of store.sessions.list())
    for (const { seq } of store.entries.read(name)) yield { session: name, at: seq };
}

const names = goldenTapes.map(({ name }) => name);

describe.each(modes)('for $name', (mode) => {
  test('its server accepts every golden tape, cut after any entry, over HTTP', async () => {
    await using provider = await startProvider(() => ({ text: 'Fine.' }), mode.protocol);
    let sent = 0;
    for (const name of names) {
      using store = written(name);
      const some = [...cuts(store)].filter((_, i) => i % sized(12, 6, 1) === 0);
      const answers = some.map(async ({ session, at }) => {
        const entries = store.views.entries(session, { at });
        const blob = (hash: string) => store.entries.blob(hash);
        const answer = await answerTo(mode, entries, { blob, baseURL: provider.url });
        if (answer === undefined) return;
        sent += 1;
        expect(answer, `${name}: ${session}@${at}`).toBe('Fine.');
      });
      await Promise.all(answers);
    }
    expect(provider.refusals).toEqual([]);
    expect(provider.requests).toHaveLength(sent);
    expect(sent).toBeGreaterThan(sized(10, 20, 120));
  });

  // On a push each tape is asked for in some of the modes.
  const asked = names.filter((_, i) => sized(i % 6 === modes.indexOf(mode) % 6, true, true));
  test.each(asked)('omits what other providers signed or keep: %s', async (name) => {
    using store = written(name);
    for (const { session } of store.sessions.list()) {
      const entries = [...store.entries.read(session)];
      const sent = await ask(mode, entries, { policy: 'full', blob: (hash) => store.entries.blob(hash) });
      expect(sent?.refused).toBeUndefined();
      const body = JSON.stringify(sent?.body);
      const others = signers.filter((signer) => signer !== mode.target.provider);
      const opaque = others.flatMap((signer) => entries.flatMap((entry) => opaqueTexts(entry, signer)));
      expect(opaque.filter((text) => body.includes(text))).toEqual([]);
    }
  });
});

/** Which form a provider's own parts have on its wire. */
const wires = [
  { mode: modeOf('anthropic'), form: anthropicBlock, of: (_: Part) => true },
  { mode: modeOf('openai responses'), form: keptItem, of: (_: Part) => true },
  {
    mode: modeOf('openai responses, unstored'),
    form: sealedItem,
    of: ({ type }: Part) => type === 'reasoning',
  },
];

test.each(wires)('parts that $mode.name signed return to it byte for byte', async ({ mode, form, of }) => {
  let found = 0;
  for (const name of names) {
    using store = written(name);
    const shown = [...store.views.entries('main', { policy: 'full' })];
    const asked = await ask(mode, shown, { policy: 'full', blob: (hash) => store.entries.blob(hash) });
    const inView = new Set(
      view(shown, { policy: 'full' })
        .explain()
        .flatMap((entry) => (entry.in ? [entry.seq] : [])),
    );
    const own = shown.filter(({ seq, meta }) => inView.has(seq) && meta.provider === mode.target.provider);
    const expected = firstOfEachId(own)
      .filter(of)
      .map((part) => JSON.parse(JSON.stringify(form(part))));
    expect(blocksOf(asked?.body)).toEqual(expect.arrayContaining(expected));
    found += expected.length;
  }
  expect(found).toBeGreaterThan(5);
});

/** A provider is not shown a second call of one id as a call. */
function firstOfEachId(entries: readonly Entry[]): Part[] {
  const seen = new Set<unknown>();
  return entries.flatMap(signedParts).filter(({ toolCallId }) => {
    if (toolCallId === undefined) return true;
    return seen.has(toolCallId) ? false : seen.add(toolCallId);
  });
}

/** The blocks of all messages, or the items, of a request. */
function blocksOf(body: unknown): unknown[] {
  if (!isObject(body)) return [];
  if (Array.isArray(body.input)) return [...body.input];
  const messages = Array.isArray(body.messages) ? body.messages.filter(isObject) : [];
  return messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
}

test.each(modes.filter(({ target }) => target.textOnly !== true))(
  '$name receives the bytes of images unchanged',
  async (mode) => {
    using store = written('files');
    const asked = await ask(mode, store.views.entries('main'), { blob: (hash) => store.entries.blob(hash) });
    expect(JSON.stringify(asked?.body).split(Buffer.from(png).toString('base64'))).toHaveLength(
      // Google's own two images return to it.
      mode.name === 'google' ? 6 : 4,
    );
    expect(JSON.stringify(asked?.body)).toContain('a,b\\n1,2');
  },
);

test('search results of a provider return with the part that only it can read', async () => {
  using store = written('tools of the provider');
  const asked = await ask(modeOf('anthropic'), store.views.entries('main'));
  const results = blocksOf(asked?.body)
    .filter(isObject)
    .filter(({ type }) => type === 'web_search_tool_result');
  expect(results.map(({ tool_use_id }) => tool_use_id)).toEqual([
    'srvtoolu_1',
    'srvtoolu_2',
    'srvtoolu_5',
    'srvtoolu_6',
  ]);
});
