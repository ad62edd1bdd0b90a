import type { Decision, Run, RunResult, WaitingCall } from '@tapedeck/runtime';
import { safe } from '../escape.ts';
import { awaitedOf, type Face } from '../output/run.ts';
import { printAll } from '../session/background.ts';
import { callRows } from '../transcript/item-rows.ts';
import type { Editor } from './editor.ts';
import { placeOf, turnFace } from './face.ts';
import { showUnseen, type Talk } from './talk.ts';

/** A run that was started. A `Run` is a promise, so it is inside of an object. */
interface Started {
  readonly run: Run;
  /** The user left another call waiting, and is not asked about it again in this turn. */
  readonly leavesCall?: boolean;
}

/** Shows a run, asks for each approval that it waits for, and shows the runs that the answers start. */
export async function takeTurn(talk: Talk, start: () => Run, editor: Editor): Promise<void> {
  const face = turnFace(talk);
  for (let started: Started | undefined = { run: start() }; started !== undefined; ) {
    const result: RunResult | undefined = await show(talk, { ...started, face });
    const isAsked: boolean = result?.finish === 'waiting' && started.leavesCall !== true;
    started = isAsked ? await answerCalls(talk, editor) : undefined;
  }
}

/** Shows a run, and the runs that follow it, until they end or the user stops them. */
async function show(
  talk: Talk,
  { run, face }: Started & { readonly face: Face },
): Promise<RunResult | undefined> {
  const { context, deck, session } = talk;
  const runs = await talk.stoppable(
    async (io) => await printAll(run, { deck, session, face }, { ...context, io }),
  );
  const results = runs.map(({ result }) => result);
  // What others added between the prompt and its run.
  const [first] = results;
  if (first !== undefined && first.from > talk.seen + 1) await showUnseen(talk, first.from - 1);
  talk.seen = Math.max(talk.seen, ...results.map(({ to }) => to));
  return results.at(-1);
}

/**
 * Asks for each approval that the session waits for, until the user leaves one, and gives the answers. Returns the run
 * that they start; undefined without one.
 */
export async function answerCalls(talk: Talk, editor: Editor): Promise<Started | undefined> {
  const { named, session } = talk;
  const { waiting } = await session.status();
  const decisions: (readonly [id: string, decision: Decision])[] = [];
  for (const call of waiting) {
    const decision = call.for === 'approval' ? await decisionOn(talk, call, editor) : undefined;
    if (decision === undefined) {
      sayLeft(talk, call);
      break;
    }
    talk.calls.set(call.toolCallId, call);
    decisions.push([call.toolCallId, decision]);
  }
  let started: Started | undefined;
  for (const [i, [id, decision]] of decisions.entries()) {
    const { run } = await session.respond(id, decision, { ...named, start: i === decisions.length - 1 });
    if (run !== undefined) started = { run, leavesCall: decisions.length < waiting.length };
  }
  return started;
}

/** Says how a call that the user left can be answered. */
function sayLeft({ context, session }: Talk, { name, toolCallId, for: awaited }: WaitingCall): void {
  const how = awaited === 'result' ? ' --output JSON' : '';
  const answer = awaited === 'tool' ? '' : `: tape approve ${session.name} ${toolCallId}${how}`;
  context.status(`${name} ${awaitedOf[awaited]}${answer}; a prompt answers it as superseded`);
}

/** Characters and rows of arguments that a question shows: what a user does not see is not approved. */
const [charsMax, rowsMax] = [16_000, 200];

/** Shows a call and asks for an answer; undefined when the user leaves it. */
async function decisionOn(talk: Talk, call: WaitingCall, editor: Editor): Promise<Decision | undefined> {
  const { io, style } = talk.context;
  const { toolCallId: id, name, input } = call;
  const isLong = JSON.stringify(input).length > charsMax;
  const rows = isLong ? [] : callRows({ id, name, input }, { ...placeOf(talk), full: true });
  if (isLong || rows.length > rowsMax) {
    const text = `The arguments of ${safe(name)} are too long to be shown here: see /show`;
    await io.out(`${style.text('yellow', text)}\n`);
    return undefined;
  }
  await io.out(`${rows.join('\n')}\n`);
  for (;;) {
    const line = await editor.ask('Run it? [y]es, [n]o, n REASON, [l]ater: ', { isQuestion: true });
    if (line === undefined || /^\s*l(?:ater)?\s*$/i.test(line)) return undefined;
    if (/^\s*y(?:es)?\s*$/i.test(line)) return { approved: true };
    const denied = /^\s*no?(?:[\s,:]+(.*?))?\s*$/is.exec(line);
    if (denied === null) continue;
    const [, reason = ''] = denied;
    return { approved: false, ...(reason !== '' && { reason }) };
  }
}
