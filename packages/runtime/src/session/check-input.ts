import { SessionError } from '../errors.ts';
import type { Input } from '../run/options.ts';
import { queueModes } from '../run/queue.ts';

/**
 * The error for a bad input, mode or step limit, before anything is written. Undefined when all are valid.
 */
export function inputFault(
  session: string,
  {
    input,
    mode,
    maxSteps,
  }: { input?: Input | undefined; mode?: string | undefined; maxSteps?: number | undefined },
): SessionError | undefined {
  const why = emptyInput(input) ?? unknownMode(mode) ?? badSteps(maxSteps);
  if (why === undefined) return undefined;
  return new SessionError('SESSION_BAD_INPUT', `cannot send input to '${session}': ${why}`, {
    data: { session },
  });
}

function emptyInput(input: Input | undefined): string | undefined {
  if (input === undefined) return undefined;
  const isEmpty = typeof input === 'string' ? input.trim() === '' : input.length === 0;
  return isEmpty ? 'the input is empty' : undefined;
}

function unknownMode(mode: string | undefined): string | undefined {
  const isKnown = mode === undefined || queueModes.some((known) => known === mode);
  return isKnown ? undefined : `unknown mode '${mode}', expected one of ${queueModes.join(', ')}`;
}

function badSteps(maxSteps: number | undefined): string | undefined {
  return maxSteps === undefined || maxSteps >= 1 ? undefined : 'maxSteps must be at least 1';
}
