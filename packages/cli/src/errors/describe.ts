import { exit } from '../exit.ts';
import { errorCodes } from './codes.ts';
import { hintFor } from './hint.ts';
import { UsageError } from './kinds.ts';

/** An error as the command line reports it. */
export interface ErrorReport {
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly exit: number;
}

/** The report of any thrown value. */
export function describeError(error: unknown): ErrorReport {
  const { code, message, data } = error as { code?: unknown; message?: unknown; data?: unknown };
  const known = typeof code === 'string' && /^(?:TAPE|GRAPH|SESSION|IMPORT|CLI)_/.test(code);
  const facts = (known ? (data ?? {}) : {}) as Readonly<Record<string, unknown>>;
  const report = {
    code: known ? code : 'CLI_FAILED',
    message: (typeof message === 'string' && message !== '' ? message : String(error)).replace(
      /\s*\n\s*/g,
      ' ',
    ),
    data: facts,
    exit: known ? (errorCodes[code]?.[0] ?? exit.failed) : exit.failed,
  };
  const hint =
    error instanceof UsageError && error.hint !== undefined ? error.hint : hintFor(report.code, facts);
  return hint === undefined ? report : { ...report, hint };
}
