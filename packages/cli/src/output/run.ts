import type {
  CallName,
  ChildProgress,
  Finish,
  Run,
  RunResult,
  SessionEvent,
  WaitingCall,
} from '@tapedeck/runtime';
import type { Context } from '../context.ts';
import { hintFor } from '../errors/hint.ts';
import { commandLine, oneLine, SafePieces } from '../escape.ts';
import { exit } from '../exit.ts';
import { counted } from './counted.ts';
import { usageJson } from './usage.ts';

/** An ended run with its result. A `Run` is a promise, so it is returned inside an object. */
export interface PrintedRun {
  readonly run: Run;
  readonly result: RunResult;
}

/** How a run looks beside its answers. */
export interface Face {
  /** Shows an event. */
  event(event: SessionEvent): Promise<void> | void;
  /** Shows how the run ended. */
  end(result: RunResult): Promise<void> | void;
}

/** Lines of status, which scripts and people read. */
export function statusFace({ options, status }: Context): Face {
  let waiting: readonly WaitingCall[] = [];
  return {
    event: (event) => {
      if (event.type === 'tool-waiting') waiting = event.calls;
      statusLines(event).forEach(status);
    },
    end: (result) => {
      if (result.nothingToContinue === true) status(`${result.session}: nothing to continue`);
      if (options.json !== true && options.jsonl !== true && result.finish !== 'stop')
        endLines(result, waiting).forEach(status);
    },
  };
}

/**
 * Prints a run as it proceeds, and the runs of inbox messages that follow it: answers on stdout, everything
 * else on stderr; with `--json` no answers. Ctrl-C aborts the active run.
 */
export async function printRuns(
  first: Run,
  context: Context,
  face: Face = statusFace(context),
): Promise<readonly PrintedRun[]> {
  const ended: PrintedRun[] = [];
  for (let run: Run | undefined = first; run !== undefined; run = run.following) {
    if (ended.length > 0) context.status('Running the messages in the inbox');
    ended.push({ run, result: await printRun(run, context, face) });
  }
  return ended;
}

async function printRun(run: Run, { io, options }: Context, face: Face): Promise<RunResult> {
  const asJson = options.json === true || options.jsonl === true;
  const stop = () => run.abort('interrupted');
  io.signal.addEventListener('abort', stop);
  if (io.signal.aborted) stop();
  try {
    let open = false;
    const answer = new SafePieces();
    for await (const event of run) {
      if (event.type === 'content-chunk' && !asJson) {
        await io.out(answer.take(event.text));
        open = !event.text.endsWith('\n');
      } else if (endsAnswer.has(event.type) && open) {
        // Each answer of a run ends with a newline.
        await io.out(`${answer.rest()}\n`);
        open = false;
      }
      await face.event(event);
    }
    const result = await run;
    if (open) await io.out(`${answer.rest()}\n`);
    await face.end(result);
    return result;
  } finally {
    io.signal.removeEventListener('abort', stop);
  }
}

/** Events that come after a whole answer. */
const endsAnswer: ReadonlySet<SessionEvent['type']> = new Set(['tool-detected', 'iteration-completed']);

/** The status lines of a run that did not end as usual. */
export function endLines(
  { session, finish, error }: RunResult,
  waiting: readonly WaitingCall[] = [],
): readonly string[] {
  if (error === undefined)
    return [
      `The run ended: ${finish}`,
      ...(finish === 'waiting' ? [`Hint: ${waitingHint(session, waiting)}`] : []),
    ];
  const hint = hintFor(error.code, error.data);
  return [`Error: ${error.message}`, ...(hint === undefined ? [] : [`Hint: ${hint}`])];
}

/** What answers the calls that a session waits for. */
export function waitingHint(session: string, calls: readonly WaitingCall[]): string {
  const answerable = calls.filter(isAnswerable);
  const call = answerable[0] ?? calls.find(({ for: what }) => what === 'tool') ?? calls[0];
  if (call === undefined) return `see what it waits for with: ${commandLine('status', [session])}`;
  if (call.for === 'tool')
    return toolHint(
      session,
      calls.flatMap((one) => (one.for === 'tool' ? (one.session ?? session) : [])),
    );
  if (call.for === 'children')
    return `see what its children wait for with: ${commandLine('status', [session])}`;
  const words = [session, ...(answerable.length === 1 ? [] : [call.toolCallId])];
  return call.for === 'result'
    ? `give the result with: ${commandLine('approve', words, ['--output JSON'])}`
    : `approve it with: ${commandLine('approve', words)}; or deny it with: ${commandLine('approve', words, ['--deny'])}`;
}

/** Whether a call waits for what `tape approve` gives. */
export function isAnswerable({ for: what }: WaitingCall): boolean {
  return what === 'approval' || what === 'result';
}

/** What lets approved calls run that wait for their tools: in one session, or in several below one. */
export function toolHint(session: string, waiting?: readonly string[]): string {
  return `run it with a configuration that has the tool: ${toolCommand(session, waiting)}`;
}

/** The command of that hint. */
export function toolCommand(session: string, waiting: readonly string[] = [session]): string {
  const [first = session, ...others] = new Set(waiting);
  const options = ['--config FILE'];
  return others.length === 0
    ? commandLine('run', [first], options)
    : commandLine('recover', [session], options);
}

