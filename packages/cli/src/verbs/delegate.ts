import type {
  ChildOutcome,
  Deck,
  DelegateOptions,
  DelegateTask,
  Delegation,
  SessionEvent,
} from '@tapedeck/runtime';
import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { deckConfig } from '../config/deck.ts';
import { saysAwaited } from '../config/engine.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { commandLine, safe, shellWord } from '../escape.ts';
import { exit } from '../exit.ts';
import { readJson, readText } from '../input.ts';
import { budgetOf } from '../options/budget.ts';
import {
  earlierInheritOptions,
  type InheritArgs,
  inheritIn,
  inheritNames,
  inheritOptions,
} from '../options/inherit.ts';
import { type ModelArgs, namedIn, runOptions } from '../options/model.ts';
import { ruleOption, rulesIn } from '../options/rule.ts';
import { type WorkspaceArgs, workspaceIn, workspaceOptions } from '../options/workspace.ts';
import { childLines, waitingAbove } from '../output/child-lines.ts';
import { childProgress } from '../output/children.ts';
import { usageJson } from '../output/usage.ts';
import { openDeckAt } from '../session/open-deck.ts';
import { needSession } from '../session/place.ts';
import { forkPreviewJson, forkPreviewText } from '../session/preview.ts';
import { asTaskConflict, keysOf, type Naming } from '../session/task-keys.ts';
import { defineVerb, type Verb } from './verb.ts';

