/**
 * The audit of work: one file for each question about a session (`children.ts`, `work.ts`, `calls.ts`, `edges.ts`),
 * `graph-file.ts`, which compares the graph file with the lineage, and `brought.ts`, which lists what a home brings in.
 * Reads only, and loads no AI SDK. Imports `terms`, `tools`, `store-of`, `fields` and `stream`.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { type SessionInfo, TapeError, type TapeStore } from '@tapedeck/tape';
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
  readonly graph?: string | undefined;
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
  const asked = session === undefined ? undefined : await Array.fromAsync(sessionsOf(store, session));
  const ends = looseEnds(store, asked, onProgress);
  const { sessions, findings } = await auditEach(
    store,
    ends?.found ?? asked ?? sessionsOf(store, undefined),
    onProgress,
  );
  const within = asked && new Set(asked.map(({ id }) => id));
  if (graph !== undefined)
    for await (const found of examineGraphFile(store, graph, within)) findings.push(found);
  return { sessions: asked?.length ?? ends?.sessions ?? sessions, findings };
}

/** Audits some sessions, each by itself. */
export async function auditSome(store: TapeStore, sessions: readonly SessionInfo[]): Promise<Audit> {
  const ends = looseEnds(store, sessions, undefined);
  return await auditEach(store, ends?.found ?? sessions, undefined);
}

async function auditEach(
  store: TapeStore,
  each: Iterable<Audited> | AsyncIterable<Audited>,
  onProgress: OnProgress | undefined,
): Promise<{ readonly sessions: number; readonly findings: AuditFinding[] }> {
  const findings: AuditFinding[] = [];
  const total = Array.isArray(each) ? each.length : 0;
  let sessions = 0;
  let began = performance.now();
  let seen: Seen | undefined;
  const see = async () => {
    seen = await seenIn(store, seen);
    return seen;
  };
  for await (const { id, session: name } of each) {
    sessions += 1;
    if (performance.now() - began > turnMs) {
      await turn();
      began = performance.now();
    }
    if (sessions % 100 === 0) onProgress?.({ done: sessions, total: Math.max(sessions, total) });
    try {
      findings.push(...(await examine(store, id, see)));
    } catch (error) {
      findings.push(damageIn(name, error));
    }
  }
  return { sessions, findings };
}

/** A session to audit. */
type Audited = Pick<SessionInfo, 'id' | 'session'>;

/**
 * The sessions that can have findings, of some or of all, where a database of this process answers; each session is examined
 * where that cannot be read, and of other stores.
 */
function looseEnds(
  store: TapeStore,
  asked: readonly SessionInfo[] | undefined,
  onProgress: OnProgress | undefined,
): LooseEnds | undefined {
  try {
    const own = inProcess(store);
    if (asked !== undefined) return own?.looseEndsIn(asked.map(({ id }) => id));
    return own?.looseEnds({ ...(onProgress !== undefined && { onProgress }) });
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
  see: () => Promise<Seen>,
): Promise<readonly AuditFinding[]> {
  for (let look = 1; ; look += 1) {
    const now = await see();
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
