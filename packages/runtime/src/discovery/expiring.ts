import { existsSync } from 'node:fs';
import { relative } from 'node:path';
import { isJsonLines, type Retention, type TranscriptTool } from '../plan/format.ts';
import { heldBy, isUnchanged, type Source } from '../sources/index.ts';
import { discover, type Search } from './discover.ts';
import { makeExcludes } from './excludes.ts';
import type { FoundFile } from './found-file.ts';
import { Walk } from './walk.ts';

/** A transcript that no tape has, or not all of it, and that its tool is about to delete. */
export interface Expiring {
  readonly file: FoundFile;
  /** When its tool may delete it, in milliseconds since 1970: it does when it is started after that. */
  readonly at: number;
}

/** The transcripts in the folders of the tools. */
export interface Standing {
  /** How many there are. */
  readonly transcripts: number;
  /** Those that are about to be lost, the next one first. */
  readonly expiring: readonly Expiring[];
  /** How long the tools keep them that have some. */
  readonly retentions: readonly { readonly tool: TranscriptTool; readonly retention: Retention }[];
}

const dayMs = 86_400_000;

/** The days before a file is deleted from which on a warning makes sense: a week, or half of the time that it is kept. */
const daysAhead = (days: number): number => Math.min(7, days / 2);

/**
 * Which transcripts are about to be deleted of which something was not read. Looks at each file, and opens only those that are
 * about to be deleted: what they say decides whether they are left out, or were read under another time or path.
 */
export async function standingOf(
  search: Pick<Search, 'place' | 'tools' | 'exclude' | 'ignored' | 'known'> & {
    /** What is known of other files of the same session. */
    readonly elsewhere?: (file: FoundFile) => readonly Source[];
  },
  now: number,
): Promise<Standing> {
  const { place, tools, exclude = [], known, elsewhere } = search;
  const walk = new Walk(await makeExcludes(exclude, place));
  const due = new Map<string, number>();
  const retentions: { tool: TranscriptTool; retention: Retention }[] = [];
  let transcripts = 0;
  for (const tool of tools) {
    const retention = tool.retention?.(place);
    if (retention === undefined) continue;
    const before = transcripts;
    for (const root of tool.roots(place).filter((one) => existsSync(one)))
      for (const { path, facts } of walk.files(root, (one) => tool.has(relative(root, one)))) {
        if (!isJsonLines(path)) continue;
        transcripts += 1;
        const at = Math.floor(facts.modified) + retention.days * dayMs;
        if (at - now > daysAhead(retention.days) * dayMs) continue;
        const source = known?.(path);
        if (source === undefined || !isUnchanged(source, facts)) due.set(path, at);
      }
    if (transcripts > before) retentions.push({ tool, retention });
  }
  const { files } = due.size === 0 ? { files: [] } : await discover({ ...search, paths: [...due.keys()] });
  const expiring: Expiring[] = [];
  for (const file of files) {
    const at = due.get(file.path);
    if (at === undefined) continue;
    const here = known?.(file.path);
    const sources = [...(here === undefined ? [] : [here]), ...(elsewhere?.(file) ?? [])];
    if ((await heldBy(file.path, sources)) === undefined) expiring.push({ file, at });
  }
  return { transcripts, expiring: expiring.toSorted((a, b) => a.at - b.at), retentions };
}
