import type { JsonObject } from '@tapedeck/tape';
import { SessionError } from '../errors.ts';
import { assertSettings, type CallSettings, mergeSettings } from '../model/call-settings.ts';
import { assertModelName } from '../model/name.ts';
import type { RuleTexts } from '../permissions/rule.ts';
import { ruleTexts } from '../terms/permits.ts';
import { assertCeiling } from '../terms/terms.ts';

/** What a new root session keeps, as a caller gives it. */
interface Given {
  readonly model: string | undefined;
  readonly settings: CallSettings | undefined;
  readonly instructions: string | undefined;
  readonly tools: readonly string[] | undefined;
  readonly uses: readonly string[] | undefined;
  readonly rules: RuleTexts | undefined;
  readonly record: 'raw' | undefined;
}

/**
 * The settings that the first entry of a root records; undefined without any.
 * @param act what cannot be done: `create 'main'`
 * @throws SESSION_NO_MODEL, SESSION_BAD_INPUT
 */
export function keptSettings(
  act: string,
  { model, settings, instructions, tools, uses, rules, record }: Given,
): JsonObject | undefined {
  assertModelName(model);
  assertSettings(settings, act);
  const refuse = (why: string) =>
    new SessionError('SESSION_BAD_INPUT', `cannot ${act}: ${why}`, { data: {} });
  if (instructions !== undefined && typeof instructions !== 'string')
    throw refuse('instructions must be a text');
  for (const [field, names] of Object.entries({ tools, uses }))
    if (names !== undefined && !(Array.isArray(names) && names.every((name) => typeof name === 'string')))
      throw refuse(`${field} must be a list of names`);
  if (record !== undefined && record !== 'raw') throw refuse('record must be raw');
  assertCeiling([], { tools, uses }, act);
  const call = mergeSettings(settings);
  const kept: JsonObject = {
    ...(instructions !== undefined && { instructions }),
    ...(model !== undefined && { model }),
    ...(Object.keys(call).length > 0 && { call: call as JsonObject }),
    ...(tools !== undefined && { tools: [...tools] }),
    ...(uses !== undefined && { uses: [...uses] }),
    ...(rules !== undefined && { rules: ruleTexts(rules, act) }),
    ...(record !== undefined && { record }),
  };
  return Object.keys(kept).length === 0 ? undefined : kept;
}
