import type { SessionInfo } from '@tapedeck/tape';
import type { Shared } from '../config/shared.ts';
import type { ActiveWriter } from '../status/active-writer.ts';

/** What runs of sessions work with. */
export interface WorkerParts extends Shared {
  /** Shows other processes what runs here, if there is a home. */
  readonly active: ActiveWriter | undefined;
  /** What the tools of a run get as the `context` of their options. */
  readonly toolContext: (
    info: SessionInfo,
    run: { readonly run: string; readonly workspace: string | undefined },
  ) => object;
  /** Called when the runs of a session are over and its lease is given back. */
  readonly onServed: (session: { readonly name: string; readonly id: string }) => Promise<void>;
}
