import type { Argv } from 'yargs';

/** The options of a verb that runs a model. */
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
    describe: 'Maximum number of model calls of a run (default: as configured, else 10)',
  }) as Argv<T & ModelArgs>;
}

/** Declares the options of every verb that calls a model. */
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
      describe: 'Configuration file (default: nearest tape.config.mts; --no-config: load none)',
    }) as Argv<T & Omit<ModelArgs, 'maxSteps'>>;
}
