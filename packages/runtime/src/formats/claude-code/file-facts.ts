import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { RecordList } from '../../lines/json-lines.ts';
import { text } from '../../plan/text.ts';
import { AgentNotes, isNested } from './agents.ts';

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
  /** What they say of subagents, to which more can be added. */
  readonly notes: AgentNotes;
}

/** Reads them in one pass: the lines of a large file are read again in each. */
export function factsOf(lines: RecordList): FileFacts {
  const notes = new AgentNotes();
  // In order of the last mention.
  const [all, main] = [new Set<string>(), new Set<string>()];
  let [hasNested, hasSidechains, hasMessages, isMixed] = [false, false, false, false];
  let linked: string | undefined;
  let any: string | undefined;
  for (const { value } of lines) {
    notes.add(value);
    const isSide = value.isSidechain === true;
    const isMessage = value.type === 'user' || value.type === 'assistant';
    hasNested ||= isNested(value);
    hasSidechains ||= isSide;
    hasMessages ||= isMessage;
    isMixed ||= isMessage && !isSide;
    const session = text(value.sessionId);
    any = session ?? any;
    if (text(value.uuid) !== undefined) linked = session ?? linked;
    const source = sourceIn(value);
    if (source === undefined) continue;
    for (const sources of isSide ? [all] : [all, main]) {
      sources.delete(source);
      sources.add(source);
    }
  }
  return {
    ...{ hasNested, hasSidechains, isSidechain: hasMessages && !isMixed },
    ...{ session: linked ?? any, sources: [...(isMixed ? main : all)], notes },
  };
}

/**
 * The session from which a record was copied. Three generations of Claude Code say so in three ways: `forkedFrom`, a
 * `session_id` beside the `sessionId`, and the session that made the request of an answer.
 */
function sourceIn({ forkedFrom, session_id, requestSessionId }: JsonObject): string | undefined {
  const from = isObject(forkedFrom) ? text(forkedFrom.sessionId) : undefined;
  return from ?? text(session_id) ?? text(requestSessionId);
}
