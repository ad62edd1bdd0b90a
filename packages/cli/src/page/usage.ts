import type { UsageSum } from '@tapedeck/runtime';
import type { HomeStore } from '@tapedeck/tape';
import type { ModelCalls } from '@tapedeck/tape/store';
import type { PageData, UsageAnswer, UsageRow } from './data.ts';
import { daysOf } from './days.ts';
import { lineOf, needShown, type PageSource, refOf } from './source.ts';

/** Rows of a list of an answer, and days of the plot. */
const rowsMax = 200;
const daysMax = 1_000;

/** Adds up the tokens of model calls, as `tape usage` does: of a session, of one with all below it, or of the home. */
export async function usage(
  source: PageSource,
  { session: ref = '', tree = false }: Parameters<PageData['usage']>[0],
): Promise<UsageAnswer> {
  const { store } = source;
  const { addSums, noSum, sumOf } = await import('@tapedeck/runtime/internal');
  const info = ref === '' ? undefined : needShown(store, ref);
  const calls = store.sessions.calls(info === undefined ? {} : { session: info.id, tree });
  const addUp = (some: readonly ModelCalls[]) => some.map(sumOf).reduce<UsageSum>(addSums, noSum);
  const mostFirst = (groups: ReadonlyMap<string, readonly ModelCalls[]>) =>
    Array.from(groups, ([key, some]) => rowOf(key, addUp(some))).sort((a, b) => b.total - a.total);
  const name = info === undefined ? [] : [refOf(store, info)];
  return {
    total: rowOf(name[0] ?? '', info === undefined ? sumOf(store.totalCalls()) : addUp(calls)),
    models: mostFirst(Map.groupBy(calls, ({ model = '' }) => model)).slice(0, rowsMax),
    sessions: named(store, mostFirst(Map.groupBy(calls, ({ id }) => id))),
    days: Array.from(await daysOf(store, calls), ([day, sum]) => rowOf(day, sum))
      .sort((a, b) => (a.key < b.key ? -1 : 1))
      .slice(-daysMax),
    command: lineOf(source, 'usage', name, info !== undefined && tree ? ['--tree'] : []),
  };
}

/** The first rows of sessions by their names; those of deleted sessions count in the total alone. */
function named(store: HomeStore, rows: readonly UsageRow[]): readonly UsageRow[] {
  const found: UsageRow[] = [];
  for (let from = 0; from < rows.length && found.length < rowsMax; from += rowsMax) {
    const part = rows.slice(from, from + rowsMax);
    const names = new Map<string, string>();
    for (const info of store.readSessions({ ids: part.map(({ key }) => key), all: true, deleted: false }))
      names.set(info.id, refOf(store, info));
    for (const row of part) {
      const name = names.get(row.key);
      if (name !== undefined) found.push({ ...row, key: name });
    }
  }
  return found.slice(0, rowsMax);
}

function rowOf(key: string, { steps, usage: of, total, cost }: UsageSum): UsageRow {
  const { input, output, reasoning, cacheRead, cacheWrite } = of;
  return {
    ...{ key, steps, input, output, reasoning, cacheRead, cacheWrite, total },
    ...(cost !== undefined && { cost }),
  };
}
