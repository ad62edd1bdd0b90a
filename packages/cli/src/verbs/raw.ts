import { readFileSync } from 'node:fs';
import { redactIn } from '../config/redact.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { exit } from '../exit.ts';
import { storeInFile } from '../file-home.ts';
import { whileShown } from '../output/progress.ts';
import { packageFile } from '../package-file.ts';
import { defineVerb, type Verb } from './verb.ts';

export const raw: Verb = defineVerb({
  command: 'raw <action>',
  group: 'Share',
  summary: 'Low-level commands: write the WAL back, or serve a home',
  detail:
    'checkpoint writes the WAL back into tape.db, so that the file can be copied alone. serve answers one push or pull of another home on ' +
    'stdin and stdout: ssh starts it for a remote ssh://HOST/HOME.',
  examples: [['tape raw checkpoint', 'Write all data into tape.db, so that the file can be copied alone']],
  arguments: { action: { describe: 'Command', choices: ['checkpoint', 'serve'] as const } },
  run: async ({ action }, context) => (action === 'serve' ? await serve(context) : await checkpoint(context)),
});

async function checkpoint(context: Context): Promise<number> {
  return await context.writing(async (store) => {
    const inFile = storeInFile(store, {
      ...{ home: context.home, act: 'write back the WAL of' },
      instead: 'a server writes back its own log',
    });
    const done = await whileShown(context, 'Writing the WAL back into tape.db', () => inFile.checkpoint());
    await context.answer({
      json: { checkpoint: done },
      quiet: done ? 'done' : 'busy',
      human: done
        ? 'Wrote the WAL back into tape.db'
        : 'Another process is reading or writing: the WAL was not emptied',
    });
    return done ? exit.done : exit.conflict;
  });
}

async function serve({ io, home, options, reading, changing }: Context): Promise<number> {
  if (options.json === true || options.jsonl === true || io.stdinIsTerminal)
    throw new UsageError('cannot serve here: stdin and stdout are for the other side, which ssh connects', {
      hint: 'push to this home from another one with: tape push --remote NAME, whose URL is ssh://HOST/HOME',
    });
  const { serveHome } = await import('@tapedeck/tape/remotes');
  const { version } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as {
    readonly version: string;
  };
  const redact = await redactIn({ io, home });
  const isDone = await serveHome(
    { version, reading, changing, ...(redact !== undefined && redact !== false && { redact }) },
    { input: io.stdin, output: async (text) => await io.out(text) },
  );
  return isDone ? exit.done : exit.failed;
}
