import type { Meta } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { SessionError } from '../errors.ts';
import { ofAppend } from '../history/rewind.ts';
import { type CallSettings, faultText, settingsFault } from '../model/call-settings.ts';
import type { Input } from '../run/options.ts';
import { queueModes, sourceFault } from '../run/queue.ts';
import type { DeckTools } from '../tools/traits.ts';

/**
 * The error for a bad input, mode, source, settings, tools or metadata, before anything is written. Undefined when all are
 * valid.
 */
export function inputFault(
  session: string,
  {
    input,
    mode,
    source,
    meta,
    tools,
    settings,
  }: {
    input?: Input | undefined;
    mode?: string | undefined;
    source?: string | undefined;
    meta?: Meta | undefined;
    tools?: DeckTools | undefined;
    settings?: CallSettings | undefined;
  },
): SessionError | undefined {
  const why =
    badInput(input) ??
    unknownMode(mode) ??
    sourceFault(source) ??
    sourceFault(meta?.source) ??
    badSettings(settings) ??
    badTools(tools) ??
    badMeta(meta);
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

function badTools(tools: DeckTools | undefined): string | undefined {
  const isBad = tools !== undefined && (!isObject(tools) || !Object.values(tools).every(isObject));
  return isBad ? 'tools must be an object whose values are tools' : undefined;
}

/** What a run records in the metadata of a message. */
const recorded = [...ofAppend, 'model', 'settings', 'resends'];

function badMeta(meta: Meta | undefined): string | undefined {
  const taken = recorded.find((field) => meta !== undefined && Object.hasOwn(meta, field));
  return taken === undefined ? undefined : `meta.${taken} is recorded by the run: choose another name`;
}
