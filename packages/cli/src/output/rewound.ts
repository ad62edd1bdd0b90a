import type { Undone } from '@tapedeck/runtime';
import type { Rewound } from '@tapedeck/tape';
import { actNames } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { commandLine } from '../escape.ts';
import { counted } from './counted.ts';

/** The receipt of a rewind as `--json` prints it; part of the documented contract. */
export function rewoundJson(rewound: Rewound): Readonly<Record<string, unknown>> {
  const { session, seq, to, hidden, shown, snappedFrom, forks } = rewound;
  return {
    session,
    seq,
    to,
    hidden,
    shown,
    ...(snappedFrom !== undefined && { snapped_from: snappedFrom }),
    forks,
  };
}

/** Names the children that were forked from entries that are now hidden. */
export function reportForks({ forks }: Rewound, { status }: Context): void {
  if (forks.length > 0) status(`Forked from entries that are now hidden: ${forks.join(', ')}`);
}

/** What a rewind did, and the way back, also once something else is the newest act. */
export function rewoundLine(
  { session, seq, to, hidden }: Rewound,
  undo: string = commandLine('undo', [`${session}@${seq}`]),
): string {
  return `Rewound ${session} to @${to}: ${counted(hidden, 'entry', 'entries')} hidden, none removed (undo with: ${undo})`;
}

/** What an undo did, and the way back. */
export function undoneLine(
  done: Undone,
  undo: string = commandLine('undo', [`${done.session}@${done.seq}`]),
): string {
  const { session, undone, act } = done;
  return `Undid ${actNames[act]} ${session}@${undone}: ${changeOf(done)} (undo with: ${undo})`;
}

function changeOf({ act, to, shown, hidden }: Undone): string {
  return act === 'rewind'
    ? `it ends at @${to}, ${counted(shown, 'entry', 'entries')} shown again, ${hidden} hidden`
    : `${counted(hidden, 'entry', 'entries')} hidden, none removed`;
}
