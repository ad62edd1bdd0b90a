import type { Rewound } from '@tapedeck/tape';
import type { Context } from '../context.ts';

/** The receipt of a rewind as `--json` gives it: a documented contract. */
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

/** Tells which children stand where nothing is seen any more. */
export function tellForks({ forks }: Rewound, { status }: Context): void {
  if (forks.length > 0) status(`Forked where it is hidden now: ${forks.join(', ')}`);
}

/** So many entries, in words. */
export function count(entries: number): string {
  return entries === 1 ? '1 entry' : `${entries} entries`;
}