export const delegate: Verb = defineVerb({
  command: 'delegate <parent>',
  group: 'Run',
  summary: 'Fork a child for each task, run them, and merge their results',
  detail:
    'Children inherit the entries of the parent, or the part that --inherit, --since or --last selects. On a terminal, a ' +
    'line shows the progress of each child; with --jsonl, lines say when each starts, how it does, what it waits for and how it ends. A child that halts at its budget is merged as partial; a child with a pending call is merged after ' +
    'the call is answered (tape approve). ' +
    'A repeat of the command, for example after a kill, finds its children by their tasks or by --key: it runs the open ones and merges each once. ' +
    'With --engine pg-boss children run in workers of a home on a server (tape worker), which --background leaves them to.',
  examples: [
    [
      'tape delegate main --since task-start --task "Check the docs" --task "Run the tests" --model script:answers.json',
      'Run two children in parallel',
    ],
    [
      'tape delegate main --task @task.md --inherit nothing --budget steps=20,tokens=100000',
      'Run a child that inherits nothing and halts at its budget',
    ],
    [
      `tape delegate main --task "Which ports?" --schema '{"type":"object","properties":{"ports":{"type":"array"}}}'`,
      'Require a JSON result that matches the schema',
    ],
    [
      'tape delegate main --task "Run the tests" --again --model script:answers.json',
      'Do a task anew that was delegated before',
    ],
    [
      'tape delegate main --task "Fix the build" --workspace worktree --model openai-compatible/gpt-oss',
      'Run the child in its own git worktree, and merge a patch',
    ],
  ],
  arguments: { parent: 'Parent session' },
  options: {
    ...runOptions,
    ...workspaceOptions,
    ...inheritOptions,
    ...earlierInheritOptions,
    task: { type: 'list', required: true, describe: 'Task of one child (-, @FILE)' },
    resume: {
      type: 'string',
      describe: 'Continue this child instead of a new one; the task is its next message',
    },
    key: {
      type: 'string',
      describe:
        'Key of the command: a repeat finds its children, runs the open ones and merges each once (default: the texts of the tasks)',
    },
    again: {
      type: 'boolean',
      describe: 'Do tasks anew that were delegated before; a repeat of that continues it',
    },
    tool: {
      type: 'list',
      describe:
        'Name of a tool that the children and those below may call (default: the tools of the parent)',
    },
    use: { type: 'list', describe: "Name of a tool that the children's own models may call (default: all)" },
    rule: ruleOption,
    schema: { type: 'string', describe: 'JSON Schema of the final result of each child (-, @FILE)' },
    strategy: {
      type: 'string',
      choices: ['result', 'summary', 'structured'],
      describe: 'Text to merge (default: the last answer; with --schema, the structured result)',
    },
    budget: { type: 'string', describe: 'Budget of each child: steps=N,tokens=N,seconds=N,cost=N' },
    'tree-budget': { type: 'string', describe: 'Budget of each child together with its descendants' },
    'on-complete': {
      type: 'string',
      choices: ['notify_parent'],
      describe: 'Start a run of the parent for each result',
    },
    concurrency: {
      type: 'number',
      default: 4,
      describe: 'Children that run at once; with --engine pg-boss the workers say how many',
    },
    order: {
      type: 'string',
      default: 'completion',
      choices: ['completion', 'spawn'],
      describe: 'Order in which results are merged',
    },
    background: {
      type: 'boolean',
      describe: 'Leave the children to the workers, which merge them; needs --engine pg-boss',
    },
    'dry-run': { type: 'boolean', describe: 'Show the forks without making them' },
  },
  conflicts: {
    background: ['on-complete', 'dry-run'],
    resume: [
      ...inheritNames,
      ...['tool', 'use', 'rule', 'schema', 'key', 'again'],
      // A resumed child keeps the options of its fork.
      ...['budget', 'tree-budget', 'strategy', 'on-complete', 'workspace'],
    ],
  },
  run: async (args, context) => {
    const { io } = context;
    const { resume } = args;
    const options = await optionsOf(args, context);
    const tasks: DelegateTask[] = [];
    for (const task of args.task) tasks.push({ task: await readText(task, io) });
    if (tasks.some(({ task }) => task.trim() === ''))
      throw new UsageError('cannot delegate: a task is empty');
    if (resume !== undefined && tasks.length > 1)
      throw new UsageError('cannot delegate: --resume continues one child, and takes one --task');
    assertElsewhere(args);
    if (args.key === '') throw new UsageError('cannot delegate: --key must not be empty');
    const naming: Naming = { key: args.key, again: args.again === true };
    if (args.dryRun === true) {
      if (resume !== undefined) throw new UsageError('cannot use --dry-run with --resume: it forks nothing');
      return await preview(tasks, { args, options, naming }, context);
    }
    const config = await deckConfig(args, context);
    return await context.changing(async (store) => {
      const parent = needSession(store, args.parent);
      const { inherit } = options;
      if (typeof inherit === 'object' && 'since' in inherit) store.entries.resolve(parent.id, inherit.since);
      const resume = args.resume === undefined ? undefined : needSession(store, args.resume).session;
      await using deck = await openDeckAt(config, store, context);
      const session = await deck.session(parent.session);
      const keyed = resume === undefined ? withKeys(store, parent.id, { tasks, naming }) : [];
      const delegation = session.delegate(
        resume === undefined ? keyed : tasks.map((task) => ({ ...task, resume })),
        {
          ...options,
          signal: io.signal,
          ...(await workspaceIn(args, { io, home: context.home, store, parent: parent.session })),
        },
      );
      if (args.background === true)
        return await leaveRunning(delegation, { deck, parent: parent.session }, context);
      const see = childProgress(context, { resumed: resume !== undefined });
      const lines = childLines(context);
      const over = new AbortController();
      const progress = printProgress(session.subscribe({ signal: over.signal }), lines);
      const outcomes = await inWordsOf(keyed, naming, async () => {
        try {
          for await (const event of delegation) {
            see(event);
            const waiting = waitingAbove(event);
            if (waiting !== undefined) await lines(waiting);
          }
          return await delegation;
        } finally {
          over.abort();
          await progress;
        }
      });
      // The runs of the parent that --on-complete starts belong to this command.
      if (args.onComplete !== undefined) await session.idle();
      const before = outcomes.filter((one) => one.repeated === true && one.usage === undefined);
      if (before.length > 0 && !io.interrupted)
        context.status(
          `Hint: ${before.map(({ session }) => session).join(', ')} had ended before; do such a task anew with --again`,
        );
      await context.answer({
        json: { parent: parent.session, children: outcomes.map(outcomeJson) },
        quiet: outcomes.map((o) => o.session).join('\n'),
        human: safe(
          [...outcomes.map((one) => outcomeLine(one, context)), ...undoLines(outcomes, context)].join('\n'),
        ),
      });
      if (io.interrupted) return exit.interrupted;
      const isDone = (one: ChildOutcome) => one.status === 'completed' && one.merged !== undefined;
      if (outcomes.every(isDone)) return exit.done;
      return outcomes.every((one) => isDone(one) || one.waits === true) ? exit.accepted : exit.failed;
    });
  },
});

