import { jsonText } from '../escape.ts';
import { distinctIn } from '../reference.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const blame: Verb = defineVerb({
  command: 'blame <name>',
  group: 'Look',
  paged: true,
  summary: 'Show which session, turn and model made each part of the view',
  detail:
    'One row for each part of the view that a model would receive: its position, its role, the session on whose tape it is, the turn ' +
    'that it is of, which is the position of the message that began it, the model of an answer or the author of a message, the run, ' +
    'the sessions whose work it brings (merged children with their positions, and the session that wrote a summary), and the beginning ' +
    'of its text. Shows what the tapes record, and infers nothing.',
  examples: [
    ['tape blame main', 'Show where the parts of the view of main come from'],
    ['tape blame main --policy full --json', 'The same of all visible entries, as JSON'],
  ],
  arguments: { name: 'Session' },
  options: {
    policy: {
      type: 'string',
      describe: 'As of tape view (default: the policy of the last model call, else last-boundary)',
    },
  },
  run: async ({ name, policy }, { io, options, reading, status, style }) => {
    const { blame: blameView } = await import('@tapedeck/runtime');
    const { blameJson, blameText } = await import('../output/blame.ts');
    const { parsePolicy } = await import('@tapedeck/tape');
    const given = policy === undefined ? {} : { policy: parsePolicy(policy) };
    return await reading(async (store) => {
      const { parts } = await blameView(store, needSession(store, name).id, given);
      if (options.jsonl === true) for (const part of parts) await io.out(`${jsonText(blameJson(part))}\n`);
      else if (options.json === true) await io.out(`${jsonText(parts.map(blameJson))}\n`);
      else if (options.quiet === true)
        for (const { session, seq } of parts) await io.out(`${session}@${seq}\n`);
      else if (parts.length === 0) status('The view is empty');
      else await io.out(`${blameText(parts, { io, style, distinct: distinctIn(store) })}\n`);
      return 0;
    });
  },
});
