import type { FoundFile, Source } from '@tapedeck/runtime/internal';

/** The files of one conversation: its transcript, and those of its subagents with their outputs. */
export interface Conversation {
  readonly tool: string;
  /** The tool's own id of it. */
  readonly session: string;
  /** The main file first, if it is there. */
  readonly files: readonly FoundFile[];
  /** Those of which there is something that was not read: they are new, or have changed. */
  readonly toRead: readonly FoundFile[];
}

/** Whether a file is as it was when it was read. */
export type IsRead = (file: FoundFile) => boolean;

/** The files that were found, by the conversations to which they belong, in the order in which they were found. Pure. */
export function conversationsIn(files: readonly FoundFile[], isRead: IsRead): readonly Conversation[] {
  const groups = Map.groupBy(files, ({ tool, main }) => `${tool.name} ${main}`);
  return [...groups.values()].map((group) => {
    const inOrder = group.toSorted((a, b) => Number(b.role === 'main') - Number(a.role === 'main'));
    return {
      tool: group[0]?.tool.name ?? '',
      session: group[0]?.main ?? '',
      files: inOrder,
      // Outputs and the like are read with the transcript that names them.
      toRead: inOrder.filter((file) => file.role !== 'part' && !isRead(file)),
    };
  });
}

/** What was found of one tool. */
export interface ToolFound {
  readonly tool: string;
  readonly title: string;
  readonly isRead: boolean;
  readonly conversations: number;
  readonly files: number;
  readonly bytes: number;
  /** The bytes of files that are new, or have changed. */
  readonly newBytes: number;
  readonly newFiles: number;
  /** The time of the oldest record, or of the file, in milliseconds since 1970. */
  readonly oldest: number;
}

/** What was found of each tool. Pure. */
export function foundByTool(conversations: readonly Conversation[]): readonly ToolFound[] {
  return [...Map.groupBy(conversations, ({ tool }) => tool)].map(([tool, group]) => {
    const files = group.flatMap((one) => one.files);
    const toRead = group.flatMap((one) => one.toRead);
    return {
      tool,
      title: files[0]?.tool.title ?? tool,
      isRead: files[0]?.tool.isRead ?? false,
      conversations: group.length,
      files: files.length,
      bytes: bytesOf(files),
      newBytes: bytesOf(toRead),
      newFiles: toRead.length,
      oldest: Math.min(...files.map(timeOf)),
    };
  });
}

function bytesOf(files: readonly FoundFile[]): number {
  return files.reduce((sum, { facts }) => sum + facts.size, 0);
}

function timeOf({ first, facts }: FoundFile): number {
  const recorded = first === undefined ? Number.NaN : Date.parse(first);
  return Number.isNaN(recorded) ? Number(BigInt(facts.modified) / 1_000_000n) : recorded;
}

/** What is recorded of a file that was read. */
export function sourceOf(
  { path, tool, session, main, role, project, first }: FoundFile,
  read: Pick<Source, 'device' | 'inode' | 'size' | 'modified' | 'compression' | 'read' | 'at'>,
): Source {
  const about = { ...(project !== undefined && { project }), ...(first !== undefined && { first }) };
  return { path, ...read, tool: tool.name, session, main, role, ...about };
}
