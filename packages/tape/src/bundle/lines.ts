import type { Db } from '../db/db.ts';
import type { Seq } from '../entry/entry.ts';
import { hex } from '../entry/hash.ts';
import { nameFault, quote, tapeName } from '../entry/name.ts';
import type { LineageLine } from '../lineage/line.ts';
import { rowDigest } from '../lineage/line.ts';
import { closesCircle } from '../lineage/link.ts';
import { addLine, graphStatus, lastLine, type SaidLine } from '../lineage/outbox.ts';
import { freeNames, insertAlias, isAlias, lookAlike, readsAsPoint, reclaimNames } from '../session/names.ts';
import type { Writer } from '../tape/append.ts';
import { findNamed } from '../tape/find.ts';
import { segments } from '../tape/interval.ts';
import {
  type Delivery,
  isDeleted,
  type Lifecycle,
  selectTape,
  type TapeRow,
  type Task,
  tapeById,
} from '../tape/tape.ts';
import { badBundle, partVersion } from './bundle.ts';
import { digestOf, type Planned } from './plan.ts';
import type { BundledLine, Scanned } from './scan.ts';

/** What the lines of a session say of its state. */
interface State {
  readonly lifecycle: Lifecycle;
  readonly task: Task | null;
  readonly delivery: Delivery | null;
}

/** What was done with the lines of a bundle. */
export interface AdoptedLines {
  readonly added: number;
  /** Other names that the lines give, and that name something else here. */
  readonly aliasesTaken: readonly string[];
}

/**
 * Adds the lines of the lineage that are not here, in the caller's transaction: each keeps its event, with the names and
 * the place that it has here. What a line changes of its session is changed here, too.
 */
export function adoptLines(writer: Writer, scanned: Scanned, plans: readonly Planned[]): AdoptedLines {
  const adopting = new Adopting(writer, scanned, plans);
  for (const line of scanned.lines) adopting.take(line);
  adopting.saveStates();
  return { added: adopting.added, aliasesTaken: adopting.aliasesTaken };
}

/** What is so here of a session. */
interface Here {
  readonly state: State;
  readonly mergedAt: number | null;
  readonly before: State;
  /** Whether it has its names now. It gets them again when all lines are here. */
  readonly hasNames: boolean;
}

class Adopting {
  added = 0;
  readonly aliasesTaken: string[] = [];
  readonly #writer: Writer;
  readonly #db: Db;
  readonly #scanned: Scanned;
  readonly #plans: ReadonlyMap<string, Planned>;
  /** A part has lines of what came later in a session of which it has the beginning alone: they are left out. */
  readonly #isPart: boolean;
  /** What the bundle's lines have said so far of each session, and what is so here. */
  readonly #said = new Map<string, State>();
  readonly #here = new Map<number, Here>();
  readonly #rows = new Map<string, TapeRow>();
  /** The last line about each session, and those of them that were here before. */
  readonly #last: ReadonlyMap<string, LineageLine>;
  readonly #wasHere = new Set<string>();

