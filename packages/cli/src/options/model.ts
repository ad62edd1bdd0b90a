import type { CallSettings, Effort } from '@tapedeck/runtime';
import { UsageError } from '../errors/kinds.ts';
import { engineOptions } from './engine.ts';

/** The options of a verb that runs a model. */
export interface ModelArgs extends SettingsArgs {
  readonly model?: string | undefined;
  /** A file, or false for none (`--no-config`). */
  readonly config?: string | false | undefined;
  readonly maxSteps?: number | undefined;
  readonly yes?: boolean | undefined;
  readonly record?: string | undefined;
  readonly engine?: string | undefined;
}

/** The options of a verb for settings of model calls. */
interface SettingsArgs {
  readonly temperature?: string | undefined;
  readonly effort?: string | undefined;
}

/** The options of every verb that calls a model. */
export const modelOptions = {
  model: {
    type: 'string',
    takes: 'SPEC',
    describe:
      'PROVIDER/MODEL or script:FILE (default: that of the session, else $TAPE_MODEL, else as configured)',
  },
  config: {
    type: 'string',
    takes: 'FILE',
    negatable: true,
    describe: 'Configuration file (default: nearest tape.config.mts; --no-config: load none)',
  },
} as const;

/** The options for settings of model calls, which the session keeps. */
export const settingsOptions = {
  // Numbers of other options are whole.
  temperature: {
    type: 'string',
    describe: 'Temperature of the model calls, from 0 to 2; the session keeps it (default: as configured)',
  },
  effort: {
    type: 'string',
    choices: ['provider-default', 'none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'],
    describe: 'Reasoning effort of the model calls; the session keeps it (default: as configured)',
  },
} as const;

const stepOptions = {
  'max-steps': {
    type: 'number',
    describe: 'Maximum number of model calls of a run (default: as configured, else 10)',
  },
} as const;

const approvalOptions = {
  yes: {
    type: 'boolean',
    describe: 'Approve all calls of tools that need approval. What rules deny stays denied',
  },
} as const;

const recordOptions = {
  record: {
    type: 'string',
    choices: ['raw', 'none'],
    describe:
      'raw: keep requests and responses of the model calls in logs/ULID/raw.jsonl of the home; none: of no session (default: as configured, else as the session was made)',
  },
} as const;

/** The options of every verb whose process runs sessions. */
export const processOptions: typeof modelOptions &
  typeof settingsOptions &
  typeof stepOptions &
  typeof approvalOptions &
  typeof recordOptions = {
  ...modelOptions,
  ...settingsOptions,
  ...stepOptions,
  ...approvalOptions,
  ...recordOptions,
};

/** Those of a verb that runs sessions, and can leave their children to workers. */
export const runOptions: typeof processOptions & typeof engineOptions = {
  ...processOptions,
  ...engineOptions,
};

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
