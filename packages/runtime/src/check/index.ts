/**
 * The check of a home. It puts together what the store verifies, what the audit finds, and the files beside the
 * database: `home-files.ts` looks at the directory, `graph-file.ts` at the graph file, `attestation.ts` writes the
 * heads of all sessions and compares them later, and `finding.ts` has every kind of finding. Reads only, and loads no AI SDK. Imports `audit`, `fields` and `store-of`.
 */
import { dirname } from 'node:path';
import { type HomeStore, type SessionInfo, TapeError, type TapeStore } from '@tapedeck/tape';
import { stopsReading } from '@tapedeck/tape/internal';
import type { Problem, Progress, ProgressOptions } from '@tapedeck/tape/store';
import { type AuditFinding, audit, auditSome, sessionsOf } from '../audit/index.ts';
import { assertFields, type Fields } from '../fields.ts';
import { inProcess, type StoreSource, storeOf } from '../store-of.ts';
import { type AttestationSource, compareAttestation } from './attestation.ts';
import { type CheckFinding, type CheckSection, type Found, kinds, named } from './finding.ts';
import { findLost, verifyGraph } from './graph-file.ts';
import { asidesIn, examineFiles } from './home-files.ts';

export { type Attestation, type AttestationSource, type AttestOptions, attest } from './attestation.ts';
export {
  type CheckCode,
  type CheckFinding,
  type CheckSection,
  type CheckStep,
  type CheckWeight,
  type Found,
  kinds,
} from './finding.ts';
export { verifyGraph } from './graph-file.ts';
export { asidesIn, examineFiles, type FileFinding } from './home-files.ts';

/** Options of `check`. */
export interface CheckOptions {
  /** The path of the graph file. Its directory is the home, whose files are examined too. */
  readonly graph?: string | undefined;
  /** Only this session: its entries with those it inherits, and its work with that of its descendants. */
  readonly session?: string;
  /** An attestation, to prove that tapes have only grown since. */
  readonly against?: AttestationSource;
  /** Called some times during the verification of entries, and during the audit of sessions. */
  readonly onProgress?: (progress: CheckProgress) => void;
}

/** How far a check is in its part that counts entries, or in the one that counts sessions. */
export type CheckProgress = Progress & { readonly of: 'entries' | 'sessions' };

/** The fields of `CheckOptions`. */
const checkFields: Fields<CheckOptions> = { graph: 'text', session: 'text', against: true, onProgress: true };

/** One part of a check. */
export interface CheckedSection {
  /** There is no finding but notes. */
  readonly ok: boolean;
  readonly findings: readonly CheckFinding[];
}

/** The result of a check. */
export interface Check {
  /** Nothing is damaged, and nothing is incomplete. */
  readonly ok: boolean;
  /** There is a finding of the weight `damage`. */
  readonly damaged: boolean;
  /** The numbers of sessions and entries that were verified; 0 entries for a store without a database here. */
  readonly sessions: number;
  readonly entries: number;
  /** `attestation` is present when one was given. */
  readonly sections: Readonly<Record<Exclude<CheckSection, 'attestation'>, CheckedSection>> & {
    readonly attestation?: CheckedSection;
  };
}

/**
 * Checks a home: the files of its directory and leftovers of crashes, every entry and recorded head, the lineage, the
 * graph file, and whether all work is finished. Writes nothing. In a home in use, each finding holds for the moment of
 * its reading.
 * @param source a store, or a deck
 * @throws TAPE_NO_SESSION; SESSION_BAD_INPUT
 *
 * @example
 * ```ts
 * import { check } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const { ok, sections } = await check(store);
 * console.log(ok, sections.completeness.findings.length); // true 0
 * ```
 */
export async function check(source: StoreSource, options: CheckOptions = {}): Promise<Check> {
  assertFields(options, checkFields, 'check');
  const { graph, session, against } = options;
  const store = storeOf(source, 'check');
  const progress = (of: CheckProgress['of']): ProgressOptions => {
    const { onProgress } = options;
    return onProgress === undefined ? {} : { onProgress: (now) => onProgress({ ...now, of }) };
  };
  const info = session === undefined ? undefined : await store.sessions.find(session);
  // `resolve`, unlike `find`, throws for an unknown session.
  if (session !== undefined && info === undefined) await store.entries.resolve(session, 'head');
  const found: Found[] = await Array.fromAsync(
    verified(store, { session: info?.id, ...progress('entries') }),
  );
  const audited = await readable(
    found,
    { sessions: 0, findings: [] },
    async () =>
      await audit(store, { ...(info !== undefined && { session: info.id }), ...progress('sessions') }),
  );
  const own = inProcess(store);
  if (own !== undefined) {
    if (info === undefined)
      found.push(...(await readable(found, [], async () => [...leftovers(own, audited.findings)])));
    if (graph !== undefined)
      found.push(...(await readable(found, [], async () => await besides(own, graph))));
  }
  found.push(...besideVerified(found, audited.findings));
  if (against !== undefined)
    for await (const one of compareAttestation(store, against, info?.id)) found.push(one);
  return gathered(found, {
    counts: await readable(
      found,
      { sessions: 0, entries: 0 },
      async () => own?.count(info?.id) ?? (await count(store, info)),
    ),
    isAttested: against !== undefined,
  });
}

