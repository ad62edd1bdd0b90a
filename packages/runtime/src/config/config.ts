/**
 * The configuration of a deck: its type and defaults (`config.ts`), its checks (`check.ts`), the calls of its hooks
 * (`hooks.ts`), and `shared.ts`, which is what most acts of a deck need. Where a configuration comes from is the
 * caller's: the command line reads files, a library passes an object. Imports `identity` and what lies below.
 */
import type { Json, Redact, ViewPolicy } from '@tapedeck/tape';
import type { ViewWindow } from '@tapedeck/tape/internal';
import type { Awaitable } from '@tapedeck/tape/store';
import { type BuiltinName, builtins } from '../builtins/builtins.ts';
import type { CompactionConfig } from '../compaction/policy.ts';
import type { Personas } from '../identity/persona.ts';
import type { Route } from '../identity/route.ts';
import type { McpServers } from '../mcp/spec.ts';
import { type CallSettings, mergeSettings } from '../model/call-settings.ts';
import type { ModelSpec } from '../model/spec.ts';
import type { RuleTexts } from '../permissions/rule.ts';
import type { PromptConfig } from '../prompt/config.ts';
import type { Sections } from '../prompt/system-prompt.ts';
import type { Decision } from '../stream/call.ts';
import type { Budget } from '../terms/terms.ts';
import { withToolRules } from '../terms/tool-rules.ts';
import type { DeckTools } from '../tools/traits.ts';
import type { CostOf } from '../usage/usage.ts';
import type { Hooks } from './hooks.ts';

/** The configuration that all sessions of a deck run with. */
export interface DeckConfig extends CompactionConfig {
  readonly model?: ModelSpec;
  /** Settings of its model calls. The settings of a session and of a run take precedence, one by one. */
  readonly settings?: CallSettings;
  /** The model that writes summaries. Default: the session's model. */
  readonly summarizer?: ModelSpec;
  /** The model that writes the title of a session after its first answer. Default: none, lists show the first prompt. */
  readonly titles?: ModelSpec;
  /** Tools of the AI SDK, by name. Children get them too. */
  readonly tools?: DeckTools;
  /**
   * Names of built-in tools to have beside those: `['read_file', 'search_files']`. As with `builtins()`, the rules of
   * `sandboxed` count where there are no others.
   */
  readonly builtinTools?: readonly BuiltinName[];
  /**
   * MCP servers, by name. The tools of `notes` are called `mcp_notes_…`, and are tools of the deck like any other. A server
   * is started when a session runs that may call one of them, and ended with the deck.
   */
  readonly mcpServers?: McpServers;
  /** The instructions that every model call receives. Without `prompt` they are the whole system prompt. */
  readonly instructions?: string | Sections;
  /** Further parts of the system prompt: project files, skills, environment, tools. */
  readonly prompt?: PromptConfig;
  readonly limits?: Limits;
  /**
   * What calls of tools may do, as rules: a text with one on each line, or a list of them; `yolo`, `trusted` and `sandboxed`
   * stand for lists. Without any rule, here or elsewhere, everything is allowed. Rules are no sandbox: they decide on what
   * tools say that they do.
   */
  readonly permissions?: RuleTexts;
  /** Further rules, which follow those of `permissions`: the command reads them from `config.yaml` of the home. */
  readonly projectPermissions?: RuleTexts;
  /** Limits a view to the newest entries after the last boundary. Default: all of them. */
  readonly view?: ViewWindow | readonly ViewWindow[];
  /**
   * Default budgets of a child: `child` for its own model calls, `tree` for the child and all its
   * descendants.
   */
  readonly budget?: { readonly child?: Budget; readonly tree?: Budget };
  /**
   * Returns the cost of a model call in a unit of your choice; `undefined` when unknown. `model` is the model
   * id.
   */
  readonly cost?: CostOf;
  /**
   * Called before a tool that needs approval runs. When it returns `undefined`, the call stays pending
   * approval.
   */
  readonly onApproval?: (request: ApprovalRequest) => Awaitable<Decision | undefined>;
  readonly hooks?: Hooks;
  /** Which session a delivery is for: the first route that matches it says so. See `Deck.route`. */
  readonly routes?: readonly Route[];
  /** Who the deck answers as, by names that the routes use. */
  readonly personas?: Personas;
  /**
   * Further secrets by name, such as a key that a model or a tool was made with: `{ SEARCH_KEY: key }`. Where one would
   * be written or published, `[secret SEARCH_KEY]` takes its place. Those of the environment need no mention.
   */
  readonly secrets?: Readonly<Record<string, string>>;
  /**
   * Where what has the form of a secret, such as `ghp_…`, is replaced by its kind: `true` (default) in outputs of tools
   * and in errors, `'all'` in all that is written, `false` nowhere. An object adds forms as regular expressions:
   * `{ in: 'results', patterns: { intranet: 'itk_[0-9a-f]{32}' } }`.
   */
  readonly redact?: Redact;
  /**
   * `raw`: the requests of all model calls and what the provider answers are kept in `logs/{ULID}/raw.jsonl` of the home,
   * without secrets. `none`: those of no session. Default: those of sessions that were made with `record: 'raw'`.
   */
  readonly record?: 'raw' | 'none';
}

