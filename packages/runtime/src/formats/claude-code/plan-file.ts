import type { Draft } from '@tapedeck/tape';
import { nameFault } from '@tapedeck/tape/store';
import type { FaultyLine } from '../../plan/faulty-lines.ts';
import type { OpenEnd } from '../../plan/open-end.ts';
import type { ConversationPlan, DerivedEdge, ImportPlan, PlacedAside } from '../../plan/plan.ts';
import { ByRecord } from './by-record.ts';
import { chainOf, type DerivedLink } from './chain.ts';
import { type ReadingCounts, readingCounts } from './counts.ts';
import { asideDraft } from './drafts.ts';
import { faultsIn } from './faults.ts';
import { openEndOf } from './open-end.ts';
import { speaks } from './paths.ts';
import { titleOf } from './provenance.ts';
import { type ReadTree, type ReadWay, readTree, turnAt, turnsOn } from './read-way.ts';
import type { CodeRecord } from './records.ts';
import { weave } from './weave.ts';

/** Why a conversation does not follow the one before it in the file. */
function whyApart(first: CodeRecord | undefined): string {
  return first?.parent === undefined
    ? 'has no parent: the conversation before it was cleared'
    : `has a parent, ${first.parent}, that is not before it in the file`;
}

/** What a file is to its session. */
export interface FileKey {
  /** The key of its first conversation; those of the others begin with it. */
  readonly key: string;
  readonly name: string;
  readonly kind: ConversationPlan['kind'];
  /** What stands for the file; `key` if it is absent. */
  readonly file?: string;
  /** Of the end of a file: what the last snapshot before it says of turns of the system. */
  readonly systemTurns?: boolean | undefined;
}

/** A conversation of which nothing is here. */
export function emptyOf({ key, kind, name, file = key }: FileKey): ConversationPlan {
  return { key, kind, file, name, spine: [], settled: 0, keeps: new Map(), asides: [] };
}

/** The conversations of one file, parents first. */
export interface FilePlan
  extends Pick<ImportPlan, 'conversations' | 'derived' | 'exportOf' | 'exportFrom' | 'passedOver' | 'end'> {
  readonly reading: ReadingCounts;
  /** The first faults of its records. */
  readonly faults: readonly FaultyLine[];
}

/** Reads the conversations of the records of one file; where nothing is said in it, one that has its records. */
export function planFile(
  records: readonly CodeRecord[],
  { key, name, kind, file = key, systemTurns }: FileKey,
): FilePlan {
  const chain = chainOf(records);
  const trees = chain.trees.filter((tree) => tree.some((record) => speaks(record)));
  const title = titleOf(records);
  const derived: DerivedEdge[] = [];
  const links = new Map(chain.derived.map((one) => [one.record, one]));
  const taken = new ByRecord<true>();
  const ways = trees.map((tree) => readTree(tree, chain, { taken, before: systemTurns }));
  // Records of a tree that says nothing, and those without a place in a tree, go with the first conversation.
  const later = new Map(trees.slice(1).flatMap((tree, i) => tree.map((record) => [record, i + 1] as const)));
  const beside = Map.groupBy(
    records.filter((record) => !taken.has(record)),
    (record) => later.get(record) ?? 0,
  );
  const conversations: ConversationPlan[] = [];
  const written = new Set<string>();
  const { session: exportOf, from: exportFrom } = records.find(({ mark }) => mark !== undefined)?.mark ?? {};
  const marks = marksOf(records, exportOf);
  let before: ConversationPlan | undefined;
  let end: OpenEnd | undefined;
  for (const [t, tree] of ways.entries()) {
    const made: MadeWay[] = [];
    for (const [p, { path, conversation }] of tree.ways.entries()) {
      const own = path.again.size === 0 ? path.own : path.own.filter((one) => !path.again.has(one));
      const [first] = own;
      const isRoot = p === 0;
      const id = isRoot ? (t === 0 ? key : `${key}/clear:${first?.key}`) : `${key}/branch:${first?.key}`;
      const parent = isRoot ? before : made[path.from ?? 0]?.plan;
      derived.push(...edgesOf(own, id, links));
      if (isRoot && t > 0 && parent !== undefined)
        derived.push({
          ...{ conversation: id, of: id, from: parent.key, why: 'cleared' },
          evidence: `record ${first?.ordinal} of the file ${whyApart(first)}`,
        });
      const way = planPath(
        tree,
        { way: p, beside: (isRoot && beside.get(t)) || [], made },
        {
          ...{ key: id, kind: isRoot ? (t === 0 ? kind : 'cleared') : 'branch', file },
          ...{ parent, written, marks },
          name: nameOf(name, id === key ? undefined : { first, isRoot }),
        },
      );
      const { plan, spineStarts } = way;
      // A record that is part of no chain goes with the first conversation, whichever grows.
      if (isRoot && t === 0) end = openEndOf(chain, { ...way, conversation, systemTurns });
      made.push({ plan: isRoot && title !== undefined ? { ...plan, title } : plan, spineStarts });
    }
    before = made[0]?.plan ?? before;
    conversations.push(...made.map(({ plan }) => plan));
  }
  if (conversations.length === 0 && records.length > 0) {
    const asides = records.map((record) => ({ draft: asideDraft(record), after: 0 }));
    conversations.push({ key, kind, file, name, spine: [], settled: 0, keeps: new Map(), asides });
  }
  // The others are of records that say nothing.
  derived.push(...edgesOf([...links.keys()], key, links));
  const paths = ways.flatMap((one) => one.ways).map(({ conversation }) => ({ ...conversation, beside: [] }));
  const faults = faultsIn(chain, paths);
  return {
    ...{ conversations, derived, reading: readingCounts(chain, paths, faults), faults: faults.lines },
    ...(exportOf !== undefined && { exportOf, passedOver: passedIn(records, exportOf) }),
    ...(exportFrom !== undefined && { exportFrom }),
    ...(end !== undefined && exportOf === undefined && { end }),
  };
}

