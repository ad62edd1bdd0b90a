import { type StoredMessage, type ViewPolicy, view as viewOf } from '@tapedeck/tape';
import { modelOptions } from '../deck-config.ts';
import { UsageError } from '../errors.ts';
import { showInstructions } from '../instructions.ts';
import { partText } from '../output/entry.ts';
import { safe } from '../output/safe.ts';
import { needSession, pointOf, readPlace } from '../place.ts';
import { defineVerb, type Verb } from '../verb.ts';

export const view: Verb = defineVerb({
  command: 'view <place>',
  group: 'Look',
  summary: 'Show what the model sees of a session',
  detail:
    'A view is computed from the entries, the policy and the target provider, and from nothing else. --instructions shows ' +
    'what the model is told before it, put together as for a run from here now; what is left out is on stderr.',
  examples: [
    ['tape view main', 'From the last handoff on'],
    ['tape view main --policy full --target anthropic', 'Everything, as it would be sent to Anthropic'],
    ['tape view main --explain', 'And why each entry is in or out'],
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
        default: 'last-boundary',
        describe: 'last-boundary, full, or from-anchor:ANCHOR',
      })
      .option('target', { type: 'string', requiresArg: true, describe: 'Provider: anthropic, openai, …' })
      .option('explain', { type: 'boolean', describe: 'Tell why each entry is in or out' })
      .option('instructions', {
        type: 'boolean',
        describe: 'Show the instructions in place of the view (these take --model and --config)',
      }),
  run: async (args, context) => {
    const { reading, answer } = context;
    const policy = readPolicy(args.policy);
    return await reading(async (store) => {
      const { session, point = 'head' } = readPlace(store, args.place);
      const info = needSession(store, session);
      if (args.instructions === true) {
        if (args.explain === true || point !== 'head')
          throw new UsageError(
            'cannot show instructions of a point, nor explain them: they are those of now',
          );
        return await showInstructions({ store, session: info }, args, context);
      }
      const { id } = info;
      const at = store.resolve(id, point);
      // Explaining is about what is left out as well, so it reads all that there is.
      const entries =
        args.explain === true ? store.read(id, { to: at }) : store.viewEntries(id, { policy, at });
      const pinned =
        typeof policy === 'string' ? policy : { fromAnchor: store.resolve(id, policy.fromAnchor) };
      const shown = viewOf(entries, {
        policy: pinned,
        ...(args.target !== undefined && { target: { provider: args.target } }),
      });
      const { messages, digest, tokens, from, to } = shown;
      const explain = args.explain === true ? { explain: shown.explain() } : {};
      const why =
        args.explain === true ? shown.explain().map((e) => `${e.in ? '+' : '-'} @${e.seq} ${e.why}`) : [];
      await answer({
        json: { messages, digest, tokens, from, to, ...explain },
        quiet: digest,
        human: safe([...messages.map(messageText), ...why, `(~${tokens} tokens, @${from}-${to})`].join('\n')),
      });
      return 0;
    });
  },
});

function readPolicy(text: string): ViewPolicy {
  if (text === 'last-boundary' || text === 'full') return text;
  const anchor = /^from-anchor:(.+)$/.exec(text)?.[1];
  if (anchor === undefined)
    throw new UsageError(
      `cannot view by policy '${text}': it must be last-boundary, full or from-anchor:ANCHOR`,
    );
  return { fromAnchor: String(pointOf(anchor)) };
}

function messageText({ role, content }: StoredMessage): string {
  return `[${role}] ${content.map(partText).join('\n')}`;
}
