import { deckConfig } from '../config/deck.ts';
import type { Context } from '../context.ts';
import { readText } from '../input.ts';
import { modelOptions } from '../options/model.ts';
import { count, reportForks, rewoundJson } from '../output/rewound.ts';
import { openDeckAt } from '../session/open-deck.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const compact: Verb = defineVerb({
  command: 'compact <name>',
  group: 'Change direction',
  summary: 'Replace the older part of the view with a summary',
  detail:
    'A model writes the summary, which is used only if it makes the view smaller. The summarised entries stay readable with tape ' +
    'log. The request and the answer of the model are in a separate session, which tape children --all lists. With --prune, ' +
    'omits large tool outputs from the view instead. --undo reverts the last summary or pruning, if no message followed it. Runs ' +
    'compact automatically when the context window fills up, if its size is configured.',
  examples: [
    ['tape compact main --model openai-compatible/gpt-oss', 'Summarise all but the last turns'],
    ['tape compact main --prune', 'Omit large tool outputs, without calling a model'],
    [
      'tape compact main --focus "the failing test"',
      'Name the subject that the summary covers in most detail',
    ],
    ['tape compact main --undo', 'Show all entries again'],
  ],
  options: (y) =>
    modelOptions(y)
      .positional('name', { type: 'string', demandOption: true, describe: 'Session' })
      .option('focus', {
        type: 'string',
        requiresArg: true,
        describe: 'Subject that the summary covers in most detail (- for stdin, @FILE)',
      })
      .option('prune', {
        type: 'boolean',
        describe: 'Omit large tool outputs from the view, and write no summary',
      })
      .option('undo', {
        type: 'boolean',
        describe: 'Revert the last summary or pruning by a rewind; calls no model',
      })
      .conflicts('prune', 'focus')
      .conflicts('undo', ['prune', 'focus', 'model']),
  run: async (args, context) => {
    const { io } = context;
    if (args.undo === true) return await undo(args.name, context);
    const config = await deckConfig(args, context);
    const focus = args.focus === undefined ? undefined : await readText(args.focus, io);
    return await context.changing(async (store) => {
      const { name } = needSession(store, args.name);
      await using deck = await openDeckAt(config, store, context);
      const made = await (await deck.session(name)).compact({
        ...(focus !== undefined && { focus }),
        ...(args.prune === true && { prune: true }),
        ...(args.model !== undefined && { model: args.model }),
        start: false,
        signal: io.signal,
      });
      const { missingSections = [] } = made ?? {};
      if (missingSections.length > 0)
        context.status(`Warning: the summary lacks ${missingSections.join(', ')}; see: tape view ${name}`);
      await context.answer({
        json: {
          session: name,
          seq: made?.seq ?? null,
          range: made?.range ?? null,
          tokens_before: made?.tokensBefore ?? null,
          tokens_after: made?.tokensAfter ?? null,
          ...(made?.summarizer !== undefined && { summarizer: made.summarizer }),
          ...(missingSections.length > 0 && { missing_sections: missingSections }),
        },
        quiet: made === undefined ? '' : `${name}@${made.seq}`,
        human:
          made === undefined
            ? `${name} has nothing to ${args.prune === true ? 'prune' : 'summarise'}: nothing to do`
            : `${args.prune === true ? 'Pruned outputs of' : 'Summarised'} ${name}@${made.range.join('-')} at ${name}@${made.seq}: about ${made.tokensBefore} tokens, now ${made.tokensAfter} (undo with: tape compact ${name} --undo)`,
      });
      return 0;
    });
  },
});

async function undo(ref: string, context: Context): Promise<number> {
  return await context.changing(async (store) => {
    const { uncompactSession } = await import('@tapedeck/runtime');
    const done = await uncompactSession(store, needSession(store, ref).id);
    const { session, seq, undone, hidden } = done;
    reportForks(done, context);
    await context.answer({
      json: { ...rewoundJson(done), undone },
      quiet: `${session}@${seq}`,
      human: `Reverted ${session}@${undone}: ${count(hidden)} hidden, none removed (restore with: tape unrewind ${session})`,
    });
    return 0;
  });
}
