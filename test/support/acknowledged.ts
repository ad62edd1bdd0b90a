import type {
  Appended,
  Draft,
  Forked,
  Lease,
  Merged,
  Redacted,
  Seq,
  SqliteTapeStore,
  Task,
} from '@tapedeck/tape';
import { refusal } from './store.ts';

/** What a store acknowledged, with all that is needed to ask for it again. It can be written as JSON. */
export type Acknowledged =
  | { act: 'session'; name: string; id: string }
  | { act: 'append'; session: string; key: string; drafts: readonly Draft[]; receipt: Appended }
  | { act: 'post'; session: string; key: string; drafts: readonly Draft[] }
  | { act: 'post-merge'; parent: string; child: string }
  | { act: 'fork'; parent: string; key: string; receipt: Forked }
  | { act: 'merge'; child: string; receipt: Merged }
  | { act: 'import'; name: string; id: string; drafts: readonly Draft[] }
  | { act: 'redact'; session: string; receipt: Redacted }
  | { act: 'task'; session: string; task: Task }
  | { act: 'archive'; session: string }
  | { act: 'alias'; alias: string; session: string }
  | { act: 'settle'; session: string; run: string; seq: Seq }
  | { act: 'lease'; lease: Lease };

type Of<A extends Acknowledged['act']> = Extract<Acknowledged, { act: A }>;
type Checks = {
  readonly [A in Acknowledged['act']]: (store: SqliteTapeStore, ack: Of<A>) => readonly unknown[];
};

/** Each pair in a list is what was found and what had to be found. */
const checks: Checks = {
  session: (store, { name, id }) => [
    [store.find(name)?.id, id],
    [store.session(name).created, false],
  ],
  append: (store, { session, key, drafts, receipt }) => [
    ...positions(store, session, drafts, receipt.from),
    ...again(store.append(session, drafts, { key }), receipt),
  ],
  post: (store, { session, key, drafts }) => [
    [store.inbox(session).length, 0],
    [store.post(session, { body: { type: 'append', drafts }, key }).appended?.repeated, drafts.length],
    ...drafts.map((draft) => [copies(store, session, draft), 1]),
  ],
  'post-merge': (store, { parent, child }) => [
    [store.find(child)?.delivery, 'merged'],
    [merges(store, parent, child).length, 1],
  ],
  fork: (store, { parent, key, receipt }) => {
    const { repeated, ...same } = store.fork(parent, { key });
    return [
      [repeated, true],
      [same, { ...receipt, repeated: undefined }],
      [store.sessions({ parent, all: true }).filter(({ id }) => id === receipt.id).length, 1],
    ];
  },
  merge: (store, { child, receipt }) => [
    [merges(store, receipt.parent, child), [receipt.seq]],
    [store.merge(child, {}), { ...receipt, repeated: true }],
  ],
  import: (store, { name, id, drafts }) => [
    [store.find(name)?.id, id],
    [[...store.read(name)].slice(1).map(({ payload }) => payload), drafts.map(({ payload }) => payload)],
  ],
  redact: (store, { session, receipt }) => [
    [[...store.read(session, { from: receipt.seq, to: receipt.seq })].map(({ payload }) => payload), [null]],
    [store.redact(session, receipt.seq, 'again'), { ...receipt, repeated: true }],
  ],
  task: (store, { session, task }) => [[store.find(session)?.task, task]],
  archive: (store, { session }) => [[store.find(session)?.lifecycle, 'archived']],
  alias: (store, { alias, session }) => [[store.find(alias)?.name, session]],
  settle: (store, { session, run, seq }) => [
    [store.chunks(session, run), []],
    [[...store.read(session, { from: seq, to: seq })].length, 1],
  ],
  // It was given back, or its owner was found dead and another took it over: either way it writes no more.
  lease: (store, { lease }) => [
    [
      refusal(() => store.append(lease.id, [{ kind: 'event', name: 'late', payload: {} }], { lease })).code,
      'TAPE_FENCED',
    ],
    [refusal(() => store.extend(lease)).code, 'TAPE_FENCED'],
    [refusal(() => store.release(lease)).code, 'TAPE_FENCED'],
  ],
};

/** What is wrong with something that was acknowledged: it must be there once, and asking again must change nothing. */
export function lostOrDoubled(store: SqliteTapeStore, ack: Acknowledged): string[] {
  try {
    const check = checks[ack.act] as (
      store: SqliteTapeStore,
      ack: Acknowledged,
    ) => readonly [unknown, unknown][];
    return check(store, ack).flatMap(([found, expected]) =>
      JSON.stringify(found) === JSON.stringify(expected)
        ? []
        : [`${JSON.stringify(ack)}: found ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`],
    );
  } catch (error) {
    return [`${JSON.stringify(ack)}: ${String(error)}`];
  }
}

/** The receipt of a repetition: the same positions, and nothing added. */
function again(repeated: Appended, { from, to, added }: Appended): [unknown, unknown][] {
  return [
    [
      [repeated.from, repeated.to, repeated.added, repeated.repeated],
      [from, to, 0, added],
    ],
  ];
}

function positions(
  store: SqliteTapeStore,
  session: string,
  drafts: readonly Draft[],
  from: Seq,
): [unknown, unknown][] {
  const there = [...store.read(session, { from, to: from + drafts.length - 1 })];
  return [
    [there.map(({ payload }) => payload), drafts.map(({ payload }) => payload)],
    ...drafts.map((draft): [unknown, unknown] => [copies(store, session, draft), 1]),
  ];
}

/** How often a draft's content stands on a session's own tape. Each draft's content must be its own. */
function copies(store: SqliteTapeStore, session: string, { payload }: Draft): number {
  const text = JSON.stringify(payload);
  return [...store.read(session, { own: true })].filter((entry) => JSON.stringify(entry.payload) === text)
    .length;
}

function merges(store: SqliteTapeStore, parent: string, child: string): Seq[] {
  return [...store.read(parent, { kind: 'anchor', own: true })]
    .filter(({ name }) => name === `merge/${child}`)
    .map(({ seq }) => seq);
}