  constructor(writer: Writer, scanned: Scanned, plans: readonly Planned[]) {
    this.#writer = writer;
    this.#db = writer.db;
    this.#scanned = scanned;
    this.#isPart = scanned.header.v === partVersion;
    this.#plans = new Map(plans.map((plan) => [plan.bundled.tape.ulid, plan]));
    this.#last = new Map(scanned.lines.map(({ line }) => [line.session, line]));
    for (const { event_id: id } of this.#last.values())
      if (this.#knownTape(id) !== undefined) this.#wasHere.add(id);
  }

  take(bundled: BundledLine): void {
    const { line } = bundled;
    const plan = this.#plans.get(line.session);
    const before = this.#said.get(line.session);
    const now = stateOf(line);
    this.#said.set(line.session, now);
    if (plan !== undefined) this.#assertOf(bundled, plan);
    else if (line.type !== 'merge' && line.type !== 'discard')
      this.#fail(bundled, 'is about a session that is not in the bundle');
    if (plan?.isCopy === true) {
      this.#takeOfCopy(line, plan);
      return;
    }
    const tape = plan?.isKept === true ? undefined : this.#row(line.session);
    if (tape === undefined) return;
    const known = this.#knownTape(line.event_id);
    if (known !== undefined) {
      if (known !== tape.id) this.#fail(bundled, 'is here, about another session');
      return;
    }
    const linked = this.#linkedTo(line, tape);
    if (linked === undefined) return;
    const into = line.into === undefined ? undefined : this.#intoOf(bundled);
    if (line.into !== undefined && into === undefined) return;
    if (into !== undefined && !this.#agrees(line, { tape, into })) {
      if (plan !== undefined && !this.#isPart)
        this.#fail(bundled, 'says of a merge what its sessions do not have');
      return;
    }
    if (plan?.isNew !== true && !this.#hasHead(line, tape)) {
      if (this.#isPart) return;
      this.#fail(bundled, 'names a head that its session does not have');
    }
    // What was erased here does not come back.
    const isErased = (this.#here.get(tape.id)?.state ?? tape).lifecycle === 'purged';
    if (isErased && before?.lifecycle !== now.lifecycle) return;
    this.#assertName(bundled);
    const isNameless = this.#isNameless(line.session, tape);
    if (line.alias !== undefined && !isNameless && !this.#mayAlias(bundled, tape)) return;
    const state = this.#change(tape, before, { now, at: Date.parse(line.at) });
    addLine(
      this.#db,
      { ...this.#lineOf(line, { tape, into, state, plan }), parent_session_id: linked.name },
      { tape: tape.id, peer: into?.id ?? linked.id },
    );
    this.added += 1;
    if (!isNameless && (line.type === 'alias' || line.type === 'unalias'))
      this.#alias(line, tape, lastLine(this.#db));
  }

  /** Writes the states that lines have changed. */
  saveStates(): void {
    for (const [id, { state, before, mergedAt, hasNames }] of this.#here) {
      const getsNames = !isDeleted(state) && !hasNames;
      if (!getsNames && JSON.stringify(state) === JSON.stringify(before)) continue;
      if (getsNames) reclaimNames(this.#writer, tapeById(this.#db, id));
      this.#db.run(
        `UPDATE tape SET lifecycle = @lifecycle, task = @task, delivery = @delivery, merged_at = @mergedAt,
           epoch = epoch + 1 WHERE id = @id`,
        { id, ...state, mergedAt },
      );
    }
  }

  /** A line about a session of the bundle says what its record does. */
  #assertOf(bundled: BundledLine, { bundled: { tape } }: Planned): void {
    const { line } = bundled;
    const isOfParent = line.type === 'link' || line.parent === tape.parent;
    if (line.session_id !== tape.name || !isOfParent || line.kind !== tape.kind)
      this.#fail(bundled, 'describes another session than the bundle');
    if (line.type === 'fork') {
      const range = tape.floor === tape.base ? null : [tape.floor + 1, tape.base];
      if (line.base !== tape.base || JSON.stringify(line.range ?? null) !== JSON.stringify(range))
        this.#fail(bundled, 'describes another fork than the bundle');
      if (line.parent_head !== undefined && line.parent_head !== tape.base_hash)
        this.#fail(bundled, 'describes another fork than the bundle');
    }
    if (
      (line.type === 'session' || line.type === 'fork') &&
      line.row !== undefined &&
      line.row !== digestOf(tape)
    )
      this.#fail(bundled, 'does not have the digest of its session');
  }

  /** The line that makes a copy: a new event, as the one that made the original. */
  #takeOfCopy(line: LineageLine, plan: Planned): void {
    if (!plan.isNew || (line.type !== 'session' && line.type !== 'fork')) return;
    const tape = this.#row(plan.ulid);
    if (tape === undefined) return;
    const { newId, now } = this.#writer.sources;
    const state: State = { lifecycle: 'active', task: null, delivery: null };
    const made = this.#lineOf(line, { tape, into: undefined, state, plan });
    addLine(
      this.#db,
      {
        ...made,
        event_id: newId(),
        at: new Date(now()).toISOString(),
        session: tape.ulid,
        ...(line.type === 'fork' && { spawn_key: tape.ulid }),
        child_head: hex(tape.head_hash),
      },
      { tape: tape.id, peer: tape.parent_id },
    );
    this.added += 1;
  }

  /** The session that a line is about which is here. */
  #knownTape(event: string): number | undefined {
    return this.#db.get<{ tape_id: number }>('SELECT tape_id FROM lineage WHERE event_id = @id', {
      id: event,
    })?.tape_id;
  }

  #row(ulid: string): TapeRow | undefined {
    const known = this.#rows.get(ulid);
    if (known !== undefined) return known;
    const row = this.#db.get<TapeRow>(`${selectTape} WHERE t.ulid = @ulid AND t.lifecycle <> 'staging'`, {
      ulid,
    });
    if (row !== undefined) this.#rows.set(ulid, row);
    return row;
  }

  /**
   * The parent of a session in the tree behind a line. Undefined where a link names one that is not here: the line stays
   * away until that comes; or where the link would close a circle with those of this home.
   */
  #linkedTo(line: LineageLine, tape: TapeRow): { id: number | null; name: string | null } | undefined {
    if (line.type !== 'link') return { id: tape.parent_id, name: tape.parent_name };
    if (line.parent === null) return { id: null, name: null };
    const parent = this.#row(line.parent);
    return parent === undefined || closesCircle(this.#db, tape, parent) ? undefined : parent;
  }

  /** The session that received a merge; undefined where the position of the merge is not what it is in the bundle. */
  #intoOf(bundled: BundledLine): TapeRow | undefined {
    const { into = '', seq = 0 } = bundled.line;
    const plan = this.#plans.get(into);
    if (plan === undefined)
      return this.#fail(bundled, 'is of a merge into a session that is not in the bundle');
    if ((plan.isKept || plan.isCopy) && seq > plan.shared) return undefined;
    return this.#row(into);
  }

  /** Whether both sessions of a merge have the entries that the line names. */
  #agrees(line: LineageLine, { tape, into }: { readonly tape: TapeRow; readonly into: TapeRow }): boolean {
    const { seq = 0, range, type, child_head, parent_head } = line;
    const [, last = 0] = range ?? [];
    const end = type === 'merge' ? seq + 1 : seq;
    if (seq <= into.base_seq || end > into.head_seq || last > tape.head_seq) return false;
    return (
      (child_head === undefined || this.#hashAt(tape, last) === child_head) &&
      (parent_head === undefined || this.#hashAt(into, end) === parent_head)
    );
  }

  #hashAt(tape: TapeRow, seq: Seq): string | undefined {
    const [owner] = segments(this.#db, { ...tape, floor_seq: 0 }, seq - 1, seq);
    if (owner === undefined) return undefined;
    return this.#db.get<{ hash: string }>(
      'SELECT lower(hex(hash)) AS hash FROM entry WHERE tape_id = @tape AND seq = @seq',
      { tape: owner.tapeId, seq },
    )?.hash;
  }

  /** Whether a session that was here before has the head that a line names. Of a new one, its verification finds that. */
  #hasHead({ child_head, type }: LineageLine, tape: TapeRow): boolean {
    if (child_head === undefined || type === 'merge' || type === 'discard') return true;
    const found = this.#db.get(
      'SELECT 1 FROM entry WHERE tape_id = @id AND hash = unhex(@head) ORDER BY seq DESC LIMIT 1',
      { id: tape.id, head: child_head },
    );
    return found !== undefined;
  }

  /** Applies what a line changed in the home that it comes from to the state here. */
  #change(
    tape: TapeRow,
    before: State | undefined,
    { now, at }: { readonly now: State; readonly at: number },
  ): State {
    const own = { lifecycle: tape.lifecycle as Lifecycle, task: tape.task, delivery: tape.delivery };
    const here = this.#here.get(tape.id) ?? {
      ...{ state: own, mergedAt: tape.merged_at, before: own },
      hasNames: !isDeleted(own),
    };
    const state: State = {
      lifecycle: before?.lifecycle === now.lifecycle ? here.state.lifecycle : this.#kept(tape, now.lifecycle),
      task: before !== undefined && before.task === now.task ? here.state.task : now.task,
      delivery: before !== undefined && before.delivery === now.delivery ? here.state.delivery : now.delivery,
    };
    const isDelivered = state.delivery !== here.state.delivery;
    // Its names are free for what the next lines name.
    const isFreed = here.hasNames && isDeleted(state);
    if (isFreed) {
      freeNames(this.#writer, tape);
      this.#db.run(`UPDATE tape SET lifecycle = 'destroyed' WHERE id = @id`, { id: tape.id });
    }
    this.#here.set(tape.id, {
      ...{ ...here, state, mergedAt: isDelivered ? at : here.mergedAt },
      hasNames: here.hasNames && !isFreed,
    });
    return state;
  }

  /** A purge elsewhere deletes here: an import erases nothing. */
  #kept({ id }: TapeRow, lifecycle: Lifecycle): Lifecycle {
    if (lifecycle !== 'purged') return lifecycle;
    const body = this.#db.get(
      `SELECT 1 FROM entry WHERE tape_id = @id AND payload IS NOT NULL AND kind NOT IN ('redaction','rewind') LIMIT 1`,
      { id },
    );
    return body === undefined ? 'purged' : 'destroyed';
  }

  /** A line as it is here: under the names of this home, with the state that it leaves here. */
  #lineOf(
    line: LineageLine,
    {
      tape,
      into,
      state,
      plan,
    }: {
      readonly tape: TapeRow;
      readonly into: TapeRow | undefined;
      readonly state: State;
      readonly plan: Planned | undefined;
    },
  ): SaidLine {
    const {
      v: _v,
      g: _g,
      prev: _prev,
      lifecycle: _lifecycle,
      task: _task,
      delivery: _delivery,
      was: _was,
      ...said
    } = line;
    const makes = line.type === 'session' || line.type === 'fork';
    const original = plan?.bundled.tape.name ?? tape.name;
    return {
      ...said,
      session_id: tape.name,
      parent_session_id: tape.parent_name,
      status: graphStatus(state),
      tape: tapeName(tape.realm, tape.name, tape.incarnation),
      ...(makes && line.row !== undefined && { row: rowDigest(tape) }),
      ...(makes && original !== tape.name && { was: original }),
      ...(into !== undefined && { into_session_id: into.name }),
      lifecycle: state.lifecycle,
      ...(state.task !== null && { task: state.task }),
      ...(state.delivery !== null && { delivery: state.delivery }),
    };
  }

  /**
   * Whether a session has no names here: it is deleted, or the bundle deletes it in the end. It gets them when it is brought
   * back.
   */
  #isNameless(session: string, tape: TapeRow): boolean {
    if (!(this.#here.get(tape.id)?.hasNames ?? !isDeleted(tape))) return true;
    const last = this.#last.get(session);
    return last !== undefined && isDeleted(stateOf(last)) && !this.#wasHere.has(last.event_id);
  }

  #assertName(bundled: BundledLine): void {
    const { alias } = bundled.line;
    const fault = alias === undefined ? undefined : nameFault(alias);
    if (fault !== undefined) this.#fail(bundled, `gives the name ${quote(alias ?? '')}: ${fault}`);
  }

  /** Whether another name can be given, or taken away, here. One that names something else stays as it is. */
  #mayAlias({ line: { type, alias = '' } }: BundledLine, tape: TapeRow): boolean {
    const taken = findNamed(this.#db, tape.realm, alias);
    const isOwn = taken?.id === tape.id && isAlias(this.#db, tape.realm, alias);
    if (type === 'unalias') return isOwn;
    if (isOwn) return false;
    const isFree =
      taken === undefined &&
      lookAlike(this.#db, tape.realm, alias) === undefined &&
      readsAsPoint(this.#db, tape.realm, alias) === undefined;
    if (!isFree) this.aliasesTaken.push(alias);
    return isFree;
  }

  #alias({ type, alias = '', reason = '' }: LineageLine, { id, realm }: TapeRow, g: number): void {
    if (type === 'alias') insertAlias(this.#writer, { id, realm }, { alias, reason, g });
    else this.#db.run('DELETE FROM alias WHERE realm = @realm AND alias = @alias', { realm, alias });
  }

  #fail({ at }: BundledLine, why: string): never {
    throw badBundle(this.#scanned.file.name, at.number, `the line of the lineage ${why}`);
  }
}

function stateOf({ lifecycle, task, delivery }: LineageLine): State {
  return {
    lifecycle: (lifecycle ?? 'active') as Lifecycle,
    task: (task ?? null) as Task | null,
    delivery: (delivery ?? null) as Delivery | null,
  };
}
