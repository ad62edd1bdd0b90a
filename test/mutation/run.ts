import { copyCheckout } from './checkout.ts';
import { type Mutant, mutants } from './mutants.ts';

/**
 * Puts every known bug in, one after another, and sees that its test fails, and that it passes without. Names given as
 * arguments choose bugs. Ends with 1 when one was not caught.
 */
const chosen = process.argv.slice(2);
const wanted = mutants.filter(({ name }) => chosen.length === 0 || chosen.includes(name));
using checkout = copyCheckout();
const sound = new Map<string, boolean>();

function passesWithout(mutant: Mutant): boolean {
  const key = `${mutant.test} ${mutant.only ?? ''}`;
  const known = sound.get(key);
  if (known !== undefined) return known;
  const { passed, failed } = checkout.run(mutant);
  sound.set(key, passed > 0 && failed === 0);
  return passed > 0 && failed === 0;
}

let missed = 0;
for (const mutant of wanted) {
  const { failed, passed, output } = checkout.runWith(mutant);
  const verdict = failed === 0 ? 'MISSED' : passesWithout(mutant) ? 'caught' : 'FAILS WITHOUT THE BUG TOO';
  if (passed + failed === 0) process.stdout.write(output);
  if (verdict !== 'caught') missed += 1;
  process.stdout.write(`${verdict.padEnd(7)} ${mutant.name} (${mutant.test})\n`);
}
process.stdout.write(`${wanted.length - missed} of ${wanted.length} known bugs are caught\n`);
process.exitCode = missed === 0 ? 0 : 1;
