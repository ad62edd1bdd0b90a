import { type ConversationPlan, type ImportPlan, isAside, type PlacedAside } from './plan.ts';
import type { Transcript } from './transcript.ts';

/** The plan of a format that has one conversation in each file, and names that several may have. Pure. */
export function planOf(format: string, { session, drafts, counts, keeps }: Transcript): ImportPlan {
  const key = `${format}:${session}`;
  const spine = drafts.filter((draft) => !isAside(draft));
  const asides: PlacedAside[] = [];
  let after = 0;
  for (const draft of drafts) {
    if (isAside(draft)) asides.push({ draft, after });
    else after += 1;
  }
  const main: ConversationPlan = {
    ...{ key, kind: 'main', file: key, name: session, spine, settled: spine.length },
    ...{ keeps: keeps ?? new Map(), asides },
  };
  return {
    ...{ format, session, conversations: [main], derived: [] },
    ...{ counts: new Map([[key, counts]]), isNamed: true },
  };
}
