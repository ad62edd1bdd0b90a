import type { Decision, Finish, Run, RunResult, WaitingCall } from '@tapedeck/runtime';
import type { Context } from '../context.ts';
import { commandLine, safe } from '../escape.ts';
import { awaitedOf, type Face, offerLines } from '../output/run.ts';
import { type Following, printAbove, printAll } from '../session/background.ts';
import { callRows } from '../transcript/item-rows.ts';
import { Editor } from './editor.ts';
import { placeOf, turnFace } from './face.ts';
import { showUnseen, type Talk } from './talk.ts';

/** A run that was started. A `Run` is a promise, so it is inside of an object. */
interface Started {
  /** Absent when only sessions below have begun. */
  readonly run?: Run;
  /** The sessions below whose runs answers have started, before the session goes on itself. */
  readonly below?: readonly Following[];
  /** The user left another call waiting, and is not asked about it again in this turn. */
  readonly leavesCall?: boolean;
}

/**
 * Shows a run, asks for each approval that it waits for, and shows the runs that the answers start. Returns the result of
 * the last one.
 */
export async function takeTurn(
  talk: Talk,
  start: () => Started,
  editor: Editor,
): Promise<RunResult | undefined> {
  const face = turnFace(talk);
  let result: RunResult | undefined;
  for (let started: Started | undefined = start(); started !== undefined; ) {
    result = await show(talk, { ...started, face });
    const waits: boolean = started.below === undefined ? result?.finish === 'waiting' : await isWaiting(talk);
    const isAsked: boolean = waits && started.leavesCall !== true;
    started = isAsked ? await answerCalls(talk, editor) : undefined;
  }
  return result;
}

/** Shows a run, and the runs that follow it, until they end or the user stops them. */
async function show(
  talk: Talk,
  { run, below, face }: Started & { readonly face: Face },
): Promise<RunResult | undefined> {
  const { context, deck, session } = talk;
  const runs = await talk.stoppable(async (io) => [
    ...(run === undefined ? [] : await printAll(run, { deck, session, face }, { ...context, io })),
    ...(below === undefined
      ? []
      : await printAbove(below, { deck, above: session, face }, { ...context, io })),
  ]);
  const results = runs.map(({ result }) => result).filter((result) => result.session === session.name);
  // What others added between the prompt and its run.
  const [first] = results;
  if (first !== undefined && first.from > talk.seen + 1) await showUnseen(talk, first.from - 1);
  talk.seen = Math.max(talk.seen, ...results.map(({ to }) => to));
  return results.at(-1);
}

async function isWaiting({ session }: Talk): Promise<boolean> {
  return (await session.status()).state === 'waiting';
}

/**
 * Asks for each approval that the session waits for, also in sessions below it, until the user leaves one, and gives the answers. Returns the run
 * that they start; undefined without one.
 */
export async function answerCalls(talk: Talk, editor: Editor): Promise<Started | undefined> {
  const { named, session } = talk;
  const { waitsOf } = await import('@tapedeck/runtime/internal');
  const waiting = (await waitsOf(talk.store, session.id)).filter((call) => call.for !== 'children');
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
  const leavesCall = decisions.length < waiting.length;
  let started: Started | undefined;
  const below: Following[] = [];
  for (const [i, [id, decision]] of decisions.entries()) {
    const name = waiting.find(({ toolCallId }) => toolCallId === id)?.session;
    const start = name !== undefined || i === decisions.length - 1;
    const { run } = await session.respond(id, decision, { ...named, start });
    if (run === undefined) continue;
    if (name === undefined) started = { run, leavesCall };
    else below.push({ run, name });
  }
  return below.length === 0 ? started : { leavesCall, ...started, below };
}

/**
 * Asks at the terminal for each approval that a session waits for after the run of another verb, and shows the runs that the
 * answers start, until none waits or the user leaves one. Returns how it ended; undefined without a terminal.
 */
export async function answerAtTerminal(
  given: Pick<Talk, 'deck' | 'session' | 'named' | 'store'>,
  context: Context,
): Promise<Finish | undefined> {
  const { io, options } = context;
  const isForProgram = options.json === true || options.jsonl === true || options.quiet === true;
  const terminal = isForProgram ? undefined : io.terminal();
  if (terminal === undefined) return undefined;
  const editor = new Editor(terminal, { marksPastes: io.env.TERM !== 'dumb' });
  const talk: Talk = {
    ...given,
    context,
    configured: undefined,
    seen: (await given.session.info()).head,
    stoppable: async (act) => await act(io),
    calls: new Map(),
  };
  const started = await answerCalls(talk, editor);
  const result = started === undefined ? undefined : await takeTurn(talk, () => started, editor);
  return (await isWaiting(talk)) ? 'waiting' : (result?.finish ?? 'stop');
}

/** Says how a call that the user left can be answered. */
function sayLeft({ context, session }: Talk, { name, toolCallId, for: awaited }: WaitingCall): void {
  const how = awaited === 'result' ? ['--output JSON'] : [];
  const answer = awaited === 'tool' ? '' : `: ${commandLine('approve', [session.name, toolCallId], how)}`;
  context.status(`${name} ${awaitedOf[awaited]}${context.inHome(answer)}; a prompt answers it as superseded`);
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
  const of = call.session === undefined ? [] : [style.text('dim', `Of ${safe(call.session)}:`)];
  const { offers = [] } = call;
  await io.out(`${[...of, ...rows, ...offerLines(call, '').map(safe)].join('\n')}\n`);
  const numbers = offers.length < 2 ? '1' : `1-${offers.length}`;
  const always = offers.length === 0 ? '' : `, ${numbers} always`;
  for (;;) {
    const line = await editor.ask(`Run it? [y]es, [n]o, n REASON, [l]ater${always}: `, { isQuestion: true });
    if (line === undefined || /^\s*l(?:ater)?\s*$/i.test(line)) return undefined;
    if (/^\s*y(?:es)?\s*$/i.test(line)) return { approved: true };
    const offer = /^\s*\d+\s*$/.test(line) ? offers[Number(line) - 1] : undefined;
    if (offer !== undefined) return { approved: true, remember: [offer] };
    const denied = /^\s*no?(?:[\s,:]+(.*?))?\s*$/is.exec(line);
    if (denied === null) continue;
    const [, reason = ''] = denied;
    return { approved: false, ...(reason !== '' && { reason }) };
  }
}
