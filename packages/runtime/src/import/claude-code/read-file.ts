import type { JsonLines } from '../json-lines.ts';
import type { Transcript } from '../transcript.ts';
import { conversationOf } from './conversation.ts';
import { countsOf } from './counts.ts';
import { sessionOf, titleOf } from './provenance.ts';
import { readRecords } from './records.ts';
import { weave } from './weave.ts';

/**
 * Reads the records of a Claude Code transcript as one session. The conversation that leads to the file's
 * last record becomes messages, tool results and boundaries; every other record becomes an `x-claude-code`
 * entry at its place in the file. Pure. `name`: the session if no record names one.
 *
 * The format is not published. The rules follow real transcripts, each in its own file: what a record is
 * (`records`), what is on the path (`path`), which records form one message (`turns`, `message`), which
 * result answers which call (`answers`), what each becomes (`blocks`, `outputs`, `drafts`), and in which
 * order (`weave`).
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
    bad: lines.bad,
    counts: countsOf(lines, conversation, drafts),
  };
}
