import { readdir } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { isObject, type Json } from '@tapedeck/tape';
import { z } from 'zod';
import type { DeckTool } from '../tools/traits.ts';
import { type Omission, readPromptFile, reasonOf } from './file.ts';
import type { SkillName } from './system-prompt.ts';

/** A folder with a `SKILL.md`: how one sort of work is done, for when it is to be done. */
interface Skill extends SkillName {
  readonly folder: string;
  /** The text below its head. */
  readonly body: string;
}

export interface Skills {
  readonly skills: readonly Skill[];
  readonly omitted: readonly Omission[];
}

/** How many folders of a folder are looked into. */
const foldersMax = 200;

/** How long a description may be, in characters; the rest is cut. */
const descriptionMax = 300;

/**
 * Reads the skills of folders: each is a skill, or has some in it. What cannot be read, or names none, is left out and told
 * of; of several of one name the first counts, by the paths of their folders.
 */
export async function readSkills(folders: readonly string[], from: string): Promise<Skills> {
  const skills: Skill[] = [];
  const omitted: Omission[] = [];
  const known = new Set<string>();
  for (const folder of [...new Set(folders.map((one) => resolve(from, one)))].sort())
    for (const found of await skillsIn(folder)) {
      if ('why' in found) omitted.push(found);
      else if (known.has(found.name))
        omitted.push({ path: join(found.folder, file), why: `there is another skill '${found.name}'` });
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
      found.push({ path: folder, why: `only the first ${foldersMax} of what is in it were looked at` });
    return found.length > 0 ? found : [{ path: folder, why: `there is no ${file} in it` }];
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    return [{ path: folder, why: isMissing ? 'there is no such folder' : reasonOf(error) }];
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

/** A skill's head is YAML between two lines `---`, with its `description` and, where it is not the folder's, its `name`. */
async function parseSkill(
  text: string,
  folder: string,
): Promise<Omit<Skill, 'folder'> | { readonly why: string }> {
  const [whole, head = ''] = /^---[ \t]*\r?\n(?:(.*?)\n)??---[ \t]*(?:\r?\n|$)/s.exec(text) ?? [];
  if (whole === undefined) return { why: 'it does not begin with a head between two lines ---' };
  const { parse } = await import('yaml');
  let fields: unknown;
  try {
    fields = parse(head, { logLevel: 'error' });
  } catch {
    // What YAML says would quote the file.
    return { why: 'its head is no YAML' };
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

const input = z.object({ name: z.string().describe('Its name, as the list of skills has it') });

/** The tool with which a model reads a skill, as it is on disk then. */
export function readSkillTool(folders: readonly string[], from: string): DeckTool {
  return {
    description: 'Read a skill: how one sort of work is done.',
    inputSchema: input,
    paths: {},
    safeToRepeat: true,
    execute: async ({ name }: z.infer<typeof input>) => {
      const { skills } = await readSkills(folders, from);
      const skill = skills.find((one) => one.name === name);
      if (skill !== undefined) return `Folder: ${skill.folder}\n\n${skill.body.trim()}`;
      const names = skills.map((one) => one.name).sort();
      const there = names.length === 0 ? 'There are none.' : `There are: ${names.join(', ')}.`;
      throw new Error(`There is no skill '${name}'. ${there}`);
    },
  } as DeckTool;
}
