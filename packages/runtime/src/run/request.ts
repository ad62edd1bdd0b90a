import type { SessionInfo } from '@tapedeck/tape';
import type { InboxItem } from '@tapedeck/tape/store';
import { SessionError } from '../errors.ts';
import type { Hold } from '../lease/hold.ts';
import type { OutputSpec } from '../model/output.ts';
import type { Chunk } from '../stream/chunks.ts';
import type { Phase } from '../stream/events.ts';
import type { Scope } from '../telemetry/span.ts';
import type { Ancestry, Origin } from '../terms/terms.ts';
import type { Above } from './above.ts';
import type { Input, RunOptions } from './options.ts';
import type { WorkerParts } from './parts.ts';

/** What a run begins with: its input, or items of the inbox. */
export interface RunRequest {
  readonly run: string;
  readonly input?: Input | undefined;
  readonly items?: readonly InboxItem[];
  /** The inbox was read under the lease, and nothing waited in it. */
  readonly inboxIsEmpty?: boolean;
  readonly options: RunOptions;
  /** The span that the run was started in. */
  readonly caller?: Scope | undefined;
  readonly above?: Above | undefined;
  /** The schema that makes the value of the session's result, which its terms hold as JSON Schema. */
  readonly output?: OutputSpec<unknown> | undefined;
}

/** What a run is performed with. */
export interface RunScope {
  readonly parts: WorkerParts;
  readonly session: { readonly name: string; readonly id: string };
  /** The settings and terms of the session's fork. */
  readonly origin: Origin;
  /** Reads the session, whose row this is, and its ancestors. */
  readonly line: (info: SessionInfo) => Promise<Ancestry>;
  readonly hold: Hold;
  readonly signal: AbortSignal;
  readonly emit: (chunk: Chunk) => void;
  readonly enter: (phase: Phase) => void;
  readonly retrying: (attempt: number, message: string) => void;
  /** Called with the MCP servers that the run uses. */
  readonly uses: (servers: readonly string[]) => void;
  /** Called with the instructions of each model call. */
  readonly onInstructions: (instructions: string) => void;
  /** Aborts the run from within, on request of an inbox item. */
  readonly abort: (reason: string) => void;
}

/** The current row of the session. */
export async function infoOf({ parts, session }: Pick<RunScope, 'parts' | 'session'>): Promise<SessionInfo> {
  const info = await parts.store.sessions.find(session.id);
  if (info !== undefined) return info;
  throw new SessionError('SESSION_CLOSED', `cannot find '${session.name}': its row is gone`, {
    data: { session: session.name },
  });
}
