import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { type Draft, type Entry, note, type SessionInfo } from '@tapedeck/tape';
import { maskFor } from '@tapedeck/tape/internal';
import { sha256 } from '@tapedeck/tape/store';
import type { ToolSet } from 'ai';
import type { Shared } from '../config/shared.ts';
import { SessionError } from '../errors.ts';
import { type LanguageModel, modelMeta } from '../model/model.ts';
import { environmentOf, pin } from '../prompt/environment.ts';
import type { Omission } from '../prompt/file.ts';
import { readProjectFiles } from '../prompt/project-files.ts';
import { readSkills, readSkillTool } from '../prompt/skills.ts';
import {
  type Environment,
  type PromptParts,
  type SystemPrompt,
  systemPrompt,
  type ToolEntry,
} from '../prompt/system-prompt.ts';
import type { SessionEvent } from '../stream/events.ts';
import { modelFor } from '../terms/model-for.ts';
import { ancestryOf, factsOf, type KeptInstructions, keptInstructions } from '../terms/terms.ts';
import { definitionsOf, inputSchemaOf } from '../tools/schema.ts';
import type { DeckTools } from '../tools/traits.ts';
import { type SentTools, sentTools } from '../turn/sent-tools.ts';
import { workspaceOf } from '../workspace/open.ts';
import type { RunOptions } from './options.ts';

/** The instructions of a model call, and the parts left out of them. */
export interface Instructions extends SystemPrompt {
  readonly omitted: readonly Omission[];
}

/** The inputs of the instructions. */
export interface InstructionsInput {
  /** Those that the session keeps. */
  readonly kept: KeptInstructions | undefined;
  readonly options: Pick<RunOptions, 'instructions'>;
  readonly model: LanguageModel | undefined;
  readonly tools: DeckTools;
  /** The tool definitions sent to the provider. They load the AI SDK, so they are made only where they are used. */
  readonly definitions: () => Promise<ToolSet>;
  /** The directory of the session's worktree, if it has one. */
  readonly workspace: string | undefined;
}

interface Gathered extends Instructions {
  /** The environment to pin on the tape, if it is not pinned yet. */
  readonly unpinned: Environment | undefined;
}

/** The tools of a run: its own, else the deck's, and `read_skill` when the deck has skills. */
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
 * The instructions that the session's next model call would receive. Nothing is written. Without a usable
 * model, the environment section names none.
 */
export async function instructionsOf(
  parts: Shared,
  info: SessionInfo,
  options: Pick<RunOptions, 'model' | 'instructions' | 'tools' | 'useTools'> = {},
): Promise<Instructions> {
  const facts = await factsOf(parts.store, info);
  const chosen = await modelFor(parts, facts, { options }).catch((error) => {
    if (error instanceof SessionError) return undefined;
    throw error;
  });
  const tools = toolsOf(parts, options);
  const workspace = facts.origin.worktree === undefined ? undefined : await workspaceOf(parts, info.id);
  const entries = await Array.fromAsync(parts.store.views.entries(info.id));
  const { unpinned: _, ...instructions } = await gather(parts, entries, {
    kept: keptInstructions(await ancestryOf(parts.store, facts)),
    options,
    model: chosen?.model,
    tools,
    definitions: async () => await definitionsOf(tools),
    workspace,
  });
  return instructions;
}

/** How a run records and reports its instructions. */
export interface InstructionsLog {
  readonly run: string;
  readonly append: (drafts: readonly Draft[]) => Promise<unknown>;
  readonly emitEvent: (event: SessionEvent) => void;
  /** Called with the instructions each time they are assembled. */
  readonly onInstructions: (text: string) => void;
}

/**
 * Returns a function that assembles the instructions for each model call, so that changed files are read
 * again. New instructions and their omitted parts are recorded on the tape once.
 */
export function instructor(
  parts: Shared,
  input: InstructionsInput,
  { run, append, emitEvent, onInstructions }: InstructionsLog,
): (entries: readonly Entry[]) => Promise<string | undefined> {
  let kept: string | undefined;
  let lacking = '[]';
  return async (entries) => {
    const { text, digest, omitted, unpinned } = await gather(parts, entries, input);
    if (parts.config.prompt === undefined) return text;
    const missing = JSON.stringify(omitted);
    const drafts = [
      ...(unpinned === undefined ? [] : [pin(unpinned, run)]),
      // The bytes are stored once per digest.
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
        emitEvent({ type: 'warning', message: `cannot include '${path}' in the system prompt: ${why}` });
    [kept, lacking] = [digest, missing];
    if (text !== undefined) onInstructions(text);
    return text;
  };
}

/** A note that a tape stores once per content. */
function once(
  name: string,
  payload: object,
  { digest, run }: { readonly digest: string; readonly run: string },
): Draft {
  return { ...note(name, null, { run }), payload, key: `${name}:${digest}` };
}

async function gather(parts: Shared, entries: readonly Entry[], input: InstructionsInput): Promise<Gathered> {
  const { config, cwd, env, secrets, redactor, now } = parts;
  // What the model is sent is what the tape records.
  const promptOf = (given: PromptParts) => {
    const masked = maskFor(secrets)?.value(given) ?? given;
    return systemPrompt(redactor?.in === 'all' ? redactor.whole(masked).value : masked);
  };
  const { kept, options, model } = input;
  const manifest = options.instructions ?? kept?.text ?? config.instructions;
  const alone = {
    ...promptOf(manifest === undefined ? {} : { manifest }),
    omitted: [],
    unpinned: undefined,
  };
  // The fork already fixed the instructions of a child.
  if (config.prompt === undefined || kept?.isWhole === true) return alone;
  const { project = false, skills: folders = [], environment: isPlaced, tools: hasTools } = config.prompt;
  const configured = typeof project === 'string' ? [project] : [];
  const directory = input.workspace ?? resolve(directoryOf(cwd), ...configured);
  const { files, omitted: noFiles } =
    project === false ? nothing : await readProjectFiles(directory, env.HOME ?? homedir());
  const { skills, omitted: noSkills } =
    'read_skill' in input.tools && folders.length > 0 ? await readSkills(folders, directoryOf(cwd)) : nothing;
  const here = { workspace: directory, model: model === undefined ? undefined : modelMeta(model).model };
  const placed = isPlaced === true ? await environmentOf(entries, here, now()) : undefined;
  const prompt = promptOf({
    ...(manifest !== undefined && { manifest }),
    project: files,
    skills,
    ...(placed !== undefined && { environment: placed.environment }),
    ...(hasTools === true && { tools: await entriesOf(await input.definitions()) }),
  });
  return {
    ...prompt,
    omitted: [...noFiles, ...noSkills],
    unpinned: placed?.isPinned === false ? placed.environment : undefined,
  };
}

const nothing = { files: [], skills: [], omitted: [] };

/** Reads the working directory only where it is needed: `process.cwd()` throws when it was deleted. */
function directoryOf(directory: string | undefined): string {
  return directory ?? process.cwd();
}

/** The tools sent to the provider, as the tape records them; undefined without tools. */
export async function sentToolsOf(definitions: ToolSet): Promise<SentTools | undefined> {
  return sentTools(await entriesOf(definitions));
}

async function entriesOf(definitions: ToolSet): Promise<readonly ToolEntry[]> {
  const entries = Object.entries(definitions).map(async ([name, { description, inputSchema, type }]) => ({
    name,
    ...(typeof description === 'string' && { description }),
    ...(type !== 'provider' && { schema: await inputSchemaOf({ inputSchema }) }),
  }));
  return await Promise.all(entries);
}
