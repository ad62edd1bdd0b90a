import type { ChildOutcome, DelegateOptions, DelegateTask } from '@tapedeck/runtime';
import { assertActive, isObject } from '@tapedeck/tape';
import { deckConfig, getModel } from '../config/deck.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { safe } from '../escape.ts';
import { exit } from '../exit.ts';
import { readJson, readText } from '../input.ts';
import { budgetOf, contextOf } from '../options/budget.ts';
import { type ModelArgs, runOptions } from '../options/model.ts';
import { workspaceIn, workspaceOptions } from '../options/workspace.ts';
import { childProgress } from '../output/children.ts';
import { usageJson } from '../output/usage.ts';
import { openDeckAt } from '../session/open-deck.ts';
import { needSession, pointOf } from '../session/place.ts';
import { forkPreviewJson, forkPreviewText } from '../session/preview.ts';
import { defineVerb, type Verb } from './verb.ts';

export const delegate: Verb = defineVerb({
  command: 'delegate <parent>',
  group: 'Start',
  lists: ['task', 'tool'],
  summary: 'Fork a child for each task, run them, and merge them back',
  detail:
    'Children inherit what the parent has, or less: --since, --context. On a terminal a line shows what each is at. A child that is ' +
    'halted at its budget is merged as partial; one that waits for an answer is not merged until it has it (tape approve).',
  examples: [
    [
      'tape delegate main --since task-start --task "Check the docs" --task "Run the tests" --model script:answers.json',
      'Two children in parallel',
    ],
    [
      'tape delegate main --task @task.md --context fresh --budget steps=20,tokens=100000',
      'One that knows its task alone, and is halted where it takes too much',
    ],
    [
      `tape delegate main --task "Which ports?" --schema '{"type":"object","properties":{"ports":{"type":"array"}}}'`,
      'The result is JSON in that form',
    ],
    [
      'tape delegate main --task "Fix the build" --workspace worktree --model openai-compatible/gpt-oss',
      'The child works on files of its own; its merge brings a patch',
    ],
  ],
  options: (y) =>
    workspaceOptions(runOptions(y))
      .positional('parent', { type: 'string', demandOption: true, describe: 'Session that delegates' })
      .option('since', {
        type: 'string',
        requiresArg: true,
        describe: 'Anchor or @SEQ where what they inherit begins',
      })
      .option('from', { type: 'string', requiresArg: true, describe: 'The same, for an anchor' })
      .option('fresh', { type: 'boolean', describe: 'They inherit nothing' })
      .option('context', {
        type: 'string',
        requiresArg: true,
        describe: 'What they inherit: full, fresh, or the last N messages',
      })
      .option('task', {
        type: 'array',
        string: true,
        nargs: 1,
        demandOption: true,
        describe: 'What one child is to do (-, @FILE)',
      })
      .option('resume', {
        type: 'string',
        requiresArg: true,
        describe: 'Go on with this child instead of a new one: the task is its next message',
      })
      .option('tool', {
        type: 'array',
        string: true,
        nargs: 1,
        describe: 'Name of a tool that they may call (default: all that the parent may)',
      })
      .option('schema', {
        type: 'string',
        requiresArg: true,
        describe: 'JSON Schema of the result that each gives at its end (-, @FILE)',
      })
      .option('strategy', {
        type: 'string',
        requiresArg: true,
        choices: ['result', 'summary', 'structured'],
        describe: 'What is merged (default: the last answer; with --schema the result in that form)',
      })
      .option('budget', {
        type: 'string',
        requiresArg: true,
        describe: 'What each may take: steps=N,tokens=N,seconds=N,cost=N',
      })
      .option('tree-budget', {
        type: 'string',
        requiresArg: true,
        describe: 'The same, for each and all under it together',
      })
      .option('on-complete', {
        type: 'string',
        requiresArg: true,
        choices: ['notify_parent'],
        describe: 'Each result gives the parent a run of its own',
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
      .option('dry-run', { type: 'boolean', describe: 'Show what would be forked, and do nothing' })
      .conflicts('fresh', ['since', 'from', 'context'])
      .conflicts('since', ['from', 'context'])
      .conflicts('from', 'context')
      .conflicts('resume', [
        ...['since', 'from', 'context', 'fresh', 'tool', 'schema'],
        // It goes on with what it was forked with.
        ...['budget', 'tree-budget', 'strategy', 'on-complete', 'workspace'],
      ]),
  run: async (args, context) => {
    const { io } = context;
    const options = await optionsOf(args, context);
    const tasks: DelegateTask[] = [];
    for (const task of args.task) tasks.push({ task: await readText(task, io) });
    if (tasks.some(({ task }) => task.trim() === ''))
      throw new UsageError('cannot delegate: a task is empty');
    if (args.resume !== undefined && tasks.length > 1)
      throw new UsageError('cannot delegate: --resume goes on with one child, and takes one --task');
    const since = args.since ?? args.from;
    if (args.dryRun === true) {
      if (args.resume !== undefined)
        throw new UsageError('cannot show what --resume would fork: it forks nothing');
      return await preview(tasks, { args, options, since }, context);
    }
    const config = await deckConfig(args, context);
    getModel(config);
    return await context.changing(async (store) => {
      const parent = needSession(store, args.parent);
      const point = since === undefined ? undefined : pointOf(since.replace(/^@(?!\d+$)/, ''));
      if (point !== undefined) store.resolve(parent.id, point);
      const resume = args.resume === undefined ? undefined : needSession(store, args.resume).name;
      await using deck = await openDeckAt(config, store, context);
      const session = await deck.session(parent.name);
      const delegation = session.delegate(
        tasks.map((task) => ({ ...task, ...(resume !== undefined && { resume }) })),
        {
          ...options,
          ...(point !== undefined && { since: point }),
          signal: io.signal,
          ...(await workspaceIn(args, { io, home: context.home, store, parent: parent.name })),
        },
      );
      const see = childProgress(context, { resumed: resume !== undefined });
      for await (const event of delegation) see(event);
      const outcomes = await delegation;
      // What its results started of the parent is part of what was asked for.
      if (args.onComplete !== undefined) await session.idle();
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

/** Shows what each task's child would inherit and be told. */
async function preview(
  tasks: readonly DelegateTask[],
  { args, options, since }: { args: { parent: string }; options: DelegateOptions; since: string | undefined },
  context: Context,
): Promise<number> {
  return await context.reading(async (store) => {
    const parent = needSession(store, args.parent);
    assertActive(parent, 'delegate from');
    const { context: how } = options;
    const previews = tasks.map(({ task }) =>
      store.previewFork(parent.id, {
        ...(since !== undefined && { since: pointOf(since.replace(/^@(?!\d+$)/, '')) }),
        ...((options.fresh === true || how === 'fresh') && { fresh: true }),
        ...(typeof how === 'object' && { window: how.window }),
        intention: { nextSteps: task },
      }),
    );
    await context.answer({
      json: { parent: parent.name, children: previews.map(forkPreviewJson), dry_run: true },
      quiet: previews.flatMap(({ session }) => session ?? []).join('\n'),
      human: previews.map(forkPreviewText).join('\n'),
    });
    return exit.done;
  });
}

interface OptionArgs extends ModelArgs {
  readonly from?: string | undefined;
  readonly fresh?: boolean | undefined;
  readonly context?: string | undefined;
  readonly tool?: readonly string[] | undefined;
  readonly schema?: string | undefined;
  readonly strategy?: string | undefined;
  readonly budget?: string | undefined;
  readonly treeBudget?: string | undefined;
  readonly onComplete?: string | undefined;
  readonly concurrency: number;
  readonly order: string;
}

/** What the options of the command say, checked before anything is loaded. */
async function optionsOf(args: OptionArgs, { io }: Context): Promise<DelegateOptions> {
  if (!Number.isInteger(args.concurrency) || args.concurrency < 1)
    throw new UsageError('cannot delegate: --concurrency must be a whole number from 1');
  if (args.from !== undefined && /^@?\d+$/.test(args.from))
    throw new UsageError(`cannot delegate from ${args.from}: it must be an anchor`, {
      hint: `did you mean --since ${args.from}?`,
    });
  const schema = args.schema === undefined ? undefined : await readJson(args.schema, '--schema', io);
  if (schema !== undefined && !isObject(schema))
    throw new UsageError('cannot use --schema: a JSON Schema is an object');
  return {
    concurrency: args.concurrency,
    order: args.order === 'spawn' ? 'spawn' : 'completion',
    ...(args.model !== undefined && { model: args.model }),
    ...(args.fresh === true && { fresh: true }),
    ...(args.context !== undefined && { context: contextOf(args.context) }),
    ...(args.tool !== undefined && { tools: args.tool }),
    ...(schema !== undefined && { output: { responseFormat: Promise.resolve({ type: 'json', schema }) } }),
    ...(args.strategy !== undefined && { strategy: args.strategy as 'result' | 'summary' | 'structured' }),
    ...(args.budget !== undefined && { budget: budgetOf(args.budget, '--budget') }),
    ...(args.treeBudget !== undefined && { treeBudget: budgetOf(args.treeBudget, '--tree-budget') }),
    ...(args.onComplete !== undefined && { onComplete: 'notify_parent' }),
  };
}

function outcomeJson({
  session,
  status,
  merged,
  usage,
  text,
  output,
  error,
}: ChildOutcome): Readonly<Record<string, unknown>> {
  return {
    session,
    status,
    merged: merged !== undefined,
    seq: merged?.seq ?? null,
    conflicts: merged?.conflicts ?? [],
    text,
    usage: usage === undefined ? null : usageJson(usage),
    ...(output !== undefined && { output }),
    ...(error !== undefined && { error }),
  };
}

function outcomeLine({ session, status, merged, text, error }: ChildOutcome): string {
  const where = merged === undefined ? 'not merged' : `merged into ${merged.parent}@${merged.seq}`;
  const [said = ''] = (error ?? text).split('\n');
  const next = status === 'running' && merged === undefined ? ` (next: tape status ${session})` : '';
  return `${session} ${status}, ${where}${said === '' ? '' : `: ${said}`}${next}`;
}
