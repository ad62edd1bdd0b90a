import { entryVerbs } from './entry.ts';
import { forkVerbs } from './fork.ts';
import type { Contracts } from './form.ts';
import { historyVerbs } from './history.ts';
import { homeVerbs } from './home.ts';
import { runVerbs } from './run.ts';
import { sessionVerbs } from './session.ts';
import { usageVerbs } from './usage.ts';

/** The contract of each verb, by its name. */
export const contract: Contracts = {
  ...homeVerbs,
  ...sessionVerbs,
  ...runVerbs,
  ...entryVerbs,
  ...forkVerbs,
  ...historyVerbs,
  ...usageVerbs,
};