/**
 * Refuses what has no effect, or no process to do it, where workers run the children.
 * @throws UsageError
 */
function assertElsewhere({ engine, background, yes, order, workspace }: OptionArgs & WorkspaceArgs): void {
  const isElsewhere = engine === 'pg-boss';
  if (background === true && !isElsewhere)
    throw new UsageError('cannot leave the children in the background: they run in this process', {
      hint: 'let workers run them: --engine pg-boss',
    });
  if (background === true && order === 'spawn')
    throw new UsageError(
      'cannot use --order spawn with --background: no process is left that keeps the order',
    );
  if (isElsewhere && yes === true)
    throw new UsageError('cannot use --yes with --engine pg-boss: the workers ask and approve', {
      hint: 'start them with: tape worker --yes',
    });
  if (isElsewhere && workspace === 'worktree')
    throw new UsageError(
      'cannot use --workspace worktree with --engine pg-boss: it is of a repository here, and workers can be on other machines',
      { hint: 'leave out --engine to run the children in this process' },
    );
}

/** Ends the command once the queue has all children, and prints where they are. */
async function leaveRunning(
  delegation: Delegation,
  { deck, parent }: { readonly deck: Deck; readonly parent: string },
  context: Context,
): Promise<number> {
  await delegation.started;
  const { home, status } = context;
  const children = await Promise.all(delegation.children.map(async (name) => await rowOf(deck, name)));
  const left = children
    .filter(({ delivery }) => delivery !== 'merged')
    .map(({ session }) => shellWord(session));
  if (home.server !== undefined && left.length > 0) await saysAwaited(home.server, context);
  await context.answer({
    json: { parent, children: children.map(leftJson) },
    quiet: children.map(({ session }) => session).join('\n'),
    human: safe(children.map(({ session, task = 'running' }) => `${session} ${task}`).join('\n')),
  });
  if (left.length > 0) status(`Hint: wait for them with: tape wait ${left.join(' ')}`);
  return exit.done;
}

async function rowOf(deck: Deck, name: string): Promise<SessionInfo> {
  const child = await deck.find(name);
  if (child === undefined) throw new TypeError('a child that was forked has a row');
  return await child.info();
}

/** A child that workers run, or that had ended before. */
function leftJson({ session, task = 'running', delivery }: SessionInfo): Readonly<Record<string, unknown>> {
  return { session, status: task, merged: delivery === 'merged' };
}

/** Prints the progress of the children as it comes. */
async function printProgress(
  events: AsyncIterable<SessionEvent>,
  print: (event: SessionEvent) => Promise<void>,
): Promise<void> {
  for await (const event of events) if (event.type === 'child-progress') await print(event);
}

interface KeyedTasks {
  readonly tasks: readonly DelegateTask[];
  readonly naming: Naming;
}

/** The tasks, each with its key. */
function withKeys(
  store: HomeStore,
  parent: string,
  { tasks, naming }: KeyedTasks,
): readonly (DelegateTask & { readonly key: string })[] {
  const texts = tasks.map(({ task }) => task);
  return keysOf(store, parent, texts, naming).flatMap(({ key }, i) => {
    const task = tasks[i];
    return task === undefined ? [] : [{ ...task, key }];
  });
}

/** Acts on keyed tasks; a conflict of keys names the task and the key of the command. */
async function inWordsOf<T>(
  keyed: readonly { readonly key: string; readonly task: string }[],
  naming: Naming,
  act: () => Promise<T>,
): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw asTaskConflict(error, keyed, naming);
  }
}

/**
 * Shows the fork of each task: the inherited part and the entries that it would write; or the child that has its key.
 */
async function preview(
  tasks: readonly DelegateTask[],
  { args, options, naming }: { args: PreviewArgs; options: DelegateOptions; naming: Naming },
  context: Context,
): Promise<number> {
  const { io, home } = context;
  const config = await deckConfig(args, context);
  return await context.reading(async (store) => {
    const parent = needSession(store, args.parent);
    await using deck = await openDeckAt(config, store, context);
    const session = await deck.find(parent.id);
    if (session === undefined) throw new TypeError('the parent is in the store');
    const keyed = withKeys(store, parent.id, { tasks, naming });
    const place = await workspaceIn(args, { io, home, store, parent: parent.session });
    const previews = await inWordsOf(
      keyed,
      naming,
      async () => await session.previewDelegation(keyed, { ...options, ...place }),
    );
    await context.answer({
      json: { parent: parent.session, children: previews.map(forkPreviewJson), dry_run: true },
      quiet: previews.flatMap(({ session }) => session ?? []).join('\n'),
      human: previews.map(forkPreviewText).join('\n'),
    });
    return exit.done;
  });
}