/**
 * Checks some sessions, each by itself: its entries, and whether its work is finished. Nothing else of the home is examined.
 * With `inherited`, the entries that each inherits are its own, too.
 */
export async function checkSome(
  store: HomeStore,
  sessions: readonly SessionInfo[],
  { inherited = false }: { readonly inherited?: boolean } = {},
): Promise<Check> {
  const ids = sessions.map(({ id }) => id);
  const problems = function* () {
    if (inherited) for (const id of ids) yield* store.verify(id);
    else yield* store.verifyEach(ids);
  };
  const found: Found[] = await Array.fromAsync(withSteps(problems()));
  const audited = await readable(
    found,
    { sessions: 0, findings: [] },
    async () => await auditSome(store, sessions),
  );
  found.push(...besideVerified(found, audited.findings));
  const entries = inherited
    ? ids.reduce((sum, id) => sum + store.count(id).entries, 0)
    : sessions.reduce((sum, { head, base }) => sum + head - base, 0);
  return gathered(found, { counts: { sessions: sessions.length, entries }, isAttested: false });
}

/** What an audit found. Mostly the verification has reported what stops the audit of a session. */
function besideVerified(found: readonly Found[], audited: readonly AuditFinding[]): readonly Found[] {
  const damaged = new Set(
    found.flatMap(({ code, session }) => (code === 'database-damaged' ? [session] : [])),
  );
  return audited.flatMap((one): Found[] => {
    if (one.code !== 'database-damaged') return [one];
    return damaged.has(one.session) ? [] : [{ ...one, next: { act: 'restore' } }];
  });
}

/** Does a part of a check. Damage of the file that stops it is a finding, and the other parts are done. */
async function readable<T>(found: Found[], otherwise: T, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof TapeError) || error.code !== 'TAPE_CORRUPT') throw error;
    const { message } = error;
    if (!found.some((one) => one.code === 'database-damaged' && one.session === null))
      found.push({ code: 'database-damaged', session: null, seq: null, message, next: { act: 'restore' } });
    return otherwise;
  }
}

/**
 * Checks a home that has no database, by its graph file; undefined when the file has no records, so that nothing was
 * lost.
 */
export async function checkWithoutDatabase(graph: string): Promise<Check | undefined> {
  const lost = await findLost(graph);
  return lost && gathered([lost], { counts: { sessions: 0, entries: 0 }, isAttested: false });
}

/** The check of a home whose database cannot be opened, because SQLite cannot read what every opening needs. */
export function checkUnreadable({ message }: TapeError): Check {
  const found: Found = {
    code: 'database-damaged',
    session: null,
    seq: null,
    message,
    next: { act: 'restore' },
  };
  return gathered([found], { counts: { sessions: 0, entries: 0 }, isAttested: false });
}

/** Puts the findings into their sections. */
function gathered(
  found: readonly Found[],
  {
    counts,
    isAttested,
  }: { readonly counts: Pick<Check, 'sessions' | 'entries'>; readonly isAttested: boolean },
): Check {
  const findings = unique(found).map(named);
  const sectionOf = (of: CheckSection): CheckedSection => {
    const mine = findings.filter(({ code }) => kinds[code][0] === of);
    return { ok: mine.every(({ weight }) => weight === 'note'), findings: mine };
  };
  return {
    ok: findings.every(({ weight }) => weight === 'note'),
    damaged: findings.some(({ weight }) => weight === 'damage'),
    ...counts,
    sections: {
      home: sectionOf('home'),
      integrity: sectionOf('integrity'),
      lineage: sectionOf('lineage'),
      graph_file: sectionOf('graph_file'),
      completeness: sectionOf('completeness'),
      ...(isAttested && { attestation: sectionOf('attestation') }),
    },
  };
}

