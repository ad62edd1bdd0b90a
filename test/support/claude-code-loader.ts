import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/**
 * The messages that Claude Code 2.1.330 sends for a transcript: those from its last record back to the last compaction, what
 * that kept behind its summary. Written after what the program does, and without the code of the importer.
 */
export function claudeCodeContext(records: readonly JsonObject[]): JsonObject[] {
  const parents = new Map<string, string | null>();
  const byId = new Map<string, JsonObject>();
  let last: string | undefined;
  let boundary: JsonObject | undefined;
  for (const record of records) {
    if (typeof record.uuid !== 'string') continue;
    last = record.uuid;
    byId.set(last, record);
    parents.set(last, typeof record.parentUuid === 'string' ? record.parentUuid : null);
    if (record.subtype === 'compact_boundary') boundary = record;
  }
  const metadata = isObject(boundary?.compactMetadata) ? boundary.compactMetadata : {};
  const kept = isObject(metadata.preservedMessages) ? metadata.preservedMessages : {};
  const { anchorUuid: anchor, uuids } = kept;
  if (typeof anchor === 'string' && Array.isArray(uuids)) {
    const ids = uuids.map(String);
    for (const id of ids) if (!byId.has(id)) throw new Error(`a record that was kept is missing: ${id}`);
    for (const [id, parent] of parents)
      if (parent === anchor && id !== ids[0]) parents.set(id, ids.at(-1) ?? anchor);
    if (last === anchor) last = ids.at(-1);
    for (const [i, id] of ids.entries()) parents.set(id, i === 0 ? anchor : (ids[i - 1] ?? anchor));
  }
  const path: JsonObject[] = [];
  for (let id: string | null | undefined = last; typeof id === 'string'; id = parents.get(id)) {
    const record = byId.get(id);
    if (record === undefined) throw new Error(`a parent is missing: ${id}`);
    if (path.includes(record)) throw new Error(`a circle of records: ${id}`);
    path.push(record);
  }
  return path.reverse().flatMap(({ message }) => (isObject(message) ? [message] : []));
}
