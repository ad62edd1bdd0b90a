import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { JsonLine, RecordList } from '../../lines/json-lines.ts';
import type { Visit } from '../../plan/plan.ts';
import { text } from '../../plan/text.ts';
import { AgentNotes, isNested } from './agents.ts';
import { LeaveReading } from './leave-reading.ts';
import { RunReading } from './run-reading.ts';

/** What the records of a file say together. */
export interface FileFacts {
  /** Whether messages of subagents are nested in its records. */
  readonly hasNested: boolean;
  /** Whether it has records of subagents. */
  readonly hasSidechains: boolean;
  /** Whether it has messages, all of them of a subagent. */
  readonly isSidechain: boolean;
  /** The session of the last record in a chain that names one, or else of any; copies of another session's name the copy. */
  readonly session: string | undefined;
  /** The sessions from which records were copied, the last one last: of records of subagents only if there are no others. */
  readonly sources: readonly string[];
  /** The session with which the program began that wrote what the file begins with, where that is another one. */
  readonly run: string | undefined;
  /** The runs that began with other sessions, and wrote in this one behind that. */
  readonly visits: readonly Visit[];
  /** All sessions but its own with which runs began that wrote its records, those that were copied, too. */
  readonly otherRuns: readonly string[];
  /** Whether it begins behind a `/clear`, or with a plan behind which the context was cleared. */
  readonly isCleared: boolean;
  /** When that was. */
  readonly clearedAt: string | undefined;
  /** When its program left it by a `/clear` that waited in its queue. */
  readonly leftAt: readonly string[];
  /** Whether it has an answer, behind which nothing says more of what it begins with. */
  readonly isAnswered: boolean;
  /** What they say of subagents, to which more can be added. */
  readonly notes: AgentNotes;
}

/** What some records say together. */
export function factsOf(lines: RecordList): FileFacts {
  const reading = new FactsReading();
  for (const line of lines) reading.add(line);
  return reading.facts();
}

/** Reads what records say together, one after another. */
export class FactsReading {
  readonly #notes = new AgentNotes();
  /** In order of the last mention. */
  readonly #sources = new Set<string>();
  /** Those that main records mention. */
  readonly #mainSources = new Set<string>();
  readonly #run = new RunReading();
  readonly #leave = new LeaveReading();
  #hasNested = false;
  #hasSidechains = false;
  #hasMessages = false;
  /** Whether it has messages that are of no subagent. */
  #hasMain = false;
  #linked: string | undefined;
  #any: string | undefined;

  add({ value }: JsonLine): void {
    this.#notes.add(value);
    const isSide = value.isSidechain === true;
    const isMessage = value.type === 'user' || value.type === 'assistant';
    this.#hasNested ||= isNested(value);
    this.#hasSidechains ||= isSide;
    this.#hasMessages ||= isMessage;
    this.#hasMain ||= isMessage && !isSide;
    const session = text(value.sessionId);
    this.#any = session ?? this.#any;
    if (text(value.uuid) !== undefined) this.#linked = session ?? this.#linked;
    if (!isSide) this.#run.add(value);
    this.#leave.add(value);
    const source = sourceIn(value);
    if (source === undefined) return;
    for (const sources of isSide ? [this.#sources] : [this.#sources, this.#mainSources]) {
      sources.delete(source);
      sources.add(source);
    }
  }

  facts(): FileFacts {
    return {
      hasNested: this.#hasNested,
      hasSidechains: this.#hasSidechains,
      isSidechain: this.#hasMessages && !this.#hasMain,
      session: this.#linked ?? this.#any,
      sources: [...(this.#hasMain ? this.#mainSources : this.#sources)],
      run: this.#run.other,
      visits: this.#run.visits,
      otherRuns: this.#run.others,
      isCleared: this.#run.isCleared,
      clearedAt: this.#run.clearedAt,
      leftAt: this.#leave.times,
      isAnswered: this.#run.isAnswered,
      notes: this.#notes,
    };
  }
}

/**
 * The session from which a record was copied. Two generations of Claude Code say so in two ways: `forkedFrom`, and the session
 * that made the request of an answer.
 */
function sourceIn({ forkedFrom, requestSessionId }: JsonObject): string | undefined {
  const from = isObject(forkedFrom) ? text(forkedFrom.sessionId) : undefined;
  return from ?? text(requestSessionId);
}
