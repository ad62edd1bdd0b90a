import { exit } from '../exit.ts';
import { defineVerb, type Verb } from './verb.ts';

export const raw: Verb = defineVerb({
  command: 'raw <action>',
  group: 'Other',
  summary: 'Plumbing: checkpoint writes the log back into the database file',
  examples: [['tape raw checkpoint', 'Afterwards tape.db alone holds everything, until the next write']],
  options: (y) =>
    y.positional('action', {
      type: 'string',
      demandOption: true,
      choices: ['checkpoint'] as const,
      describe: 'What to do',
    }),
  run: async (_args, { writing, answer }) =>
    await writing(async (store) => {
      const done = store.checkpoint();
      await answer({
        json: { checkpoint: done },
        quiet: done ? 'done' : 'busy',
        human: done
          ? 'Wrote the log back into tape.db'
          : 'Somebody is reading or writing: the log stays for now',
      });
      return done ? exit.done : exit.conflict;
    }),
});
