import { exit } from '../exit.ts';
import { hintFor } from './hint.ts';
import { UsageError } from './kinds.ts';

const exits: Readonly<Record<string, number>> = {
  CLI_USAGE: exit.usage,
  CLI_NOT_FOUND: exit.notFound,
  CLI_BAD_CONFIG: exit.usage,
  CLI_UNTRUSTED: exit.usage,
  TAPE_NO_SESSION: exit.notFound,
  TAPE_NO_ANCHOR: exit.notFound,
  TAPE_NO_SEQ: exit.notFound,
  TAPE_NO_BLOB: exit.notFound,
  GRAPH_NO_SESSION: exit.notFound,
  TAPE_BAD_NAME: exit.usage,
  TAPE_BAD_ENTRY: exit.usage,
  TAPE_BAD_POINT: exit.usage,
  TAPE_BAD_POLICY: exit.usage,
  TAPE_BAD_STATUS: exit.usage,
  TAPE_EXISTS: exit.conflict,
  TAPE_KEY_CONFLICT: exit.conflict,
  TAPE_CONFLICT: exit.conflict,
  TAPE_ARCHIVED: exit.conflict,
  TAPE_STALE_HEAD: exit.conflict,
  TAPE_BUSY: exit.conflict,
  TAPE_FENCED: exit.conflict,
  TAPE_UNSETTLED: exit.conflict,
  TAPE_LOCKED: exit.conflict,
  TAPE_CORRUPT: exit.damaged,
  TAPE_NOT_A_TAPE: exit.damaged,
  GRAPH_DIVERGED: exit.damaged,
  SESSION_BUSY: exit.conflict,
  SESSION_BAD_INPUT: exit.usage,
  SESSION_NO_CALL: exit.notFound,
  SESSION_NO_MODEL: exit.usage,
  SESSION_NO_KEY: exit.usage,
  SESSION_NO_FILE: exit.usage,
  SESSION_BAD_SCRIPT: exit.usage,
  SESSION_BAD_CONFIG: exit.usage,
  SESSION_LIMIT: exit.conflict,
  SESSION_ENDED: exit.conflict,
  SESSION_MODEL_TOO_SMALL: exit.conflict,
  SESSION_CANNOT_UNDO: exit.conflict,
  SESSION_MERGE_WAITING: exit.accepted,
  SESSION_NO_REPOSITORY: exit.usage,
  SESSION_NO_WORKSPACE: exit.notFound,
  SESSION_CANNOT_APPLY: exit.conflict,
};

/** An error as the command line tells it. */
export interface Told {
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly exit: number;
}

/** What to say of anything thrown, and with which code to end. */
export function tell(error: unknown): Told {
  const { code, message, data } = error as { code?: unknown; message?: unknown; data?: unknown };
  const known = typeof code === 'string' && /^(?:TAPE|GRAPH|SESSION|IMPORT|CLI)_/.test(code);
  const facts = (known ? (data ?? {}) : {}) as Readonly<Record<string, unknown>>;
  const told = {
    code: known ? code : 'CLI_FAILED',
    message: (typeof message === 'string' && message !== '' ? message : String(error)).replace(
      /\s*\n\s*/g,
      ' ',
    ),
    data: facts,
    exit: known ? (exits[code] ?? exit.failed) : exit.failed,
  };
  const hint =
    error instanceof UsageError && error.hint !== undefined ? error.hint : hintFor(told.code, facts);
  return hint === undefined ? told : { ...told, hint };
}
