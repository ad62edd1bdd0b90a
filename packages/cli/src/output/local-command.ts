import { stripVTControlCharacters } from 'node:util';
import type { Entry } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/**
 * Commands of an agent whose transcript was imported, such as `/clear` of Claude Code. Its records have them as messages
 * of the user, in tags: the import notes in the meta which are a command, what one printed, or a note to the model.
 */
type Message = Pick<Entry, 'kind' | 'payload' | 'meta'>;

/** Whether a message of the user is a prompt: of no merge or skill, no command, and no output of one. */
export function isTyped({ meta }: Message): boolean {
  return meta.localCommand === undefined && meta.isMeta !== true && meta.source !== 'merge';
}

/** Whether a message is for the model alone: that local commands follow, or a reminder that the program attached by itself. */
export function isNote(message: Message): boolean {
  const { localCommand, isMeta, attachment } = message.meta;
  if (localCommand === 'note') return true;
  if (isMeta !== true) return false;
  // Such as what Claude Code tells its model when a session gets another name.
  if (attachment === undefined)
    return /^\s*<system-reminder>.*<\/system-reminder>\s*$/s.test(textOf(message));
  return attachment !== 'file';
}

/** Whether a message is what a command printed. */
export function isCommandOutput({ meta }: Message): boolean {
  return meta.localCommand === 'output';
}

/** The command of a message as it was typed: `/model opus`, `! ls`; undefined for another message. */
export function commandText(message: Message): string | undefined {
  if (message.meta.localCommand !== 'command') return undefined;
  const text = textOf(message);
  const shell = inTag(text, 'bash-input');
  if (shell !== undefined) return `! ${shell}`;
  const name = inTag(text, 'command-name') ?? inTag(text, 'command-message') ?? '';
  const typed = [name, inTag(text, 'command-args') ?? ''].filter((part) => part !== '').join(' ');
  return typed === '' ? undefined : typed;
}

/** What the command of a message printed, in the message itself or as its own message; undefined where there is nothing. */
export function commandOutput(
  message: Message,
): { readonly text: string; readonly failed: boolean } | undefined {
  if (!isCommandOutput(message) && message.meta.localCommand !== 'command') return undefined;
  const text = textOf(message);
  const parts = [...text.matchAll(/<((?:local-command|bash)-std(out|err))>(.*?)(?:<\/\1>|$)/gs)];
  const has = (stream: string) =>
    parts.filter(([, , one, words = '']) => one === stream && words.trim() !== '');
  if (parts.length === 0) return isCommandOutput(message) ? { text, failed: false } : undefined;
  const words = [...has('out'), ...has('err')]
    .map(([, , , part = '']) => stripVTControlCharacters(part).trim())
    .join('\n');
  return { text: words, failed: has('out').length === 0 && has('err').length > 0 };
}

function inTag(text: string, tag: string): string | undefined {
  const start = text.indexOf(`<${tag}>`);
  if (start < 0) return undefined;
  const end = text.indexOf(`</${tag}>`, start);
  const words = text.slice(start + tag.length + 2, end < 0 ? undefined : end).trim();
  return words === '' ? undefined : words;
}

function textOf({ payload }: Message): string {
  const content = isObject(payload) && Array.isArray(payload.content) ? payload.content : [];
  return content.map((part) => (isObject(part) && typeof part.text === 'string' ? part.text : '')).join('\n');
}
