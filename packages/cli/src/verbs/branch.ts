import { isObject } from '@tapedeck/tape/internal';
import { UsageError } from '../errors/kinds.ts';
import { commandLine } from '../escape.ts';
import { readJson } from '../input.ts';
import { inheritIn, inheritOptions } from '../options/inherit.ts';
import { forkedJson, forkedLine } from '../output/forked.ts';
import { needSession, readPlace } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const branch: Verb = defineVerb({
  command: 'branch <place>',
  group: 'Merge',
  summary: 'Continue from a point of a session in a second session',
  detail:
    'The branch inherits the visible entries up to and including the point (default: the head), or the part of them that --inherit, ' +
    '--since or --last selects, and the settings. Unlike a fork it has no task and is never merged automatically. Refused while the session has an active run.',
  examples: [
    ['tape branch main@42 --as idea', 'Try another approach from main@42'],
    ['tape branch main --last 4 --as tail', 'Continue with the last four messages only'],
    ['tape branch main --ephemeral', 'Make a branch that lists omit'],
  ],
  arguments: { place: 'SESSION or SESSION@POINT' },
  options: {
    ...inheritOptions,
    as: { type: 'string', describe: 'Name of the branch (default: derived)' },
    title: { type: 'string', describe: 'Title for display' },
    ephemeral: { type: 'boolean', describe: 'Omit it from lists' },
    metadata: {
      type: 'string',
      describe: 'JSON object, added to the metadata of the parent (- for stdin, @FILE)',
    },
    key: { type: 'string', describe: 'Idempotency key: a repeat returns the same branch' },
  },
  run: async (args, { io, changing, answer, inHome }) => {
    const metadata =
      args.metadata === undefined ? undefined : await readJson(args.metadata, '--metadata', io);
    if (metadata !== undefined && !isObject(metadata))
      throw new UsageError('cannot read --metadata: it must be a JSON object');
    const inherit = inheritIn(args);
    const { branchSession } = await import('@tapedeck/runtime');
    return await changing(async (store) => {
      const { session, point } = readPlace(store, args.place);
      const forked = await branchSession(store, needSession(store, session), {
        ...(point !== undefined && { cut: point }),
        ...(inherit !== undefined && { inherit }),
        ...(args.as !== undefined && { name: args.as }),
        ...(args.key !== undefined && { key: args.key }),
        ...(args.title !== undefined && { title: args.title }),
        ...(args.ephemeral === true && { ephemeral: true }),
        ...(metadata !== undefined && { metadata }),
      });
      await answer({
        json: forkedJson(forked),
        quiet: forked.session,
        human: inHome(
          forkedLine(forked, { done: 'Branched', undo: commandLine('archive', [forked.session]) }),
        ),
      });
      return 0;
    });
  },
});
