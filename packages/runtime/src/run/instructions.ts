import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { type Draft, type Entry, type JsonObject, note, type SessionInfo, sha256 } from '@tapedeck/tape';
import type { ToolSet } from 'ai';
import type { Shared } from '../config/shared.ts';
import { SessionError } from '../errors.ts';
import { asSchema, type LanguageModel, modelMeta } from '../model/model.ts';
import { environmentOf, pin } from '../prompt/environment.ts';
import type { Omission } from '../prompt/file.ts';
import { readProjectFiles } from '../prompt/project-files.ts';
import { readSkills, readSkillTool } from '../prompt/skills.ts';
import {
  type Environment,
  type SystemPrompt,
  systemPrompt,
  type ToolEntry,
} from '../prompt/system-prompt.ts';
import type { SessionEvent } from '../stream/events.ts';
import { modelFor } from '../terms/model-for.ts';
import { factsOf, type Settings } from '../terms/terms.ts';
import { definitionsOf } from '../tools/schema.ts';
import type { DeckTools } from '../tools/traits.ts';
import { workspaceOf } from '../workspace/open.ts';
import type { RunOptions } from './options.ts';

/** What a model is told before the messages, and what was left out of it. */
export interface Instructions extends SystemPrompt {
  readonly omitted: readonly Omission[];
}

/** What is told to whom. */
export interface InstructionsInput {
  readonly settings: Settings;
  readonly options: Pick<RunOptions, 'instructions'>;
  readonly model: LanguageModel | undefined;
  /** The tools as they are sent. */
  readonly definitions: ToolSet;
  /** The directory of the session's worktree, if it has one. */
  readonly workspace: string | undefined;
}

interface Gathered extends Instructions {
  /** What is to be kept from now on. */
  readonly unpinned: Environment | undefined;
}

/** The tools of a run: its own, else the deck's, and the one that reads the deck's skills. */
export function toolsOf(
  { config, cwd }: Pick<Shared, 'config' | 'cwd'>,
  { tools, useTools }: Pick<RunOptions, 'tools' | 'useTools'>,
): DeckTools {
  if (useTools === false) return {};
  const given = tools ?? config.tools ?? {};
  const skills = config.prompt?.skills ?? [];
  return skills.length === 0 ? given : { read_skill: readSkillTool(skills, directoryOf(cwd)), ...given };
}

/**
 * What a session's model would be told if it were asked now. Nothing is written; a session whose model cannot be had is told
 * of none.
 */
export async function instructionsOf(
  parts: Shared,
  info: SessionInfo,
  options: Pick<RunOptions, 'model' | 'instructions' | 'tools' | 'useTools'> = {},
): Promise<Instructions> {
  const facts = await factsOf(parts.store, info);
  const model = await modelFor(parts, facts, { options }).catch((error) => {
    if (error instanceof SessionError) return undefined;
    throw error;
  });
  const definitions = await definitionsOf(toolsOf(parts, options));
  const workspace = facts.origin.worktree === undefined ? undefined : await workspaceOf(parts, info.id);
  const entries = await Array.fromAsync(parts.store.viewEntries(info.id));
  const { unpinned: _, ...instructions } = await gather(parts, entries, {
    settings: facts.origin.settings,
    options,
    model,
    definitions,
    workspace,
  });
  return instructions;
}

/** How a run writes and tells of what its model is told. */
export interface InstructionsLog {
  readonly run: string;
  readonly append: (drafts: readonly Draft[]) => Promise<unknown>;
  readonly tell: (event: SessionEvent) => void;
  /** Told each time what the model is told. */
  readonly onInstructions: (text: string) => void;
}

/**
 * What the model of a run is told, put together anew for each of its calls (G58): a file that has changed is read again
 * (X69). What is told for the first time is kept on the tape, and so is what was left out of it.
 */
