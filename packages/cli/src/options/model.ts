import type { CallSettings, Effort } from '@tapedeck/runtime';
import type { Argv } from 'yargs';
import { UsageError } from '../errors/kinds.ts';

/** The options of a verb that runs a model. */
export interface ModelArgs extends SettingsArgs {
  readonly model?: string | undefined;
  /** A file, or false for none (`--no-config`). */
  readonly config?: string | false | undefined;
  readonly maxSteps?: number | undefined;
}

/** The options of a verb for settings of model calls. */
interface SettingsArgs {
  readonly temperature?: string | undefined;
  readonly effort?: string | undefined;
}

const efforts: Readonly<Record<Effort, true>> = {
  'provider-default': true,
  none: true,
  minimal: true,
  low: true,
  medium: true,
  high: true,
  xhigh: true,
  max: true,
};

/** Declares the options of every verb that runs sessions. */
export function runOptions<T>(y: Argv<T>): Argv<T & ModelArgs> {
  return settingsOptions(modelOptions(y)).option('max-steps', {
    type: 'number',
    requiresArg: true,
    describe: 'Maximum number of model calls of a run (default: as configured, else 10)',
  }) as Argv<T & ModelArgs>;
}

/** Declares the options for settings of model calls, which the session keeps. */
export function settingsOptions<T>(y: Argv<T>): Argv<T & SettingsArgs> {
  return y
    .option('temperature', {
      // Numbers of other options are whole.
      type: 'string',
      requiresArg: true,
      describe: 'Temperature of the model calls, from 0 to 2; the session keeps it (default: as configured)',
    })
    .option('effort', {
      type: 'string',
      requiresArg: true,
      choices: Object.keys(efforts),
      describe: 'Reasoning effort of the model calls; the session keeps it (default: as configured)',
    }) as Argv<T & SettingsArgs>;
}

/**
 * The model and the settings that a command names, as the options of a run.
 * @throws UsageError
 */
export function namedIn({ model, temperature, effort }: ModelArgs): {
  readonly model?: string;
  readonly settings?: CallSettings;
} {
  if (temperature !== undefined && !(/^\d+(?:\.\d+)?$/.test(temperature) && Number(temperature) <= 2))
    throw new UsageError('cannot use --temperature: it must be a number from 0 to 2');
  const settings: CallSettings = {
    ...(temperature !== undefined && { temperature: Number(temperature) }),
    ...(effort !== undefined && { effort: effort as Effort }),
  };
  return {
    ...(model !== undefined && { model }),
    ...(Object.keys(settings).length > 0 && { settings }),
  };
}

/** Declares the options of every verb that calls a model. */
export function modelOptions<T>(y: Argv<T>): Argv<T & Pick<ModelArgs, 'model' | 'config'>> {
  return y
    .option('model', {
      type: 'string',
      requiresArg: true,
      describe: 'PROVIDER/MODEL or script:FILE (default: $TAPE_MODEL, else as configured)',
    })
    .option('config', {
      type: 'string',
      requiresArg: true,
      describe: 'Configuration file (default: nearest tape.config.mts; --no-config: load none)',
    }) as Argv<T & Pick<ModelArgs, 'model' | 'config'>>;
}
