import { copyCheckout, type MutantSize } from './checkout.ts';
import { type Mutant, mutants } from './mutants.ts';

/**
 * Puts every known bug in, one after another, and sees that its test fails, and that it passes without: at the size
 * of a push, and where that misses it, at the full one. Names given as arguments choose bugs. Ends with 1 when the
 * full size misses one.
 */
const chosen = process.argv.slice(2);
const wanted = mutants.filter(({ name }) => chosen.length === 0 || chosen.includes(name));
using checkout = copyCheckout();
const sound = new Map<string, boolean>();

function passesWithout(mutant: Mutant, size: MutantSize): boolean {
  const key = `${size} ${mutant.test} ${mutant.only ?? ''}`;
  const known = sound.get(key);
  if (known !== undefined) return known;
  const { passed, failed } = checkout.run(mutant, size);
  sound.set(key, passed > 0 && failed === 0);
  return passed > 0 && failed === 0;
}

type Verdict = 'caught' | 'caught at full size only' | 'MISSED' | 'FAILS WITHOUT THE BUG TOO';

/** The outcome of a bug at one size. */
function tried(mutant: Mutant, size: MutantSize): Exclude<Verdict, 'caught at full size only'> {
  const { failed, passed, output } = checkout.runWith(mutant, size);
  if (passed + failed === 0) process.stdout.write(output);
  if (failed === 0) return 'MISSED';
  return passesWithout(mutant, size) ? 'caught' : 'FAILS WITHOUT THE BUG TOO';
}

function verdictOn(mutant: Mutant): Verdict {
  const push = tried(mutant, 'push');
  if (push !== 'MISSED') return push;
  const full = tried(mutant, 'full');
  return full === 'caught' ? 'caught at full size only' : full;
}

const verdicts = wanted.map((mutant) => {
  const verdict = verdictOn(mutant);
  process.stdout.write(`${verdict} ${mutant.name} (${mutant.test})\n`);
  return { name: mutant.name, verdict };
});
const namesOf = (verdict: Verdict) =>
  verdicts.filter((one) => one.verdict === verdict).map(({ name }) => name);
const late = namesOf('caught at full size only');
const caught = namesOf('caught').length + late.length;
process.stdout.write(
  `${caught} of ${wanted.length} known bugs are caught, ${late.length} at full size only\n`,
);
for (const name of late) process.stdout.write(`missed by a push: ${name}\n`);
process.exitCode = caught === wanted.length ? 0 : 1;
