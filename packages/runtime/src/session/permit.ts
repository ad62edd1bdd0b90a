import type { Json } from '@tapedeck/tape';
import { quote } from '@tapedeck/tape/internal';
import { nearNames } from '@tapedeck/tape/store';
import { messageOf, SessionError } from '../errors.ts';
import type { Permit, Permits } from '../terms/permits.ts';
import { type Ancestry, usedTools } from '../terms/terms.ts';
import { parseArguments, schemaOf } from '../tools/schema.ts';
import { type DeckTools, toolOf } from '../tools/traits.ts';

/** A call of a tool that might be made. */
export interface PossibleCall {
  readonly tool: string;
  readonly input?: Json;
}

/** The longest name to which near ones are looked for. */
const nameMax = 200;

/**
 * What would become of a call: what rules say of it, unless the session may not use the tool, or the tool asks by itself.
 * @throws SESSION_NO_TOOL; SESSION_BAD_INPUT for arguments that the tool does not take; SESSION_BAD_CONFIG for a tool
 *   that cannot be offered
 */
export async function permitOf(
  { line, permits, tools }: { readonly line: Ancestry; readonly permits: Permits; readonly tools: DeckTools },
  { tool: name, input = {} }: PossibleCall,
): Promise<Permit> {
  const [{ info }] = line;
  const act = `cannot decide on a call of ${quote(name)} in '${info.session}'`;
  const tool = toolOf(tools, name);
  const data = { session: info.session, tool: name };
  if (tool === undefined) {
    const known = Object.keys(tools);
    const near = name.length > nameMax ? [] : nearNames(name, known);
    throw new SessionError('SESSION_NO_TOOL', `${act}: there is no such tool`, {
      data: { ...data, tools: known, near },
    });
  }
  const allowed = usedTools(line);
  if (allowed !== undefined && !allowed.has(name)) {
    const permit = await permits.permit({ tool: name, input }, tool);
    return { ...toolAlone(permit, name), verdict: 'deny', fault: 'the session may not use the tool' };
  }
  // The provider, which runs the calls of such a tool, checks their arguments.
  const isRunThere = tool.type === 'provider' && tool.isProviderExecuted;
  const checked = isRunThere ? { value: input } : await parseArguments(tool, input);
  if ('fault' in checked)
    throw new SessionError('SESSION_BAD_INPUT', `${act}: ${checked.fault}`, {
      data: { ...data, field: 'input', schema: await schemaOf(name, tool) },
    });
  const permit = await permits.permit({ tool: name, input: checked.value }, tool);
  if (permit.verdict !== 'allow' || permit.isGranted) return permit;
  try {
    const { needsApproval } = tool;
    const asks =
      typeof needsApproval === 'function'
        ? await needsApproval(checked.value, { toolCallId: '', messages: [], context: {} })
        : needsApproval;
    if (asks !== true) return permit;
    return { ...toolAlone(permit, name), verdict: 'ask', scope: 'tool', offers: permit.toolOffers };
  } catch (error) {
    return { ...toolAlone(permit, name), verdict: 'deny', scope: 'tool', fault: messageOf(error) };
  }
}

/** A decision that is about the tool, and by no rule. */
function toolAlone({ rule: _, scope: __, session: ___, ...permit }: Permit, tool: string): Permit {
  return { ...permit, claim: tool, offers: [] };
}