export function instructor(
  parts: Shared,
  telling: InstructionsInput,
  { run, append, tell, onInstructions }: InstructionsLog,
): (entries: readonly Entry[]) => Promise<string | undefined> {
  let kept: string | undefined;
  let lacking = '[]';
  return async (entries) => {
    const { text, digest, omitted, unpinned } = await gather(parts, entries, telling);
    if (parts.config.prompt === undefined) return text;
    const missing = JSON.stringify(omitted);
    const drafts = [
      ...(unpinned === undefined ? [] : [pin(unpinned, run)]),
      // The bytes are kept once, under the digest.
      ...(text === undefined || digest === undefined || digest === kept
        ? []
        : [once('instructions/text', { text: Buffer.from(text) }, { digest, run })]),
      ...(missing === lacking
        ? []
        : [once('instructions/omitted', { omitted }, { digest: sha256(missing), run })]),
    ];
    if (drafts.length > 0) await append(drafts);
    if (missing !== lacking)
      for (const { path, why } of omitted)
        tell({ type: 'warning', message: `cannot tell the model of '${path}': ${why}` });
    [kept, lacking] = [digest, missing];
    if (text !== undefined) onInstructions(text);
    return text;
  };
}

/** The same content is kept once on a tape. */
function once(
  name: string,
  payload: object,
  { digest, run }: { readonly digest: string; readonly run: string },
): Draft {
  return { ...note(name, null, { run }), payload, key: `${name}:${digest}` };
}

async function gather(
  parts: Shared,
  entries: readonly Entry[],
  telling: InstructionsInput,
): Promise<Gathered> {
  const { config, cwd, env, now } = parts;
  const { settings, options, model, definitions } = telling;
  const manifest = options.instructions ?? settings.instructions ?? config.instructions;
  const alone = {
    ...systemPrompt(manifest === undefined ? {} : { manifest }),
    omitted: [],
    unpinned: undefined,
  };
  // What a child is told was settled when it was forked.
  if (config.prompt === undefined || settings.instructions !== undefined) return alone;
  const { project = false, skills: folders = [], environment: isPlaced, tools: hasTools } = config.prompt;
  const asked = typeof project === 'string' ? [project] : [];
  const directory = telling.workspace ?? resolve(directoryOf(cwd), ...asked);
  const { files, omitted: noFiles } =
    project === false ? nothing : await readProjectFiles(directory, env.HOME ?? homedir());
  const { skills, omitted: noSkills } =
    'read_skill' in definitions && folders.length > 0 ? await readSkills(folders, directoryOf(cwd)) : nothing;
  const here = { workspace: directory, model: model === undefined ? undefined : modelMeta(model).model };
  const placed = isPlaced === true ? await environmentOf(entries, here, now()) : undefined;
  const prompt = systemPrompt({
    ...(manifest !== undefined && { manifest }),
    project: files,
    skills,
    ...(placed !== undefined && { environment: placed.environment }),
    ...(hasTools === true && { tools: await entriesOf(definitions) }),
  });
  return {
    ...prompt,
    omitted: [...noFiles, ...noSkills],
    unpinned: placed?.isPinned === false ? placed.environment : undefined,
  };
}

const nothing = { files: [], skills: [], omitted: [] };

/** The working directory is asked for only where it is needed: there may be none. */
function directoryOf(directory: string | undefined): string {
  return directory ?? process.cwd();
}

/** SHA-256 of the tools as they are sent; none of none. */
export async function toolsDigestOf(definitions: ToolSet): Promise<string | undefined> {
  const tools = await entriesOf(definitions);
  return tools.length === 0 ? undefined : sha256(JSON.stringify(tools));
}

async function entriesOf(definitions: ToolSet): Promise<readonly ToolEntry[]> {
  const entries = Object.entries(definitions).map(async ([name, { description, inputSchema, type }]) => ({
    name,
    ...(typeof description === 'string' && { description }),
    ...(type !== 'provider' && { schema: (await asSchema(inputSchema).jsonSchema) as JsonObject }),
  }));
  return await Promise.all(entries);
}
