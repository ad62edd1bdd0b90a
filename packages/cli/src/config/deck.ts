/**
 * How the command line gets the configuration of a deck: the files in which it stands, the trust that code needs before it
 * runs, and the order in which options, files and environment count. May import `options`, `context` and what is below them.
 */

import { existsSync } from 'node:fs';
import { dirname, isAbsolute, resolve } from 'node:path';
import type { DeckConfig, ModelSpec } from '@tapedeck/runtime';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import type { ModelArgs } from '../options/model.ts';
import { findConfig } from './find.ts';
import { loadConfig, readConfig } from './load.ts';
import { needTrust } from './trust.ts';

/**
 * What a model is run with: the options, else `$TAPE_MODEL`, else `tape.config.mts`, else `config.yaml` of the home.
 * The file is code and is loaded here, and nowhere else.
 * @throws ConfigError, SESSION_BAD_CONFIG
 */
export async function deckConfig(
  { model, config, maxSteps }: ModelArgs,
  { io, home }: Pick<Context, 'io' | 'home'>,
): Promise<DeckConfig> {
  // An unset variable in `--model "$X"` must not be taken for no option.
  if (model === '' || config === '')
    throw new UsageError(`cannot use ${model === '' ? '--model' : '--config'}: it is empty`);
  if (maxSteps !== undefined && !(maxSteps >= 1))
    throw new UsageError('cannot use --max-steps: it must be a number from 1 on');
  const { mergeConfig } = await import('@tapedeck/runtime');
  const { readHomeConfig } = await import('./home.ts');
  const variable = io.env.TAPE_MODEL ?? '';
  const spec = model ?? (variable === '' ? undefined : variable);
  const yaml = placedIn(home.dir, readHomeConfig(home));
  const file = config === false ? undefined : await fileConfig(config, { io, home });
  return mergeConfig({
    flags: {
      ...(spec !== undefined && { model: spec }),
      ...(maxSteps !== undefined && { limits: { maxSteps } }),
    },
    ...(file !== undefined && { file }),
    yaml,
  });
}

/** The file that was named, which was thereby allowed; else one that was found, which has to be trusted. */
async function fileConfig(
  named: string | undefined,
  { io, home }: Pick<Context, 'io' | 'home'>,
): Promise<DeckConfig | undefined> {
  const path = named === undefined ? findConfig(io, home) : resolve(io.cwd, named);
  if (path === undefined) return undefined;
  if (named === undefined) needTrust(readConfig(path, { found: true }), io);
  else readConfig(path);
  const { parseConfig } = await import('@tapedeck/runtime');
  const config = parseConfig(await loadConfig(path), `'${path}'`);
  return placedIn(dirname(path), config);
}

/** In a configuration a relative path is relative to the configuration, wherever the command is given. */
function placedIn(dir: string, config: DeckConfig): DeckConfig {
  const placed = (spec: ModelSpec): ModelSpec => {
    if (typeof spec !== 'string' || !spec.startsWith('script:')) return spec;
    const file = spec.slice('script:'.length);
    return file === '' || isAbsolute(file) ? spec : `script:${resolve(dir, file)}`;
  };
  const { model, summarizer, prompt } = config;
  const { project, skills } = prompt ?? {};
  return {
    ...config,
    ...(model !== undefined && { model: placed(model) }),
    ...(summarizer !== undefined && { summarizer: placed(summarizer) }),
    ...(prompt !== undefined && {
      prompt: {
        ...prompt,
        ...(typeof project === 'string' && { project: resolve(dir, project) }),
        ...(skills !== undefined && { skills: skills.map((folder) => resolve(dir, folder)) }),
      },
    }),
  };
}

/**
 * Finds out, before anything is written, whether there is a model to run a session with: a configured one, or the one that the
 * session goes on with.
 * @throws UsageError when there is none
 */
export async function getModelFor(name: string, config: DeckConfig, context: Context): Promise<void> {
  if (config.model === undefined && existsSync(context.home.db)) {
    const { carriedModel } = await import('@tapedeck/runtime');
    const carried = await context.reading(async (store) => {
      const info = store.find(name);
      return info === undefined ? undefined : await carriedModel(store, info.id);
    });
    if (carried !== undefined) return;
  }
  getModel(config);
}

/**
 * The model of a configuration.
 * @throws UsageError when there is none
 */
export function getModel({ model }: DeckConfig): ModelSpec {
  if (model !== undefined) return model;
  throw new UsageError('cannot run: no model was given', {
    hint: 'give one with: --model openai-compatible/MODEL, or --model script:FILE',
  });
}
