import {
  assistant,
  type Draft,
  type ForkRequest,
  type MergeRequest,
  note,
  result,
  type SessionInfo,
  type SqliteTapeStore,
  TapeError,
  type Task,
  toolResult,
  user,
} from '@tapedeck/tape';
import { normalise } from '@tapedeck/tape/store';
import type { Random } from '../seeded.ts';
import { anyDrafts } from './drafts.ts';
import type { Tally } from './tally.ts';
import { Words } from './words.ts';

const tasks: readonly Task[] = [
  'running',
  'completed',
  'halted',
  'failed',
  'aborted',
  'filtered',
  'orphaned',
];
/** Texts that are hard to compare: halves of pairs, long ones, quotes and line ends. */
const texts = [
  '',
  'Done.',
  'half \ud83d',
  '\ude00 other half',
  `"quoted"\u2028\n${'long '.repeat(90)}`,
  '𝒳'.repeat(150),
];

/**
 * Sessions that grow by every act of a store, one act for each number. An act that the store refuses is part of a
 * history: it writes nothing.
 */
export class LegalActs {
  readonly #store: SqliteTapeStore;
  readonly #name: string;
  readonly #tally: Tally;
  readonly #words = new Words();
  readonly #asked: string[] = [];
  #made = 0;

  constructor(store: SqliteTapeStore, name: string, tally: Tally) {
    this.#store = store;
    this.#name = name;
    this.#tally = tally;
    store.sessions.open(name, { title: 'A title', settings: { model: 'a/b' } });
    store.entries.append(name, [user('Look.')]);
  }

