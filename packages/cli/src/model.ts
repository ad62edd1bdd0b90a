import { UsageError } from './errors.ts';
import type { Io } from './io.ts';

/**
 * The model to run: `--model`, else `$TAPE_MODEL`.
 * @throws UsageError when neither is there
 */
export function needModelSpec(given: string | undefined, { env }: Pick<Io, 'env'>): string {
  const spec = given ?? env.TAPE_MODEL ?? '';
  if (spec !== '') return spec;
  throw new UsageError('cannot run: no model was given', {
    hint: 'give one with: --model openai-compatible/MODEL, or --model script:FILE',
  });
}
