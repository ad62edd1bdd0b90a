import fc from 'fast-check';
import { expect, test } from 'vitest';
import { faultsOf } from '../support/histories/faults.ts';
import { History } from '../support/histories/history.ts';
import { looksAt, targets } from '../support/histories/looks.ts';
import { anySteps } from '../support/histories/steps.ts';
import { Tally } from '../support/histories/tally.ts';
import { seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';

const seed = Number(process.env.TAPEDECK_SEED ?? 20261121);
const histories = sized(250, 400, 200_000);
const timeout = sized(300_000, 300_000, 6 * 3_600_000);

/**
 * How often each of these has to come about in ten thousand histories: a check that never meets a thing proves
 * nothing of it.
 */
const atLeast: Readonly<Record<string, number>> = {
  user: 5000,
  assistant: 5000,
  call: 3000,
  'calls side by side': 800,
  'a call with an id that others have': 2000,
  'a call that the provider ran': 1500,
  reasoning: 3000,
  'an answer that broke off': 600,
  'a result': 5000,
  'results in one message': 600,
  'a result of no call': 800,
  'no result': 800,
  empty: 800,
  aside: 800,
  event: 800,
  ui: 800,
  'x-': 800,
  instructions: 800,
  anchor: 800,
  handoff: 800,
  compaction: 800,
  prune: 800,
  omit: 800,
  rewind: 1500,
  unrewind: 150,
  fork: 1500,
  'fork of all': 400,
  'fork since a point': 500,
  'fork of a window': 250,
  'fresh fork': 100,
  'fork of what was inherited': 40,
  merge: 150,
  'merge again': 10,
  'merge refused': 150,
  'result of a child': 250,
  'a view last-boundary': 10_000,
  'a view full': 1500,
  'a view from an anchor': 1500,
  'a view from a position': 1000,
  'a view of a window': 1000,
  'a view as of an earlier position': 2500,
  'a view as of an inherited position': 200,
  'a view of a fork': 3000,
  'a view of a fork of a fork': 400,
  'a view with inherited entries': 1500,
  'a view of which a rewind hides a part': 2500,
  'a view that begins with a state': 2500,
  'a view with a kept tail': 1000,
  'a view with the intention': 1000,
  'a view with what a merge brought': 150,
  'a view with an output left out': 150,
  'a view with a message left out': 500,
  'a view with a call that nothing answered': 4000,
  'a view where the user begins': 4000,
  'a view where the user tells to go on': 1500,
  'a view where an answer is put in': 400,
  'a view with what only its reader can read': 1500,
  'a view with a call that its reader ran': 120,
  'a view with a call that another provider ran': 1500,
  'a view with calls side by side': 4000,
  ...Object.fromEntries(targets.map((target) => [`a view for ${JSON.stringify(target)}`, 1000])),
};

test('no history has a view that its reader would refuse, or that repeats an entry', {
  timeout,
}, () => {
  const tally = new Tally();
  let store = openStore();
  let n = 0;
  fc.assert(
    fc.property(anySteps, (steps) => {
      n += 1;
      // A store takes in many histories, and then another does, so that it stays small.
      if (n % 250 === 0) {
        if (n % 2000 === 0) expect([...store.verify()]).toEqual([]);
        store.close();
        store = openStore();
      }
      const history = new History(store, `h${n}`, tally);
      history.play(steps);
      for (const { session, looks } of looksAt(history.sessions, seeded(steps.reduce((a, b) => a ^ b)))) {
        const all = session.all();
        for (const look of looks) {
          const faults = faultsOf({ store, session, all, look, tally });
          if (faults.length > 0) expect({ session: session.name, ...look, faults }).toBeUndefined();
        }
      }
      const { found, written } = history.facts();
      if (found !== written) expect(found).toBe(written);
    }),
    { numRuns: histories, seed },
  );
  store.close();
  const rare = Object.entries(atLeast)
    .map(([what, least]) => ({ what, least: (least * histories) / 10_000, found: tally.of(what) }))
    .filter(({ least, found }) => found < least);
  expect(rare).toEqual([]);
});
