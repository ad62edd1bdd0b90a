import { z } from 'zod';
import { type Contracts, count, document, lines, printed, session, shape, text } from './form.ts';
import { tokenCount, tokens } from './run.ts';

const sum = {
  steps: count('model calls whose usage is recorded'),
  ...tokens,
  total: tokenCount('all of these tokens'),
  cost: z.number().optional().describe('sum of the recorded costs, in the unit of their writers'),
};

const Sum: z.ZodObject = z.strictObject(sum).meta({ id: 'Sum', description: 'Usage of model calls.' });

const ModelUsage: z.ZodObject = shape('ModelUsage', 'Usage of the calls of one model.', {
  model: text('null: not recorded').nullable(),
  ...sum,
});

const Usage: z.ZodObject = shape('Usage', 'Usage of the model calls of a session.', {
  session,
  ...sum,
  window: tokenCount('input and output tokens of the last call').optional(),
  models: z.array(ModelUsage).describe('each model, in the order of their first calls'),
  inherited: Sum.optional().describe('calls whose answers it inherited, in no sum here; of a named session'),
  summaries: Sum.optional().describe(
    'calls for its summaries, which count in the sessions that wrote them; of a named session',
  ),
  get children(): z.ZodOptional {
    return z.array(Usage).optional().describe('the same of each fork, in spawn order; with `--tree`');
  },
  tree: Sum.optional().describe('the session and its descendants; with `--tree`'),
});

/** The verb that adds up tokens. */
export const usageVerbs: Contracts = {
  usage: {
    json: [
      document(Usage, 'NAME'),
      ...printed(
        {
          sessions: z.array(Usage).describe('each session; with `--tree` each root, its forks below it'),
          total: Sum.describe('all of these sessions'),
        },
        'without NAME',
      ),
      lines(Usage, 'without NAME, with `--jsonl`'),
    ],
    quiet: 'the sum of all tokens',
    exits: { 3: 'no such session, or no tape home' },
  },
};
