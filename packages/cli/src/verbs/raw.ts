import { exit } from '../exit.ts';
import { defineVerb, type Verb } from './verb.ts';

export const raw: Verb = defineVerb({
  command: 'raw <action>',
  group: 'Share',
  summary: 'Low-level commands: checkpoint writes the WAL back into tape.db',
  examples: [['tape raw checkpoint', 'Write all data into tape.db, so that the file can be copied alone']],
  arguments: { action: { describe: 'Command', choices: ['checkpoint'] as const } },
  run: async (_args, { writing, answer }) =>
    await writing(async (store) => {
      const done = store.checkpoint();
      await answer({
        json: { checkpoint: done },
        quiet: done ? 'done' : 'busy',
        human: done
          ? 'Wrote the WAL back into tape.db'
          : 'Another process is reading or writing: the WAL was not emptied',
      });
      return done ? exit.done : exit.conflict;
    }),
});
