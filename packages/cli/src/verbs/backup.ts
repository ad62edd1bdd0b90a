import { resolve } from 'node:path';
import { defineVerb, type Verb } from './verb.ts';

export const backup: Verb = defineVerb({
  command: 'backup <file>',
  group: 'Trust',
  summary: 'Copy all tapes to one file, while they are used',
  detail:
    'The copy is verified before it gets its name, and no existing file is replaced. To restore it, copy it to HOME/tape.db of a new home: the first command that writes makes the graph file.',
  examples: [['tape backup ~/tapes-friday.db', 'A whole, verified copy']],
  options: (y) => y.positional('file', { type: 'string', demandOption: true, describe: 'The new file' }),
  run: async ({ file }, { io, reading, answer }) =>
    await reading(async (store) => {
      const path = resolve(io.cwd, file);
      await store.backup(path);
      const { sessions, entries } = store.count();
      await answer({
        json: { file: path, sessions, entries },
        quiet: path,
        human: `Backed up ${sessions} sessions, ${entries} entries to ${path}, every hash as recorded`,
      });
      return 0;
    }),
});
