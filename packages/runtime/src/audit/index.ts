/**
 * The audit of delegated work: one file for each question about a session (`children.ts`, `calls.ts`, `edges.ts`), and
 * `graph-file.ts`, which compares the graph file with the lineage. Reads only, and loads no AI SDK. Imports `tools` and
 * `stream`.
 */
import type { TapeStore } from '@tapedeck/tape';
import { examineCalls, examineRefusals } from './calls.ts';
import { examineChild } from './children.ts';
import { examineEdges } from './edges.ts';
import type { AuditFinding } from './finding.ts';
import { examineGraphFile } from './graph-file.ts';
import { lookAt, sessionsOf } from './subject.ts';

export type { AuditCode, AuditFinding, Remedy } from './finding.ts';

export interface AuditOptions {
  /** The graph file, to be compared with the database. */
  readonly graph?: string;
  /** Only this session, and all that came from it. */
  readonly session?: string;
}

export interface Audit {
  /** How many sessions were looked at. */
  readonly sessions: number;
  /** What is missing, session after session; nothing when the record is complete. */
  readonly findings: readonly AuditFinding[];
}

/**
 * Looks whether the record of delegation is complete: each delegated child has come to an end, its parent knows what it
 * came to, and every fork and merge is told of by both sides. Writes nothing. Of a store in use it tells how it stood.
 * @throws TAPE_NO_SESSION; GRAPH_UNREADABLE
 */
export async function audit(store: TapeStore, { graph, session }: AuditOptions = {}): Promise<Audit> {
  const findings: AuditFinding[] = [];
  const within = session === undefined ? undefined : new Set<string>();
  let sessions = 0;
  for await (const { id } of sessionsOf(store, session)) {
    sessions += 1;
    within?.add(id);
    findings.push(...(await examine(store, id)));
  }
  if (graph !== undefined)
    for await (const found of examineGraphFile(store, graph, within)) findings.push(found);
  return { sessions, findings };
}

/** How often a session is looked at again when somebody wrote meanwhile. */
const looksMax = 5;

/** Examines one session. What was read while somebody wrote may not fit together: then it is read again. */
async function examine(store: TapeStore, id: string): Promise<readonly AuditFinding[]> {
  for (let look = 1; ; look += 1) {
    const before = await store.changes();
    const subject = await lookAt(store, id);
    if (subject === undefined) return [];
    const findings = [
      ...(await examineChild(subject)),
      ...(await examineCalls(subject)),
      ...(await Array.fromAsync(examineRefusals(subject))),
      ...(await Array.fromAsync(examineEdges(subject))),
    ];
    if (findings.length === 0 || look === looksMax || (await store.changes()) === before) return findings;
  }
}