  /** Does one act, whichever the number says. */
  act(random: Random): void {
    const often = Object.entries(this.#acts).flatMap(([name, [times]]) => Array<string>(times).fill(name));
    const name = random.of(often);
    const session = random.of(this.sessions());
    try {
      this.#acts[name]?.[1](session, random);
      this.#tally.count(name);
    } catch (error) {
      if (!(error instanceof TapeError)) throw error;
      this.#tally.count(`${name}: ${error.code}`);
    }
  }

  /** The sessions of this history. */
  sessions(): readonly SessionInfo[] {
    const all = this.#store.sessions.list({ under: this.#name, all: true });
    const root = this.#store.sessions.find(this.#name);
    return root === undefined ? all : [root, ...all];
  }

  readonly #acts: Readonly<
    Record<string, readonly [often: number, (of: SessionInfo, random: Random) => unknown]>
  > = {
    append: [12, (of, random) => this.#store.entries.append(of.session, this.#drafts(of, random))],
    work: [6, (of, random) => this.#store.entries.append(of.session, this.#work(random))],
    rewind: [3, (of, random) => this.#store.history.rewind(of.session, this.#position(of, random))],
    unrewind: [2, (of) => this.#store.history.unrewind(of.session)],
    fork: [5, (of, random) => this.#store.lineage.fork(of.session, this.#fork(of, random))],
    merge: [5, (of, random) => this.#store.lineage.merge(of.session, this.#merge(of, random))],
    discard: [1, (of) => this.#store.lineage.merge(of.session, { strategy: 'discard', reason: 'no use' })],
    redact: [
      3,
      (of, random) => this.#store.entries.redact(of.session, this.#position(of, random), 'private'),
    ],
    alias: [1, (of, random) => this.#store.sessions.update(of.session, { alias: this.#alias(random) })],
    unalias: [1, (of, random) => this.#store.sessions.update(of.session, { unalias: this.#alias(random) })],
    task: [2, (of, random) => this.#store.sessions.update(of.session, { task: random.of(tasks) })],
    archive: [1, (of) => this.#store.sessions.update(of.session, { lifecycle: 'archived' })],
    reopen: [2, (of) => this.#store.sessions.update(of.session, { lifecycle: 'active' })],
    import: [1, (_, random) => this.#import(random)],
    lease: [1, (of, random) => this.#underLease(of, random)],
    inbox: [
      1,
      (of) => this.#store.inbox.post(of.session, { body: { type: 'append', drafts: [user('Later.')] } }),
    ],
    drain: [1, (of) => this.#store.inbox.drain(of.session)],
  };

  #drafts({ floor, head }: SessionInfo, random: Random): readonly Draft[] {
    const count = (what: string) => this.#tally.count(`append ${what}`);
    const material = { random, words: this.#words, floor, head, asked: this.#asked, results: [], count };
    const drafts = anyDrafts(material).flatMap(normalise);
    return drafts.length === 0 ? [note('nothing', {})] : drafts;
  }

  /** What a run leaves: results with paths, patches, outcomes, bytes. */
  #work(random: Random): readonly Draft[] {
    const paths = () => ['a.ts', 'b.ts', 'half \ud83d', 'c.ts'].filter(() => random.chance(40));
    const partial = random.chance(40) ? { partial: true } : {};
    return random.of<() => readonly Draft[]>([
      () => [
        toolResult({ toolCallId: 'c0', toolName: 'edit' }, 'Ok.', {
          paths: { read: paths(), write: paths() },
        }),
      ],
      () => [
        assistant(random.of(texts), {
          ...partial,
          usage: { input: random.below(9), output: random.below(9) / 4 },
        }),
      ],
      () => [result(random.of([{ value: 1 }, 'text', null, texts]))],
      () => [note(random.of(['run/error', 'run/halted', 'result/refused']), { message: random.of(texts) })],
      () => [assistant('One', { finish: 'content-filter' })],
      () => [user([{ type: 'file', mediaType: 'a/b', data: new Uint8Array([1, 2, random.below(9)]) }])],
      () => [user('Once.', { source: 'import', timestamp: '2026-11-23T10:00:00Z' })],
      () => [closed(paths())],
    ])();
  }

  #position({ floor, head }: SessionInfo, random: Random): number {
    return floor + 1 + random.below(head - floor + 1);
  }

  #fork(of: SessionInfo, random: Random): ForkRequest {
    this.#made += 1;
    const anchors = [...this.#store.entries.read(of.session, { kind: 'anchor' })].flatMap(
      ({ name }) => name ?? [],
    );
    const intention = random.shuffled([
      ['nextSteps', random.of(texts)],
      ['contextSummary', random.of(texts)],
      ['triggerOnComplete', 'notify_parent'],
    ] as const);
    return {
      ...(random.chance(30) && { key: `k${random.below(3)}` }),
      ...(random.chance(50) && { name: `${this.#name}.${this.#made}` }),
      ...random.of<() => ForkRequest>([
        () => ({}),
        () => ({ inherit: 'nothing' }),
        () => ({ inherit: { last: 1 + random.below(4) } }),
        () => ({ inherit: { since: anchors.length > 0 ? random.of(anchors) : 0 } }),
        () => ({ inherit: { since: this.#position(of, random) } }),
        () => ({ cut: this.#position(of, random) }),
        () => ({ inherit: { since: this.#position(of, random) }, cut: this.#position(of, random) }),
      ])(),
      ...(random.chance(60) && { intention: Object.fromEntries(intention.slice(random.below(4))) }),
      ...(random.chance(30) && { settings: { model: 'c/d' }, terms: { run: 'r' } }),
      ...(random.chance(40) && {
        deliver: random.of(['merge', 'merge+turn', 'notify', 'tool-result'] as const),
      }),
      ...(random.chance(20) && {
        kind: random.of(['session', 'summarizer', 'other']),
        title: 'T',
        ephemeral: true,
      }),
      ...(random.chance(20) && {
        done: { drafts: [assistant('Done.')], task: random.of(['completed', 'failed'] as const) },
      }),
      ...(random.chance(10) && { worktree: { repository: '/r', git: '/r/.git' }, spawnCall: 'c0' }),
    };
  }

  #merge(of: SessionInfo, random: Random): MergeRequest {
    return {
      ...(random.chance(30) && { text: random.of(texts) }),
      ...(random.chance(20) && { into: this.#name }),
      ...(random.chance(30) && { status: random.of(tasks) }),
      ...(random.chance(30) && { charsMax: random.below(200) }),
      ...(random.chance(30) && { force: true }),
      ...(random.chance(20) && { written: ['x.ts'] }),
      ...(random.chance(20) && { context: false, notify: true, reason: `of ${of.session}` }),
    };
  }

  #alias(random: Random): { readonly name: string; readonly reason: string } {
    return { name: `${this.#name}-alias-${random.below(3)}`, reason: random.of(['', 'a better name']) };
  }

  #import(random: Random): void {
    this.#made += 1;
    const { id } = this.#store.imports.stage(`${this.#name}-import-${this.#made}`, { title: 'Imported' });
    this.#store.imports.append(id, [
      user('Once.', { source: 'import', timestamp: '2020-01-01T00:00:00+02:00' }),
    ]);
    if (random.chance(70)) this.#store.imports.publish([id]);
  }

  #underLease({ session: name }: SessionInfo, random: Random): void {
    const lease = this.#store.leases.acquire(name, { id: `owner-${this.#made}` });
    this.#store.entries.append(name, [user('Under a lease.')], { lease });
    if (random.chance(80)) this.#store.leases.release(lease);
  }
}

function closed(paths: readonly string[]): Draft {
  const files = paths.map((path) => ({ path, from: `old/${path}`, change: 'renamed', mode: '100644' }));
  const payload = { base: 'a'.repeat(40), tree: 'b'.repeat(40), files, patch: new Uint8Array([1, 2, 3]) };
  return { kind: 'event', name: 'workspace/closed', payload };
}
