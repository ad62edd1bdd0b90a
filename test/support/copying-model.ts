import type { Entry, Json, JsonObject, Seq, View, ViewPolicy } from '@tapedeck/tape';
import {
  assistantText,
  clientCalls,
  continueText,
  isObject,
  noResult,
  noStart,
  type ViewBase,
  type ViewRule,
  type ViewWindow,
} from '@tapedeck/tape/internal';

/**
 * A session as a store without sharing would keep it: a fork copies every entry that it inherits, and every position
 * keeps its own list of what is visible there. Slow, and too simple to be wrong; the store is compared with it.
 */
export class CopiedSession {
  readonly name: string;
  readonly floor: Seq;
  readonly base: Seq;
  readonly parent: CopiedSession | undefined;
  readonly #entries = new Map<Seq, Entry>();
  /** The visible entries when the tape ends at a position. */
  readonly #seen = new Map<Seq, readonly Seq[]>();
  /** The settled point at a position, and which calls are open there. */
  readonly #settled = new Map<Seq, Seq>();
  readonly #open = new Map<Seq, readonly string[]>();
  #head: Seq;

  constructor(name: string, from?: { parent: CopiedSession; floor: Seq; base: Seq }) {
    this.name = name;
    this.parent = from?.parent;
    this.floor = from?.floor ?? 0;
    this.base = from?.base ?? 0;
    this.#head = this.base;
    this.#seen.set(this.floor, []);
    this.#settled.set(this.floor, this.floor);
    this.#open.set(this.floor, []);
    if (from !== undefined) this.#copy(from.parent);
  }

