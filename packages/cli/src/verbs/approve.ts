import type { Session, WaitingCall } from '@tapedeck/runtime';
import type { SessionInfo, SqliteTapeStore } from '@tapedeck/tape';
import { UsageError } from '../errors/kinds.ts';
import { readJson } from '../input.ts';
import { runOptions } from '../options/model.ts';
import { needSession } from '../session/place.ts';
import { configUnlessRun, sendAndFollow } from '../session/sent.ts';
import { defineVerb, type Verb } from './verb.ts';

export const approve: Verb = defineVerb({
  command: 'approve <name> [call]',
  group: 'Change direction',
  summary: 'Answer a tool call that waits, and go on with the run',
  detail:
    'Without CALL it is the only one that waits. The run goes on here, as by run, or in the process that has the session. A ' +
    'message that is sent instead answers all calls that wait: superseded.',
  examples: [
    ['tape approve main --model openai-compatible/gpt-oss', 'Let the call be run that waits'],
    ['tape approve main call_1 --deny --reason "not on a Friday"', 'The model is told the reason'],
    [
      `tape approve main call_1 --output '{"temperature":7}'`,
      'Give the result of a call that is run elsewhere',
    ],
  ],
  options: (y) =>
    runOptions(y)
      .positional('name', { type: 'string', demandOption: true, describe: 'Session' })
      .positional('call', { type: 'string', describe: 'Id of the call' })
      .option('deny', { type: 'boolean', describe: 'It must not be run' })
      .option('reason', { type: 'string', requiresArg: true, describe: 'Why; the model is told' })
      .option('output', {
        type: 'string',
        requiresArg: true,
        describe: 'The result of a call that nothing here can run: JSON (- for stdin, @FILE)',
      })
      .option('wait', {
        type: 'number',
        requiresArg: true,
        default: 0,
        describe: 'Seconds to wait for who runs it to take the answer up',
      })
      .conflicts('output', ['deny', 'reason']),
  run: async (args, context) => {
    const { name, call, deny, reason, output } = args;
    const { io } = context;
    const given = output === undefined ? undefined : { output: await readJson(output, '--output', io) };
    const config = await configUnlessRun(args, context);
    return await context.changing(async (store) => {
      const info = needSession(store, name);
      const { toolCallId } = await waitingCall(store, info, call, {
        isOutput: given !== undefined,
        isDenied: deny === true,
      });
      const answer = given ?? { approved: deny !== true, ...(reason !== undefined && { reason }) };
      const model = args.model === undefined ? {} : { model: args.model };
      const leave = (session: Session, takeUp: boolean) =>
        session.respond(toolCallId, answer, { ...model, takeUp });
      return await sendAndFollow(
        { store, session: info.name, config, send: leave, what: 'the answer' },
        args,
        context,
      );
    });
  },
});

/** The call that is meant, which must be one that waits for this kind of answer. */
async function waitingCall(
  store: SqliteTapeStore,
  { id: of, name }: SessionInfo,
  id: string | undefined,
  { isOutput, isDenied }: { readonly isOutput: boolean; readonly isDenied: boolean },
): Promise<WaitingCall> {
  const [{ statusOf }, { SessionError }] = await Promise.all([
    import('@tapedeck/runtime/status'),
    import('@tapedeck/runtime'),
  ]);
  const { waiting } = await statusOf({ store }, { id: of });
  const [call, ...others] = waiting.filter(({ toolCallId }) => id === undefined || toolCallId === id);
  const ids = waiting.map((one) => `${one.toolCallId} (${one.name})`).join(', ');
  const data = { session: name, waiting: waiting.map(({ toolCallId }) => toolCallId) };
  if (call === undefined) {
    const what = id === undefined ? 'a call' : `call '${id}'`;
    const why = ids === '' ? 'none waits for an answer' : `only these wait for an answer: ${ids}`;
    throw new SessionError('SESSION_NO_CALL', `cannot answer ${what} of '${name}': ${why}`, { data });
  }
  if (others.length > 0)
    throw new UsageError(`cannot answer a call of '${name}': several wait: ${ids}`, {
      data,
      hint: `name one with: tape approve ${name} ${call.toolCallId}`,
    });
  if (call.for === 'tool')
    throw new SessionError(
      'SESSION_NO_CALL',
      `cannot answer call '${call.toolCallId}' of '${name}': it is approved, and waits for a run in which '${call.name}' is offered`,
      { data },
    );
  if (isOutput && call.for === 'approval')
    throw new UsageError(
      `cannot give the output of call '${call.toolCallId}': it waits for an approval, and is run then`,
      { data },
    );
  if (!isOutput && !isDenied && call.for === 'result')
    throw new UsageError(`cannot approve call '${call.toolCallId}': it waits for its result`, {
      data,
      hint: `give it with: tape approve ${name} ${call.toolCallId} --output JSON`,
    });
  return call;
}
