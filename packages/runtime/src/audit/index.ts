/**
 * The audit of work: one file for each question about a session (`children.ts`, `work.ts`, `calls.ts`, `edges.ts`),
 * `graph-file.ts`, which compares the graph file with the lineage, and `brought.ts`, which lists what a home brings in.
 * Reads only, and loads no AI SDK. Imports `terms`, `tools`, `store-of`, `fields` and `stream`.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { TapeError, type TapeStore } from '@tapedeck/tape';
import type { LooseEnds } from '@tapedeck/tape/internal';
import type { OnProgress } from '@tapedeck/tape/store';
import { assertFields, type Fields } from '../fields.ts';
import { inProcess, type StoreSource, storeOf } from '../store-of.ts';
import { examineCalls, examineRefusals } from './calls.ts';
import { examineChild } from './children.ts';
import { examineEdges } from './edges.ts';
import type { AuditFinding } from './finding.ts';
import { examineGraphFile } from './graph-file.ts';
import { lookAt, type Seen, type Subject, seenIn, sessionsOf } from './subject.ts';
import { examineWork } from './work.ts';

export type { AuditCode, AuditFinding, NextStep } from './finding.ts';
export { sessionsOf } from './subject.ts';

/** Options of `audit`. */
export interface AuditOptions {
  /** The path of the graph file, to compare with the database. */
  readonly graph?: string;
  /** Only this session and its descendants. */
  readonly session?: string;
  /**
   * Called some times while sessions are looked at, and after each hundred that are examined. The total is their number,
   * where it is known.
   */
  readonly onProgress?: OnProgress;
}

/** The fields of `AuditOptions`. */
const auditFields: Fields<AuditOptions> = { graph: 'text', session: 'text', onProgress: true };

/** The result of an audit. */
export interface Audit {
  /** The number of sessions examined. */
  readonly sessions: number;
  /** The gaps, session by session; empty if the record is complete. */
  readonly findings: readonly AuditFinding[];
}

/**
 * Audits what is owed: every run has ended, every acknowledged message has its answer, every delegated child has ended,
 * its parent has its result, and both the tapes and the lineage record every fork and merge. Writes nothing. In a
 * store in use, each finding holds for the moment of its reading.
 * @param source a store, or a deck
 * @throws TAPE_NO_SESSION; GRAPH_UNREADABLE; SESSION_BAD_INPUT
 *
 * @example
 * ```ts
 * import { audit, openDeck } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const main = await deck.session('main');
 * await main.delegate('Check the tests.');
 * const { sessions, findings } = await audit(deck.store);
 * console.log(sessions, findings.length); // 2 0
 * ```
 */
export async function audit(source: StoreSource, options: AuditOptions = {}): Promise<Audit> {
  assertFields(options, auditFields, 'audit');
  const { graph, session, onProgress } = options;
  const store = storeOf(source, 'audit');
  const ends = session === undefined ? looseEnds(store, onProgress) : undefined;
  const findings: AuditFinding[] = [];
  const within = session === undefined ? undefined : new Set<string>();
  let sessions = 0;
  let began = performance.now();
  const seen: { now: Seen | undefined } = { now: undefined };
  for await (const { id, session: name } of ends?.found ?? sessionsOf(store, session)) {
    sessions += 1;
    within?.add(id);
    if (performance.now() - began > turnMs) {
      await turn();
      began = performance.now();
    }
    if (sessions % 100 === 0)
      onProgress?.({ done: sessions, total: Math.max(sessions, ends?.found.length ?? 0) });
    try {
      findings.push(...(await examine(store, id, seen)));
    } catch (error) {
      findings.push(damageIn(name, error));
    }
  }
  if (graph !== undefined)
    for await (const found of examineGraphFile(store, graph, within)) findings.push(found);
  return { sessions: ends?.sessions ?? sessions, findings };
}

/**
 * The sessions that can have findings, where a database of this process answers; each session is examined where that
 * cannot be read, and of other stores.
 */
function looseEnds(store: TapeStore, onProgress: OnProgress | undefined): LooseEnds | undefined {
  try {
    return inProcess(store)?.looseEnds({ ...(onProgress !== undefined && { onProgress }) });
  } catch (error) {
    if (!(error instanceof TapeError) || error.code !== 'TAPE_CORRUPT') throw error;
    return undefined;
  }
}

/** The finding of a session that cannot be read. The others are still examined. */
function damageIn(session: string, error: unknown): AuditFinding {
  if (!(error instanceof TapeError) || error.code !== 'TAPE_CORRUPT') throw error;
  return { code: 'database-damaged', session, seq: null, message: error.message, next: { act: 'verify' } };
}

/** How long sessions are examined before other tasks of the process have their turn, in milliseconds. */
const turnMs = 20;

/** How often a session is examined, at most, while other processes write. */
const looksMax = 5;

/** Examines one session; repeats while other processes write, since the reads may then be inconsistent. */
async function examine(
  store: TapeStore,
  id: string,
  seen: { now: Seen | undefined },
): Promise<readonly AuditFinding[]> {
  for (let look = 1; ; look += 1) {
    const now = await seenIn(store, seen.now);
    seen.now = now;
    const subject = await lookAt(store, id, now);
    if (subject === undefined) return [];
    const found = [
      ...(await examineChild(subject)),
      ...(await examineCalls(subject)),
      ...(await Array.fromAsync(examineRefusals(subject))),
      ...(await Array.fromAsync(examineWork(subject))),
      ...(await Array.fromAsync(examineEdges(subject))),
    ];
    const findings = found.map((one) => reachable(one, subject));
    if (findings.length === 0 || look === looksMax || (await store.changes()) === now.changes)
      return findings;
  }
}

/** A finding that refers to its session so that every verb finds it, whatever the realm. */
function reachable(
  finding: AuditFinding,
  { info: { id, session: name, tape }, isAbroad }: Subject,
): AuditFinding {
  if (!isAbroad) return finding;
  const { session, next, message } = finding;
  return {
    ...finding,
    session: session === name ? id : session,
    message: `${message} (tape ${tape})`,
    next: next.session === name ? { ...next, session: id } : next,
  };
}
