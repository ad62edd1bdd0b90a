import {
  anchor,
  assistant,
  type Draft,
  type Entry,
  type ForkRequest,
  handoff,
  note,
  type Seq,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
  type ViewPolicy,
  view,
} from '@tapedeck/tape';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CopiedSession, flatten } from '../support/copying-model.ts';
import { sized } from '../support/size.ts';
import { openStore, refusal } from '../support/store.ts';
import { invalidities } from '../support/valid-messages.ts';

/** One act of a history: its numbers are taken modulo what there is to choose from, so that it can be shrunk. */
interface Act {
  readonly kind: (typeof kinds)[number];
  readonly who: number;
  readonly a: number;
  readonly b: number;
  readonly c: number;
}

const kinds = [
  'user',
  'assistant',
  'calls',
  'result',
  'results',
  'mark',
  'boundary',
  'note',
  'aside',
  'rewind',
  'unrewind',
  'fork',
  'merge',
] as const;

/** Acts that a history has more of. */
const often = ['fork', 'fork', 'rewind', 'user', 'boundary'] as const;

const number = fc.nat({ max: 1_000 });
const act: fc.Arbitrary<Act> = fc.record({
  kind: fc.constantFrom(...kinds, ...often),
  who: number,
  a: number,
  b: number,
  c: number,
});

const anchorNames = ['A', 'B', 'C'];
const depthMax = 10;

interface MergedOnce {
  readonly child: CopiedSession;
  readonly seq: Seq;
  readonly to: Seq;
}

/** A store and its copying model, moved on together. */
class Histories {
  readonly store: SqliteTapeStore;
  readonly sessions: CopiedSession[] = [];
  readonly #merges: MergedOnce[] = [];
  #n = 0;

  readonly #prefix: string;

