import type { SessionInfo } from '@tapedeck/tape';
import type { Shared } from '../config/shared.ts';
import type { Servers } from '../mcp/servers.ts';
import type { ActiveWriter } from '../status/active-writer.ts';
import type { Above } from './above.ts';

/** Shared by the runs of all sessions. */
export interface WorkerParts extends Shared {
  /** Lists this process's runs for other processes; undefined without a home. */
  readonly active: ActiveWriter | undefined;
  /** The MCP servers of the deck; undefined without any. */
  readonly mcp: Servers | undefined;
  /** Makes the `context` that the tools of a run receive in their options. */
  readonly toolContext: (
    info: SessionInfo,
    run: { readonly run: string; readonly workspace: string | undefined },
  ) => object;
  /** Whether a run of the session that the database stops is done again by who started it: then its task goes on. */
  readonly isDoneAgain: (id: string) => boolean;
  /** Called when a session's runs have ended and its lease is released. */
  readonly onServed: (
    session: { readonly name: string; readonly id: string },
    above: Above | undefined,
  ) => Promise<void>;
}
