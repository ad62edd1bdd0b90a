import type { SessionInfo } from '@tapedeck/tape';
import type { Findings } from './data.ts';
import { findingsIn } from './findings.ts';
import type { Scope, Scoped } from './scope.ts';
import { type Checked, type CheckedFinding, lineOf, type PageSource, refOf, shownAs } from './source.ts';

/** Checks sessions: each by itself, or one with what it inherits. */
export type CheckOf = (
  sessions: readonly SessionInfo[],
  how: { readonly inherited: boolean },
) => Promise<Checked>;

/** Findings of an exported file. */
const findingsMax = 20_000;

/** What a check finds of the sessions of a file, where the file has the place of it. */
export async function findingsWithin(
  source: PageSource,
  {
    info,
    scope,
    within,
    check,
  }: {
    readonly info: SessionInfo;
    readonly scope: Scope;
    readonly within: ReadonlyMap<string, Scoped>;
    readonly check: CheckOf;
  },
): Promise<Findings> {
  const isAlone = scope === 'session';
  const infos = isAlone ? [info] : Array.from(within.values(), (one) => one.info);
  const checked = await check(infos, { inherited: isAlone });
  const isThere = ({ session, seq }: CheckedFinding) => {
    const at = session === null ? undefined : within.get(shownAs(source.store, session)?.id ?? '');
    return at !== undefined && (seq === null || seq <= at.to);
  };
  const sections = Object.entries(checked.sections).map(
    ([section, { findings }]) => [section, { findings: findings.filter(isThere) }] as const,
  );
  const command = lineOf(source, 'check', [refOf(source.store, info)]);
  const found = findingsIn(source, { ...checked, sections: Object.fromEntries(sections) }, command);
  return { ...found, findings: found.findings.slice(0, findingsMax) };
}