  constructor(store: SqliteTapeStore, prefix: string) {
    this.store = store;
    this.#prefix = prefix;
    const { session: name } = store.sessions.open(`${prefix}0`);
    this.sessions.push(this.#sync(new CopiedSession(name)));
  }

  do({ kind, who, a, b, c }: Act): void {
    // The newest sessions are taken more often, so that forks nest.
    const session = pick(this.sessions, who % 4 === 0 ? who : this.sessions.length - 1);
    const n = this.#next();
    switch (kind) {
      case 'user':
        this.#append(session, [user(`u${n}`)]);
        break;
      case 'assistant':
        this.#append(session, [assistant(`a${n}`)]);
        break;
      case 'calls': {
        const calls = Array.from({ length: 1 + (a % 3) }, (_, i) => toolCall(`c${n}-${i}`, 'read', {}));
        this.#append(session, [assistant([{ type: 'text', text: `a${n}` }, ...calls])]);
        break;
      }
      case 'result':
        this.#append(session, results(session, 1));
        break;
      case 'results':
        this.#append(session, results(session, 3));
        break;
      case 'mark':
        this.#append(session, [anchor(pick(anchorNames, a), b % 2 === 0 ? {} : { n })]);
        break;
      case 'boundary': {
        const keepFrom = b % 2 === 0 ? undefined : position(session, c);
        const state = { summary: `s${n}`, ...(c % 2 === 0 && { n }) };
        this.#append(session, [
          handoff(pick(anchorNames, a), a % 5 === 0 ? {} : state, keepFrom === undefined ? {} : { keepFrom }),
        ]);
        break;
      }
      case 'note':
        this.#append(session, [note('run/step', { n })]);
        break;
      case 'aside':
        this.#append(session, [user(`x${n}`, { context: false })]);
        break;
      case 'rewind':
        this.#rewind(session, session.floor + (a % (session.head - session.floor + 1)));
        break;
      case 'unrewind':
        this.#unrewind(session);
        break;
      case 'fork':
        this.#fork(session, { a, b, c, n });
        break;
      case 'merge':
        this.#merge(session);
        break;
    }
  }

  #next(): number {
    this.#n += 1;
    return this.#n;
  }

  #sync(session: CopiedSession): CopiedSession {
    for (const entry of this.store.entries.read(session.name, { own: true, from: session.head + 1 }))
      session.add(entry);
    return session;
  }

  #append(session: CopiedSession, drafts: readonly Draft[]): void {
    if (drafts.length === 0) return;
    const from = session.head + 1;
    const receipt = this.store.entries.append(session.name, drafts);
    expect(receipt).toMatchObject({ from, to: from + drafts.length - 1, added: drafts.length });
    this.#sync(session);
    expect(drafts.map(({ payload }) => payload)).toEqual(drafts.map((_, i) => session.at(from + i).payload));
  }

  #rewind(session: CopiedSession, asked: Seq): void {
    const to = asked === session.floor ? asked : Math.max(session.settled(asked), session.floor);
    const seq = session.head + 1;
    expect(this.store.history.rewind(session.name, asked)).toMatchObject({ seq, to });
    this.#sync(session);
  }

  #unrewind(session: CopiedSession): void {
    const last = session.lastRewind();
    if (last === undefined) {
      expect(refusal(() => this.store.history.unrewind(session.name)).code).toBe('TAPE_BAD_POINT');
      return;
    }
    const asked = last - 1;
    const to = asked === session.floor ? asked : Math.max(session.settled(asked), session.floor);
    expect(this.store.history.unrewind(session.name)).toMatchObject({ seq: session.head + 1, to });
    this.#sync(session);
  }

  #fork(parent: CopiedSession, { a, b, c, n }: { a: number; b: number; c: number; n: number }): void {
    if (this.sessions.length > 12 || parent.depth >= depthMax) return;
    const fresh = a % 8 === 0;
    const cut = b % 2 === 0 ? undefined : position(parent, b);
    const window = a % 7 === 3 && !fresh ? 1 + (c % 5) : undefined;
    const since = c % 2 === 0 || window !== undefined ? undefined : position(parent, c);
    const request: ForkRequest = {
      name: `${this.#prefix}${n}`,
      ...inheritOf(fresh, since, window),
      ...(cut !== undefined && { cut }),
      ...(a % 3 === 0 && { intention: { nextSteps: `i${n}` } }),
    };
    const asked = cut === undefined || fresh ? parent.head : cut;
    if (!fresh && since !== undefined && since > asked) {
      expect(refusal(() => this.store.lineage.fork(parent.name, request)).code).toBe('TAPE_BAD_POINT');
      return;
    }
    const base = parent.settled(asked);
    const said = parent.seen(base).filter((seq) => parent.at(seq).kind === 'message');
    const first = window === undefined ? undefined : said.at(-window);
    const from = since ?? (first === undefined ? parent.floor : first - 1);
    const floor = Math.min(fresh ? base : from, base);
    const range = floor === base ? null : [floor + 1, base];
    const snappedFrom = base === asked || fresh ? undefined : asked;
    const forked = this.store.lineage.fork(parent.name, request);
    expect(forked).toMatchObject({ base, range, ...(snappedFrom !== undefined && { snappedFrom }) });
    this.sessions.push(this.#sync(new CopiedSession(forked.session, { parent, floor, base })));
  }

  #merge(child: CopiedSession): void {
    const { parent } = child;
    if (parent === undefined) return;
    const visible = this.#merges.filter((m) => m.child === child && parent.seen(parent.head).includes(m.seq));
    const same = visible.find((m) => m.to === child.head);
    if (same !== undefined) {
      expect(this.store.lineage.merge(child.name)).toMatchObject({ repeated: true, seq: same.seq });
      return;
    }
    if (parent.settled() !== parent.head || child.settled() !== child.head) {
      expect(refusal(() => this.store.lineage.merge(child.name)).code).toBe('TAPE_UNSETTLED');
      return;
    }
    const from = (visible.at(-1)?.to ?? child.base) + 1;
    const merged = this.store.lineage.merge(child.name);
    expect(merged).toMatchObject({ repeated: false, seq: parent.head + 1, range: [from, child.head] });
    this.#merges.push({ child, seq: merged.seq, to: child.head });
    this.#sync(parent);
  }
}

