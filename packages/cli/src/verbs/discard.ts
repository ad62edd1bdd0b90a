import type { MergeRequest } from '@tapedeck/tape';
import { readText } from '../input.ts';
import { mergeAndReport } from '../session/merging.ts';
import { needSession } from '../session/place.ts';
import { previewMerge } from '../session/preview.ts';
import { defineVerb, type Verb } from './verb.ts';

export const discard: Verb = defineVerb({
  command: 'discard <child>',
  group: 'Merge',
  summary: 'Record on the parent that the work of a child is not wanted',
  detail:
    'Appends one anchor to the parent, and no message: the model does not see it. The child gets only what was saved of an ' +
    'answer whose process died; one that waits for an answer ends as aborted, which is the outcome that the call of its ' +
    'parent gets. A repeated discard changes nothing; a merged child cannot be discarded, unless its merge was undone.',
  examples: [
    ['tape discard fix --reason "The tests fail"', 'Discard the work of fix'],
    ['tape discard fix --dry-run', 'Show what would be written'],
  ],
  arguments: { child: 'Forked session' },
  options: {
    reason: { type: 'string', describe: 'Reason to record (-, @FILE)' },
    into: { type: 'string', describe: 'Parent (default), or another ancestor' },
    force: { type: 'boolean', describe: 'Discard a child that is running or has open calls' },
    'dry-run': { type: 'boolean', describe: 'Show the entries without writing them' },
    wait: {
      type: 'number',
      negatable: true,
      default: 10,
      describe: 'Seconds to wait for a busy parent; --no-wait: do not wait',
    },
  },
  run: async (args, context) => {
    const reason = args.reason === undefined ? undefined : await readText(args.reason, context.io);
    return await (args.dryRun === true ? context.reading : context.changing)(async (store) => {
      const child = needSession(store, args.child).session;
      const request: MergeRequest = {
        strategy: 'discard',
        ...(reason !== undefined && { reason }),
        ...(args.into !== undefined && { into: needSession(store, args.into).session }),
        ...(args.force === true && { force: true }),
      };
      if (args.dryRun === true) return await previewMerge(store, { child, request }, context);
      const waitMs = typeof args.wait === 'number' ? args.wait * 1000 : 0;
      return await mergeAndReport(store, { child, request, waitMs }, { context });
    });
  },
});