/** Limits of a run. Omitted ones are those of `defaultLimits`. */
export interface Limits {
  /** The number of model calls after which a run is halted; `Infinity` for no limit (default 10). */
  readonly maxSteps?: number;
  /** Timeout of one tool call, in milliseconds (default 30,000). */
  readonly toolTimeoutMs?: number;
  /** The number of tool calls of one answer that run at once (default 10). */
  readonly concurrentTools?: number;
  /** The number of retries of a model call after a transient failure (default 2). */
  readonly retries?: number;
  /** The delay before the first retry, in milliseconds (default 1,000). It grows with each further one. */
  readonly retryDelayMs?: number;
  /**
   * The longest delay before a retry that a provider may request, in milliseconds (default 60,000). A longer one fails
   * the run at once with `SESSION_RETRY_LATER`.
   */
  readonly maxRetryAfterMs?: number;
  /** The number of forks between a session and its root (default 3); `Infinity` for no limit, as in those below. */
  readonly maxDepth?: number;
  /** The number of unfinished children of one session (default 32): delegated ones that are not merged or discarded. */
  readonly maxChildren?: number;
  /** The number of unfinished children below one root, at any depth (default 64). */
  readonly maxTree?: number;
  /** The number of children of one depth that this process runs at once (default 8). */
  readonly concurrentChildren?: number;
  /** The number of model calls that this process makes at once: for each provider, or by provider name. */
  readonly concurrentCalls?: number | Readonly<Record<string, number>>;
  /** The number of MCP servers that run at once (default 16). For one more, the one that was idle longest is ended. */
  readonly concurrentMcpServers?: number;
  /** How long an MCP server may take to start, and to list its tools, in milliseconds (default 30,000). */
  readonly mcpStartTimeoutMs?: number;
  /** The most bytes of an answer of an MCP server (default 4,194,304). A call with a larger one fails. */
  readonly mcpResultBytes?: number;
  /** How long an aborted run waits for tools to stop, in milliseconds (default 5,000). */
  readonly abortGraceMs?: number;
}

/** A tool call that needs approval. */
export interface ApprovalRequest {
  readonly session: string;
  /** The session's parent. */
  readonly parent?: string;
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: Json;
  /** All that the call claims to do: `read(/a/b)`, `exec(git log)`; its tool is a name alone. */
  readonly claims: readonly string[];
  /** What an answer can be given for, for good, narrowest first: `write(/a/b)`, `write(/a/**)`, `exec(git *)`. */
  readonly offers: readonly string[];
  /**
   * The sessions that sent the messages of the turn and whose rules ask: they ask again, whatever answer counts for good.
   * Absent where none does.
   */
  readonly askedFor?: readonly string[];
}

/** The default limits of a deck. */
export const defaultLimits: Required<Limits> = {
  maxSteps: 10,
  toolTimeoutMs: 30_000,
  concurrentTools: 10,
  retries: 2,
  retryDelayMs: 1_000,
  maxRetryAfterMs: 60_000,
  abortGraceMs: 5_000,
  maxDepth: 3,
  maxChildren: 32,
  maxTree: 64,
  concurrentChildren: 8,
  concurrentCalls: Number.POSITIVE_INFINITY,
  concurrentMcpServers: 16,
  mcpStartTimeoutMs: 30_000,
  mcpResultBytes: 4 * 1024 * 1024,
};

/**
 * Types a configuration: the default export of `tape.config.mts`. Returns its argument unchanged and
 * unchecked.
 *
 * @example
 * ```ts
 * import { defineDeck } from '@tapedeck/runtime';
 *
 * export default defineDeck({
 *   model: 'script:answers.json',
 *   instructions: 'Answer in one sentence.',
 *   limits: { maxSteps: 20 },
 * });
 * ```
 */
export function defineDeck(config: DeckConfig): DeckConfig {
  return config;
}

/**
 * A configuration with the built-in tools that it names, those of the program first, and with the rules that its tools
 * bring where it has none.
 */
export function withBuiltins({ builtinTools, ...config }: DeckConfig): DeckConfig {
  const tools =
    builtinTools === undefined ? config.tools : { ...builtins({ only: builtinTools }), ...config.tools };
  return withToolRules({ ...config, ...(tools !== undefined && { tools }) }, tools);
}

/** The limits of a configuration, completed with the defaults. */
export function limitsOf({ limits }: DeckConfig): Required<Limits> {
  return { ...defaultLimits, ...withoutGaps(limits) };
}

/** The view policy of the model calls of a deck. */
export function viewPolicyOf({ view = [] }: DeckConfig): ViewPolicy {
  return ['last-boundary', ...[view].flat()];
}

/** The sources of a configuration. */
export interface ConfigLayers {
  /** The command line. */
  readonly flags?: DeckConfig;
  /** `tape.config.mts`. */
  readonly file?: DeckConfig;
  /** `config.yaml` of the tape home. */
  readonly yaml?: DeckConfig;
}

/**
 * Merges the layers. The command line wins over the file, the file over the home. Limits and
 * settings merge one by one.
 */
export function mergeConfig({ flags = {}, file = {}, yaml = {} }: ConfigLayers): DeckConfig {
  const layers = [yaml, file, flags];
  const limits: Limits = Object.assign({}, ...layers.map((layer) => withoutGaps(layer.limits)));
  const settings = mergeSettings(...layers.map((layer) => layer.settings));
  const merged: DeckConfig = Object.assign({}, ...layers.map(withoutGaps));
  return {
    ...merged,
    ...(Object.keys(limits).length > 0 && { limits }),
    ...(Object.keys(settings).length > 0 && { settings }),
  };
}

/** Drops fields with the value `undefined`, which would override those of other layers. */
function withoutGaps<T extends object>(given: T | undefined): Partial<T> {
  return Object.fromEntries(
    Object.entries(given ?? {}).filter(([, value]) => value !== undefined),
  ) as Partial<T>;
}
