import { type ForkRequest, view } from '@tapedeck/tape';
import { workerInstructions } from '@tapedeck/tape/internal';
import type { Intention } from '@tapedeck/tape/store';
import { UsageError } from '../errors/kinds.ts';
import { readText } from '../input.ts';
import { workspaceIn, workspaceOptions } from '../options/workspace.ts';
import { forkedJson, forkedLine } from '../output/forked.ts';
import { needSession, pointOf, readPlace } from '../session/place.ts';
import { forkPreviewJson, forkPreviewText } from '../session/preview.ts';
import { defineVerb, type Verb } from './verb.ts';

export const fork: Verb = defineVerb({
  command: 'fork <parent>',
  group: 'Change direction',
  lists: ['tool'],
  summary: 'Fork a child session from a point of another session',
  detail:
    'The child inherits the entries of the parent after --since (default: from the start) up to @CUT (default: the head), by ' +
    'reference. The parent does not change.',
  examples: [
    ['tape fork main --since task-start', 'Inherit the entries after task-start'],
    ['tape fork main@42 --as fix', 'Inherit the entries up to main@42'],
    ['tape fork main --since task-start --dry-run', 'Show the inherited part without forking'],
    ['tape fork main --as fix --workspace worktree', 'Give the child its own git worktree'],
  ],
  options: (y) =>
    workspaceOptions(y)
      .positional('parent', { type: 'string', demandOption: true, describe: 'PARENT or PARENT@CUT' })
      .option('since', {
        type: 'string',
        requiresArg: true,
        describe: 'Anchor or @SEQ where the inherited part begins',
      })
      .option('from', { type: 'string', requiresArg: true, describe: 'Same as --since, for an anchor only' })
      .option('fresh', { type: 'boolean', describe: 'Inherit nothing' })
      .option('window', {
        type: 'number',
        requiresArg: true,
        describe: 'Inherit the last N messages only',
      })
      .option('instructions', {
        type: 'string',
        requiresArg: true,
        describe:
          'Instructions of its model (-, @FILE; default: those of the parent, or worker instructions for a child that inherits a part)',
      })
      .option('tool', {
        type: 'array',
        string: true,
        nargs: 1,
        describe: 'Name of a tool that it may call (default: the tools of the parent)',
      })
      .option('as', { type: 'string', requiresArg: true, describe: 'Name of the child (default: derived)' })
      .option('key', {
        type: 'string',
        requiresArg: true,
        describe: 'Idempotency key: a repeat returns the same child',
      })
      .option('next-steps', {
        type: 'string',
        requiresArg: true,
        describe: 'Intention: next steps of the child (-, @FILE)',
      })
      .option('context-summary', {
        type: 'string',
        requiresArg: true,
        describe: 'Intention: context for the child (-, @FILE)',
      })
      .option('on-complete', {
        type: 'string',
        choices: ['notify_parent'],
        requiresArg: true,
        describe: 'Intention: what to do when the child completes',
      })
      .option('dry-run', { type: 'boolean', describe: 'Show the fork without making it' })
      .conflicts('fresh', ['since', 'from', 'window'])
      .conflicts('window', ['since', 'from'])
      .conflicts('since', 'from'),
  run: async (args, { io, home, changing, reading, answer, options }) => {
    const since = args.since ?? args.from;
    const read = async (text: string | undefined) =>
      text === undefined ? undefined : await readText(text, io);
    const given = await read(args.instructions);
    const isPart = args.fresh === true || since !== undefined || args.window !== undefined;
    const instructions = given ?? (isPart ? workerInstructions : undefined);
    const tools = args.tool === undefined ? {} : { tools: args.tool };
    const settings = { ...(instructions !== undefined && { instructions }), ...tools };
    const wanted = { ...(given !== undefined && { instructions: given }), ...tools };
    const intention = intentionOf(
      await read(args.nextSteps),
      await read(args.contextSummary),
      args.onComplete,
    );
    return await (args.dryRun === true ? reading : changing)(async (store) => {
      const { session, point } = readPlace(store, args.parent);
      const parent = needSession(store, session).name;
      if (args.from !== undefined && /^@?\d+$/.test(args.from))
        throw new UsageError(
          `cannot fork '${parent}' from ${args.from}: a position can mean where the inherited part begins or ends`,
          {
            hint: `use one of: tape fork ${parent} --since ${args.from}, tape fork ${parent}${args.from.startsWith('@') ? '' : '@'}${args.from}`,
          },
        );
      const place = { store, home: home.dir };
      const workspaceRequest = await workspaceIn(args, { io, home, store, parent });
      const worktrees =
        workspaceRequest.workspace === undefined ? undefined : await import('@tapedeck/runtime/workspace');
      const request: ForkRequest = {
        ...(await worktrees?.withWorktree(place, parent, workspaceRequest)),
        ...(point !== undefined && { cut: point }),
        ...(since !== undefined && { since: pointOf(since.replace(/^@(?!\d+$)/, '')) }),
        ...(args.fresh === true && { fresh: true }),
        ...(args.window !== undefined && { window: args.window }),
        ...(Object.keys(settings).length > 0 && { settings, asked: wanted }),
        terms: { context: isPart ? 'part' : 'whole' },
        ...(args.as !== undefined && { name: args.as }),
        ...(args.key !== undefined && { key: args.key }),
        ...(intention !== undefined && { intention }),
      };
      if (args.dryRun === true) {
        const preview = store.previewFork(parent, request);
        const quiet = preview.session ?? '';
        await answer({ json: forkPreviewJson(preview), quiet, human: forkPreviewText(preview) });
        return 0;
      }
      const forked = store.fork(parent, request);
      const workspace = await worktrees?.openWorktree(place, forked.id);
      const tokens = options.quiet || options.json ? 0 : view(store.viewEntries(forked.session)).tokens;
      await answer({
        json: { ...forkedJson(forked), ...(workspace !== undefined && { workspace }) },
        quiet: forked.session,
        human: forkedLine(forked, { done: 'Forked', tokens, workspace }),
      });
      return 0;
    });
  },
});

function intentionOf(
  nextSteps: string | undefined,
  contextSummary: string | undefined,
  triggerOnComplete: string | undefined,
): Intention | undefined {
  if (nextSteps === undefined && contextSummary === undefined && triggerOnComplete === undefined)
    return undefined;
  return {
    ...(nextSteps !== undefined && { nextSteps }),
    ...(contextSummary !== undefined && { contextSummary }),
    ...(triggerOnComplete !== undefined && { triggerOnComplete }),
  };
}