/** What the store finds in the database file, unless the check is of one session, and in tapes and lineage. */
async function* verified(
  store: TapeStore,
  { session, ...progress }: ProgressOptions & { readonly session: string | undefined },
): AsyncGenerator<Found> {
  if (session === undefined)
    for (const problem of inProcess(store)?.verifyDatabase() ?? []) yield withStep(problem);
  yield* verifyTapes(store, session, progress);
}

/**
 * Verifies all tapes, or one session and its inherited entries. An error that stops the verification is a finding
 * too, unless nothing can be read any more.
 */
export async function* verifyTapes(
  store: TapeStore,
  session: string | undefined,
  options: ProgressOptions = {},
): AsyncGenerator<Found> {
  yield* withSteps(store.verify(session, options));
}

/** The problems that a verification yields, each with its next step. */
async function* withSteps(problems: Iterable<Problem> | AsyncIterable<Problem>): AsyncGenerator<Found> {
  try {
    for await (const problem of problems) yield withStep(problem);
  } catch (error) {
    if (stopsReading(error)) throw error;
    const { message } = error as Error;
    yield withStep({ code: 'database-damaged', session: null, seq: null, message });
  }
}

/** The problems of what can be rebuilt from the rest. */
const rebuilt: ReadonlySet<Problem['code']> = new Set([
  'open-calls-differ',
  'open-run-differs',
  'usage-differs',
  'messages-differ',
  'trigger-wrong',
  'index-wrong',
  'search-wrong',
]);

function withStep(problem: Problem): Found {
  // What a bundle did not bring is not lost: no backup has it.
  if (problem.code === 'not-here') return problem;
  return { ...problem, next: { act: rebuilt.has(problem.code) ? 'fix' : 'restore' } };
}

/** Leftovers in the store, but for messages that the audit reports. */
function* leftovers(store: HomeStore, audited: readonly Found[]): Generator<Found> {
  const unanswered = new Set(audited.map(({ code, session }) => `${code} ${session}`));
  for (const { code, session, message, fixable } of store.examine())
    if (code !== 'inbox-waiting' || fixable || !unanswered.has(`message-unanswered ${session}`))
      yield { code, session, seq: null, message, ...(fixable && { next: { act: 'fix' } }) };
}

/** What is beside the database: the graph file, those that were set aside, and the other files of the home. */
async function besides(store: HomeStore, graph: string): Promise<readonly Found[]> {
  const { problems, behind } = await verifyGraph(store, graph);
  const home = dirname(graph);
  const known = store.acknowledged();
  const asides = asidesIn(home)
    .filter((of) => !known.has(`graph-aside:${of}`))
    .map(
      (of): Found => ({
        code: 'graph-aside',
        session: null,
        seq: null,
        of,
        message: `a graph file differed from the database, and is now '${graph}.aside-${of}'`,
        next: { act: 'acknowledge' },
      }),
    );
  const files = [...examineFiles(home)].map(
    ({ code, path, message, fixable }): Found => ({
      code,
      session: null,
      seq: null,
      of: path.slice(home.length + 1) || '.',
      message,
      ...(fixable && !store.isCopy && { next: { act: 'fix' } }),
    }),
  );
  const copy: readonly Found[] = store.isCopy
    ? [
        {
          code: 'read-from-copy',
          session: null,
          seq: null,
          message: `a copy of '${home}' was checked: this process cannot write there, so nothing is proven of its locks and logs`,
        },
      ]
    : [];
  return [...problems, ...copy, ...(behind === undefined ? [] : [behind]), ...asides, ...files];
}

/** The numbers of sessions and entries that the verification of all, or of one session with its ancestors, reads. */
async function count(
  store: TapeStore,
  info: SessionInfo | undefined,
): Promise<{ readonly sessions: number; readonly entries: number }> {
  let sessions = 0;
  let entries = 0;
  if (info === undefined)
    for await (const { head, base } of sessionsOf(store, undefined)) {
      sessions += 1;
      entries += head - base;
    }
  let to = Number.POSITIVE_INFINITY;
  for (let at = info; at !== undefined; ) {
    sessions += 1;
    entries += Math.max(0, Math.min(at.head, to) - at.base);
    to = Math.min(to, at.base);
    at = at.parentId === undefined ? undefined : await store.sessions.find(at.parentId);
  }
  return { sessions, entries };
}

/** SQLite's own check and the verification may report the same. */
function unique(found: readonly Found[]): readonly Found[] {
  const seen = new Set<string>();
  return found.filter(({ code, session, seq, message }) => {
    const same = JSON.stringify([code, session, seq, message]);
    return !seen.has(same) && seen.add(same);
  });
}
