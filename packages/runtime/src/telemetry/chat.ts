import type { Attributes } from '@opentelemetry/api';
import type { Usage } from '../usage/usage.ts';

/** The provider of a model, as the conventions name it: `anthropic` for `anthropic.messages`. */
export function modelAttributes({
  provider,
  model,
}: {
  readonly provider?: string;
  readonly model: string;
}): Attributes {
  return {
    ...(provider !== undefined && { 'gen_ai.provider.name': provider.split('.')[0] ?? provider }),
    'gen_ai.request.model': model,
  };
}

/** The tokens of one call or of several: the conventions count cached ones and reasoning in the sums. */
export function usageAttributes({ input, output, reasoning, cacheRead, cacheWrite }: Usage): Attributes {
  return {
    'gen_ai.usage.input_tokens': input + cacheRead + cacheWrite,
    'gen_ai.usage.output_tokens': output + reasoning,
    ...(cacheRead > 0 && { 'gen_ai.usage.cache_read.input_tokens': cacheRead }),
    ...(cacheWrite > 0 && { 'gen_ai.usage.cache_creation.input_tokens': cacheWrite }),
    ...(reasoning > 0 && { 'gen_ai.usage.reasoning.output_tokens': reasoning }),
  };
}
