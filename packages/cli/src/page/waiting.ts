import type { WaitingCall } from '@tapedeck/runtime';
import type { SessionInfo, SqliteTapeStore } from '@tapedeck/tape';
import { awaitedOf, isAnswerable, toolCommand } from '../output/run.ts';
import { argumentLines, callsOf } from '../transcript/parts.ts';
import type { Command, WaitingCall as Waiting } from './data.ts';
import { lineOf, type PageSource } from './source.ts';
import { kept } from './texts.ts';

/** Calls of an answer. */
const callsMax = 50;
/** Characters of the arguments of a call. */
const inputMax = 2_000;

/** The calls that a session waits for, and those below it that wait for answers. */
export async function waitingCalls(source: PageSource, info: SessionInfo): Promise<readonly Waiting[]> {
  const { store } = source;
  const { waitsOf } = await import('@tapedeck/runtime/internal');
  const waits = await waitsOf(store, info.id);
  return waits.slice(0, callsMax).map((call) => {
    const { toolCallId, name, input, session = info.session, claims = [] } = call;
    const seq = placeOf(store, session, toolCallId);
    const { text, cut } = kept(
      argumentLines(input).join('\n'),
      inputMax,
      lineOf(source, 'show', `${session}@${seq}`),
    );
    return {
      session,
      seq,
      call: toolCallId,
      tool: name,
      input: text,
      ...(cut !== undefined && { cut }),
      for: call.for,
      what: awaitedOf[call.for],
      claims,
      commands: commandsFor(source, info.session, call),
    };
  });
}

/** Where a call was made: it is open, so it is at the end. The id of one below has the name of its session before it. */
function placeOf(store: SqliteTapeStore, session: string, id: string): number {
  const info = store.sessions.find(session);
  if (info === undefined) return 0;
  const own = id.startsWith(`${session}/`) ? id.slice(session.length + 1) : id;
  for (const entry of store.entries.read(info.id, { from: info.settled + 1, calls: true }))
    if (callsOf(entry).some((call) => call.id === own || call.id === id)) return entry.seq;
  return info.head;
}

function commandsFor(source: PageSource, session: string, call: WaitingCall): readonly Command[] {
  const { toolCallId: id } = call;
  if (call.for === 'tool')
    return [{ what: 'Run it', line: source.inHome(toolCommand(call.session ?? session)) }];
  if (!isAnswerable(call)) return [{ what: 'See its children', line: lineOf(source, 'status', session) }];
  const answer = lineOf(source, 'approve', session, id);
  return call.for === 'result'
    ? [{ what: 'Give its result', line: `${answer} --output JSON` }]
    : [
        { what: 'Approve', line: answer },
        { what: 'Deny', line: `${answer} --deny` },
      ];
}
