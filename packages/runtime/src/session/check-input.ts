import { SessionError } from '../errors.ts';
import { type CallSettings, faultText, settingsFault } from '../model/call-settings.ts';
import type { Input } from '../run/options.ts';
import { queueModes } from '../run/queue.ts';

/**
 * The error for a bad input, mode, step limit or settings, before anything is written. Undefined when all are valid.
 */
export function inputFault(
  session: string,
  {
    input,
    mode,
    maxSteps,
    settings,
  }: {
    input?: Input | undefined;
    mode?: string | undefined;
    maxSteps?: number | undefined;
    settings?: CallSettings | undefined;
  },
): SessionError | undefined {
  const why = badInput(input) ?? unknownMode(mode) ?? badSteps(maxSteps) ?? badSettings(settings);
  if (why === undefined) return undefined;
  return new SessionError('SESSION_BAD_INPUT', `cannot send input to '${session}': ${why}`, {
    data: { session },
  });
}

function badInput(input: Input | undefined): string | undefined {
  if (input === undefined) return undefined;
  if (typeof input !== 'string' && !Array.isArray(input)) return 'it must be a text or an array of parts';
  const isEmpty = typeof input === 'string' ? input.trim() === '' : input.length === 0;
  return isEmpty ? 'the input is empty' : undefined;
}

function unknownMode(mode: string | undefined): string | undefined {
  const isKnown = mode === undefined || queueModes.some((known) => known === mode);
  return isKnown ? undefined : `unknown mode '${mode}', expected one of ${queueModes.join(', ')}`;
}

function badSettings(settings: CallSettings | undefined): string | undefined {
  const fault = settingsFault(settings);
  return fault === undefined ? undefined : faultText(fault);
}

function badSteps(maxSteps: number | undefined): string | undefined {
  return maxSteps === undefined || maxSteps >= 1 ? undefined : 'maxSteps must be at least 1';
}
