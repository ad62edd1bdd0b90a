import { SessionError } from '../errors.ts';
import type { DeckConfig } from './config.ts';

/**
 * Checks a configuration and returns the same value. The first check loads the schemas.
 * @param name the name of the configuration in the error message
 * @throws SESSION_BAD_CONFIG; `data.field` is the path of the first invalid field, such as `limits.maxSteps`,
 *   and empty when the value is not an object
 *
 * @example
 * ```ts
 * import { parseConfig, SessionError } from '@tapedeck/runtime';
 *
 * try {
 *   await parseConfig({ limits: { maxSteps: 0 } });
 * } catch (error) {
 *   if (!(error instanceof SessionError)) throw error;
 *   console.log(error.code, error.data.field); // SESSION_BAD_CONFIG limits.maxSteps
 * }
 * ```
 */
export async function parseConfig(value: unknown, name = 'this configuration'): Promise<DeckConfig> {
  const { configFault } = await import('./check.ts');
  const fault = configFault(value);
  if (fault === undefined) return value as DeckConfig;
  const { field, why, isUnknown } = fault;
  throw new SessionError(
    'SESSION_BAD_CONFIG',
    `cannot use ${name}: ${field}${field === '' ? '' : isUnknown ? ': ' : ' '}${why}`,
    { data: { field, why } },
  );
}
