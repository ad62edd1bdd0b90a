import { exit } from '../../exit.ts';
import type { Topic } from '../page.ts';

/** The meaning of each exit code. */
const meanings: Readonly<Record<keyof typeof exit, string>> = {
  done: 'Done, or done before; also when the reader of stdout closes it',
  failed: 'Failed',
  usage: 'Invalid usage, or a name or content that is not allowed',
  notFound: 'Not found',
  conflict: 'Busy, taken, or in conflict with recorded entries',
  damaged: 'Damaged',
  accepted: 'Accepted and durable, but not done yet',
  interrupted: 'Interrupted',
};

export const exitCodes: Topic = {
  name: 'exit-codes',
  summary: 'What the exit code of a command says',
  page: {
    sections: [
      {
        blocks: [
          {
            terms: Object.entries(exit).map(([name, code]) => [
              String(code),
              meanings[name as keyof typeof exit],
            ]),
          },
          '`tape` without a verb exits 2 where it is not at a terminal with a home, whose state it shows there. Every verb that opens a home can exit 1 (it cannot be opened), 4 (another ' +
            'process has its lock) or 5 (it is damaged). docs/cli.md has the further codes of each verb.',
          'With `--json` or `--jsonl`, an error is one line on stderr: `{"error":{"code","message","hint"?,"data"}}`. ' +
            'Branch on its code or the exit code, never on the message.',
        ],
      },
    ],
  },
};
