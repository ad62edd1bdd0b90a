import { isoTime } from '@tapedeck/tape/internal';
import type { Finding, Findings, PageData } from './data.ts';
import { lineOf, needShown, type PageSource, refOf, shownAs } from './source.ts';
import { flat } from './texts.ts';

/** Findings of an answer, and characters of what one says. */
const findingsMax = 500;
const textMax = 1_000;

const weights = ['damage', 'incomplete', 'note'] as const;

/** What `tape check` finds, each at its place, the worst first. */
export async function findings(
  source: PageSource,
  { session: ref = '' }: Parameters<PageData['findings']>[0],
): Promise<Findings> {
  const { store, now } = source;
  const name = ref === '' ? undefined : refOf(store, needShown(store, ref));
  const { sessions, entries, sections } = await source.check(name);
  const found = Object.entries(sections).flatMap(([section, { findings }]) =>
    findings.map(({ id, code, weight, session, seq, message, next }): Finding => {
      const at = session === null ? undefined : shownAs(store, session);
      const place = at === undefined ? undefined : `${refOf(store, at)}${seq === null ? '' : `@${seq}`}`;
      return {
        ...{ id, code, weight, section, text: flat(message, textMax) },
        ...(place !== undefined && { place }),
        ...(next !== null && { command: next }),
      };
    }),
  );
  found.sort((a, b) => weights.indexOf(a.weight) - weights.indexOf(b.weight));
  return {
    checkedAt: isoTime(now()),
    ...{ sessions, entries, findings: found.slice(0, findingsMax), total: found.length },
    command: lineOf(source, 'check', ...(name === undefined ? [] : [name])),
  };
}
