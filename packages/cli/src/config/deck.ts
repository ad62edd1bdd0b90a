/**
 * Loads the configuration of a deck: finds the files, checks trust before running code, and merges options,
 * environment and files in order of precedence. `trust-home.ts` shows and records homes, `settings.ts` says where each
 * value comes from, `other-names.ts` which setting one is that another agent names, and `change.ts` changes `config.yaml`. May import `output`, `options`,
 * `context` and the folders below them.
 */

import { dirname, isAbsolute, resolve } from 'node:path';
import type { DeckConfig, McpServer, ModelSpec, RunEngine } from '@tapedeck/runtime';
import { secretsOf } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { shellWord } from '../escape.ts';
import { type Home, hasDatabase } from '../home.ts';
import { type ModelArgs, namedIn } from '../options/model.ts';
import { assertOwn, isConfigForeign, isFromElsewhere } from '../origin.ts';
import { findMeant } from '../reference.ts';
import { similarSessions } from '../similar.ts';
import { engineFor } from './engine.ts';
import { findConfig, homeConfigFile } from './find.ts';
import type { HomeConfig } from './home.ts';
import { loadConfig, readConfig } from './load.ts';
import { needTrust } from './trust.ts';
import { withoutPaths } from './without-paths.ts';

/** A configuration, and where its model comes from. */
export interface LoadedConfig extends DeckConfig {
  /** `--model`, `$TAPE_MODEL`, or the path of the file. */
  readonly modelFrom?: string;
  /** What runs the children, if that is not this process. */
  readonly engine?: RunEngine;
}

/**
 * Merges the configuration: options, else `$TAPE_MODEL`, else `tape.config.mts`, else `config.yaml` of the
 * home. The file is code, and is loaded nowhere else. Refuses a foreign home, unless the verb only reads.
 * @throws ConfigError, SESSION_BAD_CONFIG, SESSION_NO_MODEL
 */
export async function deckConfig(
  args: ModelArgs,
  { io, home, options, status }: Pick<Context, 'io' | 'home' | 'options' | 'status'>,
  { onlyReads = false }: { readonly onlyReads?: boolean } = {},
): Promise<LoadedConfig> {
  if (!onlyReads) assertOwn(home, io);
  const { model, config, maxSteps } = args;
  // An unset variable in `--model "$X"` must not pass as a missing option.
  if (model === '' || config === '')
    throw new UsageError(`cannot use ${model === '' ? '--model' : '--config'}: it is empty`);
  if (maxSteps !== undefined && !(maxSteps >= 1))
    throw new UsageError('cannot use --max-steps: it must be at least 1');
  const engine = await engineFor(args.engine, { home, status, io });
  const { settings } = namedIn(args);
  const { assertSpec, mergeConfig, secretsOfServers } = await import('@tapedeck/runtime/internal');
  const variable = io.env.TAPE_MODEL ?? '';
  const spec = model ?? (variable === '' ? undefined : variable);
  const named = model === undefined ? '$TAPE_MODEL' : '--model';
  assertSpec(spec, named);
  const { config: own, ignored } = await homeConfig({ io, home });
  // With --json, stderr is for the document of an error.
  if (ignored.length > 0 && options.json !== true && options.jsonl !== true)
    status(ignoredText(ignored, home));
  const yaml = placedIn(home.dir, own);
  const file = config === false ? undefined : await fileConfig(config, { io, home });
  const merged = mergeConfig({
    flags: {
      ...(spec !== undefined && { model: spec }),
      ...(settings !== undefined && { settings }),
      ...(maxSteps !== undefined && { limits: { maxSteps } }),
      ...(args.yes === true && { onApproval: () => ({ approved: true }) }),
      ...(args.record !== undefined && { record: args.record as 'raw' | 'none' }),
    },
    ...(file !== undefined && { file: file.config }),
    yaml,
  });
  const modelFrom =
    spec !== undefined ? named : (placeOf(file) ?? placeOf({ path: homeConfigFile(home), config: yaml }));
  io.hide([...secretsOf(merged.secrets), ...secretsOfServers(merged.mcpServers)]);
  if (merged.redact !== undefined) io.redact = merged.redact;
  return {
    ...merged,
    ...(modelFrom !== undefined && { modelFrom }),
    ...(engine !== undefined && { engine }),
  };
}

/**
 * The configuration of `config.yaml` in the home. Of one that came with the home, scripts and paths do not count: they
 * would run what another user wrote, and read what this user did not name.
 */
export async function homeConfig({
  io,
  home,
}: Pick<Context, 'io' | 'home'>): Promise<HomeConfig & { readonly ignored: readonly string[] }> {
  const { readHomeConfig } = await import('./home.ts');
  const read = await readHomeConfig(home);
  if (!isConfigForeign(home, io)) return { ...read, ignored: [] };
  const usable = withoutPaths(read.config);
  return { ...read, config: await withoutAllowed(usable.config), ignored: usable.ignored };
}

