import type { DeckConfig, ModelSpec, RuleTexts } from '@tapedeck/runtime';

/**
 * A configuration without what names files, has tools, starts programs, sends to addresses, shows secrets or says who answers
 * whom, and the fields that were left out. Pure.
 */
export function withoutPaths(config: DeckConfig): {
  readonly config: DeckConfig;
  readonly ignored: readonly string[];
} {
  const { model, summarizer, titles, prompt, redact, builtinTools, mcpServers, routes, personas, ...others } =
    config;
  const { projectPermissions, ...rest } = others;
  const rules = stricterOf(projectPermissions);
  const { project, skills, ...parts } = prompt ?? {};
  const ignored = [
    ...(isScript(model) ? ['model'] : []),
    ...(isScript(summarizer) ? ['summarizer'] : []),
    ...(isScript(titles) ? ['titles'] : []),
    ...(typeof project === 'string' ? ['prompt.project'] : []),
    ...(skills !== undefined ? ['prompt.skills'] : []),
    ...(redact !== undefined ? ['redact'] : []),
    ...(rules.isWhole ? [] : ['permissions']),
    ...(builtinTools !== undefined ? ['builtin_tools'] : []),
    ...(mcpServers !== undefined ? ['mcp_servers'] : []),
    ...(routes !== undefined ? ['routes'] : []),
    ...(personas !== undefined ? ['personas'] : []),
  ];
  const usable: DeckConfig = {
    ...rest,
    ...(rules.kept.length > 0 && { projectPermissions: rules.kept }),
    ...(model !== undefined && !isScript(model) && { model }),
    ...(summarizer !== undefined && !isScript(summarizer) && { summarizer }),
    ...(titles !== undefined && !isScript(titles) && { titles }),
    ...(prompt !== undefined && {
      prompt: { ...parts, ...(project !== undefined && typeof project !== 'string' && { project }) },
    }),
  };
  return { config: usable, ignored };
}

/**
 * The rules that only make stricter, one in each text, and whether others were left out: what another user allows, this one
 * does not. Of `trusted` that is what it asks about; `sandboxed` allows no more than there is without rules.
 */
function stricterOf(rules: RuleTexts | undefined): {
  readonly kept: readonly string[];
  readonly isWhole: boolean;
} {
  const lines = [rules ?? []].flat().flatMap((text) =>
    text
      .split(/\r?\n/)
      .map((line) => line.trim())
      .filter((line) => line !== '' && !line.startsWith('#')),
  );
  const kept = lines.flatMap((line) => {
    if (line === 'trusted') return ['ask write(**)', 'ask exec(*)'];
    return line === 'sandboxed' || /^(?:deny|ask)\b/.test(line) ? [line] : [];
  });
  return { kept, isWhole: kept.join('\n') === lines.join('\n') };
}

function isScript(model: ModelSpec | undefined): boolean {
  return typeof model === 'string' && model.startsWith('script:');
}
