import { defineVerb, type Verb } from './verb.ts';

export const newSession: Verb = defineVerb({
  command: 'new <name>',
  group: 'Start',
  summary: 'Create a session',
  detail: 'A name is one tape, in every process: for an existing one this says so and changes nothing.',
  examples: [['tape new main', 'Create session main with its tape tape:main']],
  options: (y) =>
    y
      .positional('name', { type: 'string', demandOption: true, describe: 'Name of the session' })
      .option('kind', {
        type: 'string',
        requiresArg: true,
        describe: 'What sort of session: session, or manager, whose runs people interrupt',
      })
      .option('title', { type: 'string', requiresArg: true, describe: 'A title for people' }),
  run: async ({ name, kind, title }, { writing, answer }) =>
    await writing(async (store) => {
      const info = store.session(name, {
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
