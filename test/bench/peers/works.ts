import { gather, median } from '../measure.ts';
import { grouped } from '../table.ts';
import { type Bench, counted, type Row, type Unit } from '../topic.ts';
import { peers } from './all.ts';
import type { Text, Work } from './peer.ts';
import { type Place, result } from './process.ts';
import { type Result, sum, type Task } from './program.ts';
import type { Ready, Sizes } from './ready.ts';

/** A work as it is measured in each round, and what it must come to. */
interface Measured {
  readonly work: Work;
  readonly title: string;
  readonly at: 'long' | 'short' | 'many';
  readonly task: (place: Place) => Task;
  readonly comesTo: { readonly count: number; readonly chars: number };
  readonly figures: readonly Figure[];
}

interface Figure {
  readonly suffix: string;
  readonly unit: Unit;
  readonly of: (result: Result) => number;
}

const [ours] = peers;
const tailEntries = 50;

const cpu: Figure = { suffix: ': processor time', unit: 'ms', of: ({ cpuMs }) => cpuMs };
const costs: readonly Figure[] = [
  { suffix: '', unit: 'ms', of: ({ ms }) => ms },
  cpu,
  { suffix: ': peak memory', unit: 'MB', of: ({ peakMB }) => peakMB },
];

/** Reads come first: what forks leave behind for the disk would slow the others down. */
export function works(
  file: string,
  texts: readonly Text[],
  { long, short, many, appends }: Sizes,
): Measured[] {
  const came = (some: readonly Text[]) => sum(some.map(({ text }) => text));
  const tail = came(texts.slice(-tailEntries));
  const each = (unit: (result: Result) => number) => (result: Result) => (unit(result) * 1000) / appends;
  return [
    {
      work: 'last',
      title: `open, and read the last ${tailEntries} of ${grouped(long)} entries`,
      at: 'long',
      task: ({ session }) => ({ work: 'last', session, count: tailEntries }),
      comesTo: tail,
      figures: costs,
    },
    {
      work: 'all',
      title: `read all of ${grouped(long)} entries`,
      at: 'long',
      task: ({ session }) => ({ work: 'all', session }),
      comesTo: came(texts),
      figures: costs,
    },
    {
      work: 'list',
      title: `list of ${grouped(many)} sessions`,
      at: 'many',
      task: () => ({ work: 'list' }),
      comesTo: { count: many, chars: 0 },
      figures: costs,
    },
    {
      work: 'append',
      title: `append of an entry to ${grouped(short)}`,
      at: 'short',
      task: () => ({ work: 'append', texts: file, entries: short, count: appends }),
      comesTo: came(texts.slice(short, short + appends)),
      figures: [
        { suffix: '', unit: 'µs', of: each(({ ms }) => ms) },
        { ...cpu, unit: 'µs', of: each(({ cpuMs }) => cpuMs) },
      ],
    },
    {
      work: 'fork',
      title: `fork of ${grouped(long)} entries`,
      at: 'long',
      task: ({ session }) => ({ work: 'fork', session, count: tailEntries }),
      comesTo: tail,
      figures: costs,
    },
  ];
}

/** Measures one work of all peers in interleaved rounds. A peer that fails has no row, but a reason. */
export async function rowsOf(bench: Bench, ready: readonly Ready[], measured: Measured): Promise<Row[]> {
  const { work, title, at, task, comesTo, figures } = measured;
  const start = performance.now();
  const able = ready.filter(({ peer }) => peer.cannot?.[work] === undefined);
  const failed = new Set<string>();
  const act = (each: Ready) => async () => {
    if (failed.has(each.store)) return undefined;
    try {
      const { home } = each[at];
      const came = await result(each, home, task(each[at]));
      if (came.count !== comesTo.count || came.chars !== comesTo.chars)
        throw new Error(
          `it comes to ${came.count} with ${came.chars} characters, not ${comesTo.count} with ${comesTo.chars}`,
        );
      return came;
    } catch (error) {
      if (each.peer === ours) throw error;
      failed.add(each.store);
      bench.note(`${each.store}: ${title}: ${(error as Error).message}`);
      return undefined;
    }
  };
  const samples = await gather(
    Object.fromEntries(able.map((each) => [each.store, act(each)])),
    bench.size(3, 1),
    { warmUp: 0 },
  );
  bench.say(`${title}: ${((performance.now() - start) / 1000).toFixed(1)} s`);
  return figures.flatMap(({ suffix, unit, of }) => {
    const middle = (store: string) =>
      median((samples[store] ?? []).flatMap((each) => (each === undefined ? [] : [of(each)])));
    return able
      .filter(({ store }) => !failed.has(store))
      .map(({ store }) =>
        counted(middle(store), middle(ours.name), {
          work: `${title}${suffix}`,
          store,
          against: ours.name,
          unit,
        }),
      );
  });
}