/** The edges of records that no record names, taken out of `left`: those of steps that ways share are in the first of them. */
function edgesOf(
  steps: readonly CodeRecord[],
  conversation: string,
  left: Map<CodeRecord, DerivedLink>,
): readonly DerivedEdge[] {
  return steps.flatMap((record) => {
    const one = left.get(record);
    if (one === undefined) return [];
    left.delete(record);
    const { parent, why, evidence } = one;
    return [{ conversation, of: record.key, from: parent.key, why, evidence }];
  });
}

/** What other ways need of one that was made a conversation. */
interface MadeWay {
  readonly plan: ConversationPlan;
  /** Of a tree with several ways: how many drafts of the spine precede each of its own turns, and how many there are. */
  readonly spineStarts: readonly number[];
}

interface PlannedWay extends MadeWay {
  /** Its own drafts, and those with which its own turns begin. */
  readonly drafts: readonly Draft[];
  readonly starts: readonly number[];
  readonly settled: number;
}

function planPath(
  { ways, reading, isCompacted, kept }: ReadTree,
  {
    way,
    beside,
    made,
  }: {
    readonly way: number;
    readonly beside: readonly CodeRecord[];
    /** The ways before it. */
    readonly made: readonly MadeWay[];
  },
  {
    parent,
    written,
    marks,
    name,
    ...named
  }: Pick<ConversationPlan, 'key' | 'kind' | 'file' | 'name'> & {
    readonly parent: ConversationPlan | undefined;
    /** The keys of the asides of earlier conversations: those of the steps that they share go with one only. */
    readonly written: Set<string>;
    /** The hashes of the entries of which an export made records, by the keys of these. */
    readonly marks: ReadonlyMap<string, string>;
  },
): PlannedWay {
  const { path, conversation, begun } = ways[way] as ReadWay;
  const isTree = ways.length > 1;
  const from = path.from ?? 0;
  const shared =
    begun.turns === 0
      ? []
      : (made[from]?.plan.spine.slice(0, spineBefore(ways, made, from, begun.turns)) ?? []);
  const last = begun.turns === 0 ? undefined : turnAt(ways, from, begun.turns - 1);
  const turns = isCompacted ? turnsOn(ways, way) : conversation.turns;
  const compactions = turns.slice(0, begun.turns).filter(({ kind }) => kind === 'boundary').length;
  const { drafts, settled, starts } = weave({ ...conversation, beside }, reading, {
    last,
    compactions: isCompacted ? compactions : 0,
  });
  // Of these the entry has a part only.
  const parts = new Map(
    conversation.turns.flatMap((turn) =>
      turn.kind === 'boundary' || turn.kind === 'api-error' ? [[turn.record.key, turn.record] as const] : [],
    ),
  );
  const spine: Draft[] = [...shared];
  const asides: PlacedAside[] = [];
  const spineStarts: number[] = [];
  let fixed = 0;
  for (const [i, draft] of drafts.entries()) {
    while (isTree && starts[spineStarts.length] === i) spineStarts.push(spine.length);
    if (i === settled) fixed = spine.length;
    const isAside = draft.kind.startsWith('x-');
    if (!isAside) spine.push(draft);
    const part = isAside || parts.size === 0 ? undefined : parts.get(draft.key ?? '');
    const aside = part === undefined ? draft : asideDraft(part, `${part.key}:whole`);
    if ((!isAside && part === undefined) || written.has(aside.key ?? '')) continue;
    written.add(aside.key ?? '');
    asides.push({ draft: aside, after: spine.length });
  }
  while (isTree && spineStarts.length <= starts.length) spineStarts.push(spine.length);
  if (settled >= drafts.length) fixed = spine.length;
  if (settled < 0) fixed = spineBefore(ways, made, from, begun.turns - 1);
  const exported =
    marks.size === 0 ? marks : exportedIn([...spine, ...asides.map(({ draft }) => draft)], marks);
  const plan: ConversationPlan = {
    ...named,
    ...(parent !== undefined && { parent: { key: parent.key } }),
    name,
    spine,
    settled: fixed,
    ...(shared.length > 0 && { shared: shared.length }),
    keeps: kept.of(turns),
    asides,
    ...(exported.size > 0 && { exported }),
  };
  return { plan, drafts, starts, spineStarts, settled };
}

