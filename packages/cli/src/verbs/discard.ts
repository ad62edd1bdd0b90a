import type { MergeRequest } from '@tapedeck/tape';
import { readText } from '../input.ts';
import { mergeAndTell } from '../session/merging.ts';
import { needSession } from '../session/place.ts';
import { previewMerge } from '../session/preview.ts';
import { defineVerb, type Verb } from './verb.ts';

export const discard: Verb = defineVerb({
  command: 'discard <child>',
  group: 'Change direction',
  summary: "Record on the parent that a child's work is not wanted",
  detail:
    'One anchor at the end of the parent, and no message: its model is told nothing. The child stays as it is. Discarding again ' +
    'changes nothing; what was merged cannot be discarded.',
  examples: [
    ['tape discard fix --reason "The tests fail"', 'Do not bring the work of fix home'],
    ['tape discard fix --dry-run', 'Show what would be written'],
  ],
  options: (y) =>
    y
      .positional('child', { type: 'string', demandOption: true, describe: 'The forked session' })
      .option('reason', { type: 'string', requiresArg: true, describe: 'Why; recorded (-, @FILE)' })
      .option('into', {
        type: 'string',
        requiresArg: true,
        describe: 'Its parent (default), or another ancestor',
      })
      .option('force', { type: 'boolean', describe: 'Also a child that is running or has open calls' })
      .option('dry-run', { type: 'boolean', describe: 'Show what would be written, and write nothing' })
      .option('wait', {
        type: 'number',
        default: 10,
        describe: 'Seconds to wait for a busy parent; --no-wait for none',
      }),
  run: async (args, context) => {
    const reason = args.reason === undefined ? undefined : await readText(args.reason, context.io);
    return await (args.dryRun === true ? context.reading : context.changing)(async (store) => {
      const child = needSession(store, args.child).name;
      const request: MergeRequest = {
        strategy: 'discard',
        ...(reason !== undefined && { reason }),
        ...(args.into !== undefined && { into: needSession(store, args.into).name }),
        ...(args.force === true && { force: true }),
      };
      if (args.dryRun === true) return await previewMerge(store, { child, request }, context);
      const waitMs = typeof args.wait === 'number' ? args.wait * 1000 : 0;
      return await mergeAndTell(store, { child, request, waitMs }, { context });
    });
  },
});
