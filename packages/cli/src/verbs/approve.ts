import type { Deck, Sent, Session, WaitingCall } from '@tapedeck/runtime';
import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { UsageError } from '../errors/kinds.ts';
import { commandLine } from '../escape.ts';
import { readJson } from '../input.ts';
import { namedIn, runOptions } from '../options/model.ts';
import { senderLine } from '../output/run.ts';
import { needSession } from '../session/place.ts';
import { configUnlessRun, sendAndFollow } from '../session/sent.ts';
import { defineVerb, type Verb } from './verb.ts';

export const approve: Verb = defineVerb({
  command: 'approve <name> [call]',
  group: 'Run',
  summary: 'Approve, deny or answer a pending tool call, and continue',
  detail:
    'Without CALL, answers the only pending call: of the session, or of a session below it, to which it delegates; with --yes, ' +
    'approves all of them. When that ' +
    'session has ended, the one that waits for it goes on, with the same --model. The run continues in this process, or in the process that runs the session. ' +
    'A message sent to the session instead (run with a prompt, send) denies all pending calls as superseded. ' +
    'What rules ask has offers, such as write(/a/b), write(/a/**), exec(git *) or mcp_notes_*: tape run lists them by number. With --remember, ' +
    'the answer counts for good for the offers of these numbers. It answers what asks, and never lifts what is denied; a rewind takes it back. ' +
    'While the session answers a message of another session whose rules ask, it asks again.',
  examples: [
    [
      'tape approve main --model openai-compatible/gpt-oss',
      'Run the pending call, or that of a child of main',
    ],
    ['tape approve main --yes', 'Run all pending calls, and those that the run asks for then'],
    ['tape approve main call_1 --remember 1', 'Run it, and ask no more about what its first offer covers'],
    ['tape approve main call_1 --deny --reason "not on a Friday"', 'Deny it; the model receives the reason'],
    [`tape approve main call_1 --output '{"temperature":7}'`, 'Give the result of a call that ran elsewhere'],
  ],
  arguments: { name: 'Session', call: 'Id of the call' },
  options: {
    ...runOptions,
    deny: { type: 'boolean', describe: 'Deny the call' },
    remember: {
      type: 'list',
      takes: 'N',
      describe:
        'Give the answer for good, for this offer of the call: its number in tape status, from 1. The session keeps it, and its later forks',
    },
    reason: { type: 'string', describe: 'Reason; the model receives it' },
    output: { type: 'string', describe: 'Result of a call that ran elsewhere: JSON (- for stdin, @FILE)' },
    wait: {
      type: 'number',
      negatable: true,
      default: 0,
      describe: 'Seconds to wait until the process that runs the session takes the answer',
    },
  },
  conflicts: { output: ['deny', 'reason', 'remember'] },
  run: async (args, context) => {
    const { name, call, deny, reason, output } = args;
    const { io } = context;
    const given = output === undefined ? undefined : { output: await readJson(output, '--output', io) };
    const config = await configUnlessRun(args, context, { creates: false });
    return await context.changing(async (store) => {
      const info = needSession(store, name);
      const isAll = args.yes === true && call === undefined && deny !== true && given === undefined;
      const waiting = await waitingCalls(store, info, call, {
        isOutput: given !== undefined,
        isDenied: deny === true,
        isAll: isAll && args.remember === undefined,
      });
      const [first] = waiting;
      const below = waiting.find(({ session }) => session !== undefined)?.session;
      const remember = args.remember?.map((number) => offerOf(first, number));
      const answer = given ?? {
        approved: deny !== true,
        ...(reason !== undefined && { reason }),
        ...(remember !== undefined && { remember }),
      };
      const { askedFor = [] } = first;
      if (remember !== undefined && deny !== true && askedFor.length > 0)
        context.status(`The answer counts for good in ${below ?? info.session}; ${senderLine(askedFor)}`);
      const options = namedIn(args);
      // At the session that the user names: the options are for it and for the session of the call.
      const send = async (to: Session, start: boolean, deck: Deck) => {
        const session = await deck.session(info.session);
        return await respondTo(session, waiting, { answer, options: { ...options, start }, to: to.name });
      };
      return await sendAndFollow(
        {
          store,
          session: below ?? info.session,
          above: info.session,
          also: waiting.flatMap((one) => one.session ?? []),
          config,
          send,
          what: 'the answer',
        },
        args,
        context,
      );
    });
  },
});

/**
 * Gives an answer to calls of a session and of those below it. Each of these runs once it has all of its answers. Returns
 * what became of the last answer to the session `to`. One that was given before is left as it is.
 */
