import { isStandIn } from '../plan/output.ts';
import { areAlikeButSecrets, type Cleaning, isBeginningOf } from './alike-but-secrets.ts';
import type { Family } from './family.ts';
import { pathOf, type Step, stepIn } from './step.ts';

/**
 * Whether a session shows all that another one shows, which may end with an answer of which only a part had come, and the results
 * of calls that this had.
 * @param clean says what is the same without its secrets
 */
export function includes(family: Family, id: string, other: string, clean: Cleaning): boolean {
  const [one, part] = [family.member(id), family.member(other)];
  if (one === undefined || part === undefined) return false;
  let { end } = part;
  const results: Step[] = [];
  for (; end.before !== undefined && end.kind === 'tool-result'; end = end.before)
    if (!isStandIn(end.key)) results.push(end);
  const same = stepIn(one.end, end.count);
  if (same === undefined) return false;
  if (results.length > 0) {
    // More of them may have come, before these, too.
    const its = resultsOf(one.end, same);
    if (!results.every((own) => its.some((result) => isAlike(family, own, result, clean)))) return false;
  }
  if (same === end) return true;
  if (!isBegun(family, end, same, clean) && !isAlike(family, end, same, clean)) return false;
  for (let [own, its] = [end.before, same.before]; own !== its; [own, its] = [own.before, its.before])
    if (own === undefined || its === undefined || !isAlike(family, own, its, clean)) return false;
  return true;
}

/** The results that follow an entry among those up to another one. */
function resultsOf(end: Step, { count }: Step): readonly Step[] {
  let results: Step[] = [];
  for (let at: Step | undefined = end; at !== undefined && at.count > count; at = at.before)
    if (at.kind === 'tool-result') results.push(at);
    else results = [];
  return results;
}

/**
 * Whether each entry that a session shows is shown by one of some others, in whatever place.
 * @param clean says what is the same without its secrets
 */
export function areIn(family: Family, ids: readonly string[], other: string, clean: Cleaning): boolean {
  const shown = Map.groupBy(
    ids.flatMap((id) => pathOf(family.member(id))),
    ({ key }) => key,
  );
  const isIn = (step: Step) => {
    const isIt = (one: Step) =>
      one.kind === step.kind && (step.mark !== undefined || saySame(family, one, step, clean));
    return shown.get(step.key)?.some(isIt);
  };
  return pathOf(family.member(other)).every(isIn);
}

/** Whether two entries of a record are the same wherever they stand, apart from secrets that one of them has. */
function isAlike(family: Family, one: Step, other: Step, clean: Cleaning): boolean {
  const { key, kind, mark, name, kept } = one;
  const isIt = key === other.key && kind === other.kind && mark === other.mark && name === other.name;
  return isIt && kept === other.kept && saySame(family, one, other, clean);
}

function saySame(family: Family, one: Step, other: Step, clean: Cleaning): boolean {
  if (one.content === other.content) return true;
  const [entry, its] = [family.entryOf(one), family.entryOf(other)];
  return entry !== undefined && its !== undefined && areAlikeButSecrets(entry, its, clean);
}

/** Whether a message is the beginning of another one, which has more of the same record. */
function isBegun(family: Family, part: Step, whole: Step, clean: Cleaning): boolean {
  if (part.key !== whole.key || part.kind !== whole.kind || part.kind !== 'message') return false;
  const [begun, all] = [family.entryOf(part), family.entryOf(whole)];
  return begun !== undefined && all !== undefined && isBeginningOf(begun, all, clean);
}
