import { exportSession } from '@tapedeck/runtime';
import { parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import { type JsonObject, type SqliteTapeStore, user } from '@tapedeck/tape';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { claudeCodeContext } from '../support/claude-code-loader.ts';
import { History } from '../support/histories/history.ts';
import { anySteps } from '../support/histories/steps.ts';
import { Tally } from '../support/histories/tally.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { viewOnTheWire, type WireMessage, wireMessages } from '../support/view-on-the-wire.ts';

/** Each of them has found what the others did not. */
const seeds =
  process.env.TAPEDECK_SEED === undefined
    ? sized([1], [1, 3, 9, 22, 31, 20261126], [1])
    : [Number(process.env.TAPEDECK_SEED)];
const histories = sized(20, 20, 20_000);

async function exported(store: SqliteTapeStore, session: string) {
  const pieces = exportSession(store, session, { format: 'claude-code', project: '/', raw: true });
  let text = '';
  for (;;) {
    const { done, value } = await pieces.next();
    if (done !== true) text += value;
    else return { text, id: value.transcript?.id ?? '' };
  }
}

/**
 * The AI SDK sends calls behind the texts of a message, the program where the model made them. A file numbers equal ids of
 * calls through all of its contexts, a view through its own.
 */
const comparable = (messages: readonly WireMessage[]) =>
  messages.map(({ role, content }) => ({
    role,
    content: content
      .map(({ id, tool_use_id: of, ...block }) => ({
        ...block,
        id: withoutNumber(id),
        of: withoutNumber(of),
      }))
      .toSorted((a, b) => Number('name' in a) - Number('name' in b)),
  }));

const withoutNumber = (id: unknown) =>
  String(id)
    .replace(/(?:_\d+)+$/, '')
    .slice(0, 30);

const heads = (store: SqliteTapeStore) =>
  store.sessions.list({ all: true }).map(({ id, head }) => `${id} ${head}`);

test.each(seeds)(
  'of any history, Claude Code loads what a view shows, and it returns as nothing new (seed %i)',
  async (seed) => {
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(anySteps, async (steps) => {
        using store = openStore();
        const history = new History(store, 'h', new Tally());
        history.play(steps);
        for (const { name } of history.sessions) {
          // As an answer does, a tool of the provider that did not end ends with the next prompt.
          store.entries.append(name, [user('And now?')]);
          const { text, id } = await exported(store, name);
          const records = text
            .split('\n')
            .slice(0, -1)
            .map((line) => JSON.parse(line) as JsonObject);
          const loaded = wireMessages({ messages: claudeCodeContext(records) });
          // The AI SDK refuses some results of tools that a provider ran.
          const shown = await viewOnTheWire(store, name).catch(() => undefined);
          if (shown !== undefined) expect(comparable(loaded)).toEqual(comparable(shown));
          compared += shown === undefined ? 0 : 1;
          const before = heads(store);
          const { records: lines } = parseJsonLines([Buffer.from(text)]);
          reconcile(store, planClaudeCode({ name: id, lines }));
          expect(heads(store)).toEqual(before);
        }
      }),
      { numRuns: histories, seed },
    );
    expect(compared).toBeGreaterThan(histories / 2);
  },
);
