import { resolve } from 'node:path';
import { secretsIn } from '@tapedeck/tape/internal';
import { redactIn } from '../config/redact.ts';
import { UsageError } from '../errors/kinds.ts';
import { stdinWord } from '../input.ts';
import { counted } from '../output/counted.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const exportVerb: Verb = defineVerb({
  command: 'export <name>',
  group: 'Share',
  summary: 'Write a session to a file that another home can import',
  detail:
    'The file, a bundle, has the session with its id and hashes, and of its ancestors what it reads. Other entries of theirs, redacted ones, ' +
    'and entries in which a secret is found travel as hashes alone. A name that ends with .zst or .gz makes a compressed file. ' +
    'Never replaces an existing file.',
  examples: [
    ['tape export main -o main.tape.zst', 'Write session main, compressed'],
    ['tape export main --tree -o main.tape', 'Write it with all sessions that were forked from it'],
    ['tape export main | tape import - --home ../other', 'Take it into another home'],
  ],
  arguments: { name: 'Session' },
  options: {
    output: { type: 'string', takes: 'FILE', alias: 'o', describe: 'New file (-, default: stdout)' },
    lineage: { type: 'boolean', describe: 'All entries of all its ancestors, too' },
    tree: { type: 'boolean', describe: 'Like --lineage, and all its descendants' },
    raw: { type: 'boolean', describe: 'Also entries in which a secret is found' },
  },
  run: async (
    { name, output: given, lineage, tree, raw },
    { io, home, reading, answer, options, status },
  ) => {
    if (lineage === true && tree === true)
      throw new UsageError('cannot export with --lineage and --tree: --tree includes --lineage');
    const output = given === stdinWord || given === '-' ? undefined : given;
    const isJson = options.json === true || options.jsonl === true;
    if (output === undefined && isJson)
      throw new UsageError('cannot print JSON about a bundle that goes to stdout: name a file with -o FILE');
    const redact = await redactIn({ io, home });
    return await reading(async (store) => {
      const { id, session } = needSession(store, name);
      const how = {
        scope:
          tree === true ? ('tree' as const) : lineage === true ? ('lineage' as const) : ('session' as const),
        raw: raw === true,
        secrets: secretsIn(io.env),
        ...(redact !== undefined && redact !== false && { redact }),
      };
      if (output === undefined) {
        const lines = store.bundles.write(id, how);
        for (;;) {
          const { done, value } = lines.next();
          if (done === true) {
            if (value.withheld > 0) status(withheldText(value.withheld));
            return 0;
          }
          await io.out(value);
        }
      }
      const file = resolve(io.cwd, output);
      const { sessions, entries, withheld, hashed } = await store.bundles.save(id, file, how);
      await answer({
        json: { file, session, sessions, entries, withheld, hashed },
        quiet: file,
        human: `Exported ${session} to ${file}: ${counted(sessions, 'session')}, ${counted(entries, 'entry', 'entries')}${hashed === 0 ? '' : `, of which ${hashed} as hashes alone`}`,
      });
      if (withheld > 0) status(withheldText(withheld));
      return 0;
    });
  },
});

function withheldText(withheld: number): string {
  return `${counted(withheld, 'entry', 'entries')} with a secret: only the hashes were exported; to export all, add --raw`;
}