/** What the rules of a file allow that came with the home, they ask. */
async function withoutAllowed({ projectPermissions: rules, ...config }: DeckConfig): Promise<DeckConfig> {
  if (rules === undefined) return config;
  const { parseRules } = await import('@tapedeck/runtime/internal');
  return {
    ...config,
    projectPermissions: parseRules(rules).map(({ text }) => text.replace(/^allow/, 'ask')),
  };
}

/** Says which fields do not count, and what would make them count. */
export function ignoredText(ignored: readonly string[], home: Pick<Home, 'dir'>): string {
  return `Ignored ${ignored.join(', ')} of ${homeConfigFile(home)}: the file came with the home, or has changed since it was trusted (change it and trust it with: tape trust ${shellWord(home.dir)}; or use --model or --config)`;
}

interface FileConfig {
  readonly path: string;
  readonly config: DeckConfig;
}

/** The path of a file that names a model. */
function placeOf(file: FileConfig | undefined): string | undefined {
  return file?.config.model === undefined ? undefined : file.path;
}

/**
 * The configuration of the named file, which needs no trust, else of the nearest file, which must be trusted.
 */
export async function fileConfig(
  named: string | undefined,
  { io, home }: Pick<Context, 'io' | 'home'>,
): Promise<FileConfig | undefined> {
  const path = named === undefined ? findConfig(io, home) : resolve(io.cwd, named);
  if (path === undefined) return undefined;
  if (named === undefined) needTrust(readConfig(path, { found: true }), io);
  else readConfig(path);
  const { parseConfig } = await import('@tapedeck/runtime');
  const config = await parseConfig(await loadConfig(path), `'${path}'`);
  return { path, config: placedIn(dirname(path), config) };
}

/** Resolves the relative paths of a configuration against its directory. */
function placedIn(dir: string, config: DeckConfig): DeckConfig {
  const placed = <Spec extends ModelSpec>(spec: Spec): Spec | string => {
    if (typeof spec !== 'string' || !spec.startsWith('script:')) return spec;
    const file = spec.slice('script:'.length);
    return file === '' || isAbsolute(file) ? spec : `script:${resolve(dir, file)}`;
  };
  const { model, summarizer, titles, prompt, mcpServers, personas } = config;
  const { project, skills } = prompt ?? {};
  return {
    ...config,
    ...(model !== undefined && { model: placed(model) }),
    ...(summarizer !== undefined && { summarizer: placed(summarizer) }),
    ...(titles !== undefined && { titles: placed(titles) }),
    ...(mcpServers !== undefined && {
      mcpServers: Object.fromEntries(
        Object.entries(mcpServers).map(([name, server]) => [name, serverIn(dir, server)]),
      ),
    }),
    ...(personas !== undefined && {
      personas: Object.fromEntries(
        Object.entries(personas).map(([name, { model: own, ...persona }]) => [
          name,
          { ...persona, ...(own !== undefined && { model: placed(own) }) },
        ]),
      ),
    }),
    ...(prompt !== undefined && {
      prompt: {
        ...prompt,
        ...(typeof project === 'string' && { project: resolve(dir, project) }),
        ...(skills !== undefined && { skills: skills.map((folder) => resolve(dir, folder)) }),
      },
    }),
  };
}

/** A program that is named by a relative path lies beside the configuration. */
function serverIn(dir: string, server: McpServer): McpServer {
  if ('url' in server) return server;
  const { command, cwd } = server;
  return {
    ...server,
    ...(/^\.{1,2}\//.test(command) && { command: resolve(dir, command) }),
    ...(cwd !== undefined && { cwd: resolve(dir, cwd) }),
  };
}

/**
 * Checks, before the first write, that a session has a model: a configured one, or the one that its tape
 * records.
 * @throws UsageError when it has no model
 */
export async function getModelFor(
  {
    name,
    creates,
    isNew,
  }: { readonly name: string; readonly creates: boolean; readonly isNew: boolean | undefined },
  config: DeckConfig,
  context: Context,
): Promise<void> {
  if (config.model === undefined && hasDatabase(context.home)) {
    const { carriedModel } = await import('@tapedeck/runtime/internal');
    const carried = await context.reading(async (store) => {
      const info = findMeant(store, name, { creates });
      // The user may mean the session that has nearly this name, and its model.
      if (info === undefined) return isNew === true ? undefined : similarSessions(store, name)[0];
      return await carriedModel(store, info.id);
    });
    if (carried !== undefined) return;
  }
  getModel(config, context);
}

/**
 * The model of a configuration.
 * @throws UsageError when it has no model
 */
function getModel({ model }: DeckConfig, { home, io }: Pick<Context, 'home' | 'io'>): ModelSpec {
  if (model !== undefined) return model;
  const why = isFromElsewhere(home, io) ? '; scripts that came with the home do not count' : '';
  throw new UsageError('cannot run: no model was given', {
    hint: `set one with: --model openai-compatible/MODEL, or --model script:FILE${why}`,
  });
}
