import { dirname } from 'node:path';
import type { Claim } from './claim.ts';

/** Programs that run whatever their arguments say. */
const shells: ReadonlySet<string> = new Set([
  ...['sh', 'bash', 'zsh', 'dash', 'ksh', 'csh', 'tcsh', 'fish', 'pwsh', 'busybox'],
  ...['env', 'sudo', 'doas', 'su', 'xargs', 'nohup', 'nice', 'setsid', 'time', 'timeout', 'watch'],
  ...['command', 'builtin', 'exec', 'eval', 'source', '.'],
]);

/** The longest pattern that is offered. */
const offerMax = 1_000;

/**
 * What an answer can be given for, as the part of a rule behind its verdict, narrowest first: `write(/a/b)`, `write(/a/**)`,
 * `exec(git *)`, `mcp_notes_*`. A claim that no line can show has none.
 */
export function offersFor({ kind, what, words, fault }: Claim): readonly string[] {
  if (fault !== undefined || what.length > offerMax || /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(what)) return [];
  if (kind === 'read' || kind === 'write') {
    const directory = dirname(what);
    const below = directory === '/' ? [] : [`${kind}(${literal(directory)}/**)`];
    return [`${kind}(${literal(what)})`, ...below];
  }
  if (kind === 'exec') return commandOffers(words ?? []);
  if (kind === 'send') return [`send(${literalName(what)})`];
  if (!/^[^\s()"'{}\\*]+$/.test(what)) return kind === 'opaque' ? [`opaque(${literal(what)})`] : [];
  const [prefix, server] = what.split('_');
  return prefix === 'mcp' && server !== undefined && what.length > `mcp_${server}_`.length
    ? [what, `mcp_${server}_*`]
    : [what];
}

function commandOffers(words: readonly string[]): readonly string[] {
  const [program = ''] = words;
  const exact = `exec(${words.map(literalWord).join(' ')})`;
  const isShell = shells.has(program.slice(program.lastIndexOf('/') + 1));
  return isShell ? [exact] : [exact, `exec(${literalWord(program)} *)`];
}

function literalWord(word: string): string {
  const text = word.replaceAll(/[\\*"]/g, '\\$&');
  return text === '' || /\s/.test(text) ? `"${text}"` : text;
}

/** A text that a pattern takes as it is. */
function literal(text: string): string {
  return text.replaceAll(/[\\*{}]/g, '\\$&');
}

/** A session that is called as a relation is: a backslash makes its name one. */
function literalName(name: string): string {
  return /^(?:parent|children|family)$/.test(name) ? `\\${name}` : literal(name);
}
