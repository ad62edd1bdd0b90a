import type { FoundFile } from '../discovery/index.ts';
import { factsAt } from '../lines/index.ts';
import {
  type Held,
  heldBy,
  isUnchanged,
  olderThan,
  type Source,
  type SourceTable,
} from '../sources/index.ts';

/** A file that holds just what was read, under its own path or another one, or the beginning of what another file has. */
export interface HeldFile {
  readonly file: FoundFile;
  /** Absent where its place, its size and its time are those that it had. */
  readonly held?: Held;
}

/**
 * The files of a conversation if none of them holds anything else than what was read, as where they were moved, copied,
 * compressed or only touched, or are older than others: they need no plan. Undefined otherwise, and where a tape has to be told
 * that a source is back.
 */
export async function heldFiles(
  files: readonly FoundFile[],
  table: SourceTable,
): Promise<readonly HeldFile[] | undefined> {
  const all: HeldFile[] = [];
  for (const file of files) {
    const { path, facts, tool, session } = file;
    const here = table.at(path);
    const isKnown = here !== undefined && isSettled(here) && isUnchanged(here, facts);
    const sources = [...(here === undefined ? [] : [here]), ...table.of({ tool: tool.name, session, path })];
    const isHeld = async () =>
      (await heldBy(path, sources.filter(isWhole))) ?? (await olderThan(path, sources.filter(isSettled)));
    const held = isKnown ? undefined : await isHeld();
    if (!isKnown && held === undefined) return undefined;
    all.push({ file, ...(held !== undefined && { held }) });
  }
  return all;
}

/** Records where files are by now. One that has moved, or was compressed, is known by its new path alone. */
export function recordHeld(table: SourceTable, files: readonly HeldFile[], at: number): void {
  for (const { file, held } of files) {
    if (held === undefined) continue;
    const { path, facts } = file;
    const { device, inode, size, modified } = facts;
    const { compression: _, ...source } = held.source;
    const { compression, read } = held;
    const isBehind = held.as === 'version' && ({ isBehind: true } as const);
    const now: Source = { ...source, path, device, inode, size, modified, read, at, ...isBehind };
    table.put([compression === undefined ? now : { ...now, compression }]);
    if (source.path === path || held.as === 'version') continue;
    table.ends.put(now, compression === undefined ? table.ends.of(source) : undefined);
    if (factsAt(source.path) !== undefined) continue;
    table.ends.put(source, undefined);
    table.remove(source.path);
  }
}

function isSettled({ goneAt, forgottenAt, isBehind, lacks }: Source): boolean {
  return [goneAt, forgottenAt, isBehind, lacks].every((one) => one === undefined);
}

/** Whether all that a source had was read: what follows the last newline is not in the digest. */
function isWhole(source: Source): boolean {
  const { compression, size, read } = source;
  return isSettled(source) && (compression !== undefined || read.digest.size === size);
}
