import type { DeckConfig, ModelSpec } from '@tapedeck/runtime';

/** A configuration without what names files, starts programs, sends to addresses or shows secrets, and the fields that were left out. Pure. */
export function withoutPaths(config: DeckConfig): {
  readonly config: DeckConfig;
  readonly ignored: readonly string[];
} {
  const { model, summarizer, titles, prompt, redact, mcpServers, ...rest } = config;
  const { project, skills, ...others } = prompt ?? {};
  const ignored = [
    ...(isScript(model) ? ['model'] : []),
    ...(isScript(summarizer) ? ['summarizer'] : []),
    ...(isScript(titles) ? ['titles'] : []),
    ...(typeof project === 'string' ? ['prompt.project'] : []),
    ...(skills !== undefined ? ['prompt.skills'] : []),
    ...(redact !== undefined ? ['redact'] : []),
    ...(mcpServers !== undefined ? ['mcp_servers'] : []),
  ];
  const usable: DeckConfig = {
    ...rest,
    ...(model !== undefined && !isScript(model) && { model }),
    ...(summarizer !== undefined && !isScript(summarizer) && { summarizer }),
    ...(titles !== undefined && !isScript(titles) && { titles }),
    ...(prompt !== undefined && {
      prompt: { ...others, ...(project !== undefined && typeof project !== 'string' && { project }) },
    }),
  };
  return { config: usable, ignored };
}

function isScript(model: ModelSpec | undefined): boolean {
  return typeof model === 'string' && model.startsWith('script:');
}
