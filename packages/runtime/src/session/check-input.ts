import { SessionError } from '../errors.ts';
import type { Input } from '../run/options.ts';
import { queueModes } from '../run/queue.ts';

/** Why a run or a message cannot be taken as it was given, before anything is written; nothing when it can. */
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
  return new SessionError('SESSION_BAD_INPUT', `cannot tell '${session}' that: ${why}`, {
    data: { session },
  });
}

function emptyInput(input: Input | undefined): string | undefined {
  if (input === undefined) return undefined;
  const isEmpty = typeof input === 'string' ? input.trim() === '' : input.length === 0;
  return isEmpty ? 'it is empty, which no model takes' : undefined;
}

function unknownMode(mode: string | undefined): string | undefined {
  const isKnown = mode === undefined || queueModes.some((known) => known === mode);
  return isKnown ? undefined : `there is no mode '${mode}', only ${queueModes.join(', ')}`;
}

function badSteps(maxSteps: number | undefined): string | undefined {
  return maxSteps === undefined || maxSteps >= 1 ? undefined : 'maxSteps must be at least 1';
}
