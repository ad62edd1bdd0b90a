import type { CheckStep } from '@tapedeck/runtime';
import { shellWord } from '../escape.ts';

/** What a step is about. */
export interface StepOf {
  /** The finding. */
  readonly id?: string;
  /** The home that the user named: without it, a command would look at another one. */
  readonly home?: string | undefined;
}

/** The command of a step. */
export function commandFor(step: CheckStep, { id = 'FINDING', home }: StepOf = {}): string {
  // A backup is restored elsewhere.
  const place = home === undefined || step.act === 'restore' ? '' : ` --home ${shellWord(home)}`;
  return `${words(step, id)}${place}`;
}

function words({ act, session, seq }: CheckStep, id: string): string {
  const name = session === undefined ? '' : shellWord(session);
  switch (act) {
    case 'answer':
      return `tape approve ${name}`;
    case 'unarchive':
      return `tape archive ${name} --undo`;
    case 'undelete':
      return `tape undo ${name}`;
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
