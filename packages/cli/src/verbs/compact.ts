import { deckConfig } from '../config/deck.ts';
import { commandLine } from '../escape.ts';
import { readText } from '../input.ts';
import { modelOptions } from '../options/model.ts';
import { openDeckAt } from '../session/open-deck.ts';
import { needSession } from '../session/place.ts';
import { undoAt } from './undo.ts';
import { defineVerb, type Verb } from './verb.ts';

export const compact: Verb = defineVerb({
  command: 'compact <name>',
  group: 'Change',
  summary: 'Replace the older part of the view with a summary',
  detail:
    'A model writes the summary, which is used only if it makes the view smaller. The summarised entries stay readable with tape ' +
    'log. The request and the answer of the model are in a separate session, which tape children --all lists. With --prune, ' +
    'omits large tool outputs from the view instead; tape undo reverts both. Runs compact automatically when the context window ' +
    'fills up, if its size is configured.',
  examples: [
    ['tape compact main --model openai-compatible/gpt-oss', 'Summarise all but the last turns'],
    ['tape compact main --prune', 'Omit large tool outputs, without calling a model'],
    [
      'tape compact main --focus "the failing test"',
      'Name the subject that the summary covers in most detail',
    ],
    ['tape undo main', 'Show all entries again'],
  ],
  arguments: { name: 'Session' },
  options: {
    ...modelOptions,
    focus: {
      type: 'string',
      describe: 'Subject that the summary covers in most detail (- for stdin, @FILE)',
    },
    prune: { type: 'boolean', describe: 'Omit large tool outputs from the view, and write no summary' },
    undo: { type: 'boolean', hidden: true },
  },
  conflicts: { prune: ['focus'], undo: ['prune', 'focus', 'model'] },
  run: async (args, context) => {
    const { io } = context;
    if (args.undo === true) return await undoAt(args.name, { only: 'compaction' }, context);
    const config = await deckConfig(args, context);
    const focus = args.focus === undefined ? undefined : await readText(args.focus, io);
    return await context.changing(async (store) => {
      const { session: name } = needSession(store, args.name);
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
        context.status(
          context.inHome(
            `Warning: the summary lacks ${missingSections.join(', ')}; see: ${commandLine('view', [name])}`,
          ),
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
            ? `${name} has nothing to ${args.prune === true ? 'prune' : 'summarise'}: nothing to do`
            : context.inHome(
                `${args.prune === true ? 'Pruned outputs of' : 'Summarised'} ${name}@${made.range.join('-')} at ${name}@${made.seq}: about ${made.tokensBefore} tokens, now ${made.tokensAfter} (undo with: ${commandLine('undo', [`${name}@${made.seq}`])})`,
              ),
      });
      return 0;
    });
  },
});