  #copy(parent: CopiedSession): void {
    for (let seq = this.floor + 1; seq <= this.base; seq += 1) {
      this.#entries.set(seq, { ...parent.at(seq), session: this.name, inherited: true });
      this.#seen.set(
        seq,
        parent.seen(seq).filter((s) => s > this.floor),
      );
      this.#settled.set(seq, parent.settled(seq));
      this.#open.set(seq, []);
    }
  }

  get head(): Seq {
    return this.#head;
  }

  get depth(): number {
    return this.parent === undefined ? 0 : this.parent.depth + 1;
  }

  at(seq: Seq): Entry {
    const entry = this.#entries.get(seq);
    if (entry === undefined) throw new TypeError(`${this.name} has no ${seq}`);
    return entry;
  }

  all(): Entry[] {
    return [...this.#entries.values()].sort((a, b) => a.seq - b.seq);
  }

  seen(seq: Seq): readonly Seq[] {
    return this.#seen.get(seq) ?? [];
  }

  settled(seq: Seq = this.#head): Seq {
    return this.#settled.get(seq) ?? seq;
  }

  open(): readonly string[] {
    return this.#open.get(this.#head) ?? [];
  }

  /** The last rewind of the session's own, hidden or not. */
  lastRewind(): Seq | undefined {
    return this.all().findLast((e) => e.mark === 'rewind' && !e.inherited)?.seq;
  }

  /** Takes in what the store says that it wrote. */
  add(entry: Entry): void {
    const { seq } = entry;
    const before = this.#head;
    if (seq !== before + 1 || entry.inherited) throw new TypeError(`${this.name}@${seq} follows ${before}`);
    this.#entries.set(seq, entry);
    this.#head = seq;
    const was = this.seen(before);
    if (entry.mark === 'rewind') this.#seen.set(seq, this.seen(Math.max(entry.ref ?? 0, this.floor)));
    else this.#seen.set(seq, [...was, seq]);
    const result = isObject(entry.payload) ? entry.payload.toolCallId : undefined;
    const open =
      entry.kind === 'rewind'
        ? []
        : [
            ...(this.#open.get(before) ?? []),
            ...(entry.kind === 'message' ? clientCalls(entry.payload) : []),
          ];
    const left = entry.kind === 'tool-result' ? open.filter((id) => id !== result) : open;
    this.#open.set(seq, left);
    this.#settled.set(seq, left.length === 0 ? seq : this.settled(before));
  }

  /** The session's own `fork/start` and `intention`. */
  isStructural({ seq, name }: Entry): boolean {
    return seq > this.base && (name === 'fork/start' || name === 'intention');
  }

  structural(name: string, head: Seq): Entry | undefined {
    return this.all().find((e) => e.seq <= head && e.name === name && this.isStructural(e));
  }

  /** The entries of a full view of the head: all visible ones, and the session's own beginning. */
  needed(): Seq[] {
    const own = this.all().filter((e) => this.isStructural(e));
    return [...new Set([...this.seen(this.#head), ...own.map(({ seq }) => seq)])].sort((a, b) => a - b);
  }

  /** Positions of the anchors of a name, newest first. */
  anchors(name: string, head: Seq = this.#head): Seq[] {
    const own = this.structural(name, head);
    return [...new Set([...this.seen(head), ...(own === undefined ? [] : [own.seq])])]
      .filter((seq) => this.at(seq).name === name && isAnchor(this.at(seq)))
      .sort((a, b) => b - a);
  }

  /** The view at a position, part by part, as `flatten` writes it. */
  view(policy: ViewPolicy, head: Seq): string[] {
    const seen = this.seen(head).filter((seq) => !this.isStructural(this.at(seq)));
    const [base, ...rules] = rulesIn(policy);
    const start = this.#start(base, seen);
    const startSeq = start?.seq ?? 0;
    const asked = typeof base === 'object' && typeof base.fromAnchor === 'number' ? base.fromAnchor : 0;
    const keep =
      start === undefined
        ? asked
        : base === 'last-boundary'
          ? Math.min(start.ref ?? startSeq, startSeq)
          : startSeq;
    const omitted = base === 'full' ? [] : seen.flatMap((seq) => leftOutBy(this.at(seq)));
    let shown = seen
      .filter((seq) => seq >= keep && seq !== startSeq)
      .map((seq) => this.at(seq))
      .filter(({ kind, seq }) => kind !== 'message' || !omitted.includes(seq));
    for (const rule of rules) shown = narrowed(shown, rule);
    const intention = this.structural('intention', head);
    if (intention !== undefined) {
      const place = startSeq > intention.seq && keep > intention.seq ? startSeq : intention.seq;
      const at = shown.findIndex((e) => e.seq > place);
      shown.splice(at === -1 ? shown.length : at, 0, intention);
    }
    const state = stateText(stateOf(start ?? this.structural('fork/start', head)));
    return inTurns([
      ...(state === '' ? [] : [{ role: 'user', lines: [`user ${state}`] }]),
      ...written(shown),
    ]);
  }

  #start(policy: ViewBase, seen: readonly Seq[]): Entry | undefined {
    if (policy === 'full') return undefined;
    const entries = seen.map((seq) => this.at(seq));
    if (policy === 'last-boundary') return entries.findLast((e) => e.mark === 'boundary');
    const { fromAnchor } = policy;
    return entries.findLast((e) => isAnchor(e) && (e.seq === fromAnchor || e.name === fromAnchor));
  }
}

function leftOutBy({ seq, name, payload }: Entry): Json[] {
  const { entries } = name === 'context/omitted' && isObject(payload) ? payload : {};
  return Array.isArray(entries) ? entries.filter((one) => Number(one) < seq) : [];
}

function narrowed(shown: Entry[], { window }: ViewWindow): Entry[] {
  const size = typeof window === 'number' ? window : 0;
  const left = (entry: Entry) => shown.filter((e) => e.kind === 'message' && e.seq >= entry.seq).length;
  return shown.filter((entry) => left(entry) < size || (entry.kind === 'message' && left(entry) === size));
}

function rulesIn(policy: ViewPolicy): readonly [ViewBase, ...ViewWindow[]] {
  const rules = [policy].flat() as ViewRule[];
  const isBase = (rule: ViewRule | undefined): rule is ViewBase =>
    typeof rule === 'string' || (rule !== undefined && 'fromAnchor' in rule);
  const narrow = rules.flatMap((rule) => (isBase(rule) ? [] : [rule]));
  return [isBase(rules[0]) ? rules[0] : 'last-boundary', ...narrow];
}

function isAnchor(entry: Entry): boolean {
  return entry.mark === 'anchor' || entry.mark === 'boundary';
}

function stateOf(entry: Entry | undefined): JsonObject {
  return isObject(entry?.payload) && isObject(entry.payload.state) ? entry.payload.state : {};
}

function stateText({ summary, ...others }: JsonObject): string {
  const parts = [];
  if (summary !== undefined)
    parts.push(
      `The conversation history before this point was compacted into the following summary:\n<summary>\n${summary}\n</summary>`,
    );
  if (Object.keys(others).length > 0) parts.push(JSON.stringify(others));
  return parts.join('\n');
}

interface Said {
  readonly role: string;
  readonly lines: readonly string[];
}

/** The user begins, and only a tool speaks between two messages of the assistant, unless the user does. */
function inTurns(said: readonly Said[]): string[] {
  return said.flatMap(({ role, lines }, i) => {
    if (role !== 'assistant') return lines;
    if (i === 0) return [`user ${noStart}`, ...lines];
    return said[i - 1]?.role === 'assistant' ? [`user ${continueText}`, ...lines] : lines;
  });
}

/** Entries as a model would receive them, when every call id is used once. */
function written(entries: readonly Entry[]): Said[] {
  const all: Said[] = [];
  for (const [i, entry] of entries.entries()) {
    if (entry.meta.context === false) continue;
    if (entry.name === 'intention')
      all.push({ role: 'user', lines: [`user Your task: ${stateOf(entry).next_steps}`] });
    if (entry.kind !== 'message' || !isObject(entry.payload)) continue;
    const { role } = entry.payload;
    if (role === 'user') all.push({ role, lines: [`user ${userText(entry)}`] });
    if (role !== 'assistant') continue;
    const said = assistantText(entry.payload);
    const calls = clientCalls(entry.payload);
    const lines = [
      ...(said === '' ? [] : [`assistant ${said}`]),
      ...calls.map((id) => `assistant calls ${id}`),
    ];
    if (lines.length > 0) all.push({ role, lines });
    if (calls.length > 0)
      all.push({ role: 'tool', lines: calls.map((id) => `tool ${id} ${resultOf(id, entries.slice(i))}`) });
  }
  return all;
}

function resultOf(id: string, entries: readonly Entry[]): string {
  const result = entries.find(({ payload }) => isObject(payload) && payload.toolCallId === id);
  const output = isObject(result?.payload) && isObject(result.payload.output) ? result.payload.output : {};
  return String(output.value ?? noResult);
}

function userText({ payload }: Entry): string {
  const content = isObject(payload) && Array.isArray(payload.content) ? payload.content : [];
  return content.map((part) => (isObject(part) ? String(part.text) : '')).join('');
}

/** A view part by part, with its roles. */
export function flatten({ messages }: View): string[] {
  return messages.flatMap(({ role, content }) =>
    content.map((part) => {
      if (part.type === 'tool-call') return `${role} calls ${String(part.toolCallId)}`;
      if (part.type !== 'tool-result') return `${role} ${String(part.text)}`;
      const { output } = part;
      return `${role} ${String(part.toolCallId)} ${isObject(output) ? String(output.value) : ''}`;
    }),
  );
}
