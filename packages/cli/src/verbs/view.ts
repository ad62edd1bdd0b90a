import {
  type HomeStore,
  type JsonObject,
  parsePolicy,
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
import { jsonText, safe } from '../escape.ts';
import { modelOptions } from '../options/model.ts';
import { counted } from '../output/counted.ts';
import { manifestLines } from '../output/manifest.ts';
import { showInstructions } from '../session/instructions.ts';
import { needSession, readPlace } from '../session/place.ts';
import { policyOfLastCall, receivedManifest } from '../session/received.ts';
import { type Paper, paperOf, partPage } from '../transcript/page.ts';
import { defineVerb, type Verb } from './verb.ts';

export const view: Verb = defineVerb({
  command: 'view <place>',
  group: 'Look',
  paged: true,
  summary: 'Show the messages that the model sees',
  detail:
    'Computes the view from the entries, the policy and the target provider alone. A policy lists rules: where the view begins, then ' +
    'which of its messages it keeps. --explain gives the reason why each entry is in or out, and the manifest of the view; for an ' +
    'answer, also the manifest of the view that its model received, and whether that view can be reproduced. --jsonl streams one ' +
    'message per line, without holding a long view in memory. --instructions shows the system prompt of a run started here and ' +
    'now, and lists omitted files on stderr.',
  examples: [
    ['tape view main', 'Show the view since the last handoff'],
    ['tape view main --policy full --target anthropic', 'Show all messages as sent to Anthropic'],
    ['tape view main --policy full,window:20', 'Show the last 20 messages'],
    ['tape view main --explain', 'Explain why each entry is in or out'],
    ['tape view main@42 --explain', 'Explain the view that the model answered at 42'],
    ['tape view main --instructions', 'Show the system prompt'],
  ],
  arguments: { place: 'SESSION, or SESSION@POINT for an earlier view' },
  options: {
    ...modelOptions,
    policy: {
      type: 'string',
      describe:
        'last-boundary, full or from-anchor:ANCHOR; after a comma, window:N (messages) or window:N-tokens (default: the policy of the last model call, else last-boundary)',
    },
    target: { type: 'string', describe: 'Provider: anthropic, openai, …' },
    explain: { type: 'boolean', describe: 'Explain why each entry is in or out' },
    instructions: {
      type: 'boolean',
      describe: 'Show the system prompt instead of the view; takes --model and --config',
    },
  },
  run: async (args, context) => {
    const given = args.policy === undefined ? undefined : readPolicy(args.policy);
    return await context.reading(async (store) => {
      const { session, point = 'head' } = readPlace(store, args.place);
      const info = needSession(store, session);
      if (args.instructions === true) {
        if (args.explain === true || point !== 'head')
          throw new UsageError(
            'cannot use --instructions with a point or --explain: instructions are computed for the present only',
          );
        return await showInstructions({ store, session: info }, args, context);
      }
      const at = store.entries.resolve(info.id, point);
      const policy = given ?? policyOfLastCall(store, info.id, at);
      const options = {
        policy,
        ...(args.target !== undefined && { target: { provider: args.target } }),
      };
      const read = () => store.views.entries(info.id, { policy, at });
      if (args.explain === true)
        await explain({ store, id: info.id, at, shown: viewOf(read(), options) }, options, context);
      else if (context.options.jsonl === true)
        for await (const message of streamView(read, options)) await context.io.out(`${jsonText(message)}\n`);
      else await answer(viewOf(read(), options), {}, context);
      return 0;
    });
  },
});

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
  const { io, options, style, status } = context;
  const paper = paperOf(context);
  const size = `(~${counted(tokens, 'token')}, @${from}-${to})`;
  const shown = [...messages.map((message) => messageText(message, paper)), ...lines.map(safe)];
  await context.answer({
    json: { messages, digest, tokens, from, to, ...json },
    quiet: digest,
    // A program gets the view alone, whose bytes do not depend on where its entries are.
    human: [...shown, ...(io.isTerminal ? [style.text('dim', size)] : [])].join('\n'),
    isStyled: true,
  });
  if (!io.isTerminal && options.json !== true && options.jsonl !== true) status(size);
}

interface Explained {
  readonly store: HomeStore;
  readonly id: string;
  readonly at: number;
  readonly shown: View;
}

async function explain(
  { store, id, at, shown }: Explained,
  options: ViewOptions,
  context: Context,
): Promise<void> {
  // The explanation covers entries outside the view, so it reads all entries.
  const why = viewOf(store.entries.read(id, { to: at }), options).explain();
  const manifest = shown.manifest();
  const asked = receivedManifest(store, id, at);
  await answer(
    shown,
    {
      json: { explain: why, manifest, ...(asked !== undefined && { asked }) },
      lines: [
        ...why.map((e) => `${e.in ? '+' : '-'} @${e.seq} ${e.why}`),
        ...manifestLines('this view', manifest),
        ...(asked === undefined ? [] : manifestLines(`view answered by @${at}`, asked)),
      ],
    },
    context,
  );
}

function messageText({ role, content }: StoredMessage, paper: Paper): string {
  const parts = content.map((part) => partPage(part as JsonObject, paper));
  return `${paper.style.text('bold', `[${role}]`)} ${parts.join('\n')}`;
}
