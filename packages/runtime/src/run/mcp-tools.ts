import type { Draft } from '@tapedeck/tape';
import { driftText, serverNotes } from '../mcp/drift.ts';
import type { Loan, Wanted } from '../mcp/servers.ts';
import { prefixOf } from '../mcp/spec.ts';
import { openPermits, type Permits } from '../terms/permits.ts';
import { type Ancestry, usedTools } from '../terms/terms.ts';
import { toolOf } from '../tools/traits.ts';
import { toolsOf } from './instructions.ts';
import type { RunOptions } from './options.ts';
import type { WorkerParts } from './parts.ts';

/** Whose calls the servers of a run would answer. */
export interface McpSubject {
  readonly line: Ancestry;
  readonly senders: readonly string[];
}

/**
 * Borrows the MCP servers of which a session may call a tool. Tools of a run take the place of those of the deck, also of
 * these.
 */
export async function borrowServers(
  parts: WorkerParts,
  subject: McpSubject,
  { options, signal }: { readonly options: RunOptions; readonly signal: AbortSignal },
): Promise<Loan | undefined> {
  const { mcp, config } = parts;
  if (mcp === undefined || options.tools !== undefined || options.useTools === false) return undefined;
  const callable = await callableServers(parts, subject);
  // A child that inherits everything is offered what its parent is, for the cache of the provider.
  const isWhole = subject.line[0].origin.terms.context === 'whole';
  const wanted: readonly Wanted[] = Object.keys(config.mcpServers ?? {}).flatMap((name) => {
    const start = callable.includes(name);
    return start || isWhole ? [{ name, start }] : [];
  });
  return wanted.length === 0 ? undefined : await mcp.lend(wanted, signal);
}

/** Whether a run with these options can have a tool of this name. Starts no server. */
export function canHaveTool(
  { config, cwd }: Pick<WorkerParts, 'config' | 'cwd'>,
  options: Pick<RunOptions, 'tools' | 'useTools'>,
  name: string,
): boolean {
  if (toolOf(toolsOf({ config, cwd }, options), name) !== undefined) return true;
  const isDeck = options.tools === undefined && options.useTools !== false;
  return isDeck && Object.keys(config.mcpServers ?? {}).some((server) => name.startsWith(prefixOf(server)));
}

/** The servers of which a session may call a tool: its ceiling has one, and its rules do not deny all. */
export async function callableServers(
  parts: Pick<WorkerParts, 'store' | 'home' | 'config' | 'env' | 'cwd'>,
  { line, senders }: McpSubject,
): Promise<readonly string[]> {
  const allowed = usedTools(line);
  const permits = await openPermits(parts, { line, workspace: undefined }, senders);
  const found: string[] = [];
  for (const name of Object.keys(parts.config.mcpServers ?? {})) {
    const prefix = prefixOf(name);
    const tools =
      allowed === undefined
        ? examples(prefix, permits)
        : [...allowed].filter((one) => one.startsWith(prefix));
    if (await mayCallOne(tools, permits)) found.push(name);
  }
  return found;
}

async function mayCallOne(tools: readonly string[], permits: Permits): Promise<boolean> {
  if (!permits.isRuled) return tools.length > 0;
  for (const tool of tools)
    if ((await permits.permit({ tool, input: {} }, {})).verdict !== 'deny') return true;
  return false;
}

/**
 * Names of tools of a server whose tools are not known yet: one that only rules about any of them are about, and one for
 * each rule that can be about some.
 */
function examples(prefix: string, { lineage }: Permits): readonly string[] {
  const patterns = new Set(
    lineage.flatMap(({ rules }) =>
      rules.flatMap(({ kind, pattern }) => (kind === 'tool' || kind === 'opaque' ? [pattern] : [])),
    ),
  );
  const some = [...patterns].flatMap((pattern) => {
    const [head = '', ...rest] = pattern.split('*');
    const name = head + rest.join('');
    if (name.startsWith(prefix)) return [name];
    return rest.length > 0 && prefix.startsWith(head) ? [`${prefix}x${rest.join('')}`] : [];
  });
  return [`${prefix}x`, ...some];
}

/** The notes about the tools of borrowed servers that are not those of the last run, and what to warn of. */
export async function serverFacts(
  { store }: Pick<WorkerParts, 'store'>,
  session: string,
  { run, loan }: { readonly run: string; readonly loan: Loan | undefined },
): Promise<{ readonly drafts: readonly Draft[]; readonly warnings: readonly string[] }> {
  const drafts: Draft[] = [];
  const warnings = [...(loan?.warnings ?? [])];
  for (const [server, digests] of loan?.digests ?? []) {
    const notes = await serverNotes(store, session, { run, server, digests });
    drafts.push(...notes.drafts);
    if (notes.drift !== undefined) warnings.push(driftText(notes.drift));
  }
  return { drafts, warnings };
}
