import {
  isObject,
  type Json,
  parsePolicy,
  remakeOf,
  type SqliteTapeStore,
  type StoredMessage,
  streamView,
  TapeError,
  type View,
  type ViewOptions,
  type ViewPolicy,
  view as viewOf,
} from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { safe } from '../escape.ts';
import { modelOptions } from '../options/model.ts';
import { partText } from '../output/entry.ts';
import { manifestLines } from '../output/manifest.ts';
import { showInstructions } from '../session/instructions.ts';
import { needSession, readPlace } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const view: Verb = defineVerb({
  command: 'view <place>',
  group: 'Look',
  summary: 'Show what the model sees of a session',
  detail:
    'A view is computed from the entries, the policy and the target provider, and from nothing else. A policy tells where it begins ' +
    'and what of that is shown, one rule after the other. --explain tells of each entry why it is in or out, and what the view was ' +
    'made of; of an answer, also what its model was asked with, and whether that still comes out the same. --jsonl prints a message ' +
    'a line: a full view of a long history is then never in memory. --instructions shows what the model is told before it, put ' +
    'together as for a run from here now; what is left out is on stderr.',
  examples: [
    ['tape view main', 'From the last handoff on'],
    ['tape view main --policy full --target anthropic', 'Everything, as it would be sent to Anthropic'],
    ['tape view main --policy full,window:20', 'The last 20 messages'],
    ['tape view main --explain', 'And why each entry is in or out'],
    ['tape view main@42 --explain', 'And what the model was asked with that gave the answer at 42'],
    ['tape view main --instructions', 'What its model would be told before that'],
  ],
  options: (y) =>
    modelOptions(y)
      .positional('place', {
        type: 'string',
        demandOption: true,
        describe: 'SESSION, or SESSION@POINT as it stood there',
      })
      .option('policy', {
        type: 'string',
        requiresArg: true,
        describe:
          'last-boundary, full or from-anchor:ANCHOR; after a comma, window:N (messages) or window:N-tokens (default: as its model was shown it last, else last-boundary)',
      })
      .option('target', { type: 'string', requiresArg: true, describe: 'Provider: anthropic, openai, …' })
      .option('explain', { type: 'boolean', describe: 'Tell why each entry is in or out' })
      .option('instructions', {
        type: 'boolean',
        describe: 'Show the instructions in place of the view (these take --model and --config)',
      }),
  run: async (args, context) => {
    const asked = args.policy === undefined ? undefined : readPolicy(args.policy);
    return await context.reading(async (store) => {
      const { session, point = 'head' } = readPlace(store, args.place);
      const info = needSession(store, session);
      if (args.instructions === true) {
        if (args.explain === true || point !== 'head')
          throw new UsageError(
            'cannot show instructions of a point, nor explain them: they are those of now',
          );
        return await showInstructions({ store, session: info }, args, context);
      }
      const at = store.resolve(info.id, point);
      const policy = asked ?? policyOfLastCall(store, info.id, at);
      const options = {
        policy,
        ...(args.target !== undefined && { target: { provider: args.target } }),
      };
      const read = () => store.viewEntries(info.id, { policy, at });
      if (args.explain === true)
        await explain({ store, id: info.id, at, shown: viewOf(read(), options) }, options, context);
      else if (context.options.jsonl === true)
        for await (const message of streamView(read, options))
          await context.io.out(`${JSON.stringify(message)}\n`);
      else await answer(viewOf(read(), options), {}, context);
      return 0;
    });
  },
});

/** How far back a model call is looked for, in messages. */
const callsMax = 50;

/** What the model was shown last, which a configuration may have narrowed. */
function policyOfLastCall(store: SqliteTapeStore, id: string, to: number): ViewPolicy {
  const messages = [...store.read(id, { to, kind: 'message', last: callsMax })];
  return remakeOf(messages.findLast(({ meta }) => isObject(meta.view))?.meta.view)?.policy ?? 'last-boundary';
}

function readPolicy(text: string): ViewPolicy {
  try {
    return parsePolicy(text);
  } catch (error) {
    throw error instanceof TapeError ? new UsageError(error.message) : error;
  }
}

async function answer(
  { messages, digest, tokens, from, to }: View,
  { json = {}, lines = [] }: { readonly json?: object; readonly lines?: readonly string[] },
  context: Context,
): Promise<void> {
  await context.answer({
    json: { messages, digest, tokens, from, to, ...json },
    quiet: digest,
    human: safe([...messages.map(messageText), ...lines, `(~${tokens} tokens, @${from}-${to})`].join('\n')),
  });
}

interface Explained {
  readonly store: SqliteTapeStore;
  readonly id: string;
  readonly at: number;
  readonly shown: View;
}

async function explain(
  { store, id, at, shown }: Explained,
  options: ViewOptions,
  context: Context,
): Promise<void> {
  // Explaining is about what is left out as well, so it reads all that there is.
  const why = viewOf(store.read(id, { to: at }), options).explain();
  const manifest = shown.manifest();
  const asked = askedWith(store, id, at);
  await answer(
    shown,
    {
      json: { explain: why, manifest, ...(asked !== undefined && { asked }) },
      lines: [
        ...why.map((e) => `${e.in ? '+' : '-'} @${e.seq} ${e.why}`),
        ...manifestLines('this view', manifest),
        ...(asked === undefined ? [] : manifestLines(`what @${at} answers`, asked)),
      ],
    },
    context,
  );
}

/** What the answer at a position was given to, as it was recorded, and whether the same comes out of the tape now. */
function askedWith(store: SqliteTapeStore, id: string, at: number): Record<string, Json> | undefined {
  const [entry] = store.read(id, { from: at, to: at });
  if (entry === undefined || !isObject(entry.meta.view)) return undefined;
  const { instructions_digest, tools_digest, view: manifest } = entry.meta;
  return {
    ...manifest,
    ...(instructions_digest !== undefined && { instructions_digest }),
    ...(tools_digest !== undefined && { tools_digest }),
    ...madeAgain(store, id, manifest),
  };
}

/** Whether the view that an answer was given to still comes out the same; `fault` says why it cannot be made again. */
function madeAgain(store: SqliteTapeStore, id: string, manifest: Record<string, Json>): Record<string, Json> {
  try {
    // A tape may come from a version that knew other policies, or from another program.
    if (typeof manifest.policy === 'string') parsePolicy(manifest.policy);
    const again = remakeOf(manifest);
    if (again === undefined) return { same: false };
    return { same: viewOf(store.viewEntries(id, again), again).digest === manifest.digest };
  } catch (error) {
    if (!(error instanceof TapeError)) throw error;
    return { same: false, fault: { code: error.code, message: error.message } };
  }
}

function messageText({ role, content }: StoredMessage): string {
  return `[${role}] ${content.map(partText).join('\n')}`;
}
