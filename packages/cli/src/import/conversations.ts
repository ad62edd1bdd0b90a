import type { Conversation, FileImport, FoundFile, Source } from '@tapedeck/runtime/import';

/** A conversation, and those of its files in which there is something new. */
export interface Pending extends Conversation {
  readonly toRead: readonly FoundFile[];
  /** What is known of its other files. */
  readonly known: readonly FileImport[];
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
export function foundByTool(conversations: readonly Pending[]): readonly ToolFound[] {
  return byTool(conversations.map(foundOf));
}

/** A conversation as what was found of its tool. Pure. */
export function foundOf({ tool, files, toRead }: Pending): ToolFound {
  return {
    tool: tool.name,
    title: tool.title,
    isRead: tool.plan !== undefined,
    conversations: 1,
    files: files.length,
    bytes: bytesOf(files),
    newBytes: bytesOf(toRead),
    newFiles: toRead.length,
    oldest: Math.min(...files.map(timeOf)),
  };
}

/** What was found in several places, by tools. Pure. */
export function byTool(all: readonly ToolFound[]): readonly ToolFound[] {
  return [...Map.groupBy(all, ({ tool }) => tool).values()].flatMap((own) => {
    const sum = (of: (one: ToolFound) => number) => own.reduce((total, one) => total + of(one), 0);
    return own.slice(0, 1).map((first) => ({
      ...first,
      conversations: sum((one) => one.conversations),
      files: sum((one) => one.files),
      bytes: sum((one) => one.bytes),
      newBytes: sum((one) => one.newBytes),
      newFiles: sum((one) => one.newFiles),
      oldest: own.reduce((oldest, one) => Math.min(oldest, one.oldest), first.oldest),
    }));
  });
}

/** The size of some files. */
export function bytesOf(files: readonly FoundFile[]): number {
  return files.reduce((sum, { facts }) => sum + facts.size, 0);
}

function timeOf({ first, facts }: FoundFile): number {
  const recorded = first === undefined ? Number.NaN : Date.parse(first);
  return Number.isNaN(recorded) ? Math.floor(facts.modified) : recorded;
}

/** What of a list passes a test, and what does not. */
export function parted<T>(list: readonly T[], test: (one: T) => boolean): readonly [T[], T[]] {
  return [list.filter(test), list.filter((one) => !test(one))];
}

/** What is recorded of a file whose conversation is not taken: where it is, and nothing of what it says. */
export function forgottenSource({ path, facts, tool, session, main, role }: FoundFile, at: number): Source {
  const nothing = { line: 1, offset: 0, digest: { size: 0, blocks: [], tail: '' } };
  return { path, ...facts, tool: tool.name, session, main, role, read: nothing, at, forgottenAt: at };
}
