import { sha256 } from '../entry/hash.ts';
import type { Json, JsonObject } from '../entry/json.ts';

/** Lifecycle, task and delivery, as JSON. */
type State = readonly [lifecycle: string, task: string, delivery: string];

/** What the lines about one session have said so far: one object for each session, since there may be many. */
interface Told {
  /** The first line that proves something, and a digest of what every line about the session repeats. */
  g: number | undefined;
  identity: string | undefined;
  /** As of the last line; unknown behind a line that proves nothing. */
  state: State | undefined;
}

/** What is beside a line. */
interface Beside {
  /** Its number. */
  readonly g: number;
  /** The id of the tape that the line is about. */
  readonly tape: number;
  /** The name of the session that received a merge, or else of the parent. */
  readonly into: string | null;
}

/**
 * Compares the fields of lines with each other: all lines about a session describe the same one, and each changes only
 * what its act changes. Keeps little of each session, since there may be hundreds of thousands.
 */
export class LinesBySession {
  readonly #lineAt: (g: number) => JsonObject;
  readonly #told = new Map<number, Told>();
  readonly #states = new Map<string, State>();
  #isComplete = true;

  /** @param lineAt reads a line again that was compared before */
  constructor(lineAt: (g: number) => JsonObject) {
    this.#lineAt = lineAt;
  }

  /** Receives that a line is missing: what it said, and of which session, is not known. */
  missing(): void {
    this.#isComplete = false;
  }

  /** Receives a line that proves nothing. */
  skip(tape: number): void {
    const told = this.#told.get(tape);
    if (told === undefined) this.#told.set(tape, { g: undefined, identity: undefined, state: undefined });
    else told.state = undefined;
  }

  /** Receives the lines in order; returns the fields that contradict each other, or earlier lines. */
  compare(line: JsonObject, { g, tape, into }: Beside): readonly string[] {
    const told = this.#told.get(tape);
    // A link says the parent in the tree: it is compared field by field, and nothing is compared with it.
    const isLink = line.type === 'link';
    const identity = isLink ? undefined : identityOf(line);
    const state = this.#kept(stateOf(line));
    const faults = [
      ...ownFaults(line, into),
      ...(told?.g === undefined || (!isLink && told.identity === identity)
        ? []
        : otherFields(this.#lineAt(told.g), line)),
      ...(this.#isComplete ? actFaults(line, { told, state }) : []),
    ];
    const proof = isLink ? undefined : g;
    if (told === undefined) this.#told.set(tape, { g: proof, identity, state });
    else {
      told.g ??= proof;
      told.identity ??= identity;
      told.state = state;
    }
    return faults;
  }

  /** The same array for the same state, of which there are few. */
  #kept(state: State): State {
    const key = state.join(' ');
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    this.#states.set(key, state);
    return state;
  }
}

/** Whether all lines about one session, in order, agree with each other: `LinesBySession` finds nothing in them. */
export function agree(
  lines: readonly { readonly fields: JsonObject; readonly into: string | null }[],
): boolean {
  const [first] = lines;
  let told: Pick<Told, 'state'> | undefined;
  for (const { fields, into } of lines) {
    const state = stateOf(fields);
    const others = first === undefined ? [] : otherFields(first.fields, fields);
    if (others.length > 0 || ownFaults(fields, into).length > 0) return false;
    if (actFaults(fields, { told, state }).length > 0) return false;
    told = { state };
  }
  return true;
}

/** Returns the fields of a line that contradict itself, or what is beside it. */
function ownFaults(line: JsonObject, into: string | null): readonly string[] {
  return [
    ...(line.v === 1 ? [] : ['v']),
    ...(line.status === (line.delivery ?? line.task ?? line.lifecycle) ? [] : ['status']),
    ...((line.into_session_id ?? null) === (line.into === undefined ? null : into)
      ? []
      : ['into_session_id']),
    ...(line.type === 'link' && (line.parent_session_id ?? null) !== into ? ['parent_session_id'] : []),
  ];
}

function stateOf({ lifecycle, task, delivery }: JsonObject): State {
  return [textOf(lifecycle), textOf(task), textOf(delivery)];
}

function textOf(value: Json | undefined): string {
  return JSON.stringify(value ?? null);
}

/** Fields that are the same on each line about a session. Those of the parent are, but for links. */
const repeated = ['session_id', 'from_anchor', 'created_at', 'tape', 'kind'] as const;
const ofParent = ['parent_session_id', 'parent'] as const;

const axes = ['lifecycle', 'task', 'delivery'] as const;

/** A digest in 16 bytes: a part of its hex would keep the whole. */
function identityOf(line: JsonObject): string {
  const digest = sha256(JSON.stringify([...repeated, ...ofParent].map((field) => line[field] ?? null)));
  return Buffer.from(digest, 'hex').toString('latin1', 0, 16);
}

function otherFields(first: JsonObject, line: JsonObject): readonly string[] {
  if (first === line) return [];
  const isLink = first.type === 'link' || line.type === 'link';
  return [...repeated, ...(isLink ? [] : ofParent)].filter(
    (field) => first[field] !== line[field] && textOf(first[field]) !== textOf(line[field]),
  );
}

/** What the acts set that have one value to set. */
const set: Readonly<Record<string, readonly [axis: string, value: string]>> = {
  archive: ['lifecycle', '"archived"'],
  merge: ['delivery', '"merged"'],
  discard: ['delivery', '"discarded"'],
};

/** Returns what the act of a line cannot have made of the state before it. */
function actFaults(
  { type, parent }: JsonObject,
  { told, state }: { readonly told: Pick<Told, 'state'> | undefined; readonly state: State },
): readonly string[] {
  const isFirst = type === (parent === null ? 'session' : 'fork');
  if (told === undefined) return [...(isFirst ? [] : ['type']), ...(state[2] === 'null' ? [] : ['delivery'])];
  if (type === 'session' || type === 'fork') return told.state === undefined ? [] : ['type'];
  const [axis, value] = set[String(type)] ?? [];
  const wrong = axes.filter((one, n) => one === axis && state[n] !== value);
  const { state: before } = told;
  if (before === undefined) return wrong;
  const moved = axes.filter((one, n) => one !== axis && before[n] !== state[n]);
  const isStatus = type === 'status' && moved.length === 1 && moved[0] !== 'delivery';
  return isStatus ? [] : [...wrong, ...moved];
}
