import type { Draft, HomeStore } from '@tapedeck/tape';
import { type Reconciled, repairsIn } from './reconciled.ts';

/** What an import wrote of some drafts. */
export type Wrote = Pick<Reconciled, 'added' | 'rewound' | 'redacted' | 'omitted'>;

/**
 * Appends drafts behind a head in one transaction. Where another import of the same source was faster with the same drafts,
 * these are no entries of this one.
 */
export function appendDrafts(
  store: HomeStore,
  session: string,
  drafts: readonly Draft[],
  expectHead: string | undefined,
): Wrote {
  const added = drafts.length === 0 ? 0 : store.entries.append(session, drafts, { expectHead }).added;
  return wroteOf(added === 0 ? [] : drafts, added);
}

/** What was written, where drafts became entries: rewinds count as none. The first one makes room for others. Pure. */
export function wroteOf(drafts: readonly Draft[], added: number = drafts.length): Wrote {
  const rewinds = drafts.filter(({ kind }) => kind === 'rewind').length;
  return { added: added - rewinds, rewound: drafts[0]?.kind === 'rewind', ...repairsIn(drafts) };
}

/** What was written in two steps. Pure. */
export function bothOf(one: Wrote, other: Wrote): Wrote {
  return {
    added: one.added + other.added,
    rewound: one.rewound || other.rewound,
    redacted: one.redacted + other.redacted,
    omitted: one.omitted + other.omitted,
  };
}
