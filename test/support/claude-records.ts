import { type SqliteTapeStore, view } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

type Raw = { readonly [field: string]: unknown };

/** What a record is, by the fields that tell its kind: `attachment/file`, `system/compact_boundary`, `user`. */
function recordKind({ type, subtype, data, attachment }: Raw): string {
  if (type === 'system') return `system/${subtype}`;
  if (type === 'progress') return `progress/${raw(data).type}`;
  if (type === 'attachment') return `attachment/${raw(attachment).type}`;
  return String(type);
}

/**
 * Why a record is in no view, for those that never are: the model did not get it. The page of the format says the same. A
 * record whose kind is not here is in a view, or a test fails.
 */
export const besideTheView: Readonly<Record<string, string>> = {
  'agent-color': 'how the tool shows a subagent',
  'agent-name': 'the name of the session in the tool',
  'agent-setting': 'the agent that the session runs as',
  'ai-title': 'the title of the session that a model wrote; the last one is the title here',
  'api-request': 'what a request had beside its messages; those are in the view',
  'api-request-blob': 'a message as it was sent; it is in the view as it was recorded',
  'api-request-shape': 'the system prompt and the tools of requests',
  'atis-latch': 'a setting of the tool',
  'attachment/command_permissions': 'what a command may do',
  'attachment/prompt_snapshot': 'the system prompt of requests',
  'attachment/session_context': 'it said nothing to the model',
  'cost-state': 'sums of the tool; the tokens are with the answers',
  'custom-title': 'the title that the user gave; the last one is the title here',
  'file-history-delta': 'what the tool needs to undo its changes of files',
  'file-history-snapshot': 'what the tool needs to undo its changes of files',
  'fork-context-ref': 'the place up to which a subagent knows what its parent knew: there it is forked',
  'last-prompt': 'the record at which the conversation ends',
  mode: 'a setting of the tool',
  'permission-mode': 'a setting of the tool',
  'pr-link': 'a link to a pull request',
  'progress/bash_progress': 'what a running command has printed so far; the result has all of it',
  'progress/hook_progress': 'a hook that runs',
  'progress/mcp_progress': 'a tool of a server that runs',
  'queue-operation': 'a prompt that began or ended to wait; what the model got of it is a record of its own',
  result: 'how a subagent of a workflow ended, in its journal',
  started: 'which subagent a workflow started, in its journal',
  summary: 'a title of this session or of another one',
  'system/agents_killed': 'subagents that the user stopped',
  'system/api_error': 'a call that failed and was tried again',
  'system/away_summary': 'a note for the user who came back',
  'system/informational': 'a note for the user',
  'system/stop_hook_summary': 'hooks that ran at the end of a turn',
  'system/turn_duration': 'how long a turn took',
  tag: 'a tag of the session in the tool',
  'tools-used': 'the names of tools that were used',
  'worktree-state': 'the worktree of the session in the tool',
};

/** What the views of some sessions say: texts, thoughts, and the ids of calls and results. */
class Shown {
  readonly #texts = new Set<string>();
  readonly #calls = new Set<string>();
  readonly #results = new Set<string>();
  readonly #files = new Set<string>();

  add(payload: unknown): void {
    const { content, role, toolCallId, state } = raw(payload);
    if (toolCallId !== undefined) this.#results.add(String(toolCallId));
    if (typeof raw(state).summary === 'string') this.#texts.add(String(raw(state).summary));
    for (const part of role === undefined ? [] : list(content)) {
      if (part.type === 'tool-call') this.#calls.add(String(part.toolCallId));
      else if (part.type === 'tool-result') this.#results.add(String(part.toolCallId));
      else if (part.type === 'file') this.#files.add(String(part.mediaType));
      else this.#texts.add(String(part.text));
    }
  }

  /** Whether all that a record says is there; a block without content says nothing. */
  has(record: Raw): boolean {
    const blocks = blocksOf(record);
    if (record.isCompactSummary === true) {
      const summary = blocks.map(({ text }) => text).join('\n');
      return this.#texts.has(summary);
    }
    return blocks.every((block) => this.#hasBlock(block));
  }

  #hasBlock({ type, id, tool_use_id, text, thinking, signature, data, source }: Raw): boolean {
    switch (type) {
      case 'text':
        return text === '' || this.#texts.has(String(text));
      case 'thinking':
        return (thinking === '' && (signature ?? '') === '') || this.#texts.has(String(thinking));
      case 'redacted_thinking':
        return data !== undefined && this.#texts.has('');
      case 'tool_use':
      case 'server_tool_use':
        return this.#calls.has(String(id));
      case 'image':
      case 'document':
        return this.#files.has(String(raw(source).media_type));
      default:
        return this.#results.has(String(tool_use_id));
    }
  }
}

/** The records that are in no view of some sessions and of which no reason is known why, each in words. */
export function unexplained(
  store: SqliteTapeStore,
  { names, records }: { readonly names: Iterable<string>; readonly records: readonly Raw[] },
): readonly string[] {
  const shown = new Shown();
  for (const name of names) {
    const entries = [...store.views.entries(name, { policy: 'full' })];
    const read = view(entries, { policy: 'full' }).explain();
    const inView = new Set(read.flatMap(({ seq, in: isShown }) => (isShown ? [seq] : [])));
    // A view shows the state of its last boundary only.
    for (const { seq, mark, payload } of entries)
      if (inView.has(seq) || mark === 'boundary') shown.add(payload);
  }
  return records.flatMap((record, i) => {
    const kind = recordKind(record);
    if (kind in besideTheView || kind === 'system/compact_boundary') return [];
    return shown.has(record) ? [] : [`${i + 1}: ${kind} ${JSON.stringify(record).slice(0, 300)}`];
  });
}

/** What a record says: its message, that of a subagent within it, or what was rendered of an attachment. */
function blocksOf(record: Raw): readonly Raw[] {
  const { type, data, attachment, rendered, content } = record;
  if (type === 'progress') return blocksOf({ type: 'user', ...raw(raw(data).message) });
  const isForUser = record.isDisplayOnly === true;
  if (type === 'system')
    return typeof content === 'string' && !isForUser ? [{ type: 'text', text: content }] : [];
  if (type !== 'attachment') return blocksIn(raw(record.message).content);
  if (Array.isArray(rendered)) return rendered.flatMap((one) => blocksIn(raw(one).content));
  const { prompt, content: attached } = raw(attachment);
  const { file } = raw(attached);
  const media = raw(file).type;
  return media === undefined ? blocksIn(prompt) : [{ type: 'image', source: { media_type: media } }];
}

function blocksIn(content: unknown): readonly Raw[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : list(content);
}

function list(value: unknown): readonly Raw[] {
  return Array.isArray(value) ? value.map(raw) : [];
}

function raw(value: unknown): Raw {
  return isObject(value) ? value : {};
}