async function respondTo(
  session: Session,
  calls: readonly WaitingCall[],
  {
    answer,
    options,
    to,
  }: {
    readonly answer: Parameters<Session['respond']>[1];
    readonly options: NonNullable<Parameters<Session['respond']>[2]>;
    readonly to: string;
  },
): Promise<Sent> {
  const { SessionError } = await import('@tapedeck/runtime');
  let sent: Sent | undefined;
  for (const [i, { toolCallId, session: of = session.name }] of calls.entries()) {
    const isLast = !calls.slice(i + 1).some((later) => (later.session ?? session.name) === of);
    try {
      const start = isLast && options.start !== false;
      const one = await session.respond(toolCallId, answer, { ...options, start });
      if (of === to) sent = one;
    } catch (error) {
      const isGiven = error instanceof SessionError && error.code === 'SESSION_NO_CALL';
      if (!isGiven || calls.length === 1 || (of === to && isLast && sent === undefined)) throw error;
    }
  }
  if (sent === undefined) throw new TypeError('the session has no call to answer');
  return sent;
}

/**
 * The offer of a call that a number names.
 * @throws UsageError with the offers
 */
function offerOf({ toolCallId, offers = [] }: WaitingCall, number: string): string {
  const offer = /^\d+$/.test(number) ? offers[Number(number) - 1] : undefined;
  if (offer !== undefined) return offer;
  const known = offers.map((one, i) => `${i + 1} ${one}`).join(', ');
  throw new UsageError(
    `cannot remember offer ${number} of call '${toolCallId}': ${known === '' ? 'it has none' : `its offers are ${known}`}`,
  );
}

/**
 * The pending call of that id, or the only one; with `isAll`, all that wait for approval.
 * @throws SESSION_NO_CALL when no such call waits for an answer
 * @throws UsageError when several wait, or the call waits for another kind of answer
 */
async function waitingCalls(
  store: HomeStore,
  { id: of, session: name }: SessionInfo,
  id: string | undefined,
  { isOutput, isDenied, isAll }: Readonly<Record<'isOutput' | 'isDenied' | 'isAll', boolean>>,
): Promise<readonly [WaitingCall, ...WaitingCall[]]> {
  const { SessionError } = await import('@tapedeck/runtime');
  const { leftAfterAnswer, waitsOf } = await import('@tapedeck/runtime/internal');
  const all = await waitsOf(store, of);
  const waiting = all.filter((one) => one.for === 'approval' || one.for === 'result');
  const [asking, ...more] = waiting.filter((one) => one.for === 'approval');
  if (isAll && asking !== undefined) return [asking, ...more];
  const isNamed = ({ toolCallId }: WaitingCall) => id === undefined || toolCallId === id;
  const isBelow = ({ toolCallId, session }: WaitingCall) =>
    session !== undefined && toolCallId === `${session}/${id}`;
  const approved = all.filter((one) => one.for === 'tool');
  const found = [
    waiting.filter(isNamed),
    waiting.filter(isBelow),
    approved.filter(isNamed),
    approved.filter(isBelow),
  ];
  const [call, ...others] = found.find((calls) => calls.length > 0) ?? [];
  const ids = waiting.map((one) => `${one.toolCallId} (${one.name})`).join(', ');
  const data = { session: name, waiting: waiting.map(({ toolCallId }) => toolCallId) };
  if (call === undefined) {
    const what = id === undefined ? 'a call' : `call '${id}'`;
    const why = ids === '' ? 'no call is pending' : `the pending calls are: ${ids}`;
    const children = waiting.length === 0 && all.length > 0;
    const left = await leftAfterAnswer(store, of);
    throw new SessionError('SESSION_NO_CALL', `cannot answer ${what} of '${name}': ${why}`, {
      data: {
        ...data,
        ...(children && { children }),
        ...(left !== undefined && { left: left.session }),
      },
    });
  }
  if (call.for === 'tool')
    throw new SessionError(
      'SESSION_NO_CALL',
      `cannot answer call '${call.toolCallId}' of '${name}': it is approved, and waits for a run that has the tool '${call.name}'`,
      { data: { ...data, without_tool: call.session ?? name } },
    );
  if (others.length > 0)
    throw new UsageError(`cannot answer a call of '${name}': several are pending: ${ids}`, {
      data,
      hint: answerHint(name, [call, ...others]),
    });
  if (isOutput && call.for === 'approval')
    throw new UsageError(
      `cannot give the output of call '${call.toolCallId}': it is pending approval, and runs once approved`,
      { data },
    );
  if (!isOutput && !isDenied && call.for === 'result')
    throw new UsageError(`cannot approve call '${call.toolCallId}': it waits for its result`, {
      data,
      hint: `give it with: ${commandLine('approve', [name, call.toolCallId], ['--output JSON'])}`,
    });
  return [call];
}

/** The most calls that a hint names. */
const hintedMax = 5;

/** The command that answers each of some calls, and the one that approves all. */
function answerHint(name: string, calls: readonly WaitingCall[]): string {
  const one = (call: WaitingCall) =>
    commandLine('approve', [name, call.toolCallId], call.for === 'result' ? ['--output JSON'] : []);
  const some = calls.slice(0, hintedMax).map(one).join('; ');
  const rest =
    calls.length > hintedMax
      ? `; and ${calls.length - hintedMax} more: ${commandLine('status', [name])}`
      : '';
  const isAsking = calls.some((call) => call.for === 'approval');
  return `answer each with: ${some}${rest}${isAsking ? `; or approve all with: ${commandLine('approve', [name], ['--yes'])}` : ''}`;
}
