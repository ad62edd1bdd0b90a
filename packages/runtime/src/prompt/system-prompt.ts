/**
 * Instructions: the text before the messages of a model call. `project-files.ts`, `skills.ts` and `environment.ts` read
 * what belongs to it, each file through `file.ts`; `system-prompt.ts` puts it together and is pure.
 * `run/instructions.ts` calls them before each model call. Imports `tools` and `workspace`.
 */
import type { JsonObject } from '@tapedeck/tape';
import { sha256 } from '@tapedeck/tape/store';

/** Instructions in sections: headings and texts, in order. */
export type Sections = Readonly<Record<string, string>>;

/** A file with a project's instructions. */
export interface ProjectFile {
  /** Its absolute path. */
  readonly path: string;
  /** Its path relative to the outermost directory searched, with `/`. */
  readonly label: string;
  readonly text: string;
}

/** What the prompt lists of a skill. */
export interface SkillName {
  readonly name: string;
  /** One line. */
  readonly description: string;
}

/** The environment of a session, as of the start of its view. */
export interface Environment {
  /** Operating system and processor, as Node.js names them, such as `linux x64`. */
  readonly platform: string;
  /** The working directory. */
  readonly workspace: string;
  /** The branch that git has checked out there. */
  readonly branch?: string;
  /** `2026-11-21`, in the time zone of the process. */
  readonly date: string;
  /** The name of the model. */
  readonly model?: string;
}

/** A tool as the prompt lists it. */
export interface ToolEntry {
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of its arguments. */
  readonly schema?: JsonObject;
}

/** The inputs of a system prompt. A missing part is left out of the text. */
export interface PromptParts {
  readonly manifest?: string | Sections;
  readonly project?: readonly ProjectFile[];
  readonly skills?: readonly SkillName[];
  readonly environment?: Environment;
  readonly tools?: readonly ToolEntry[];
}

/** One part of a system prompt, and its origin. */
export interface PromptSource {
  readonly section: 'manifest' | 'project' | 'skills' | 'environment' | 'tools';
  /** The path of a project file. */
  readonly path?: string;
  /** Its length in characters. */
  readonly chars: number;
}

/** A system prompt, and what it is made of. */
export interface SystemPrompt {
  /** Undefined if the prompt is empty. */
  readonly text: string | undefined;
  /** SHA-256 of the text in UTF-8, as lower-case hex; undefined without a text. */
  readonly digest: string | undefined;
  /** In the order of the text. */
  readonly sources: readonly PromptSource[];
}

interface Piece extends PromptSource {
  readonly text: string;
}

/**
 * The system prompt. Its parts always have this order: the deck's own instructions, the project's from the
 * outermost directory inward, the names of skills, the environment, the tools. The order in which files,
 * skills and tools are passed does not matter. Instructions without other parts are sent byte for byte. Pure.
 *
 * @example
 * ```ts
 * import { systemPrompt } from '@tapedeck/runtime';
 *
 * const { text } = systemPrompt({ manifest: 'Answer in one sentence.' });
 * console.log(text); // Answer in one sentence.
 * ```
 */
export function systemPrompt(parts: PromptParts): SystemPrompt {
  const pieces = [
    ...manifestPieces(parts.manifest),
    ...projectPieces(parts.project ?? []),
    ...skillPieces(parts.skills ?? []),
    ...environmentPieces(parts.environment),
    ...toolPieces(parts.tools ?? []),
  ];
  if (pieces.length === 0) return { text: undefined, digest: undefined, sources: [] };
  const text = pieces.map((piece) => piece.text).join('\n\n');
  return { text, digest: sha256(text), sources: pieces.map(({ text: _, ...source }) => source) };
}

function pieceOf(section: PromptSource['section'], text: string, path?: string): Piece {
  return { section, ...(path !== undefined && { path }), chars: text.length, text };
}

function manifestPieces(manifest: string | Sections | undefined): readonly Piece[] {
  if (manifest === undefined) return [];
  if (typeof manifest === 'string') return [pieceOf('manifest', manifest)];
  const sections = Object.entries(manifest).map(([heading, text]) => `# ${heading}\n\n${text}`);
  return sections.length === 0 ? [] : [pieceOf('manifest', sections.join('\n\n'))];
}

const aboutProject =
  '# Project instructions\n\nFrom the outermost directory inward. If they conflict, the later one applies.';

function projectPieces(files: readonly ProjectFile[]): readonly Piece[] {
  const depth = ({ label }: ProjectFile) => label.split('/').length;
  const sorted = files.toSorted((a, b) => depth(a) - depth(b) || inOrder(a.label, b.label));
  return sorted.map(({ path, label, text }, i) => {
    const framed = `<file path=${JSON.stringify(label)}>\n${text}\n</file>`;
    return pieceOf('project', i === 0 ? `${aboutProject}\n\n${framed}` : framed, path);
  });
}

function skillPieces(skills: readonly SkillName[]): readonly Piece[] {
  if (skills.length === 0) return [];
  const lines = skills
    .toSorted((a, b) => inOrder(a.name, b.name))
    .map(({ name, description }) => `- ${name}: ${description}`);
  const about =
    'Each skill describes one kind of work. Read it with the tool read_skill before you do that work.';
  return [pieceOf('skills', `# Skills\n\n${about}\n\n${lines.join('\n')}`)];
}

function environmentPieces(environment: Environment | undefined): readonly Piece[] {
  if (environment === undefined) return [];
  const { platform, workspace, branch, date, model } = environment;
  const lines = [
    `- Platform: ${platform}`,
    `- Workspace: ${workspace}`,
    ...(branch === undefined ? [] : [`- Git branch: ${branch}`]),
    `- Date: ${date}`,
    ...(model === undefined ? [] : [`- Model: ${model}`]),
  ];
  return [pieceOf('environment', `# Environment\n\n${lines.join('\n')}`)];
}

function toolPieces(tools: readonly ToolEntry[]): readonly Piece[] {
  if (tools.length === 0) return [];
  const entries = tools
    .toSorted((a, b) => inOrder(a.name, b.name))
    .map(({ name, description, schema }) =>
      [
        `## ${name}`,
        ...(description === undefined ? [] : [description]),
        ...(schema === undefined ? [] : [`Arguments, as JSON Schema: ${JSON.stringify(schema)}`]),
      ].join('\n\n'),
    );
  return [pieceOf('tools', `# Tools\n\n${entries.join('\n\n')}`)];
}

/** Compares by code units, so that the order does not depend on the locale. */
function inOrder(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
