import { isObject, view } from '@tapedeck/tape';
import { UsageError } from '../errors/kinds.ts';
import { readJson } from '../input.ts';
import { forkedJson, forkedLine } from '../output/forked.ts';
import { needSession, readPlace } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const branch: Verb = defineVerb({
  command: 'branch <place>',
  group: 'Change direction',
  summary: 'Go on from a point of a session in another, beside it',
  detail:
    'For people, where fork is for work: the branch has all that is visible up to the point (default: all of it), that point ' +
    'included, and the same settings; it has no task, and nothing merges it by itself. Refused while the session is being run.',
  examples: [
    ['tape branch main@42 --as idea', 'Try something else from main@42 on'],
    ['tape branch main --ephemeral', 'An aside, which lists leave out'],
  ],
  options: (y) =>
    y
      .positional('place', { type: 'string', demandOption: true, describe: 'SESSION or SESSION@POINT' })
      .option('as', { type: 'string', requiresArg: true, describe: 'Name of the branch (default: derived)' })
      .option('title', { type: 'string', requiresArg: true, describe: 'A title for people' })
      .option('ephemeral', { type: 'boolean', describe: 'Leave it out of lists' })
      .option('metadata', {
        type: 'string',
        requiresArg: true,
        describe: 'JSON object of facts about it, beside those of its parent (- for stdin, @FILE)',
      })
      .option('key', { type: 'string', requiresArg: true, describe: 'The same key is the same branch' }),
  run: async (args, { io, changing, answer, options }) => {
    const metadata =
      args.metadata === undefined ? undefined : await readJson(args.metadata, '--metadata', io);
    if (metadata !== undefined && !isObject(metadata))
      throw new UsageError('cannot read --metadata: it must be a JSON object');
    const { branchSession } = await import('@tapedeck/runtime/branch');
    return await changing(async (store) => {
      const { session, point } = readPlace(store, args.place);
      const forked = await branchSession(store, needSession(store, session), {
        ...(point !== undefined && { at: point }),
        ...(args.as !== undefined && { name: args.as }),
        ...(args.key !== undefined && { key: args.key }),
        ...(args.title !== undefined && { title: args.title }),
        ...(args.ephemeral === true && { ephemeral: true }),
        ...(metadata !== undefined && { metadata }),
      });
      const tokens = options.quiet || options.json ? 0 : view(store.viewEntries(forked.session)).tokens;
      await answer({
        json: forkedJson(forked),
        quiet: forked.session,
        human: forkedLine(forked, { done: 'Branched', tokens }),
      });
      return 0;
    });
  },
});
