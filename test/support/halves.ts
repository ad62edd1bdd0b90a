import type { RawDb } from './raw-db.ts';

/** Queries that find an act of which a part is missing; none may find anything. `what` says which. */
const queries: Readonly<Record<string, string>> = {
  'a fork without its mark': `SELECT name AS what FROM tape t WHERE parent_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM entry e WHERE e.tape_id = t.id AND e.seq = t.base_seq + 1 AND e.name = 'fork/start')`,
  'a fork without its one line': `SELECT name AS what FROM tape t WHERE parent_id IS NOT NULL
    AND (SELECT count(*) FROM lineage l WHERE l.tape_id = t.id AND l.type = 'fork') <> 1`,
  'a line without its fork': `SELECT g AS what FROM lineage l WHERE type = 'fork'
    AND NOT EXISTS (SELECT 1 FROM tape t WHERE t.id = l.tape_id AND t.parent_id IS NOT NULL)`,
  'a root without its one line': `SELECT name AS what FROM tape t WHERE parent_id IS NULL AND lifecycle <> 'staging'
    AND (SELECT count(*) FROM lineage l WHERE l.tape_id = t.id AND l.type = 'session') <> 1`,
  'a line of a session that is not published': `SELECT name AS what FROM tape t WHERE lifecycle = 'staging'
    AND EXISTS (SELECT 1 FROM lineage l WHERE l.tape_id = t.id)`,
  'a merge without its line': `SELECT e.tape_id || '@' || e.seq AS what FROM entry e WHERE e.key LIKE 'merge:%'
    AND (SELECT count(*) FROM lineage l WHERE l.peer_id = e.tape_id AND l.seq = e.seq
      AND l.type IN ('merge', 'discard')) <> 1`,
  'a line without its merge': `SELECT g AS what FROM lineage l WHERE type IN ('merge', 'discard') AND NOT EXISTS (
    SELECT 1 FROM entry e WHERE e.tape_id = l.peer_id AND e.seq = l.seq AND e.key LIKE 'merge:%')`,
  'a merge without its message': `SELECT g AS what FROM lineage l WHERE type = 'merge' AND NOT EXISTS (
    SELECT 1 FROM entry e WHERE e.tape_id = l.peer_id AND e.seq = l.seq + 1 AND e.kind = 'message'
      AND (e.payload IS NULL OR e.meta ->> '$.source' = 'merge'))`,
  'a message without its merge': `SELECT e.tape_id || '@' || e.seq AS what FROM entry e
    WHERE e.meta ->> '$.source' = 'merge' AND NOT EXISTS (
      SELECT 1 FROM entry m WHERE m.tape_id = e.tape_id AND m.seq = e.seq - 1 AND m.key LIKE 'merge:%')`,
  'a delivery without its merge': `SELECT name AS what FROM tape t WHERE delivery IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM lineage l WHERE l.tape_id = t.id
      AND l.type = iif(t.delivery = 'merged', 'merge', 'discard'))`,
  'a merge without its delivery': `SELECT name AS what FROM tape t WHERE delivery IS NULL AND EXISTS (
    SELECT 1 FROM lineage l WHERE l.tape_id = t.id AND l.type IN ('merge', 'discard'))`,
  'an alias without its line': `SELECT alias AS what FROM alias a WHERE NOT EXISTS (
    SELECT 1 FROM lineage l WHERE l.g = a.g AND l.type = 'alias' AND l.tape_id = a.tape_id)`,
  // A deleted session has given up its names.
  'a line without its alias': `SELECT g AS what FROM lineage l WHERE type = 'alias'
    AND NOT EXISTS (SELECT 1 FROM tape t WHERE t.id = l.tape_id AND t.lifecycle IN ('destroyed','purged'))
    AND NOT EXISTS (SELECT 1 FROM alias a WHERE a.g = l.g)
    AND NOT EXISTS (SELECT 1 FROM lineage u WHERE u.type = 'unalias' AND u.g > l.g AND u.line ->> 'alias' = l.line ->> 'alias')`,
  'a redaction that erased nothing': `SELECT r.tape_id || '@' || r.ref AS what FROM entry r WHERE r.mark = 'redaction'
    AND NOT EXISTS (SELECT 1 FROM entry e WHERE e.tape_id = r.tape_id AND e.seq = r.ref AND e.payload IS NULL)`,
  'bytes that nothing needs': `SELECT hex(hash) AS what FROM blob b WHERE NOT EXISTS (
    SELECT 1 FROM blob_ref r WHERE r.hash = b.hash)`,
  'a lease ahead of its tape': `SELECT t.name AS what FROM lease l JOIN tape t ON t.id = l.tape_id
    WHERE l.epoch > t.epoch`,
  // Test batches say in `meta.of` how many entries they have.
  'a batch that is not whole': `SELECT min(key) AS what FROM entry e JOIN tape t ON t.id = e.tape_id
    WHERE t.lifecycle <> 'staging' AND meta ->> '$.of' IS NOT NULL
    GROUP BY tape_id, iif(instr(key, '#') = 0, key, substr(key, 1, instr(key, '#') - 1))
    HAVING count(*) <> max(meta ->> '$.of')`,
};

/** Acts of which a database holds only a part. */
export function halves(db: RawDb): string[] {
  return Object.entries(queries).flatMap(([fault, sql]) =>
    db.all<{ what: unknown }>(sql).map(({ what }) => `${fault}: ${String(what)}`),
  );
}
