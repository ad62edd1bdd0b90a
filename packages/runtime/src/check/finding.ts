import type { ProblemCode } from '@tapedeck/graph';
import type { Seq } from '@tapedeck/tape';
import type { Finding } from '@tapedeck/tape/internal';
import type { Problem } from '@tapedeck/tape/store';
import type { AuditCode, NextStep } from '../audit/index.ts';

/**
 * The parts of a check: the files and leftovers of a home, its entries, its lineage, the graph file, its work, and an
 * attestation.
 */
export type CheckSection = 'home' | 'integrity' | 'lineage' | 'graph_file' | 'completeness' | 'attestation';

/** Every kind of finding. `docs/findings.md` explains each. */
export type CheckCode =
  | Problem['code']
  | Finding['code']
  | AuditCode
  | `graph-${ProblemCode}`
  | 'database-missing'
  | 'graph-foreign'
  | 'graph-differs'
  | 'graph-unreadable'
  | 'graph-behind'
  | 'graph-aside'
  | 'open-to-others'
  | 'unknown-file'
  | 'odd-place'
  | 'read-from-copy'
  | 'attested-session-missing'
  | 'attested-tape-shorter'
  | 'attested-entry-differs'
  | 'attested-graph-differs'
  | 'attestation-invalid'
  | 'attestation-unverified';

/**
 * What a finding says about the home. `damage`: something recorded was changed or lost; `incomplete`: work is not
 * finished; `note`: something to know, which harms nothing.
 */
export type CheckWeight = 'damage' | 'incomplete' | 'note';

/** Section and weight of each kind of finding. */
export const kinds: Readonly<Record<CheckCode, readonly [CheckSection, CheckWeight]>> = {
  'open-to-others': ['home', 'note'],
  'unknown-file': ['home', 'note'],
  'odd-place': ['home', 'note'],
  'read-from-copy': ['home', 'note'],
  'stale-lease': ['home', 'note'],
  'inbox-waiting': ['home', 'note'],
  'staging-left': ['home', 'note'],
  'search-ahead': ['home', 'note'],
  'content-left': ['home', 'incomplete'],
  'database-missing': ['integrity', 'damage'],
  'database-damaged': ['integrity', 'damage'],
  'entry-changed': ['integrity', 'damage'],
  'entry-missing': ['integrity', 'damage'],
  'chain-broken': ['integrity', 'damage'],
  'head-wrong': ['integrity', 'damage'],
  'head-contradicted': ['integrity', 'damage'],
  'tail-missing': ['integrity', 'damage'],
  'base-wrong': ['integrity', 'damage'],
  'view-contradicted': ['integrity', 'damage'],
  'record-contradicted': ['integrity', 'damage'],
  'views-unproved': ['integrity', 'note'],
  'body-erased': ['integrity', 'damage'],
  'not-here': ['integrity', 'note'],
  'blob-changed': ['integrity', 'damage'],
  'open-calls-differ': ['integrity', 'damage'],
  'open-run-differs': ['integrity', 'damage'],
  'usage-differs': ['integrity', 'damage'],
  'messages-differ': ['integrity', 'damage'],
  'trigger-wrong': ['integrity', 'damage'],
  'index-wrong': ['integrity', 'damage'],
  'search-wrong': ['integrity', 'damage'],
  'merge-contradicted': ['lineage', 'damage'],
  'row-changed': ['lineage', 'damage'],
  'lineage-broken': ['lineage', 'damage'],
  'edge-on-one-side': ['lineage', 'damage'],
  'graph-glued': ['graph_file', 'damage'],
  'graph-forged': ['graph_file', 'damage'],
  'graph-missing': ['graph_file', 'damage'],
  'graph-swapped': ['graph_file', 'damage'],
  'graph-duplicated': ['graph_file', 'damage'],
  'graph-foreign': ['graph_file', 'damage'],
  'graph-differs': ['graph_file', 'damage'],
  'graph-unreadable': ['graph_file', 'damage'],
  'graph-aside': ['graph_file', 'damage'],
  'graph-behind': ['graph_file', 'note'],
  'children-not-terminal': ['completeness', 'incomplete'],
  'result-not-merged': ['completeness', 'incomplete'],
  'fork-not-merged': ['completeness', 'incomplete'],
  'run-interrupted': ['completeness', 'incomplete'],
  'message-unanswered': ['completeness', 'incomplete'],
  'call-waiting': ['completeness', 'incomplete'],
  'orphaned-call': ['completeness', 'incomplete'],
  'merge-refused': ['completeness', 'incomplete'],
  'attested-session-missing': ['attestation', 'damage'],
  'attested-tape-shorter': ['attestation', 'damage'],
  'attested-entry-differs': ['attestation', 'damage'],
  'attested-graph-differs': ['attestation', 'damage'],
  'attestation-invalid': ['attestation', 'damage'],
  'attestation-unverified': ['attestation', 'note'],
};

/**
 * What to do about a finding: a step of an audit; `fix`: rebuild what can be rebuilt; `acknowledge`: say that the
 * finding is known; `restore`: make a new home of a backup.
 */
export interface CheckStep extends Omit<NextStep, 'act'> {
  readonly act: NextStep['act'] | 'fix' | 'acknowledge' | 'restore';
}

/** What one of the examinations of a check reports. */
export interface Found {
  readonly code: CheckCode;
  readonly session: string | null;
  readonly seq: Seq | null;
  readonly message: string;
  readonly next?: CheckStep;
  /** Tells findings of one code apart that name no session; a file, for example. */
  readonly of?: string;
}

/** One finding of a check. */
export interface CheckFinding extends Omit<Found, 'of'> {
  /** Names the finding: `CODE:OF`, such as `graph-aside:1a2b3c4d`. */
  readonly id: string;
  readonly weight: CheckWeight;
}

/** Gives a finding its id and weight. */
export function named({ of, ...found }: Found): CheckFinding {
  const { code, session, seq } = found;
  const place = of ?? (session === null ? undefined : seq === null ? session : `${session}@${seq}`);
  return { ...found, id: place === undefined ? code : `${code}:${place}`, weight: kinds[code][1] };
}
