import { conversationOf } from './conversation.ts';
import { countsOf } from './counts.ts';
import type { JsonLines } from './json-lines.ts';
import { sessionOf, titleOf } from './provenance.ts';
import { readRecords } from './records.ts';
import type { Transcript } from './transcript.ts';
import { weave } from './weave.ts';

/**
 * Reads the records of one Claude Code transcript as one session: the conversation that leads to the file's last
 * record as messages, tool results and boundaries, and every other record as an `x-claude-code` entry at its
 * place in the file. Pure: the same records give the same drafts. `name` is the session when no record names one.
 *
 * The format is not published. The rules follow what real transcripts hold, each in a file of its own: what a
 * record is (`records`), what is on the path (`path`), which records are one message (`turns`, `message`), which
 * result answers which call (`answers`), what becomes of each (`blocks`, `outputs`, `drafts`), in which order
 * (`weave`).
 */
export function readClaudeCode(
  lines: JsonLines,
  { name = 'claude-code' }: { name?: string } = {},
): Transcript {
  const records = readRecords(lines.records);
  const conversation = conversationOf(records);
  const { drafts, settled } = weave(conversation);
  const title = titleOf(records);
  return {
    session: sessionOf(conversation.path, records) ?? name,
    ...(title !== undefined && { title }),
    drafts,
    settled,
    counts: countsOf(lines, conversation, drafts),
  };
}
