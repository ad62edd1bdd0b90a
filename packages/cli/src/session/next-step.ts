import type { CheckStep } from '@tapedeck/runtime';
import { commandLine, shellWord } from '../escape.ts';
import { isAddress } from '../server-home.ts';

/** What a step is about. */
export interface StepOf {
  /** The finding. */
  readonly id?: string;
  /** The home that the user named: without it, a command would look at another one. */
  readonly home?: string | undefined;
}

/** The command of a step. */
export function commandFor(step: CheckStep, { id = 'FINDING', home }: StepOf = {}): string {
  // A backup becomes another home, beside the one that is damaged.
  if (step.act === 'restore') return `tape restore BACKUP ${besides(home)}`;
  const { verb, words = [], options = [] } = partsOf(step, id);
  const place = home === undefined ? [] : [`--home ${shellWord(home)}`];
  return commandLine(verb, words, [...options, ...place]);
}

function besides(home: string | undefined): string {
  // On a server there is no directory beside it.
  if (home === undefined || isAddress(home)) return 'DIR';
  return shellWord(`${home.replace(/\/+$/, '')}-restored`);
}

interface Parts {
  readonly verb: string;
  readonly words?: readonly string[];
  readonly options?: readonly string[];
}

function partsOf({ act, session, seq }: CheckStep, id: string): Parts {
  const words = session === undefined ? [] : [session];
  switch (act) {
    case 'answer':
      return { verb: 'approve', words };
    case 'unarchive':
      return { verb: 'archive', words, options: ['--undo'] };
    case 'undelete':
      return { verb: 'undo', words };
    case 'look':
      return { verb: 'show', words: [`${session}@${seq}`] };
    case 'fix':
      return { verb: 'check', options: ['--fix'] };
    case 'rebuild':
      return { verb: 'doctor', options: ['--fix'] };
    case 'acknowledge':
      return { verb: 'check', options: [`--acknowledge ${shellWord(id)}`] };
    case 'verify':
      return { verb: 'verify' };
    default:
      return { verb: act, words };
  }
}
