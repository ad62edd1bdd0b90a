import type { CheckStep } from '@tapedeck/runtime';
import { shellWord } from '../escape.ts';

/** The command of a step; `id` names the finding. */
export function commandFor({ act, session, seq }: CheckStep, id = 'FINDING'): string {
  const name = session === undefined ? '' : shellWord(session);
  switch (act) {
    case 'answer':
      return `tape approve ${name}`;
    case 'unarchive':
      return `tape archive ${name} --undo`;
    case 'look':
      return `tape show ${name}@${seq}`;
    case 'fix':
      return 'tape check --fix';
    case 'rebuild':
      return 'tape doctor --fix';
    case 'acknowledge':
      return `tape check --acknowledge ${shellWord(id)}`;
    case 'restore':
      return 'tape restore BACKUP DIR';
    case 'verify':
      return 'tape verify';
    default:
      return `tape ${act} ${name}`;
  }
}
