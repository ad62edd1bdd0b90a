import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { text } from '../../plan/text.ts';
import { type Block, blocksIn } from './content.ts';

/**
 * What the model got of a record that is no message: the attachments of Claude Code (files, reminders, prompts that waited
 * while the model worked), and what a command of its own printed. None of a record of which it got nothing.
 */
export function givenBlocks({
  type,
  subtype,
  content,
  attachment,
  rendered,
  isDisplayOnly,
}: JsonObject): readonly Block[] {
  // A command such as `/context` shows the user a drawing, and tells the model the same in a prompt.
  if (type === 'system')
    return subtype === 'local_command' && isDisplayOnly !== true ? blocksIn(content) : [];
  if (type !== 'attachment' || !isObject(attachment)) return [];
  if (Array.isArray(rendered)) return rendered.flatMap((one) => (isObject(one) ? blocksIn(one.content) : []));
  return unrendered(attachment);
}

/** Whether the model got something of a record that is no message. */
export function isGiven(raw: JsonObject): boolean {
  return givenBlocks(raw).some(({ text }) => text !== '');
}

/** Whether a record is a prompt that waited while the model worked, as the model received it. */
export function isQueued({ type, attachment }: JsonObject): boolean {
  return type === 'attachment' && isObject(attachment) && attachment.type === 'queued_command';
}

/**
 * Whether the model gets what waited as words of the user, behind the results before it, where it gets reminders as turns of the
 * system: 2.1.332 does so, and 2.1.330 did not.
 */
export function hasOwnTurn({ attachment }: JsonObject): boolean {
  return isObject(attachment) && attachment.hostsOwnTurn === true;
}

/**
 * Whether requests have turns of the system, as a snapshot of one says; undefined for any other record. Newer models take such
 * turns behind a prompt, in place of reminders before it.
 */
export function systemTurnsIn({ type, attachment }: JsonObject): boolean | undefined {
  if (type !== 'attachment' || !isObject(attachment) || attachment.type !== 'prompt_snapshot')
    return undefined;
  // A snapshot that is written before a request says nothing of its form.
  return attachment.tools === undefined ? undefined : attachment.systemTurns === true;
}

/**
 * An attachment of a version that did not record what it rendered, or of a file that is no text. Those are rendered as
 * Claude Code 2.1.330 does it, as far as the attachment holds what the model read; any other kind gives nothing, as its words
 * were those of one version and are in no record.
 */
function unrendered(attachment: JsonObject): readonly Block[] {
  if (attachment.type === 'queued_command') return blocksIn(attachment.prompt);
  if (attachment.type === 'file') return fileBlocks(attachment);
  const words = wordsOf(attachment);
  return words === undefined ? [] : [reminder(words)];
}

/** The words of a reminder that its fields hold. */
function wordsOf(attachment: JsonObject): string | undefined {
  const [content, file] = [text(attachment.content), text(attachment.filename)];
  const hook = text(attachment.hookName);
  switch (attachment.type) {
    case 'directory':
      return content && `Contents of ${attachment.path}:\n${content}`;
    case 'edited_text_file': {
      const snippet = text(attachment.snippet);
      return file && snippet && `Note: ${file} changed on disk since you last read it.\n${snippet}`;
    }
    case 'selected_lines_in_ide': {
      const lines = `${attachment.lineStart} to ${attachment.lineEnd}`;
      return content && `The user selected the lines ${lines} from ${file}:\n${content}`;
    }
    case 'opened_file_in_ide':
      return file && `The user opened the file ${file} in the IDE.`;
    case 'nested_memory': {
      const { path, content: memory } = isObject(attachment.content) ? attachment.content : {};
      return text(memory) && `Contents of ${path}:\n\n${memory}`;
    }
    case 'skill_listing':
      return content && `The following skills are available for use with the Skill tool:\n\n${content}`;
    case 'critical_system_reminder':
      return content;
    case 'hook_success': {
      const isHeard = attachment.hookEvent === 'SessionStart' || attachment.hookEvent === 'UserPromptSubmit';
      return isHeard ? content && `${hook} hook success: ${content}` : undefined;
    }
    case 'hook_additional_context': {
      const lines = Array.isArray(attachment.content) ? attachment.content : [];
      return lines.length === 0 ? undefined : `${hook} hook additional context: ${lines.join('\n')}`;
    }
    case 'hook_stopped_continuation':
      return text(attachment.message) && `${hook} hook stopped continuation: ${attachment.message}`;
    case 'date_change':
      return text(attachment.newDate) && `The date has changed. Today's date is now ${attachment.newDate}.`;
    default:
      return undefined;
  }
}

/** A file that the user named in a prompt: the model got it as if it had read it. */
function fileBlocks({ filename, content }: JsonObject): readonly Block[] {
  const { type, file } = isObject(content) ? content : {};
  if (!isObject(file)) return [];
  const path = text(file.filePath) ?? text(filename) ?? '';
  const called = reminder(
    `Called the Read tool with the following input: ${JSON.stringify({ file_path: path })}`,
  );
  if (type === 'text' && typeof file.content === 'string') {
    const first = typeof file.startLine === 'number' ? file.startLine : 1;
    const lines = file.content.split('\n').map((line, i) => `${first + i}\t${line}`);
    return [called, reminder(`Result of calling the Read tool:\n${lines.join('\n')}`)];
  }
  const data = text(file.base64);
  if (data === undefined || (type !== 'image' && type !== 'pdf')) return [];
  const media = type === 'pdf' ? 'application/pdf' : (text(file.type) ?? 'image/png');
  const source = { type: 'base64', media_type: media, data };
  return [called, { type: type === 'pdf' ? 'document' : 'image', source }];
}

function reminder(words: string): Block {
  return { type: 'text', text: `<system-reminder>\n${words}\n</system-reminder>` };
}
