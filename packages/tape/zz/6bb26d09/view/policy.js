                                             
import { quote } from '../entry/name.js';
import { TapeError } from '../errors.js';

/** The rule for the start of a view. */
                      
                                                                       
                   
                                                                  
          
                                                                                                     
                                          

/**
 * The last N messages and the entries between them, or the newest messages that fit N tokens, at least one.
 * The state that begins the view and the session's intention are always shown.
 */
                             
                                                        
 

                                             

/**
 * Selects the part of the visible entries that a view shows: first the base, then each window in order. The
 * default base is the last boundary.
 */
                                                        

/** A policy split into its rules. */
                            
                          
                                          
 

/**
 * Splits a policy into its rules.
 * @throws TAPE_BAD_POLICY when rules contradict each other or one is invalid
 */
export function rulesOf(policy            )            {
  const rules                      = isList(policy) ? policy : [policy];
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
export function policyText(policy            )         {
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
export function parsePolicy(text        )             {
  const rules = text.split(',').map((rule) => parseRule(rule, text));
  const policy = rules.length === 1 && rules[0] !== undefined ? rules[0] : rules;
  rulesOf(policy);
  return policy;
}

function parseRule(rule        , policy        )           {
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

function textOf(rule          )         {
  if (typeof rule === 'string') return rule;
  if ('window' in rule)
    return typeof rule.window === 'number' ? `window:${rule.window}` : `window:${rule.window.tokens}-tokens`;
  return typeof rule.fromAnchor === 'number'
    ? `from-anchor:@${rule.fromAnchor}`
    : `from-anchor:${rule.fromAnchor}`;
}

/** Returns what is wrong with a rule, of any type that plain JavaScript can pass. */
function faultOf(rule          )                     {
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

function isPosition(seq        )          {
  return Number.isSafeInteger(seq) && seq >= 0;
}

function badPolicy(policy            , why        )            {
  return new TapeError('TAPE_BAD_POLICY', `cannot view by ${JSON.stringify(policy)}: ${why}`);
}

function isList(policy            )                                {
  return Array.isArray(policy);
}

function isBase(rule          )                   {
  return typeof rule === 'string' || (typeof rule === 'object' && rule !== null && 'fromAnchor' in rule);
}
