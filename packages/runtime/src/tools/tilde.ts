import { homedir } from 'node:os';

/** The pattern of the home directory of this user, as the beginning of a path; undefined where it says nothing. */
function homePattern(home: string): RegExp | undefined {
  return home.length < 3 ? undefined : new RegExp(`(?<![\\w./~-])${RegExp.escape(home)}(?![\\w.-])`, 'g');
}

/** A text with the home directory of this user as `~`: a model need not know who it works for. */
export function withTilde(text: string, home: string = homedir()): string {
  const pattern = text.includes(home) ? homePattern(home) : undefined;
  return pattern === undefined ? text : text.replace(pattern, '~');
}
