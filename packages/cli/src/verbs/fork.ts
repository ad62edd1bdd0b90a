import type { ToolLists } from '@tapedeck/runtime/internal';
import type { ForkRequest, HomeStore } from '@tapedeck/tape';
import { workerInstructions } from '@tapedeck/tape/internal';
import type { Deliver, Intention } from '@tapedeck/tape/store';
import { commandLine } from '../escape.ts';
import { readText } from '../input.ts';
import { earlierInheritOptions, inheritIn, inheritOptions } from '../options/inherit.ts';
import { ruleOption, rulesIn } from '../options/rule.ts';
import { workspaceIn, workspaceOptions } from '../options/workspace.ts';
import { forkedJson, forkedLine } from '../output/forked.ts';
import { needSession, readPlace } from '../session/place.ts';
import { forkPreviewJson, forkPreviewText } from '../session/preview.ts';
import { defineVerb, type Verb } from './verb.ts';

type Delivery = Exclude<Deliver, 'tool-result'>;

const deliveries: Readonly<Record<Delivery, true>> = { merge: true, 'merge+turn': true, notify: true };

export const fork: Verb = defineVerb({
  command: 'fork <parent>',
  group: 'Merge',
  summary: 'Fork a child session from a point of another session',
  detail:
    'The child inherits the entries of the parent up to @CUT (default: the head), or the part that --inherit, --since or --last ' +
    'selects, by reference. The parent does not change, and nothing runs: tape run CHILD does its --task.',
  examples: [
    ['tape fork main --since task-start', 'Inherit the entries after task-start'],
    ['tape fork main@42 --as fix', 'Inherit the entries up to main@42'],
    ['tape fork main --since task-start --dry-run', 'Show the inherited part without forking'],
    [
      'tape fork main --as docs --task "Check the docs" --deliver merge',
      'Merge the result when the child has ended: tape run docs',
    ],
    [
      "tape fork main --as look --rule 'deny write(**)' --rule 'deny exec(*)'",
      'Let the child write no files',
    ],
    ['tape fork main --as fix --workspace worktree', 'Give the child its own git worktree'],
  ],
  arguments: { parent: 'PARENT or PARENT@CUT' },
  options: {
    ...inheritOptions,
    ...earlierInheritOptions,
    ...workspaceOptions,
    instructions: {
      type: 'string',
      describe:
        'Instructions of its model (-, @FILE; default: those of the parent, or worker instructions for a child that does not inherit everything)',
    },
    tool: {
      type: 'list',
      describe: 'Name of a tool that it and its children may call (default: the tools of the parent)',
    },
    use: { type: 'list', describe: 'Name of a tool that its own model may call (default: all of these)' },
    rule: ruleOption,
    as: { type: 'string', describe: 'Name of the child (default: derived)' },
    key: { type: 'string', describe: 'Idempotency key: a repeat returns the same child' },
    task: { type: 'string', describe: 'Task of the child, a message to its model (-, @FILE)' },
    'next-steps': { type: 'string', hidden: true },
    'context-summary': { type: 'string', describe: 'Background of the task (-, @FILE)' },
    deliver: {
      type: 'string',
      choices: Object.keys(deliveries),
      describe:
        'What happens when the child ends or is merged, whichever process does it. merge: its result is merged; merge+turn: the same, and the parent runs; notify: the parent gets a message, and nothing is merged (default: nothing happens)',
    },
    'on-complete': {
      type: 'string',
      choices: ['notify_parent'],
      describe: 'The same as --deliver merge+turn',
    },
    'dry-run': { type: 'boolean', describe: 'Show the fork without making it' },
  },
  conflicts: { task: ['next-steps'], deliver: ['on-complete'] },
  run: async (args, { io, home, changing, reading, answer, inHome }) => {
    const inherit = inheritIn(args, (at) =>
      args.parent.includes('@')
        ? `did you mean --since ${at}?`
        : `use one of: ${commandLine('fork', [args.parent], [`--since ${at}`])}, ${commandLine('fork', [`${args.parent}@${at.replace('@', '')}`])}`,
    );
    const read = async (text: string | undefined) =>
      text === undefined ? undefined : await readText(text, io);
    const given = await read(args.instructions);
    const isPart = inherit !== undefined && inherit !== 'all';
    const instructions = given ?? (isPart ? workerInstructions : undefined);
    const deliver = args.onComplete === undefined ? (args.deliver as Delivery | undefined) : 'merge+turn';
    const tools = {
      ...(args.tool !== undefined && { tools: args.tool }),
      ...(args.use !== undefined && { uses: args.use }),
    };
    const rules = args.rule === undefined ? {} : { rules: await rulesIn(args.rule, `fork '${args.parent}'`) };
    const settings = { ...(instructions !== undefined && { instructions }), ...tools, ...rules };
    const wanted = {
      ...(given !== undefined && { instructions: given }),
      ...tools,
      ...rules,
      // The intention has --on-complete.
      ...(args.deliver !== undefined && { deliver: args.deliver }),
    };
    const intention = intentionOf(
      await read(args.task ?? args.nextSteps),
      await read(args.contextSummary),
      args.onComplete,
    );
    return await (args.dryRun === true ? reading : changing)(async (store) => {
      const { session, point } = readPlace(store, args.parent);
      const parent = needSession(store, session).session;
      if (Object.keys(tools).length > 0) await assertToolsOf(store, parent, tools);
      const place = { store, home: home.dir };
      const workspaceRequest = await workspaceIn(args, { io, home, store, parent });
      const worktrees =
        workspaceRequest.workspace === undefined ? undefined : await import('@tapedeck/runtime/internal');
      const request: ForkRequest = {
        ...(await worktrees?.withWorktree(place, parent, workspaceRequest)),
        ...(point !== undefined && { cut: point }),
        ...(inherit !== undefined && { inherit }),
        ...(Object.keys(settings).length > 0 && { settings }),
        ...(Object.keys({ ...settings, ...wanted }).length > 0 && { asked: wanted }),
        ...(deliver !== undefined && { deliver }),
        terms: { context: isPart ? 'part' : 'whole' },
        ...(args.as !== undefined && { name: args.as }),
        ...(args.key !== undefined && { key: args.key }),
        ...(intention !== undefined && { intention }),
      };
      if (args.dryRun === true) {
        const preview = store.lineage.previewFork(parent, request);
        const quiet = preview.session ?? '';
        await answer({ json: forkPreviewJson(preview), quiet, human: forkPreviewText(preview) });
        return 0;
      }
      const forked = store.lineage.fork(parent, request);
      const workspace = await worktrees?.openWorktree(place, forked.id);
      await answer({
        json: { ...forkedJson(forked), ...(workspace !== undefined && { workspace }) },
        quiet: forked.session,
        human: inHome(
          forkedLine(forked, { done: 'Forked', workspace, undo: commandLine('discard', [forked.session]) }),
        ),
      });
      return 0;
    });
  },
});

function intentionOf(
  task: string | undefined,
  contextSummary: string | undefined,
  triggerOnComplete: string | undefined,
): Intention | undefined {
  if (task === undefined && contextSummary === undefined && triggerOnComplete === undefined) return undefined;
  return {
    ...(task !== undefined && { nextSteps: task }),
    ...(contextSummary !== undefined && { contextSummary }),
    ...(triggerOnComplete !== undefined && { triggerOnComplete }),
  };
}

/** @throws SESSION_BAD_INPUT for a tool that the parent cannot hand on, or that the child could not use */
async function assertToolsOf(store: HomeStore, parent: string, lists: ToolLists): Promise<void> {
  const { ancestryOf, assertCeiling, factsOf } = await import('@tapedeck/runtime/internal');
  const line = await ancestryOf(store, await factsOf(store, needSession(store, parent)));
  assertCeiling(line, lists, `fork '${parent}'`);
}
