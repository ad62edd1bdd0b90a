import type { SourcePlan } from '../plan/format.ts';
import type { Conversation } from './conversations.ts';
import { isFileError } from './file-import.ts';
import { closeAll, isReadTool, type Opened, open, planOf } from './opened.ts';

/**
 * Reads the files of a conversation, and imports nothing. A file that cannot be read is passed over, unless it is the main one.
 * @param use called with what the files say, while they are open: the contents of the drafts are read when a caller takes them
 * @throws ImportError for a main file that cannot be read
 * @throws TypeError for a tool whose transcripts are only recognised
 */
export async function readConversation<T>(
  { tool, files }: Pick<Conversation, 'tool' | 'files'>,
  use: (plan: SourcePlan) => T,
): Promise<T> {
  if (!isReadTool(tool)) throw new TypeError(`transcripts of ${tool.title} are not read`);
  const opened: Opened[] = [];
  try {
    for (const file of files) {
      try {
        opened.push(await open(file, { table: undefined, strict: false }));
      } catch (error) {
        if (file.role === 'main' || !isFileError(error)) throw error;
      }
    }
    return use(await planOf(tool, opened));
  } finally {
    closeAll(opened);
  }
}
