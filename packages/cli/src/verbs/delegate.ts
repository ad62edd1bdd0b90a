import type { ChildOutcome } from '@tapedeck/runtime';
import { deckConfig, modelOptions, needModel } from '../deck-config.ts';
import { exit, UsageError } from '../errors.ts';
import { safe } from '../output/safe.ts';
import { usageJson } from '../output/usage.ts';
import { needSession, pointOf } from '../place.ts';
import { readText } from '../text.ts';
import { defineVerb, type Verb } from '../verb.ts';
import { workspaceIn, workspaceOptions } from '../workspace-options.ts';

export const delegate: Verb = defineVerb({
  command: 'delegate <parent>',
  group: 'Start',
  lists: ['task'],
  summary: 'Fork a child for each task, run them, and merge them back',
  examples: [
    [
      'tape delegate main --since task-start --task "Check the docs" --task "Run the tests" --model script:answers.json',
      'Two children in parallel',
    ],
    [
      'tape delegate main --task "Fix the build" --workspace worktree --model openai-compatible/gpt-oss',
      'The child works on files of its own; its merge brings a patch',
    ],
  ],
  options: (y) =>
    workspaceOptions(modelOptions(y))
      .positional('parent', { type: 'string', demandOption: true, describe: 'Session that delegates' })
      .option('since', {
        type: 'string',
        requiresArg: true,
        describe: 'Anchor or @SEQ where what they inherit begins',
      })
      .option('from', { type: 'string', requiresArg: true, describe: 'The same, for an anchor' })
      .option('fresh', { type: 'boolean', describe: 'They inherit nothing' })
      .option('task', {
        type: 'array',
        string: true,
        nargs: 1,
        demandOption: true,
        describe: 'What one child is to do (-, @FILE)',
      })
      .option('concurrency', {
        type: 'number',
        requiresArg: true,
        default: 4,
        describe: 'How many run at once',
      })
      .option('order', {
        type: 'string',
        requiresArg: true,
        default: 'completion',
        choices: ['completion', 'spawn'],
        describe: 'In which order results are merged',
      })
      .conflicts('fresh', ['since', 'from'])
      .conflicts('since', 'from'),
  run: async (args, context) => {
    const { io, status } = context;
    const config = await deckConfig(args, context);
    needModel(config);
    if (!Number.isInteger(args.concurrency) || args.concurrency < 1)
      throw new UsageError('cannot delegate: --concurrency must be a whole number from 1');
    const tasks: { task: string }[] = [];
    for (const task of args.task) tasks.push({ task: await readText(task, io) });
    if (tasks.some(({ task }) => task.trim() === ''))
      throw new UsageError('cannot delegate: a task is empty');
    const since = args.since ?? args.from;
    if (args.from !== undefined && /^@?\d+$/.test(args.from))
      throw new UsageError(`cannot delegate from ${args.from}: it must be an anchor`, {
        hint: `did you mean --since ${args.from}?`,
      });
    const { openDeck } = await import('@tapedeck/runtime');
    return await context.changing(async (store) => {
      const parent = needSession(store, args.parent);
      const point = since === undefined ? undefined : pointOf(since.replace(/^@(?!\d+$)/, ''));
      if (point !== undefined) store.resolve(parent.id, point);
      await using deck = await openDeck({ ...config, store, home: context.home.dir, env: io.env });
      const session = await deck.session(parent.name);
      const delegation = session.delegate(tasks, {
        ...(args.model !== undefined && { model: args.model }),
        ...(point !== undefined && { since: point }),
        ...(args.fresh === true && { fresh: true }),
        ...(await workspaceIn(args, { io, home: context.home, store, parent: parent.name })),
        concurrency: args.concurrency,
        order: args.order === 'spawn' ? 'spawn' : 'completion',
        signal: io.signal,
      });
      for await (const event of delegation) {
        if (event.type === 'child-forked') status(`Forked ${event.session}`);
        else if (event.type === 'child-ended') status(`${event.session} ${event.status}`);
        else if (event.type === 'child-merged')
          status(`Merged ${event.session} into ${event.merged.parent}@${event.merged.seq}`);
        else if (event.type === 'child-event' && event.event.type === 'tool-started')
          status(safe(`  ${event.session} → ${event.event.name}`));
      }
      const outcomes = await delegation;
      await context.answer({
        json: { parent: parent.name, children: outcomes.map(outcomeJson) },
        quiet: outcomes.map((o) => o.session).join('\n'),
        human: safe(outcomes.map(outcomeLine).join('\n')),
      });
      if (io.interrupted) return exit.interrupted;
      return outcomes.every((o) => o.status === 'completed' && o.merged !== undefined) ? 0 : 1;
    });
  },
});

function outcomeJson({
  session,
  status,
  merged,
  usage,
  error,
}: ChildOutcome): Readonly<Record<string, unknown>> {
  return {
    session,
    status,
    merged: merged !== undefined,
    seq: merged?.seq ?? null,
    usage: usage === undefined ? null : usageJson(usage),
    ...(error !== undefined && { error }),
  };
}

function outcomeLine({ session, status, merged, text, error }: ChildOutcome): string {
  const where = merged === undefined ? 'not merged' : `merged into ${merged.parent}@${merged.seq}`;
  return `${session} ${status}, ${where}: ${(error ?? text).split('\n')[0] ?? ''}`;
}
