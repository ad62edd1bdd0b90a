import { commandLine } from '../escape.ts';
import { readText } from '../input.ts';
import { namedIn, settingsOptions } from '../options/model.ts';
import { ruleOption, rulesIn } from '../options/rule.ts';
import { defineVerb, type Verb } from './verb.ts';

export const newSession: Verb = defineVerb({
  command: 'new <name>',
  group: 'Start',
  summary: 'Create a session',
  detail:
    'Does nothing if a session has this name, alias or id: a name refers to the same tape in every process.',
  examples: [['tape new main', 'Create session main with its tape tape:main']],
  arguments: { name: 'Name of the session' },
  options: {
    ...settingsOptions,
    kind: {
      type: 'string',
      describe: 'Kind of session: session (default), or manager, whose runs users interrupt',
    },
    title: { type: 'string', describe: 'Title for display' },
    model: {
      type: 'string',
      takes: 'SPEC',
      describe: 'PROVIDER/MODEL or script:FILE: its model, until a run names another',
    },
    instructions: {
      type: 'string',
      describe: 'Its instructions (-, @FILE; default: those of the configuration)',
    },
    tool: {
      type: 'list',
      describe: 'Name of a tool that it and the sessions below it may call (default: all)',
    },
    use: { type: 'list', describe: 'Name of a tool that its own model may call (default: all of these)' },
    rule: ruleOption,
    record: {
      type: 'string',
      choices: ['raw'],
      describe:
        'raw: keep requests and responses of its model calls, and of the sessions below it, in logs/ULID/raw.jsonl of the home',
    },
  },
  run: async (args, { io, writing, answer, inHome }) => {
    const { name, kind, title } = args;
    const { model, settings: call } = namedIn(args);
    if (model !== undefined) (await import('@tapedeck/runtime/internal')).assertSpec(model, '--model');
    const instructions = args.instructions === undefined ? undefined : await readText(args.instructions, io);
    const settings = {
      ...(instructions !== undefined && { instructions }),
      ...(model !== undefined && { model }),
      ...(call !== undefined && { call: { ...call } }),
      ...(args.tool !== undefined && { tools: args.tool }),
      ...(args.use !== undefined && { uses: args.use }),
      ...(args.rule !== undefined && { rules: await rulesIn(args.rule, `create '${name}'`) }),
      ...(args.record !== undefined && { record: args.record }),
    };
    if (args.use !== undefined) {
      const { assertCeiling } = await import('@tapedeck/runtime/internal');
      assertCeiling([], { tools: args.tool, uses: args.use }, `create '${name}'`);
    }
    return await writing(async (store) => {
      const info = store.sessions.open(name, {
        ...(kind !== undefined && { kind }),
        ...(title !== undefined && { title }),
        ...(Object.keys(settings).length > 0 && { settings }),
      });
      await answer({
        json: { session: info.session, tape: info.tape, head: info.head, created: info.created },
        quiet: info.session,
        human: info.created
          ? inHome(
              `Created ${info.session}, tape ${info.tape} (undo with: ${commandLine('archive', [info.session])})`,
            )
          : `${info.session} exists already, at @${info.head}: nothing to do`,
      });
      return 0;
    });
  },
});
