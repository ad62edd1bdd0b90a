import { answersOf } from './answers.ts';
import { Beginnings } from './beginnings.ts';
import type { ByRecord } from './by-record.ts';
import type { Chain } from './chain.ts';
import type { Conversation, SpokenTurn } from './conversation.ts';
import { KeptTails } from './kept.ts';
import type { Call } from './message.ts';
import { pathsOf, stepsFrom, type TreePath } from './paths.ts';
import { type CodeRecord, isBoundary, isSummary } from './records.ts';
import { TreeReading } from './tree-reading.ts';
import { turnsOf } from './turns.ts';

/** A way through a tree as it was read: its turns behind those that read as on the way that it forks from. */
export interface ReadWay {
  readonly path: TreePath;
  readonly conversation: Omit<Conversation, 'beside'>;
  /** The number of steps, and of turns, that read as on the way that it forks from. */
  readonly begun: { readonly steps: number; readonly turns: number };
  /** Of a tree with several ways: the number of turns before each of its own steps, and of all. */
  readonly before: readonly number[];
}

/** The ways through a tree. */
export interface ReadTree {
  readonly ways: readonly ReadWay[];
  readonly reading: TreeReading;
  /** Whether a compaction is in the tree. */
  readonly isCompacted: boolean;
  readonly kept: KeptTails;
}

/**
 * Reads the ways through a tree, each turn that they share once. Calls `taken` with the records of each turn.
 * @param before of the end of a file: what the last snapshot before it says of turns of the system
 */
export function readTree(
  tree: readonly CodeRecord[],
  chain: Chain,
  { taken, before }: { readonly taken: ByRecord<true>; readonly before?: boolean | undefined },
): ReadTree {
  const { paths, places } = pathsOf(tree, chain);
  const reading = new TreeReading(tree, paths.length);
  const beginnings =
    paths.length > 1 ? new Beginnings(tree, paths, { places, answers: reading.answers }) : undefined;
  const isCompacted = tree.some((record) => isBoundary(record) || isSummary(record));
  const ways: ReadWay[] = [];
  for (const [i, path] of paths.entries()) {
    const steps = beginnings?.of(i) ?? 0;
    const systemTurns = path.from === undefined ? undefined : beginnings?.snapshotBefore(path.from, steps);
    const begun = { steps, turns: steps === 0 ? 0 : turnsBefore(ways, path.from ?? 0, steps) };
    const onPath = { has: (record: CodeRecord) => places.has(i, record) };
    const since = isCompacted ? lastBoundary(turnsOn(ways, path.from, begun.turns)) : 0;
    const given = { onPath, systemTurns: steps === 0 ? before : systemTurns, since };
    const all = stepsFrom(paths, i, steps);
    const way = readWay(path, { steps: all, begun }, { reading, isShared: paths.length > 1, ...given });
    ways.push(way);
    for (const record of path.own) {
      taken.set(record, true);
      for (const one of path.hanging.get(record) ?? []) taken.set(one, true);
    }
    for (const turn of way.conversation.turns)
      if (turn.kind === 'assistant') for (const one of turn.members) taken.set(one, true);
  }
  return { ways, reading, isCompacted, kept: new KeptTails(isCompacted ? tree : []) };
}

/** The first turns of a way, those that it shares included. */
export function turnsOn(
  ways: readonly ReadWay[],
  way: number | undefined,
  count: number = Number.POSITIVE_INFINITY,
): readonly SpokenTurn[] {
  const read = way === undefined ? undefined : ways[way];
  if (read === undefined || count === 0) return [];
  const { begun, conversation, path } = read;
  const own = conversation.turns.slice(0, Math.max(0, count - begun.turns));
  return begun.turns === 0 ? own : [...turnsOn(ways, path.from, Math.min(count, begun.turns)), ...own];
}

/** One turn of a way, by its place there. */
export function turnAt(ways: readonly ReadWay[], way: number, place: number): SpokenTurn | undefined {
  let read = ways[way];
  while (read?.path.from !== undefined && place < read.begun.turns) read = ways[read.path.from];
  return read?.conversation.turns[place - read.begun.turns];
}

/** The number of turns of a way before one of its steps. */
function turnsBefore(ways: readonly ReadWay[], way: number, step: number): number {
  let read = ways[way];
  while (read?.path.from !== undefined && step < read.begun.steps) read = ways[read.path.from];
  return read === undefined ? 0 : read.begun.turns + (read.before[step - read.begun.steps] ?? 0);
}

function lastBoundary(turns: readonly SpokenTurn[]): number {
  return turns.findLast(({ kind }) => kind === 'boundary')?.at ?? 0;
}

/** A path as turns, with the results of its calls. */
function readWay(
  path: TreePath,
  { steps, begun }: Pick<ReadWay, 'begun'> & { readonly steps: readonly CodeRecord[] },
  {
    reading,
    isShared,
    onPath,
    systemTurns,
    since,
  }: {
    readonly reading: TreeReading;
    readonly isShared: boolean;
    readonly onPath: { has(record: CodeRecord): boolean };
    readonly systemTurns: boolean | undefined;
    /** The ordinal of the last boundary before its turns. */
    readonly since: number;
  },
): ReadWay {
  const stretches: { calls: Call[]; from: number; to: number }[] = [];
  // Behind a compaction a call can be repeated, since the model gets it again.
  let claimed = new Set<string>();
  let stretch = { calls: [] as Call[], from: since, to: Number.POSITIVE_INFINITY };
  const before: number[] = [];
  const { hanging } = path;
  const way = { onPath, hanging, systemTurns, ...(isShared && { before }) };
  const turns = turnsOf(steps, reading.answersBeside(onPath), way).map((turn): SpokenTurn => {
    if (turn.kind === 'boundary') {
      stretches.push({ ...stretch, to: turn.at });
      stretch = { calls: [], from: turn.at, to: Number.POSITIVE_INFINITY };
      claimed = new Set();
    }
    if (turn.kind !== 'assistant') return turn;
    const message = reading.message(turn, claimed);
    stretch.calls.push(...message.calls);
    // A spread would leave the object in two parts.
    const { kind, id, members, at } = turn;
    return { kind, id, members, at, message };
  });
  stretches.push(stretch);
  const answers = answersOf(stretches, reading.results, onPath);
  return { path, conversation: { turns, answers }, begun, before };
}
