import type { Appended, Draft, Forked, Lease, Merged, Seq, SqliteTapeStore, Task } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { Redacted } from '@tapedeck/tape/store';
import { refusal } from './store.ts';

/** An acknowledgement of a store, with everything needed to repeat the act. It can be written as JSON. */
export type Acknowledged =
  | { act: 'session'; name: string; id: string }
  | { act: 'append'; session: string; key: string; drafts: readonly Draft[]; receipt: Appended }
  | { act: 'post'; session: string; key: string; drafts: readonly Draft[] }
  | { act: 'post-merge'; parent: string; child: string }
  | { act: 'fork'; parent: string; key: string; receipt: Forked }
  | { act: 'done'; session: string; drafts: readonly Draft[]; task: Task }
  | { act: 'merge'; child: string; receipt: Merged }
  /** A merge of a child that continues afterwards, or that a rewind may hide. */
  | { act: 'delivery'; parent: string; child: string; seq: Seq }
  /** A merge that waits for the owner of the parent, who may refuse it. */
  | { act: 'request'; parent: string; child: string; id: string }
  | { act: 'import'; name: string; id: string; drafts: readonly Draft[] }
  | { act: 'redact'; session: string; receipt: Redacted }
  /** A redaction of what others may quote afterwards. */
  | { act: 'redaction'; session: string; seq: Seq; by: Seq }
  | { act: 'task'; session: string; task: Task }
  | { act: 'archive'; session: string }
  | { act: 'alias'; alias: string; session: string }
  | { act: 'unalias'; alias: string }
  | { act: 'delete'; id: string; names: readonly string[] }
  | { act: 'back'; id: string; names: readonly string[] }
  | { act: 'purge'; id: string }
  | { act: 'settle'; session: string; run: string; seq: Seq }
  | { act: 'lease'; lease: Lease };

/** The found values, and the expected ones. */
type Pair = readonly [unknown, unknown];

type Of<A extends Acknowledged['act']> = Extract<Acknowledged, { act: A }>;
type Checks = {
  readonly [A in Acknowledged['act']]: (store: SqliteTapeStore, ack: Of<A>) => readonly unknown[];
};

const checks: Checks = {
  session: (store, { name, id }) => [
    [store.sessions.find(name)?.id, id],
    [store.sessions.open(name).created, false],
  ],
  append: (store, { session, key, drafts, receipt }) => [
    ...inPlace(store, session, drafts, receipt.from),
    ...once(store, session, { key, drafts }),
    ...again(store.entries.append(session, drafts, { key }), receipt, drafts),
  ],
  post: (store, { session, key, drafts }) => [
    [store.inbox.list(session).length, 0],
    [store.inbox.post(session, { body: { type: 'append', drafts }, key }).appended?.repeated, drafts.length],
    ...once(store, session, { key, drafts }),
  ],
  'post-merge': (store, { parent, child }) => [
    [store.sessions.find(child)?.delivery, 'merged'],
    [merges(store, parent, child).length, 1],
  ],
  fork: (store, { parent, key, receipt }) => {
    const { repeated, ...same } = store.lineage.fork(parent, { key });
    return [
      [repeated, true],
      [
        [same.session, same.id, same.base, same.range],
        [receipt.session, receipt.id, receipt.base, receipt.range],
      ],
      [store.sessions.list({ parent, all: true }).filter(({ id }) => id === receipt.id).length, 1],
    ];
  },
  done: (store, { session, drafts, task }) => [
    [store.sessions.find(session)?.task, task],
    [
      [...store.entries.read(session, { own: true })].slice(1).map(({ payload }) => payload),
      drafts.map(({ payload }) => payload),
    ],
  ],
  merge: (store, { child, receipt }) => [
    [merges(store, receipt.parent, child), [receipt.seq]],
    [store.lineage.merge(child, {}), { ...receipt, repeated: true }],
  ],
  delivery: (store, { parent, child, seq }) => [
    [merges(store, parent, child).filter((at) => at === seq), [seq]],
  ],
  request: (store, { parent, child, id }) => [
    [store.inbox.list(parent).length, 0],
    [store.sessions.find(child)?.delivery !== undefined || refused(store, parent).includes(id), true],
  ],
  import: (store, { name, id, drafts }) => [
    [store.sessions.find(name)?.id, id],
    [
      [...store.entries.read(name)].slice(1).map(({ payload }) => payload),
      drafts.map(({ payload }) => payload),
    ],
  ],
  redact: (store, { session, receipt }) => [
    [
      [...store.entries.read(session, { from: receipt.seq, to: receipt.seq })].map(({ payload }) => payload),
      [null],
    ],
    [store.entries.redact(session, receipt.seq, 'again'), { ...receipt, repeated: true }],
  ],
  redaction: (store, { session, seq, by }) => [
    [[...store.entries.read(session, { from: seq, to: seq })].map(({ payload }) => payload), [null]],
    [store.entries.redact(session, seq, 'again').by, by],
  ],
  task: (store, { session, task }) => [[store.sessions.find(session)?.task, task]],
  archive: (store, { session }) => [[store.sessions.find(session)?.lifecycle, 'archived']],
  alias: (store, { alias, session }) => [[store.sessions.find(alias)?.session, session]],
  unalias: (store, { alias }) => [[store.sessions.find(alias), undefined]],
  delete: (store, { id, names }) => [
    [store.sessions.find(id)?.lifecycle, 'destroyed'],
    ...names.map((name) => [store.sessions.find(name), undefined]),
  ],
  back: (store, { id, names }) => names.map((name) => [store.sessions.find(name)?.id, id]),
  purge: (store, { id }) => [
    [store.sessions.find(id)?.lifecycle, 'purged'],
    [
      [...store.entries.read(id, { own: true })].filter(
        ({ kind, payload }) => kind !== 'redaction' && payload !== null,
      ),
      [],
    ],
    [store.sessions.purge(id, 'again').repeated, true],
  ],
  settle: (store, { session, run, seq }) => [
    [store.live.read(session, { run }), []],
    [[...store.entries.read(session, { from: seq, to: seq })].length, 1],
  ],
  // It was given back, or its owner was found dead and another took it over: either way it writes no more.
  lease: (store, { lease }) => [
    [
      refusal(() => store.entries.append(lease.id, [{ kind: 'event', name: 'late', payload: {} }], { lease }))
        .code,
      'TAPE_FENCED',
    ],
    [refusal(() => store.leases.extend(lease)).code, 'TAPE_FENCED'],
    [refusal(() => store.leases.release(lease)).code, 'TAPE_FENCED'],
  ],
};

