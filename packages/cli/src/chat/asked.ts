import { quote } from '@tapedeck/tape/internal';
import { nearNames } from '@tapedeck/tape/store';
import { UsageError } from '../errors/kinds.ts';
import { safe } from '../escape.ts';
import { type Command, commands, type Next } from './commands.ts';
import type { Talk } from './talk.ts';

/** The first word of a line that names a command, and the others. A path names no command, and neither does what begins with `//`. */
const command = /^\s*\/([^\s/]*)(?:\s+(.*))?$/s;

/** Whether a line names a command. */
export function isCommand(line: string): boolean {
  return command.test(line);
}

/** What a line asks for: a command that it names, or the run of a prompt. */
export async function nextOf(talk: Talk, line: string): Promise<Next> {
  const [, word, rest = ''] = command.exec(line) ?? [];
  const words = rest.split(/\s+/).filter((one) => one !== '');
  if (word !== undefined) return await commandNamed(word).run(talk, words);
  const prompt = line.replace(/^(\s*)\/\//, '$1/');
  const { session, named } = talk;
  return { start: () => session.run(prompt, named) };
}

/** @throws UsageError with the commands that may be meant */
function commandNamed(word: string): Command {
  const found = commands.find(({ name }) => name === word);
  if (found !== undefined) return found;
  const meant = commands.filter(({ also = [] }) => also.includes(word));
  if (meant[0]?.name === 'quit') return meant[0];
  const names = commands.map(({ name }) => name);
  const begun = word === '' ? [] : names.filter((name) => name.startsWith(word));
  const near = [
    ...new Set([...meant.map(({ name }) => name), ...begun, ...nearNames(word, names, { within: 2 })]),
  ].slice(0, 3);
  const hint =
    near.length === 0 ? 'see /help; f' : `did you mean ${near.map((name) => `/${name}`).join(' or ')}? F`;
  throw new UsageError(`cannot run ${quote(`/${word}`)}: no such command`, {
    hint: `${hint}or a prompt that begins with a slash, write //`,
  });
}

/** What Tab can make of a line: commands, and what may follow them. */
export function offersFor(talk: Talk, line: string): readonly [words: string[], part: string] {
  const [, word, , part] = /^\/(\S*)(\s+(\S*))?$/.exec(line) ?? [];
  if (word === undefined) return [[], line];
  if (part === undefined) {
    const names = commands.map(({ name }) => `/${name}`).filter((name) => name.startsWith(`/${word}`));
    // A command that takes something is ready for it.
    return [names.length === 1 ? names.map((name) => `${name} `) : names, `/${word}`];
  }
  const found = commands.find(({ name }) => name === word)?.offers?.(talk, part) ?? [];
  return [found.filter((text) => text.startsWith(part) && safe(text) === text), part];
}
