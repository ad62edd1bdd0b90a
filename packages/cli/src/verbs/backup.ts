import { resolve } from 'node:path';
import { UsageError } from '../errors/kinds.ts';
import { shellWord } from '../escape.ts';
import { storeInFile } from '../file-home.ts';
import { stdinWord } from '../input.ts';
import { counted } from '../output/counted.ts';
import { withProgress } from '../output/progress.ts';
import { defineVerb, type Verb } from './verb.ts';

export const backup: Verb = defineVerb({
  command: 'backup <file>',
  group: 'Share',
  summary: 'Copy all tapes to one file, also while they are in use',
  detail:
    'Verifies the copy before it gets its name, and never replaces an existing file. tape restore makes a home of it.',
  examples: [['tape backup ~/tapes-friday.db', 'Write a complete, verified copy']],
  arguments: { file: 'New file' },
  run: async ({ file }, context) => {
    const { io, reading, answer } = context;
    // SQLite writes a copy to a file alone.
    if (file === stdinWord)
      throw new UsageError("cannot write a backup to stdout: name a file ('./-' is one)");
    return await reading(async (store) => {
      const path = resolve(io.cwd, file);
      const inFile = storeInFile(store, {
        ...{ home: context.home, act: 'back up' },
        instead: `copy its tapes to a directory with: tape copy ${shellWord(context.home.name)} DIR; or use pg_dump`,
      });
      await withProgress(context, (progress) => {
        const parts = { pages: progress('Copying pages'), entries: progress('Verifying entries') };
        return inFile.backup(path, { onProgress: ({ of, ...now }) => parts[of](now) });
      });
      const { sessions, entries } = store.count();
      await answer({
        json: { file: path, sessions, entries },
        quiet: path,
        human: `Backed up ${counted(sessions, 'session')}, ${counted(entries, 'entry', 'entries')} to ${path}, all hashes match`,
      });
      return 0;
    });
  },
});
