import type { Draft } from '@tapedeck/tape';
import { keyPart } from '../../plan/key-part.ts';
import type { ConversationPlan, DerivedEdge } from '../../plan/plan.ts';
import { hasCall, messageWith } from './called.ts';
import type { Came, PlannedAgent } from './plan-agent.ts';

/**
 * The conversations of a session, and behind them its subagents, each behind what called it: with what it knows of that, and the
 * edges that no record names. Pure.
 */
export function placeAgents(
  conversations: readonly ConversationPlan[],
  agents: readonly PlannedAgent[],
): { readonly conversations: readonly ConversationPlan[]; readonly derived: readonly DerivedEdge[] } {
  const all = [...conversations];
  const derived: DerivedEdge[] = [];
  // A subagent of a subagent comes after the one that called it.
  for (let left = agents; left.length > 0; ) {
    const parentOf = ({ call, above }: (typeof left)[number]) =>
      all.find(({ spine }) => call !== undefined && hasCall(spine, call)) ??
      all.find((one) => one.key === above);
    const placed = left.filter(
      (one) => (one.call === undefined && one.above === undefined) || parentOf(one) !== undefined,
    );
    const now = placed.length > 0 ? placed : firstOf(left);
    for (const one of now) {
      const { call, context, guess, came, own } = one;
      const parent = parentOf(one) ?? all[0];
      if (parent === undefined) continue;
      const before = context === undefined ? [] : contextOf(parent.spine, { context, call });
      const inherits = before.length > 0 ? ({ inherits: true } as const) : {};
      const edge = { key: parent.key, ...(call !== undefined && { call }), ...inherits };
      const [agent, ...branches] = own.conversations.map((one) => behind(parent, before, one));
      if (agent === undefined) continue;
      const received = came && receivedIn(parent.spine, came);
      all.push({ ...agent, parent: edge, ...(received !== undefined && { received }) }, ...branches);
      derived.push(...own.derived);
      if (guess !== undefined)
        derived.push({ conversation: agent.key, of: agent.key, from: parent.key, ...guess });
    }
    left = left.filter((one) => !now.includes(one));
  }
  return { conversations: all, derived };
}

/** Of subagents whose calls are not here those that no other of them called, or all where they call each other in a circle. */
function firstOf(agents: readonly PlannedAgent[]): readonly PlannedAgent[] {
  const first = agents.filter(
    ({ call, above }) =>
      !agents.some(({ own }) =>
        own.conversations.some(
          ({ key, spine }) => key === above || (call !== undefined && hasCall(spine, call)),
        ),
      ),
  );
  return first.length > 0 ? first : agents;
}

/** The key of the draft of a conversation with which that got the result of a subagent. */
function receivedIn(spine: readonly Draft[], { notified, call }: Came): string | undefined {
  const result = call === undefined ? undefined : `:${keyPart(call)}`;
  const draft = spine.find(({ kind, key = '' }) =>
    notified === undefined
      ? kind === 'tool-result' && result !== undefined && key.endsWith(result)
      : key === notified,
  );
  return draft?.key;
}

/**
 * What a conversation had settled at one of its records, and before a call that was open there. The model had been given all
 * that precedes the answer with the call: what was attached to a prompt, as that record may be, is before the prompt here.
 */
function contextOf(
  spine: readonly Draft[],
  { context, call }: { readonly context: string; readonly call: string | undefined },
): readonly Draft[] {
  const message = call === undefined ? -1 : messageWith(spine, call);
  let end = message === -1 ? spine.findLastIndex(({ meta }) => meta?.uuid === context) + 1 : message;
  // Nothing is forked between a call and its result.
  while (end > 0 && spine[end]?.kind === 'tool-result') end -= 1;
  return spine.slice(0, end);
}

/** A conversation with what it knows from its parent before it, and what is known of that. */
function behind(
  { keeps, exported }: ConversationPlan,
  before: readonly Draft[],
  one: ConversationPlan,
): ConversationPlan {
  const { length } = before;
  if (length === 0) return one;
  return {
    ...one,
    spine: [...before, ...one.spine],
    keeps: new Map([...keeps, ...one.keeps]),
    ...(exported !== undefined && { exported }),
    settled: length + one.settled,
    ...(one.shared !== undefined && { shared: length + one.shared }),
    asides: one.asides.map(({ draft, after }) => ({ draft, after: length + after })),
  };
}
