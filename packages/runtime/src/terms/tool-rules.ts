import type { ToolTraits } from '../tools/traits.ts';
import type { PermitParts } from './permits.ts';

/** The rules of a deck; where it has none, neither its own nor those of its home, those that its tools bring. Pure. */
export function withToolRules<C extends PermitParts['config']>(
  config: C,
  tools: Readonly<Record<string, Pick<ToolTraits, 'rules'>>> | undefined,
): C {
  if (config.permissions !== undefined || config.projectPermissions !== undefined) return config;
  const rules = [...new Set(Object.values(tools ?? {}).flatMap((tool) => tool.rules ?? []))];
  return rules.length === 0 ? config : { ...config, permissions: rules };
}
