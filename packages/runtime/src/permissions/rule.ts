/** What a rule or a decision says of a call. */
export type Verdict = 'deny' | 'ask' | 'allow';

/** What a call claims to do: with a tool, to a session, to files, by a command, or anything. */
export type ClaimKind = 'tool' | 'send' | 'read' | 'write' | 'exec' | 'opaque';

/** A parsed rule. */
export interface Rule {
  /** As it was written: `deny! read(~/.ssh/**)`. */
  readonly text: string;
  readonly verdict: Verdict;
  /** No other rule makes it less strict. */
  readonly pinned: boolean;
  /** The kind of claims that it is about; `any`: all; `tool`: tools, also those that do not say what they touch. */
  readonly kind: ClaimKind | 'any';
  readonly pattern: string;
}

/** Rules as configurations and sessions hold them: a text with one on each line, or several such texts. */
export type RuleTexts = string | readonly string[];

/**
 * Named lists of rules. A line with such a name stands for them. The home of the sessions in a workspace has rules, too,
 * which no session writes.
 */
export const levels: Readonly<Record<'yolo' | 'trusted' | 'sandboxed', readonly string[]>> = {
  yolo: ['allow *'],
  trusted: [
    'allow *',
    'ask write(**)',
    'allow write({workspace}/**)',
    'deny! write({workspace}/.tape/*)',
    'ask exec(*)',
  ],
  sandboxed: [
    'allow *',
    'deny read(**)',
    'allow read({workspace}/**)',
    'deny write(**)',
    'allow write({workspace}/**)',
    'deny! write({workspace}/.tape/*)',
    'deny exec(*)',
    'deny opaque(*)',
    'deny send(*)',
    'allow send(parent)',
  ],
};

const kinds: readonly string[] = ['send', 'read', 'write', 'exec', 'opaque'] satisfies ClaimKind[];

/** The longest rule, in characters. */
const ruleMax = 10_000;

/** A text that is no rule, with its place. */
export class RuleFault extends Error {
  override readonly name = 'RuleFault';
  readonly line: number;
  /** The first character that does not fit, counted from 1. */
  readonly column: number;
  readonly why: string;

  constructor(why: string, { line, column }: { line: number; column: number }) {
    super(`line ${line}, column ${column}: ${why}`);
    this.why = why;
    this.line = line;
    this.column = column;
  }
}

/**
 * Parses rules, and the names of levels, which stand for theirs. Empty lines and those that begin with # say nothing.
 * @throws RuleFault
 */
export function parseRules(texts: RuleTexts): readonly Rule[] {
  return [texts].flat().flatMap((text) =>
    text.split(/\r?\n/).flatMap((line, i) => {
      const name = line.trim();
      if (name === '' || name.startsWith('#')) return [];
      const level = Object.hasOwn(levels, name) ? levels[name as keyof typeof levels] : undefined;
      return level?.map((rule) => parseRule(rule)) ?? [parseRule(line, i + 1)];
    }),
  );
}

/** Parses one rule: `VERDICT TOOL` or `VERDICT KIND(PATTERN)`, with `!` behind the verdict of one that is pinned. */
export function parseRule(text: string, line = 1): Rule {
  const refuse = (why: string, at: number) => new RuleFault(why, { line, column: at + 1 });
  if (text.length > ruleMax) throw refuse(`a rule has at most ${ruleMax} characters`, ruleMax);
  const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.exec(text);
  if (hidden !== null) throw refuse('a rule has no control and no invisible characters', hidden.index);
  const [head = '', , verdict, pin = '', space = ''] = /^(\s*)(deny|ask|allow)(!?)(\s+|$)/.exec(text) ?? [];
  if (verdict === undefined)
    throw refuse(
      "a rule begins with deny, ask or allow, or is 'yolo', 'trusted' or 'sandboxed'",
      text.search(/\S|$/),
    );
  const about = text.slice(head.length).trimEnd();
  if (about === '' || space === '') throw refuse('nothing follows the verdict', text.trimEnd().length);
  const open = about.indexOf('(');
  const at = head.length;
  const rule = { text: text.trim(), verdict: verdict as Verdict, pinned: pin === '!' };
  if (open === -1) {
    const odd = /[\s)"'{}]/.exec(about);
    if (odd !== null) throw refuse(`the name of a tool has no ${nameOf(odd[0])}`, at + odd.index);
    return { ...rule, kind: about === '*' ? 'any' : 'tool', pattern: about };
  }
  const kind = about.slice(0, open);
  if (!kinds.includes(kind))
    throw refuse(`there is no kind '${kind}'; the kinds are ${kinds.join(', ')}`, at);
  if (!about.endsWith(')')) throw refuse('the parenthesis is not closed', at + about.length);
  const pattern = about.slice(open + 1, -1);
  const fault = patternFault(kind, pattern);
  if (fault !== undefined) throw refuse(fault.why, at + open + 1 + fault.at);
  return { ...rule, kind: kind as ClaimKind, pattern };
}

function patternFault(kind: string, pattern: string): { why: string; at: number } | undefined {
  if (pattern.trim() === '') return { why: 'the pattern is empty', at: 0 };
  if (/(?:^|[^\\])(?:\\\\)*\\$/.test(pattern))
    return { why: 'nothing follows the backslash', at: pattern.length };
  if (kind === 'exec') {
    const quotes = pattern.replaceAll(/\\./g, '').split('"').length - 1;
    return quotes % 2 === 0 ? undefined : { why: 'a quote is not closed', at: pattern.lastIndexOf('"') };
  }
  if (kind !== 'read' && kind !== 'write') return undefined;
  const bare = pattern.replaceAll(/\\./g, '__');
  if (/.\/$/.test(bare))
    return {
      why: 'a directory alone has no / at its end; write /** for all that is below',
      at: bare.length - 1,
    };
  const brace = /[{}]/.exec(bare.replace(/^\{workspace\}(?=\/|$)/, '_'.repeat(11)));
  if (brace !== null)
    return { why: 'only {workspace} has braces, at the beginning; write \\{ for a brace', at: brace.index };
  const star = bare.indexOf('*');
  const up = star === -1 ? null : /(?:^|\/)\.\.(?:\/|$)/.exec(bare.slice(star));
  return up === null ? undefined : { why: "no '..' may follow a *", at: star + up.index };
}

function nameOf(character: string): string {
  return /\s/.test(character) ? 'space' : `'${character}'`;
}

/** The rule for texts that cannot be read any more: nothing may widen because a rule was lost. */
export function unreadable(text: string): Rule {
  return { text, verdict: 'deny', pinned: true, kind: 'any', pattern: '*' };
}