type PreviewArgs = ModelArgs & WorkspaceArgs & { readonly parent: string };

interface OptionArgs extends ModelArgs, InheritArgs {
  readonly tool?: readonly string[] | undefined;
  readonly use?: readonly string[] | undefined;
  readonly rule?: readonly string[] | undefined;
  readonly schema?: string | undefined;
  readonly strategy?: string | undefined;
  readonly resume?: string | undefined;
  readonly budget?: string | undefined;
  readonly treeBudget?: string | undefined;
  readonly onComplete?: string | undefined;
  readonly background?: boolean | undefined;
  readonly concurrency: number;
  readonly order: string;
}

/** The options of the command, checked before the configuration is loaded. */
async function optionsOf(args: OptionArgs, { io }: Context): Promise<DelegateOptions> {
  if (!Number.isInteger(args.concurrency) || args.concurrency < 1)
    throw new UsageError('cannot delegate: --concurrency must be a whole number from 1');
  if (args.strategy === 'structured' && args.schema === undefined && args.resume === undefined)
    throw new UsageError('cannot delegate: --strategy structured requires --schema');
  const inherit = inheritIn(args, (at) => `did you mean --since ${at}?`);
  const schema = args.schema === undefined ? undefined : await readJson(args.schema, '--schema', io);
  if (schema !== undefined && !isObject(schema))
    throw new UsageError('cannot use --schema: it must be a JSON object');
  return {
    concurrency: args.concurrency,
    order: args.order === 'spawn' ? 'spawn' : 'completion',
    ...namedIn(args),
    // The configuration has it, too: that of a worker is another one.
    ...(args.maxSteps !== undefined && { maxSteps: args.maxSteps }),
    ...(inherit !== undefined && { inherit }),
    ...(args.tool !== undefined && { tools: args.tool }),
    ...(args.use !== undefined && { uses: args.use }),
    ...(args.rule !== undefined && { rules: await rulesIn(args.rule, 'delegate') }),
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
  repeated,
  usage,
  text,
  output,
  error,
}: ChildOutcome): Readonly<Record<string, unknown>> {
  return {
    session,
    status,
    merged: merged !== undefined,
    repeated: repeated === true,
    seq: merged?.seq ?? null,
    conflicts: merged?.conflicts ?? [],
    text,
    usage: usage === undefined ? null : usageJson(usage),
    ...(output !== undefined && { output }),
    ...(error !== undefined && { error }),
  };
}

function outcomeLine(
  { session, status, merged, text, error, waits }: ChildOutcome,
  { inHome }: Pick<Context, 'inHome'>,
): string {
  const when = merged?.repeated === true ? 'merged before' : 'merged';
  const where = merged === undefined ? 'not merged' : `${when} into ${merged.parent}@${merged.seq}`;
  const [firstLine = ''] = (error ?? text).split('\n');
  const verb = waits === true ? 'approve' : 'status';
  const next =
    status === 'running' && merged === undefined
      ? ` (next: ${inHome(`tape ${verb} ${shellWord(session)}`)})`
      : '';
  return `${session} ${status}, ${where}${firstLine === '' ? '' : `: ${firstLine}`}${next}`;
}

/** The most merges that a line names. */
const namedMax = 5;

/** How to take back what the delegation merged: one merge after the other, the last first. */
function undoLines(
  outcomes: readonly ChildOutcome[],
  { inHome }: Pick<Context, 'inHome'>,
): readonly string[] {
  const merged = outcomes.flatMap(({ merged }) => (merged === undefined || merged.repeated ? [] : [merged]));
  if (merged.length === 0 || merged.length > namedMax) return [];
  const commands = merged
    .toSorted((a, b) => b.seq - a.seq)
    .map(({ parent, seq }) => commandLine('undo', [`${parent}@${seq}`]));
  return [inHome(`Undo with: ${commands.join('; ')}`)];
}
