import { isoTime } from '@tapedeck/tape/internal';
import type { Finding, Findings, PageData } from './data.ts';
import {
  type Checked,
  type LiveSource,
  lineOf,
  needShown,
  type PageSource,
  refOf,
  shownAs,
} from './source.ts';
import { flat } from './texts.ts';

/** Findings of an answer. */
export const findingsMax = 500;
/** Characters of what one says. */
const textMax = 1_000;

const weights = ['damage', 'incomplete', 'note'] as const;

/** What `tape check` finds, each at its place, the worst first. */
export async function findings(
  source: LiveSource,
  { session: ref = '' }: Parameters<PageData['findings']>[0],
): Promise<Findings> {
  const { store } = source;
  const info = ref === '' ? undefined : needShown(store, ref);
  const all = findingsIn(
    source,
    await source.check(info?.id),
    lineOf(source, 'check', info === undefined ? [] : [refOf(store, info)]),
  );
  return { ...all, findings: all.findings.slice(0, findingsMax) };
}

/** All findings of a check, each at its place, the worst first. */
export function findingsIn(
  { store, now }: Pick<PageSource, 'store' | 'now'>,
  { sessions, entries, sections, total }: Checked,
  command: string,
): Findings {
  const refs = new Map<string, string | undefined>();
  const ofSession = (session: string) => {
    if (!refs.has(session)) {
      const info = shownAs(store, session);
      refs.set(session, info && refOf(store, info));
    }
    return refs.get(session);
  };
  const found = Object.entries(sections).flatMap(([section, { findings }]) =>
    findings.map(({ id, code, weight, session, seq, message, next }): Finding => {
      const at = session === null ? undefined : ofSession(session);
      return {
        ...{ id, code, weight, section, text: flat(message, textMax) },
        ...(at !== undefined && { session: at, ...(seq !== null && { seq }) }),
        ...(next !== null && { command: next }),
      };
    }),
  );
  found.sort((a, b) => weights.indexOf(a.weight) - weights.indexOf(b.weight));
  return {
    checkedAt: isoTime(now()),
    sessions,
    entries,
    findings: found,
    total: total ?? found.length,
    command,
  };
}
