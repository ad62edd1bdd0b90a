import type { Seq } from '../entry/entry.ts';
import { quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';

/** The rule for the start of a view. */
export type ViewBase =
  /** Start with the state of the newest boundary and its kept tail. */
  | 'last-boundary'
  /** Start with the first entry; ignore boundaries, omissions and prunes. */
  | 'full'
  /** Start with the state of an anchor, given by position or name (the last anchor of that name). */
  | { readonly fromAnchor: Seq | string };

/**
 * The last N messages and the entries between them, or the newest messages that fit N tokens, at least one.
 * The state that begins the view and the session's intention are always shown.
 */
export interface ViewWindow {
  readonly window: number | { readonly tokens: number };
}

export type ViewRule = ViewBase | ViewWindow;

/**
 * Selects the part of the visible entries that a view shows: first the base, then each window in order. The
 * default base is the last boundary.
 */
export type ViewPolicy = ViewRule | readonly ViewRule[];

/** A policy split into its rules. */
export interface ViewRules {
  readonly base: ViewBase;
  readonly windows: readonly ViewWindow[];
}

/**
 * Splits a policy into its rules.
 * @throws TAPE_BAD_POLICY when rules contradict each other or one is invalid
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

/** Formats a policy as text: `last-boundary`, `from-anchor:plan,window:20`, `full,window:8000-tokens`. */
export function policyText(policy: ViewPolicy): string {
  const { base, windows } = rulesOf(policy);
  return [base, ...windows].map(textOf).join(',');
}

/**
 * Parses the text form of a policy; `window:20` means `last-boundary,window:20`.
 * @throws TAPE_BAD_POLICY
 *
 * @example
 * ```ts
 * import { openTapeStore, parsePolicy, user, view } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.'), user('Add a changelog.')]);
 * const policy = parsePolicy('full,window:1');
 * console.log(view(store.views.entries('main', { policy }), { policy }).from); // 3
 * ```
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
    `cannot view by ${quote(policy)}: unknown rule ${quote(rule)}; the rules are last-boundary, full, from-anchor:ANCHOR, window:N and window:N-tokens`,
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

/** Returns what is wrong with a rule, of any type that plain JavaScript can pass. */
function faultOf(rule: ViewRule): string | undefined {
  if (typeof rule !== 'object' || rule === null)
    return rule === 'full' || rule === 'last-boundary' ? undefined : `unknown rule ${quote(String(rule))}`;
  // With two properties in one object, one would be ignored, and the view would show too much.
  if (Object.keys(rule).length > 1) return 'a rule must have one property; use a list for several rules';
  if ('window' in rule) {
    const size = typeof rule.window === 'number' ? rule.window : rule.window?.tokens;
    return Number.isSafeInteger(size) && size > 0
      ? undefined
      : 'a window must be a positive whole number of messages or tokens';
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