const pick = <T>(from: readonly T[], at: number): T => {
  const item = from[at < 0 ? 0 : at % from.length];
  if (item === undefined) throw new TypeError('nothing to pick from');
  return item;
};

/** A position that a session has, its inherited ones included; every session has one. */
function inheritOf(fresh: boolean, since: Seq | undefined, last: number | undefined): ForkRequest {
  if (fresh) return { inherit: 'nothing' };
  if (last !== undefined) return { inherit: { last } };
  return since === undefined ? {} : { inherit: { since } };
}

const position = (session: CopiedSession, n: number): Seq =>
  session.floor + 1 + (n % (session.head - session.floor));

const results = (session: CopiedSession, most: number): Draft[] =>
  session
    .open()
    .slice(0, most)
    .map((toolCallId) => toolResult({ toolCallId, toolName: 'read' }, `of ${toolCallId}`));

/** Compares one session with its copy: reads, settled points, anchors, and views of every policy now and before. */
function compare(store: SqliteTapeStore, session: CopiedSession, seed: number): void {
  const { name, floor, base, head } = session;
  const all: Entry[] = [...store.entries.read(name)];
  same(all, session.all());
  same(
    [...store.entries.read(name, { own: true })],
    session.all().filter((e) => e.seq > base),
  );
  const shown = [...store.views.entries(name, { policy: 'full' })].map(({ seq }) => seq);
  same(shown, session.needed());
  expect(store.sessions.find(name)).toMatchObject({ floor, base, head, settled: session.settled() });
  for (const anchorName of ['A', 'C', 'fork/start', 'intention']) {
    const found = session.anchors(anchorName);
    const back = seed % 3;
    const point = back === 0 ? anchorName : `${anchorName}~${back}`;
    const seq = found[back];
    if (seq === undefined)
      expect(refusal(() => store.entries.resolve(name, point)).code).toBe('TAPE_NO_ANCHOR');
    else expect(store.entries.resolve(name, point)).toBe(seq);
  }
  for (const at of new Set([head, position(session, seed)]))
    for (const policy of policies(session, at, seed).slice(0, at === head ? 5 : 3)) {
      const given = view(store.views.entries(name, { policy, at }), { policy });
      same(flatten(given), session.view(policy, at));
      const whole = view(
        all.filter((e) => e.seq <= at),
        { policy },
      );
      const { digest, from, to } = given;
      expect([whole.digest, whole.from, whole.to]).toEqual([digest, from, to]);
      same(invalidities(given.messages), []);
    }
}

/** Equal texts are soon compared; only a difference is worth a report. */
function same(found: unknown, expected: unknown): void {
  if (JSON.stringify(found) !== JSON.stringify(expected)) expect(found).toEqual(expected);
}

function policies(session: CopiedSession, at: Seq, seed: number): ViewPolicy[] {
  const named = anchorNames.filter((name) => session.anchors(name, at).length > 0);
  return [
    'last-boundary',
    'full',
    ...named.map((fromAnchor) => ({ fromAnchor })),
    { fromAnchor: Math.min(position(session, seed * 13), at) },
    { window: 1 + (seed % 4) },
    ['full', { window: 1 + (seed % 7) }],
    ...named.map((fromAnchor) => [{ fromAnchor }, { window: 2 }] as const),
  ];
}

test('a store that shares inherited entries with forks answers like one that copies them', () => {
  let [compared, deepest, run] = [0, 0, 0];
  using store = openStore();
  const histories = fc.array(act, { minLength: 5, maxLength: 60, size: 'max' });
  fc.assert(
    fc.property(histories, number, (acts, seed) => {
      run += 1;
      const played = new Histories(store, `h${run}-`);
      for (const each of acts) played.do(each);
      for (const session of played.sessions) compare(store, session, seed + session.head);
      compared += played.sessions.length;
      deepest = Math.max(deepest, ...played.sessions.map(({ depth }) => depth));
    }),
    { numRuns: sized(20, 40, 400), seed: sized(1, 1, 20261121) },
  );
  expect([...store.verify()]).toEqual([]);
  expect(compared).toBeGreaterThan(sized(100, 150, 1500));
  expect(deepest).toBe(depthMax);
});
