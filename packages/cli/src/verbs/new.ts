import { defineVerb, type Verb } from './verb.ts';

export const newSession: Verb = defineVerb({
  command: 'new <name>',
  group: 'Start',
  summary: 'Create a session',
  detail: 'Does nothing if the session exists: a name refers to the same tape in every process.',
  examples: [['tape new main', 'Create session main with its tape tape:main']],
  options: (y) =>
    y
      .positional('name', { type: 'string', demandOption: true, describe: 'Name of the session' })
      .option('kind', {
        type: 'string',
        requiresArg: true,
        describe: 'Kind of session: session (default), or manager, whose runs users interrupt',
      })
      .option('title', { type: 'string', requiresArg: true, describe: 'Title for display' }),
  run: async ({ name, kind, title }, { writing, answer }) =>
    await writing(async (store) => {
      const info = store.sessions.open(name, {
        ...(kind !== undefined && { kind }),
        ...(title !== undefined && { title }),
      });
      await answer({
        json: { session: info.name, tape: info.tape, head: info.head, created: info.created },
        quiet: info.name,
        human: info.created
          ? `Created ${info.name} (tape ${info.tape})`
          : `${info.name} exists already, at @${info.head}: nothing to do`,
      });
      return 0;
    }),
});
