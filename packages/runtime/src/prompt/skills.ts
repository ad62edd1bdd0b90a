import { readdir } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import type { Json } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { jsonInput } from '../tools/json-input.ts';
import type { DeckTool } from '../tools/traits.ts';
import { type Omission, readPromptFile, reasonOf } from './file.ts';
import type { SkillName } from './system-prompt.ts';

/** A folder with a `SKILL.md`: instructions for one kind of work, which the model reads on demand. */
interface Skill extends SkillName {
  readonly folder: string;
  /** The text below the front matter. */
  readonly body: string;
}

export interface Skills {
  readonly skills: readonly Skill[];
  readonly omitted: readonly Omission[];
}

/** The most entries of a folder that are searched for skills. */
const foldersMax = 200;

/** The most characters of a description; the rest is cut. */
const descriptionMax = 300;

/**
 * Reads the skills of folders; each folder is a skill or contains skills. Lists unreadable and unnamed skills
 * in `omitted`. Of several skills with one name, keeps the first by folder path.
 */
export async function readSkills(folders: readonly string[], from: string): Promise<Skills> {
  const skills: Skill[] = [];
  const omitted: Omission[] = [];
  const known = new Set<string>();
  for (const folder of [...new Set(folders.map((one) => resolve(from, one)))].sort())
    for (const found of await skillsIn(folder)) {
      if ('why' in found) omitted.push(found);
      else if (known.has(found.name))
        omitted.push({ path: join(found.folder, file), why: `another skill is named '${found.name}'` });
      else {
        known.add(found.name);
        skills.push(found);
      }
    }
  return { skills, omitted };
}

const file = 'SKILL.md';

async function skillsIn(folder: string): Promise<readonly (Skill | Omission)[]> {
  const own = await readSkill(folder);
  if (own !== undefined) return [own];
  try {
    const inside = (await readdir(folder)).sort();
    const found: (Skill | Omission)[] = [];
    for (const name of inside.slice(0, foldersMax)) {
      const skill = await readSkill(join(folder, name));
      if (skill !== undefined) found.push(skill);
    }
    if (inside.length > foldersMax)
      found.push({ path: folder, why: `only its first ${foldersMax} entries were searched` });
    return found.length > 0 ? found : [{ path: folder, why: `it contains no ${file}` }];
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    return [{ path: folder, why: isMissing ? 'the folder does not exist' : reasonOf(error) }];
  }
}

async function readSkill(folder: string): Promise<Skill | Omission | undefined> {
  const path = join(folder, file);
  const read = await readPromptFile(path, folder);
  if (read === undefined) return undefined;
  if ('why' in read) return { path, why: read.why };
  const parsed = await parseSkill(read.text, basename(folder));
  return 'why' in parsed ? { path, ...parsed } : { folder, ...parsed };
}

/**
 * Parses front matter: YAML between two lines `---`, with a `description` and an optional `name` (default:
 * the name of the folder).
 */
async function parseSkill(
  text: string,
  folder: string,
): Promise<Omit<Skill, 'folder'> | { readonly why: string }> {
  const [whole, head = ''] = /^---[ \t]*\r?\n(?:(.*?)\n)??---[ \t]*(?:\r?\n|$)/s.exec(text) ?? [];
  if (whole === undefined) return { why: 'it does not begin with front matter between two lines ---' };
  const { parse } = await import('yaml');
  let fields: unknown;
  try {
    fields = parse(head, { logLevel: 'error' });
  } catch {
    // The parser's message would quote the file.
    return { why: 'its front matter is not YAML' };
  }
  const { name = folder, description } = isObject(fields as Json) ? (fields as Record<string, unknown>) : {};
  if (typeof name !== 'string' || !/^[\p{L}\p{N}][\p{L}\p{N}._:-]{0,63}$/u.test(name))
    return { why: 'its name is not one word of letters, digits, . _ : and -' };
  const line = typeof description === 'string' ? description.replace(/\s+/g, ' ').trim() : '';
  if (line === '') return { why: 'it has no description' };
  return { name, description: cut(line), body: text.slice(whole.length) };
}

function cut(line: string): string {
  return line.length <= descriptionMax ? line : `${line.slice(0, descriptionMax - 1).toWellFormed()}…`;
}

const input = jsonInput<{ readonly name: string }>({
  type: 'object',
  properties: { name: { type: 'string', description: 'Its name, from the list of skills' } },
  required: ['name'],
});

/** The tool with which a model reads a skill. Reads the disk at each call. */
export function readSkillTool(folders: readonly string[], from: string): DeckTool {
  return {
    description: 'Read a skill: instructions for one kind of work.',
    inputSchema: input,
    paths: {},
    safeToRepeat: true,
    execute: async ({ name }: { readonly name: string }) => {
      const { skills } = await readSkills(folders, from);
      const skill = skills.find((one) => one.name === name);
      if (skill !== undefined) return `Folder: ${skill.folder}\n\n${skill.body.trim()}`;
      const names = skills.map((one) => one.name).sort();
      const known = names.length === 0 ? 'There are no skills.' : `Skills: ${names.join(', ')}.`;
      throw new Error(`No skill is named '${name}'. ${known}`);
    },
  } as DeckTool;
}