/** The faults of an acknowledged act: its entry must be there once, and repeating it must change nothing. */
export function lostOrDoubled(store: SqliteTapeStore, ack: Acknowledged): string[] {
  try {
    const check = checks[ack.act] as (store: SqliteTapeStore, ack: Acknowledged) => readonly Pair[];
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
function again(repeated: Appended, { from, to }: Appended, { length }: readonly Draft[]): Pair[] {
  return [
    [
      [repeated.from, repeated.to, repeated.added, repeated.repeated],
      [from, to, 0, length],
    ],
  ];
}

/** The entries of a batch stand in their places. What was redacted since counts as it was. */
function inPlace(store: SqliteTapeStore, session: string, drafts: readonly Draft[], from: Seq): Pair[] {
  const there = [...store.entries.read(session, { from, to: from + drafts.length - 1 })];
  return [
    [there.map(({ payload }, i) => payload ?? drafts[i]?.payload), drafts.map(({ payload }) => payload)],
  ];
}

/** Each draft is on a session's own tape once: its content, which no other has, or its key if it was redacted. */
function once(
  store: SqliteTapeStore,
  session: string,
  { key, drafts }: { key: string; drafts: readonly Draft[] },
): Pair[] {
  const own = [...store.entries.read(session, { own: true })];
  return drafts.map(({ payload }, i) => {
    const text = JSON.stringify(payload);
    const entryKey = i === 0 ? `u:${key}` : `u:${key}#${i + 1}`;
    const there = own.filter((entry) =>
      entry.payload === null ? entry.key === entryKey : JSON.stringify(entry.payload) === text,
    );
    return [there.length, 1];
  });
}

function merges(store: SqliteTapeStore, parent: string, child: string): Seq[] {
  return [...store.entries.read(parent, { kind: 'anchor', own: true })]
    .filter(({ name }) => name === `merge/${child}`)
    .map(({ seq }) => seq);
}

function refused(store: SqliteTapeStore, session: string): unknown[] {
  return [...store.entries.read(session, { kind: 'event', own: true })]
    .filter(({ name }) => name === 'inbox/refused' || name === 'merge/refused')
    .map(({ payload }) => (isObject(payload) ? payload.id : undefined));
}
