import { deckConfig } from '../config/deck.ts';
import type { Context } from '../context.ts';
import { readText } from '../input.ts';
import { modelOptions } from '../options/model.ts';
import { count, rewoundJson, tellForks } from '../output/rewound.ts';
import { openDeckAt } from '../session/open-deck.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const compact: Verb = defineVerb({
  command: 'compact <name>',
  group: 'Change direction',
  summary: 'Put a summary in the place of the older part of the view',
  detail:
    'A model writes it, and it is taken only if it makes the view smaller. What came before stays readable, and tape log shows ' +
    'it. What the model was asked and what it said is in a session of its own, which tape children --all lists. With --prune large outputs of calls are left ' +
    'out of the view instead. --undo takes the last of either back, as long as nothing was said after it. Runs do the same by themselves when a window ' +
    'fills up whose size is configured.',
  examples: [
    ['tape compact main --model openai-compatible/gpt-oss', 'Summarise all but the last turns'],
    ['tape compact main --prune', 'Leave large outputs of calls out, and ask no model'],
    ['tape compact main --focus "the failing test"', 'Say what the summary is to tell most of'],
    ['tape compact main --undo', 'Take that back: all of it is seen again'],
  ],
  options: (y) =>
    modelOptions(y)
      .positional('name', { type: 'string', demandOption: true, describe: 'Session' })
      .option('focus', {
        type: 'string',
        requiresArg: true,
        describe: 'What the summary is to tell most of (- for stdin, @FILE)',
      })
      .option('prune', {
        type: 'boolean',
        describe: 'Leave large outputs of calls out of the view, instead of a summary',
      })
      .option('undo', {
        type: 'boolean',
        describe: 'Take the last summary or pruning back, by a rewind; no model is asked',
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
        takeUp: false,
        signal: io.signal,
      });
      const { missingSections = [] } = made ?? {};
      if (missingSections.length > 0)
        context.status(
          `Warning: the summary lacks ${missingSections.join(', ')}: look at it with: tape view ${name}`,
        );
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
            ? `${name} has nothing to ${args.prune === true ? 'leave out' : 'summarise'}: nothing to do`
            : `${args.prune === true ? 'Left out outputs of' : 'Summarised'} ${name}@${made.range.join('-')} at ${name}@${made.seq}: about ${made.tokensBefore} tokens, now ${made.tokensAfter} (take it back with: tape compact ${name} --undo)`,
      });
      return 0;
    });
  },
});

async function undo(ref: string, context: Context): Promise<number> {
  return await context.changing(async (store) => {
    const { uncompactSession } = await import('@tapedeck/runtime/uncompact');
    const done = await uncompactSession(store, needSession(store, ref).id);
    const { session, seq, undone, hidden } = done;
    tellForks(done, context);
    await context.answer({
      json: { ...rewoundJson(done), undone },
      quiet: `${session}@${seq}`,
      human: `Took ${session}@${undone} back: ${count(hidden)} hidden, none removed (put it in place again with: tape unrewind ${session})`,
    });
    return 0;
  });
}
