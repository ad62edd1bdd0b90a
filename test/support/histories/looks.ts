import type { Seq, Target, ViewPolicy } from '@tapedeck/tape';
import type { CopiedSession } from '../copying-model.ts';
import type { Random } from '../seeded.ts';

/** A way to look at a session, for some readers. */
export interface Look {
  readonly policy: ViewPolicy;
  readonly at: Seq;
  readonly targets: readonly Target[];
}

/** The targets of views: every provider whose rules differ, and none in particular. */
export const targets: readonly Target[] = [
  {},
  { textOnly: true },
  { provider: 'anthropic.messages' },
  { provider: 'anthropic' },
  { provider: 'openai.responses' },
  { provider: 'openai.chat' },
  { provider: 'openai-compatible.chat' },
  { provider: 'openai-compatible.chat', textOnly: true },
  { provider: 'google.generative-ai' },
  { provider: 'vertex.anthropic.messages' },
  { provider: 'azure.responses' },
  { provider: 'amazon-bedrock' },
];

/** Every policy that a session offers at a position. A new policy is added here. */
function policiesAt(session: CopiedSession, at: Seq, random: Random): readonly ViewPolicy[] {
  const names = ['A', 'B', 'task/one', 'compaction', 'session/start'];
  const named = names.filter((name) => session.anchors(name, at).length > 0);
  return [
    'last-boundary',
    'full',
    ...(named.length > 0 ? [{ fromAnchor: random.of(named) }] : []),
    { fromAnchor: session.floor + 1 + random.below(at - session.floor) },
    { window: 1 + random.below(6) },
    ['full', { window: 1 + random.below(12) }],
  ];
}

/** The name of a policy, whatever its options. */
export function policyName(policy: ViewPolicy): string {
  if (typeof policy === 'string') return policy;
  if (!('fromAnchor' in policy)) return 'of a window';
  return typeof policy.fromAnchor === 'number' ? 'from a position' : 'from an anchor';
}

/**
 * How the sessions of a history are looked at: one of them in several ways, now and as of an earlier position; the
 * others as they stand.
 */
export function looksAt(
  sessions: readonly CopiedSession[],
  random: Random,
): readonly { readonly session: CopiedSession; readonly looks: readonly Look[] }[] {
  const chosen = random.of(sessions);
  const look = (at: Seq, policy: ViewPolicy, readers = 1): Look => {
    const first = random.below(targets.length);
    const some = Array.from({ length: readers }, (_, i) => targets[(first + i * 5) % targets.length] ?? {});
    return { policy, at, targets: some };
  };
  return sessions.map((session) => {
    const { floor, head } = session;
    if (session !== chosen) return { session, looks: [look(head, 'last-boundary')] };
    const earlier = floor + 1 + random.below(head - floor);
    return {
      session,
      looks: [
        look(head, 'last-boundary', 2),
        look(head, random.of(policiesAt(session, head, random).slice(1))),
        look(earlier, random.of(policiesAt(session, earlier, random))),
      ],
    };
  });
}
