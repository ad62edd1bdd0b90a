/**
 * Permissions: what the calls of a session may do. `rule.ts` parses rules, `claim.ts` says what a call would do,
 * `real-path.ts` where its paths lead and `command.ts` which program it runs, `pattern.ts` compares a rule with a claim,
 * `decide.ts` decides, and `offers.ts` makes the rules with which a person can answer for good. All but `real-path.ts` is
 * pure. Imports `tools`.
 */
import type { Claim } from './claim.ts';
import { covers, type Place } from './pattern.ts';
import type { Rule, Verdict } from './rule.ts';

/** Where a rule stands: in the configuration of a program, of a home, in a session; or an answer of a person. */
export type Scope = 'manifest' | 'project' | 'session' | 'grant';

/** A rule, and where it stands. */
export interface ScopedRule extends Rule {
  readonly scope: Scope;
}

/** What one session of a lineage says: the rules of its scopes, in their order. */
export interface Layer {
  readonly session: string;
  readonly rules: readonly ScopedRule[];
}

/** A session whose rules count for a call: its lineage, root first, and what a person has granted it. */
export interface Party extends Pick<Place, 'workspace' | 'session' | 'parent'> {
  readonly lineage: readonly Layer[];
  readonly grants: readonly ScopedRule[];
  /** Why its rules cannot be known; it then denies everything. */
  readonly fault?: string;
}

/** A verdict on a call, and what decided it. */
export interface Ruling {
  readonly verdict: Verdict;
  readonly claim: Claim;
  /** The rule that decided; undefined: no rule is about the claim, and its kind decided. */
  readonly rule?: ScopedRule;
  /** The session of the lineage that decided; undefined when no session has a rule. */
  readonly session?: string;
}

const rank: Readonly<Record<Verdict, number>> = { deny: 0, ask: 1, allow: 2 };

/** The stricter of two rulings; of two alike the pinned one, which no grant answers, and else the first. */
function stricter(a: Ruling, b: Ruling): Ruling {
  if (rank[b.verdict] !== rank[a.verdict]) return rank[b.verdict] < rank[a.verdict] ? b : a;
  return b.rule?.pinned === true && a.rule?.pinned !== true ? b : a;
}

/** Whether rules decide anything: without one in any scope, everything is allowed. */
export function areRuled(parties: readonly Party[]): boolean {
  return parties.some(
    ({ lineage, fault }) => fault !== undefined || lineage.some(({ rules }) => rules.length > 0),
  );
}

/**
 * What all parties say of each claim, strictest first; claims alike stay in their order. The first decides the call.
 */
export function decide(
  parties: readonly Party[],
  claims: readonly Claim[],
  disk: Pick<Place, 'home' | 'real' | 'ignoresCase'>,
): readonly [Ruling, ...Ruling[]] {
  const [first, ...more] = claims.map((claim) =>
    parties.map((party) => ofParty(party, claim, { ...disk, ...placeOf(party) })).reduce(stricter),
  );
  if (first === undefined) throw new TypeError('a call claims at least its tool');
  const sorted = [first, ...more].toSorted((a, b) => rank[a.verdict] - rank[b.verdict]);
  return sorted as [Ruling, ...Ruling[]];
}

function placeOf({ workspace, session, parent }: Party): Pick<Place, 'workspace' | 'session' | 'parent'> {
  return { workspace, session, parent };
}

/** The strictest of what its lineage says. A grant answers what asks, and never lifts what denies. */
function ofParty({ lineage, grants, fault }: Party, claim: Claim, place: Place): Ruling {
  if (fault !== undefined) return { verdict: 'deny', claim: { ...claim, fault }, session: place.session };
  const said = lineage.map((layer) => ofLayer(layer, claim, place));
  const ruling = said.reduce(stricter, { verdict: 'allow', claim } as Ruling);
  const grant = grants.findLast((rule) => covers(rule, claim, place));
  if (grant === undefined) return decider(said, ruling);
  const granted: Ruling = { verdict: grant.verdict, claim, rule: grant, session: place.session };
  const isAsked = ruling.verdict === 'ask' && ruling.rule?.pinned !== true;
  return isAsked ? granted : stricter(decider(said, ruling), granted);
}

/** An allowed claim names the rule of the session itself, which is the last to speak. */
function decider(said: readonly Ruling[], ruling: Ruling): Ruling {
  return ruling.verdict === 'allow' ? (said.at(-1) ?? ruling) : ruling;
}

/** What one session says by itself: the last rule about the claim; a pinned one can only be made stricter. */
function ofLayer({ session, rules }: Layer, claim: Claim, place: Place): Ruling {
  if (rules.length === 0) return { verdict: 'allow', claim };
  if (claim.fault !== undefined) return { verdict: 'deny', claim, session };
  let last: ScopedRule | undefined;
  let pin: ScopedRule | undefined;
  for (const rule of rules) {
    if (!covers(rule, claim, place)) continue;
    last = rule;
    if (rule.pinned && (pin === undefined || rank[rule.verdict] < rank[pin.verdict])) pin = rule;
  }
  if (last === undefined) return { verdict: claim.kind === 'tool' ? 'allow' : 'ask', claim, session };
  const rule = pin !== undefined && rank[pin.verdict] <= rank[last.verdict] ? pin : last;
  return { verdict: rule.verdict, claim, rule, session };
}