/** How many drafts of the spine of a way precede one of its turns. */
function spineBefore(ways: readonly ReadWay[], made: readonly MadeWay[], way: number, turn: number): number {
  let at = way;
  for (let read = ways[at]; read?.path.from !== undefined && turn < read.begun.turns; read = ways[at])
    at = read.path.from;
  return made[at]?.spineStarts[turn - (ways[at]?.begun.turns ?? 0)] ?? 0;
}

/** What the export of a session wrote into records, by their keys. */
function marksOf(records: readonly CodeRecord[], session: string | undefined): ReadonlyMap<string, string> {
  return new Map(
    records.flatMap(({ key, mark }) =>
      mark === undefined || mark.session !== session ? [] : [[key, mark.entry ?? ''] as const],
    ),
  );
}

/** The entries of which an export says in some record that it wrote nothing of them. */
function passedIn(records: readonly CodeRecord[], session: string): ReadonlySet<string> {
  return new Set(records.flatMap(({ mark }) => (mark?.session === session ? (mark.passed ?? []) : [])));
}

/** The drafts that are made of such records. The key of a result begins with that of its record. */
function exportedIn(
  drafts: readonly Draft[],
  marks: ReadonlyMap<string, string>,
): ReadonlyMap<string, string> {
  return new Map(
    drafts.flatMap(({ key = '' }) => {
      const entry = markOfKey(key, marks);
      return entry === undefined ? [] : [[key, entry] as const];
    }),
  );
}

function markOfKey(key: string, marks: ReadonlyMap<string, string>): string | undefined {
  for (let end = key.length; end > 0; end = key.lastIndexOf(':', end - 1)) {
    const entry = marks.get(key.slice(0, end));
    if (entry !== undefined) return entry;
  }
  return undefined;
}

/** The name of a conversation beside the main one, from the record that begins it. */
function nameOf(
  name: string,
  other: { readonly first: CodeRecord | undefined; readonly isRoot: boolean } | undefined,
): string {
  if (other === undefined) return name;
  const id = (other.first?.key ?? '')
    .replace(/^cc:/, '')
    .replace(/[^A-Za-z0-9]/g, '')
    .slice(0, 8);
  const full = `${name}-${other.isRoot ? 'clear' : 'branch'}-${id}`;
  return nameFault(full) === undefined ? full : name;
}