/** What the approval of a call can be given for, for good, each with the number that an answer names. */
export function offerLines(
  { offers = [], askedFor = [] }: Pick<WaitingCall, 'offers' | 'askedFor'>,
  how = '--remember ',
): readonly string[] {
  const lines = offers.map((offer, i) => `  ${how}${i + 1}: always ${oneLine(offer, inputMax)}`);
  return askedFor.length === 0 ? lines : [...lines, `  ${senderLine(askedFor)}`];
}

/** Says for whom an answer that counts for good does not count. */
export function senderLine(askedFor: readonly string[]): string {
  const names = askedFor.map((name) => oneLine(name, inputMax)).join(', ');
  return `messages of ${names} are asked about each time, by the rules of the sender`;
}

/** The status lines of an event of a run; none for most events. */
export function statusLines(event: SessionEvent): readonly string[] {
  switch (event.type) {
    case 'inbox-waiting':
      return [`${event.items} waiting in the inbox`];
    case 'steered':
      return [`Added ${event.messages === 1 ? 'a message' : `${event.messages} messages`} to the run`];
    case 'superseded':
      return [
        ...(event.calls.length === 0
          ? []
          : [
              `Answered ${counted(event.calls.length, 'waiting call')} as superseded: ${callNames(event.calls)}`,
            ]),
        ...(event.parted ?? []).map(
          (call) =>
            `Answered ${callNames([call])} with what has come of its children so far: each is merged when it ends`,
        ),
      ];
    case 'tool-started':
      return [`→ ${event.name}${event.display === undefined ? '' : ` ${event.display}`}`];
    case 'tool-completed':
      return event.success ? [] : [failureLine(event)];
    case 'tool-waiting':
      return event.calls.flatMap((call) => [waitingLine(call), ...offerLines(call)]);
    case 'compacted':
      return [`Summarised ${event.range.join('-')}: ${summarisedFor[event.trigger]}`];
    case 'pruned':
      return [`Pruned ${counted(event.outputs, 'tool output')}: about ${counted(event.tokens, 'token')}`];
    case 'retrying':
      return [
        `Retrying (${event.attempt})${delayText(event.delayMs)}: ${oneLine(event.message, failureMax)}`,
      ];
    case 'child-progress':
      return childLines(event);
    case 'warning':
      return [`Warning: ${oneLine(event.message, failureMax)}`];
    default:
      return [];
  }
}

/** A call that waits, and what for. */
export function waitingLine({ name, toolCallId, input, for: awaited, session }: WaitingCall): string {
  const of = session === undefined ? '' : ` of ${session}`;
  return `${name}${of} ${awaitedOf[awaited]}: ${toolCallId} ${oneLine(JSON.stringify(input), inputMax)}`;
}

/** The most calls that a line names. */
const namedMax = 5;

function callNames(calls: readonly CallName[]): string {
  const names = calls.slice(0, namedMax).map(({ name, toolCallId }) => `${name} ${toolCallId}`);
  return names.join(', ') + (calls.length > namedMax ? ` and ${calls.length - namedMax} more` : '');
}

/** The line of a child that starts, waits or has ended. What it does meanwhile has none. */
function childLines({
  session,
  state,
  steps,
  tokens,
  tool,
  status,
  error,
}: ChildProgress): readonly string[] {
  if (state === 'started') return [`  ${session} started`];
  if (state === 'waiting') return [`  ${session} waits${tool === undefined ? '' : `: ${tool}`}`];
  if (state !== 'ended') return [];
  const why = error === undefined ? '' : `: ${oneLine(error, failureMax)}`;
  return [`  ${session} ${status}, ${counted(steps, 'step')}, ${counted(tokens, 'token')}${why}`];
}

/** A delay that a person notices. */
function delayText(ms: number): string {
  return ms < 1_000 ? '' : ` in ${Math.round(ms / 1_000)} s`;
}

/** The reason of a compaction as text. */
const summarisedFor = {
  manual: 'requested',
  threshold: 'the context window was nearly full',
  overflow: 'the view was too large for the model',
  'model-switch': 'the next model has a smaller context window',
} as const;

/** The state of a pending call as text. */
export const awaitedOf = {
  approval: 'waits for approval',
  result: 'waits for its result',
  tool: 'is approved, and waits for a run with its tool',
  children: 'waits for its children',
} as const;

/** Maximum number of characters of the input of a call; `--json` has all of it. */
export const inputMax = 200;

/** The failure of a call on one line. */
export function failureLine({ name, output }: { readonly name: string; readonly output: unknown }): string {
  return `  ${name} failed: ${oneLine(String(output), failureMax)}`;
}

/** Maximum number of characters of a failure; the tape has all of it. */
const failureMax = 1_000;

/** A run as `--json` prints it; `others` are the further runs of the same command. */
export function resultJson(
  result: RunResult,
  others: readonly RunResult[] = [],
): Readonly<Record<string, unknown>> {
  const { session, run, text, finish, steps, usage, from, to, error, nothingToContinue } = result;
  return {
    session,
    run,
    text,
    finish,
    steps,
    usage: usageJson(usage),
    from,
    to,
    ...(error !== undefined && {
      error: {
        code: error.code,
        message: error.message,
        ...(error.data.retryAt !== undefined && { retry_at: error.data.retryAt }),
      },
    }),
    ...(nothingToContinue === true && { nothing_to_continue: true }),
    ...(others.length > 0 && { other_runs: others.map((other) => resultJson(other)) }),
  };
}

/** The exit code of a run. */
export function exitOf(finish: Finish): number {
  if (finish === 'aborted') return exit.interrupted;
  if (finish === 'waiting') return exit.accepted;
  return finish === 'stop' || finish === 'length' ? exit.done : exit.failed;
}
