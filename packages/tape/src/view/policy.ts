import type { Seq } from '../entry/entry.ts';
import { quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';

/** Where a view begins. */
export type ViewBase =
  /** With the state of the newest boundary, and what it kept. */
  | 'last-boundary'
  /** With the first entry; boundaries and prunes are ignored. */
  | 'full'
  /** With the state of an anchor, by its position or its name (the last of that name). */
  | { readonly fromAnchor: Seq | string };

/**
 * The last so many messages and what lies between them; or the newest messages that take at most so many tokens, the last
 * one always. The state that a view begins with, and what the session is for, are shown in any case.
 */
export interface ViewWindow {
  readonly window: number | { readonly tokens: number };
}

export type ViewRule = ViewBase | ViewWindow;

/**
 * Which part of what is visible a view shows: where it begins, and what of that is left, one rule after the other. Without a base
 * it begins at the last boundary.
 */
export type ViewPolicy = ViewRule | readonly ViewRule[];

/** A policy in its parts. */
export interface ViewRules {
  readonly base: ViewBase;
  readonly windows: readonly ViewWindow[];
}

/**
 * A policy in its parts.
 * @throws TAPE_BAD_POLICY when it contradicts itself, or a rule means nothing
 */
export function rulesOf(policy: ViewPolicy): ViewRules {
  const rules: readonly ViewRule[] = isList(policy) ? policy : [policy];
  const [first, ...rest] = rules;
  const base = first === undefined || !isBase(first) ? 'last-boundary' : first;
  const others = first === undefined || isBase(first) ? rest : rules;
  for (const rule of others) if (isBase(rule)) throw badPolicy(policy, `${textOf(rule)} can only come first`);
  for (const rule of rules) {
    const fault = faultOf(rule);
    if (fault !== undefined) throw badPolicy(policy, fault);
  }
  return { base, windows: others.flatMap((rule) => (isBase(rule) ? [] : [rule])) };
}

/** A policy as a text: `last-boundary`, `from-anchor:plan,window:20`, `full,window:8000-tokens`. */
export function policyText(policy: ViewPolicy): string {
  const { base, windows } = rulesOf(policy);
  return [base, ...windows].map(textOf).join(',');
}

/**
 * The policy that a text means, with `window:20` for `last-boundary,window:20`.
 * @throws TAPE_BAD_POLICY
 */
export function parsePolicy(text: string): ViewPolicy {
  const rules = text.split(',').map((rule) => parseRule(rule, text));
  const policy = rules.length === 1 && rules[0] !== undefined ? rules[0] : rules;
  rulesOf(policy);
  return policy;
}

function parseRule(rule: string, policy: string): ViewRule {
  if (rule === 'last-boundary' || rule === 'full') return rule;
  const [, name = '', value = ''] = /^([a-z-]+):(.+)$/.exec(rule) ?? [];
  if (name === 'from-anchor') {
    const seq = /^@(\d+)$/.exec(value)?.[1];
    return { fromAnchor: seq === undefined ? value : Number(seq) };
  }
  const [, digits, tokens] = /^(\d+)(-tokens)?$/.exec(name === 'window' ? value : '') ?? [];
  if (digits !== undefined)
    return { window: tokens === undefined ? Number(digits) : { tokens: Number(digits) } };
  throw new TapeError(
    'TAPE_BAD_POLICY',
    `cannot view by ${quote(policy)}: ${quote(rule)} is none of last-boundary, full, from-anchor:ANCHOR, window:N and window:N-tokens`,
  );
}

function textOf(rule: ViewRule): string {
  if (typeof rule === 'string') return rule;
  if ('window' in rule)
    return typeof rule.window === 'number' ? `window:${rule.window}` : `window:${rule.window.tokens}-tokens`;
  return typeof rule.fromAnchor === 'number'
    ? `from-anchor:@${rule.fromAnchor}`
    : `from-anchor:${rule.fromAnchor}`;
}

/** What is wrong with a rule; whatever plain JavaScript may give for one. */
function faultOf(rule: ViewRule): string | undefined {
  if (typeof rule !== 'object' || rule === null)
    return rule === 'full' || rule === 'last-boundary'
      ? undefined
      : `there is no rule ${quote(String(rule))}`;
  // Of two in one object the second would be passed over, and more be shown than was meant.
  if (Object.keys(rule).length > 1) return 'a rule must name one thing: several are a list of rules';
  if ('window' in rule) {
    const size = typeof rule.window === 'number' ? rule.window : rule.window?.tokens;
    return Number.isSafeInteger(size) && size > 0
      ? undefined
      : 'a window must be a whole number of messages from 1, or of tokens';
  }
  if (!('fromAnchor' in rule)) return 'a rule must name a window or an anchor';
  const { fromAnchor } = rule;
  const isPoint = typeof fromAnchor === 'number' ? isPosition(fromAnchor) : typeof fromAnchor === 'string';
  return isPoint ? undefined : 'an anchor must be a name or a position';
}

function isPosition(seq: number): boolean {
  return Number.isSafeInteger(seq) && seq >= 0;
}

function badPolicy(policy: ViewPolicy, why: string): TapeError {
  return new TapeError('TAPE_BAD_POLICY', `cannot view by ${JSON.stringify(policy)}: ${why}`);
}

function isList(policy: ViewPolicy): policy is readonly ViewRule[] {
  return Array.isArray(policy);
}

function isBase(rule: ViewRule): rule is ViewBase {
  return typeof rule === 'string' || (typeof rule === 'object' && rule !== null && 'fromAnchor' in rule);
}
