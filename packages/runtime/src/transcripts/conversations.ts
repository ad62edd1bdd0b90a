import { type FoundFile, nearestOf } from '../discovery/index.ts';
import type { TranscriptTool } from '../plan/format.ts';

/** The files of one conversation: its transcript, and those of its subagents with their outputs. */
export interface Conversation {
  readonly tool: TranscriptTool;
  /** The tool's own id of it. */
  readonly session: string;
  /** The main file first, if it is there. */
  readonly files: readonly FoundFile[];
}

/**
 * The files that were found, by the conversations to which they belong, in the order in which they were found. Of two main
 * files of one session, each is a conversation of its own, with what lies nearest to it. Pure.
 */
export function conversationsIn(files: readonly FoundFile[]): readonly Conversation[] {
  const groups = Map.groupBy(files, ({ tool, main }) => `${tool.name} ${main}`);
  return [...groups.values()].flatMap((group) => {
    const mains = group.filter(({ role }) => role === 'main');
    const others = group.filter(({ role }) => role !== 'main');
    const [first = others[0]] = mains;
    if (first === undefined) return [];
    const { tool, main: session } = first;
    if (mains.length < 2) return [{ tool, session, files: [...mains, ...others] }];
    // Of each file once: a folder of daily backups has many of both.
    const mainOf = nearestOf(mains);
    const beside = Map.groupBy(others, ({ path }) => mainOf(path));
    return mains.map((file) => ({ tool, session, files: [file, ...(beside.get(file) ?? [])] }));
  });
}
