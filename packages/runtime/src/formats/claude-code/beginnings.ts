import { atStep, type TreePath } from './paths.ts';
import type { Places } from './places.ts';
import type { CodeRecord } from './records.ts';
import { type AnswerRecords, isTyped, kindOf, messageId } from './turns.ts';

/**
 * How much of each way through a tree reads as on the way that it forks from, so that it is read once. That is so up to an
 * answer without calls that a prompt follows on both, if nothing behind it belongs to a message or a call before it.
 */
export class Beginnings {
  readonly #paths: readonly TreePath[];
  readonly #answers: AnswerRecords;
  /** The depths of the first and of the last record of each message. */
  readonly #first = new Map<string, number>();
  readonly #last = new Map<string, number>();
  /** The depth of the last record that makes a call, or has its result. */
  readonly #lastOfCall = new Map<string, number>();
  /** For each own step of each way the depth of the last record that belongs to a message or a call up to there. */
  readonly #reach: (readonly number[])[] = [];
  /** For each own step of each way what the last snapshot up to there says of turns of the system. */
  readonly #snapshots: (readonly (boolean | undefined)[])[] = [];
  readonly #hasSnapshots: boolean;
  readonly #reachOfMessage = new Map<string, number>();

  constructor(
    tree: readonly CodeRecord[],
    paths: readonly TreePath[],
    { places, answers }: { readonly places: Places; readonly answers: AnswerRecords },
  ) {
    this.#paths = paths;
    this.#answers = answers;
    this.#hasSnapshots = tree.some(({ traits }) => traits.systemTurns !== undefined);
    const deepen = (depths: Map<string, number>, id: string, depth: number) => {
      if ((depths.get(id) ?? -1) < depth) depths.set(id, depth);
    };
    for (const record of tree) {
      const [depth, id] = [places.depthOf(record), messageId(record)];
      if (depth === undefined) continue;
      if (id !== undefined) {
        deepen(this.#last, id, depth);
        this.#first.set(id, Math.min(this.#first.get(id) ?? depth, depth));
      }
      for (const call of callsIn(record)) deepen(this.#lastOfCall, call, depth);
    }
    // What parallel calls left off the ways belongs to the message on them.
    for (const record of tree) {
      const depth = this.#last.get(messageId(record) ?? '');
      if (depth !== undefined && places.depthOf(record) === undefined)
        for (const call of callsIn(record)) deepen(this.#lastOfCall, call, depth);
    }
    for (const path of paths) this.#addPath(path);
  }

  /** How many steps of a way read as on the one that it forks from. */
  of(way: number): number {
    const path = this.#paths[way];
    const other = this.#paths[path?.from ?? -1];
    if (path?.from === undefined || other === undefined) return 0;
    if (path.own.at(-1)?.sidechain !== other.own.at(-1)?.sidechain) return 0;
    for (let count = path.shared; count > 0; count -= 1) {
      if (!this.#isOver(way, count) || this.#reachBefore(path.from, count) >= count) continue;
      if (this.snapshotBefore(path.from, count) === undefined && this.#hasSnapshots) return 0;
      if (this.#isPromptNext(way, count) === true && this.#isPromptNext(path.from, count) !== false)
        return count;
    }
    return 0;
  }

  /** What the last snapshot among the first steps of a way says of turns of the system. */
  snapshotBefore(way: number, count: number): boolean | undefined {
    return atStep(this.#paths, (path) => this.#snapshots[path], { path: way, step: count - 1 });
  }

  /** The depth of the last record that belongs to a message or a call among the first steps of a way. */
  #reachBefore(way: number, count: number): number {
    return atStep(this.#paths, (path) => this.#reach[path], { path: way, step: count - 1 }) ?? -1;
  }

  #step(way: number, step: number): CodeRecord | undefined {
    return atStep(this.#paths, (path) => this.#paths[path]?.own, { path: way, step });
  }

  /** Whether the next step that is no aside is a prompt; undefined without one. */
  #isPromptNext(way: number, from: number): boolean | undefined {
    let next = from;
    let record = this.#step(way, next);
    while (record !== undefined && kindOf(record) === 'aside') {
      next += 1;
      record = this.#step(way, next);
    }
    return record && isTyped(record);
  }

  /** Whether a step is the last record of an answer without calls, whose records follow each other. */
  #isOver(way: number, count: number): boolean {
    const last = this.#step(way, count - 1);
    if (last === undefined || kindOf(last) !== 'assistant') return false;
    if (this.#paths[way]?.hanging.has(last) === true) return false;
    const id = messageId(last);
    if (id === undefined) return last.calls === undefined;
    let first = count - 1;
    for (let one = this.#step(way, first - 1); one !== undefined && messageId(one) === id; ) {
      first -= 1;
      one = this.#step(way, first - 1);
    }
    return (
      this.#first.get(id) === first &&
      this.#answers.get(id)?.some(({ calls }) => calls !== undefined) !== true
    );
  }

  #addPath({ own, shared, from }: TreePath): void {
    const reach: number[] = [];
    const snapshots: (boolean | undefined)[] = [];
    let far = from === undefined ? -1 : this.#reachBefore(from, shared);
    let snapshot = from === undefined ? undefined : this.snapshotBefore(from, shared);
    for (const record of own) {
      far = Math.max(far, this.#reachOf(record));
      snapshot = record.traits.systemTurns ?? snapshot;
      reach.push(far);
      snapshots.push(snapshot);
    }
    this.#reach.push(reach);
    this.#snapshots.push(snapshots);
  }

  #reachOf(record: CodeRecord): number {
    const id = messageId(record);
    return Math.max(id === undefined ? -1 : this.#ofMessage(id), ...this.#depthsOf(record));
  }

  #ofMessage(id: string): number {
    const known = this.#reachOfMessage.get(id);
    if (known !== undefined) return known;
    const calls = (this.#answers.get(id) ?? []).flatMap((record) => this.#depthsOf(record));
    const reach = calls.reduce((most, depth) => Math.max(most, depth), this.#last.get(id) ?? -1);
    this.#reachOfMessage.set(id, reach);
    return reach;
  }

  #depthsOf(record: CodeRecord): readonly number[] {
    return callsIn(record).map((call) => this.#lastOfCall.get(call) ?? -1);
  }
}

function callsIn({ calls, results }: CodeRecord): readonly string[] {
  return calls ?? results?.filter((call) => call !== '') ?? [];
}
