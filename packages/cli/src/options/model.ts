import type { Argv } from 'yargs';

/** What the options of a verb that runs a model say. */
export interface ModelArgs {
  readonly model?: string | undefined;
  /** A file, or false for none (`--no-config`). */
  readonly config?: string | false | undefined;
  readonly maxSteps?: number | undefined;
}

/** Declares the options of every verb that runs sessions. */
export function runOptions<T>(y: Argv<T>): Argv<T & ModelArgs> {
  return modelOptions(y).option('max-steps', {
    type: 'number',
    requiresArg: true,
    describe: 'Model calls of a run at most (default: as configured, else 10)',
  }) as Argv<T & ModelArgs>;
}

/** Declares the options of every verb that asks a model. */
export function modelOptions<T>(y: Argv<T>): Argv<T & Omit<ModelArgs, 'maxSteps'>> {
  return y
    .option('model', {
      type: 'string',
      requiresArg: true,
      describe: 'PROVIDER/MODEL or script:FILE (default: $TAPE_MODEL, else as configured)',
    })
    .option('config', {
      type: 'string',
      requiresArg: true,
      describe: 'Configuration file (default: the nearest tape.config.mts; --no-config for none)',
    }) as Argv<T & Omit<ModelArgs, 'maxSteps'>>;
}
