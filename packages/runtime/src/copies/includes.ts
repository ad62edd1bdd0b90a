import { isStandIn } from '../plan/output.ts';
import { areAlikeButSecrets, type Cleaning, isBeginningOf } from './alike-but-secrets.ts';
import type { Family } from './family.ts';
import { pathOf, type Step, stepIn } from './step.ts';

/**
 * Whether a session shows all that another one shows, which may end with an answer of which only a part had come.
 * @param clean says what is the same without its secrets
 */
export function includes(family: Family, id: string, other: string, clean: Cleaning): boolean {
  const [one, part] = [family.member(id), family.member(other)];
  if (one === undefined || part === undefined) return false;
  let { end } = part;
  while (end.before !== undefined && isStandIn(end.key)) end = end.before;
  const same = stepIn(one.end, end.count);
  if (same === end) return true;
  if (same === undefined) return false;
  if (!isBegun(family, end, same, clean) && !isAlike(family, end, same, clean)) return false;
  for (let [own, its] = [end.before, same.before]; own !== its; [own, its] = [own.before, its.before])
    if (own === undefined || its === undefined || !isAlike(family, own, its, clean)) return false;
  return true;
}

/**
 * Whether each entry that a session shows is shown by one of some others, in whatever place. Of its last answer only a part may
 * have come, with the results of some of its calls, and a prompt that waited may follow it: what stands for a result that had not
 * come says nothing.
 * @param clean says what is the same without its secrets
 */
export function areIn(family: Family, ids: readonly string[], other: string, clean: Cleaning): boolean {
  const shown = Map.groupBy(
    ids.flatMap((id) => pathOf(family.member(id))),
    ({ key }) => key,
  );
  const path = pathOf(family.member(other));
  const last = path.find(({ isAnswer }) => isAnswer);
  const isIn = (step: Step) => {
    const isIt = (one: Step) =>
      one.kind === step.kind && (step.mark !== undefined || saySame(family, one, step, clean));
    const its = shown.get(step.key);
    return its?.some(isIt) || (step === last && its?.some((one) => isBegun(family, step, one, clean)));
  };
  return path.every((step) => isStandIn(step.key) || isIn(step));
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
