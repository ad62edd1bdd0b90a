import { anchor, type Draft, handoff, type JsonObject, note } from '@tapedeck/tape';
import { compactionRequested } from '../compaction/policy.ts';
import { jsonInput } from '../tools/json-input.ts';
import type { DeckTool, DeckTools, ToolTraits } from '../tools/traits.ts';
import { contextOf, sendAsAgent } from './delegate-tool.ts';
import { partsOf } from './parts.ts';
import type { Session } from './session.ts';

/** What a call of a tool of the tape runs with. */
interface TapeCall {
  readonly session: Session;
  readonly run: string;
  readonly toolCallId: string;
}

/** The most anchors that are listed. */
const anchorsMax = 50;

/**
 * The tools with which a model works with the tape of its own session: it searches it, marks and lists points, begins a new
 * view with a summary, has it summarised, and looks after its children. What they write comes on the tape after the results
 * of the answer. `delegationTools` has those that start children.
 *
 * @example
 * ```ts
 * import { delegationTools, openDeck, tapeTools } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * const tools = { ...tapeTools(), ...delegationTools() };
 * const store = openTapeStore(':memory:');
 * await using deck = await openDeck({ store, model: 'script:answers.json', tools });
 * const main = await deck.session('main');
 * console.log((await main.run('Plan the release.')).text); // Test, tag, publish.
 * ```
 */
export function tapeTools(): DeckTools {
  return {
    tape_search: tapeTool<{ text: string; limit?: number }>(
      'Search everything that this conversation ever said, also what is not shown any more. Returns positions with the text around the match.',
      { text: text('The text to find'), limit: { type: 'integer', minimum: 1, maximum: 100 } },
      { required: ['text'], safeToRepeat: true },
      async ({ text: wanted, limit = 20 }, { session }) => {
        const { hits, unsearched } = await storeOf(session).entries.search({
          text: wanted,
          session: session.id,
          limit,
        });
        return {
          hits: hits.map(({ seq, kind, name, snippet, session: owner, sessions }) => ({
            // Of a session that this one stands for: its positions are not those of this one.
            ...(!sessions.includes(session.name) && { session: owner }),
            seq,
            kind,
            ...(name !== undefined && { name }),
            snippet,
          })),
          ...(unsearched > 0 && { unsearched }),
        };
      },
    ),
    tape_anchors: tapeTool<{ name?: string; state?: JsonObject }>(
      'Mark this point with a name, to come back to or to fork from. Without a name, lists the last points.',
      {
        name: text('Name of the point, such as before-refactoring'),
        state: {
          type: 'object',
          properties: {},
          additionalProperties: {},
          description: 'Facts to keep with it',
        },
      },
      {},
      async ({ name, state = {} }, call) => {
        if (name !== undefined) return await append(call, anchor(name, state));
        const found: JsonObject[] = [];
        for await (const { seq, name: of = '' } of storeOf(call.session).entries.read(call.session.id, {
          kind: 'anchor',
        })) {
          found.push({ seq, name: of });
          if (found.length > anchorsMax) found.shift();
        }
        return { anchors: found };
      },
    ),
    tape_handoff: tapeTool<{ name: string; summary: string }>(
      'Begin anew: after this answer you see your summary in place of all that was said before. Nothing is lost; tape_search finds it.',
      {
        name: text('Name of the point, such as design-done'),
        summary: text(
          'All that you need to go on: the goal, what is done, decided and open, and what was asked',
        ),
      },
      { required: ['name', 'summary'] },
      async ({ name, summary }, call) => await append(call, handoff(name, { summary })),
    ),
    tape_compact: tapeTool<{ focus?: string }>(
      'Have a summary take the place of what was said before the last message of the user, before your next step.',
      { focus: text('What the summary concentrates on', 16_000) },
      {},
      async ({ focus }, call) =>
        await append(
          call,
          note(compactionRequested, { run: call.run, ...(focus !== undefined && { focus }) }),
        ),
    ),
    tape_children: tapeTool<{ action: 'status' | 'cancel' | 'message'; child?: string; message?: string }>(
      'Look after the agents that you started: the status of all or of one, cancel one, or send it a message.',
      {
        action: { type: 'string', enum: ['status', 'cancel', 'message'] },
        child: text('Name of one that you started; status without it lists all'),
        message: text('What to send'),
      },
      { required: ['action'], target: 'child' },
      async (input, call) => await lookAfter(input, call),
    ),
  };
}

async function lookAfter(
  { action, child, message }: { action: string; child?: string; message?: string },
  { session, toolCallId }: TapeCall,
): Promise<unknown> {
  if (action === 'status') {
    const named = child === undefined ? undefined : (await session.child(child)).id;
    const children = await storeOf(session).sessions.list({ parent: session.id, all: true });
    return {
      children: children
        .filter(({ id }) => named === undefined || id === named)
        .map(({ session: name, lifecycle, task, head }) => ({
          session: name,
          lifecycle,
          ...(task !== undefined && { task }),
          head,
        })),
    };
  }
  if (child === undefined) throw new Error(`cannot ${action}: name a child`);
  const other = await session.child(child);
  if (action === 'cancel') {
    await other.abort(`${session.name} cancelled it`);
    return { session: other.name, cancelled: true };
  }
  if (message === undefined) throw new Error(`cannot send to '${child}': there is no message`);
  return await sendAsAgent(session, other, { text: message, toolCallId });
}

/** Leaves entries for the session, which takes them after the results of the answer. A repeated call leaves them once. */
async function append(
  { session, run, toolCallId }: TapeCall,
  draft: Draft,
): Promise<{ readonly state: 'queued' }> {
  await storeOf(session).inbox.post(session.id, {
    body: { type: 'append', drafts: [draft] },
    key: `tool:${run}:${toolCallId}`,
  });
  return { state: 'queued' };
}

function storeOf(session: Session) {
  const parts = partsOf.get(session);
  if (parts === undefined) throw new TypeError('the session is of no deck');
  return parts.store;
}

const text = (description: string, maxLength?: number): JsonObject => ({
  type: 'string',
  minLength: 1,
  ...(maxLength !== undefined && { maxLength }),
  description,
});

function tapeTool<I>(
  description: string,
  properties: JsonObject,
  { required = [], ...traits }: ToolTraits & { readonly required?: readonly string[] },
  execute: (input: I, call: TapeCall) => Promise<unknown>,
): DeckTool {
  return {
    description,
    inputSchema: jsonInput<I>({
      type: 'object',
      properties,
      required: [...required],
      additionalProperties: false,
    }),
    paths: {},
    ...traits,
    execute: async (input: I, { toolCallId, context }: { toolCallId: string; context: unknown }) =>
      await execute(input, { ...contextOf(context), toolCallId }),
  } as unknown as DeckTool;
}
