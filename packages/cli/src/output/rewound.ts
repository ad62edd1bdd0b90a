import type { Rewound } from '@tapedeck/tape';
import type { Context } from '../context.ts';

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
