import fc from 'fast-check';

/** A step is a number, which is not worth making smaller: how many there are is. */
const step = fc.noShrink(fc.nat(0x7fff_ffff));

/** The steps of a history; most are short. */
export const anySteps: fc.Arbitrary<readonly number[]> = fc.oneof(
  { weight: 4, arbitrary: fc.array(step, { minLength: 4, maxLength: 8, size: 'max' }) },
  { weight: 1, arbitrary: fc.array(step, { minLength: 9, maxLength: 36, size: 'max' }) },
);
